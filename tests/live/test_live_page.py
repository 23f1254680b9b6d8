"""The live page in a real browser."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

from browser import CONTRAST, Browser
from made_live import MadeRun, served
from made_runs import make_record

HOSTILE = "<img src=x onerror=alert(1)>"
EXPLAINED = "document.querySelector('.status').textContent"


@pytest.fixture
def visited(browser, tmp_path):
    """Opens the page of some runs."""
    servers = []

    def visited(*runs, width=1200, height=900, **options):
        serving = served(list(runs), tmp_path / "runs", **options)
        server = serving.__enter__()
        servers.append(serving)
        browser.errors.clear()
        browser.requests.clear()
        browser.media()
        browser.visit(server.address, width, height)
        browser.until("document.querySelectorAll('.run').length || !document.querySelector('#none').hidden")
        return server

    yield visited
    browser.visit("about:blank")
    for serving in servers:
        serving.__exit__(None, None, None)


@pytest.fixture
def under_way(tmp_path):
    run = MadeRun(tmp_path / "under-way")
    run.goes_on(2)
    return run


def rows(browser):
    return browser.run("document.querySelectorAll('#rows tr').length")


def shown(browser):
    return browser.run("document.querySelector('#shown').textContent")


def test_the_front_grows_while_one_watches(browser, visited, under_way):
    visited(under_way.folder)
    browser.until("document.querySelectorAll('#rows tr').length === 2")
    before = shown(browser)

    under_way.goes_on(3, rounds=5)
    browser.until("document.querySelectorAll('#rows tr').length === 3")

    assert shown(browser) != before
    assert browser.run("document.querySelectorAll('#pareto .candidate').length") == 3
    assert browser.run("document.querySelectorAll('#fit circle.point').length") == 60
    assert browser.run("document.querySelectorAll('#residuals circle.point').length") == 60
    words = browser.run(EXPLAINED)
    assert "5 rounds" in words
    assert re.search(r"\d+ s left of", words)
    assert browser.errors == []


def test_the_page_asks_nothing_of_any_other_machine(browser, visited, under_way):
    server = visited(under_way.folder)
    browser.until("document.querySelectorAll('#rows tr').length")

    assert {url.split("/")[2] for url in browser.requests} == {f"127.0.0.1:{server.server_port}"}


def test_the_button_stops_a_search(browser, visited, under_way):
    visited(under_way.folder)
    browser.until("document.querySelectorAll('#rows tr').length")

    browser.click("button.stop")
    browser.until(f"{EXPLAINED}.includes('stopping')")

    assert (under_way.folder.path / "stop").exists()
    under_way.ended()
    browser.until("document.querySelector('.status.finished')")
    browser.until("!document.querySelector('#verdict').hidden")
    assert browser.run("document.querySelector('button.stop').hidden")


def test_a_chosen_equation_stays_chosen_while_the_front_grows(browser, visited, under_way):
    visited(under_way.folder)
    browser.until("document.querySelectorAll('#rows tr').length === 2")

    browser.click("#pareto .candidate[data-index='0'] .dot")
    browser.point("h1")
    before = shown(browser)
    under_way.goes_on(4)
    browser.until("document.querySelectorAll('#rows tr').length === 4")

    assert shown(browser) == before
    assert browser.run("document.querySelector('#rows input:checked').value") == "0"


def test_the_keyboard_chooses_copies_pins_and_stops(browser, visited, under_way):
    under_way.goes_on(4)
    visited(under_way.folder)
    browser.until("document.querySelectorAll('#rows tr').length === 4")
    browser.run("navigator.clipboard.writeText = async (text) => { window.copied = text }")

    browser.run("document.querySelector('#rows input:checked').focus()")
    browser.press("ArrowUp", 38)
    browser.press("ArrowUp", 38)
    assert browser.run("document.querySelector('#rows input:checked').value") == "1"
    browser.run("document.querySelector('#pin').focus()")
    browser.press(" ", 32)
    browser.until("document.querySelector('#pin').getAttribute('aria-pressed') === 'true'")
    browser.run("document.querySelector('#shown-copies button[data-language=LaTeX]').focus()")
    browser.press(" ", 32)
    browser.run("document.querySelector('button.stop').focus()")
    browser.press(" ", 32)
    browser.until(f"{EXPLAINED}.includes('stopping')")

    assert "1.5" in browser.run("window.copied")
    assert {"favourite.json", "stop"} <= {p.name for p in under_way.folder.path.iterdir()}
    assert browser.run("document.querySelector('#rows .badge.star').textContent") == "★ pinned"
    assert browser.run(
        "[...document.querySelectorAll('button, select, input, a')].every(e => e.tabIndex >= 0)"
    )


def test_a_reload_shows_the_same(browser, visited, under_way):
    server = visited(under_way.folder)
    browser.until("document.querySelectorAll('#rows tr').length")
    browser.click("#rows tr[data-index='0'] td:last-child")
    browser.click("#pin")
    browser.until("document.querySelector('#rows .badge.star')")

    browser.visit(server.address)
    browser.until("document.querySelectorAll('#rows tr').length")

    assert browser.run("document.querySelectorAll('#rows .badge.star').length") == 1
    assert browser.errors == []


def test_several_runs_stand_side_by_side_with_the_same_axes(browser, visited, under_way, write_run, record):
    visited(under_way.folder, write_run(record))
    browser.until("document.querySelectorAll('.run .candidate').length === 6")

    labels = browser.run(
        "[...document.querySelectorAll('.run .chart')].map(c => [...c.querySelectorAll('text')]"
        ".map(t => t.textContent).join('|'))"
    )
    browser.click(".run[data-run='1'] .actions button")

    assert labels[0] == labels[1]
    left, right = browser.run("[...document.querySelectorAll('.run')].map(r => r.getBoundingClientRect().x)")
    assert left < right
    assert rows(browser) == 4
    assert browser.run("document.querySelector('#front').textContent").endswith("run")


def test_hostile_names_are_shown_and_never_run(browser, visited, tmp_path):
    record = make_record(inputs=(HOSTILE, "b"), targets=(HOSTILE,), network_inputs=(HOSTILE, "b"))
    run = MadeRun(tmp_path / "hostile", record)
    run.goes_on(4)

    visited(run.folder)
    browser.until("document.querySelectorAll('#rows tr').length === 4")

    assert browser.errors == []
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert HOSTILE in browser.run("document.querySelector('#shown').textContent")
    assert all("/x" not in url for url in browser.requests)


def test_no_other_script_could_run_even_if_it_got_into_the_page(browser, visited, under_way):
    visited(under_way.folder)

    browser.run("window.injected = document.createElement('script')")
    browser.run("window.injected.textContent = 'window.owned = 1'")
    browser.run("document.body.append(window.injected)")

    assert browser.run("window.owned") is None


def test_a_second_browser_without_the_token_is_refused(visited, under_way, tmp_path):
    server = visited(under_way.folder)
    other = Browser(tmp_path / "profile")
    try:
        other.visit(f"http://127.0.0.1:{server.server_port}/")
        refused = other.run("document.body.textContent")
        other.visit(f"http://127.0.0.1:{server.server_port}/?token=guess")
        guessed = other.run("document.body.textContent")
    finally:
        other.close()

    assert "needs the whole address" in refused
    assert guessed == refused


def test_the_page_says_that_its_server_has_ended(browser, visited, under_way):
    server = visited(under_way.folder)
    browser.until("document.querySelectorAll('#rows tr').length")

    server.shutdown()
    server.socket.close()
    browser.until("!document.querySelector('#gone').hidden")

    assert "has ended" in browser.run("document.querySelector('#gone').textContent")
    assert rows(browser) == 2


@pytest.mark.parametrize("width", [380, 700, 1200])
def test_the_page_is_never_wider_than_the_window(browser, visited, under_way, write_run, record, width):
    under_way.goes_on(4)
    visited(under_way.folder, write_run(record), width=width)
    browser.until("document.querySelectorAll('#rows tr').length === 4")

    assert browser.run("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_in_light_and_dark(browser, visited, under_way, scheme):
    visited(under_way.folder)
    browser.until("document.querySelectorAll('#rows tr').length")
    browser.media(prefers_color_scheme=scheme)

    assert browser.run(CONTRAST) >= 4.5


def drop(browser, text, name):
    browser.run(
        f"""(() => {{
            const data = new DataTransfer();
            data.items.add(new File([{json.dumps(text)}], {json.dumps(name)}));
            document.body.dispatchEvent(new DragEvent("drop", {{ dataTransfer: data, bubbles: true }}));
        }})()"""
    )


def line(columns="a,b,y"):
    return columns + "\n" + "".join(f"{k},{k * k % 7},{2.5 * k}\n" for k in range(1, 13))


def test_a_table_that_is_dropped_offers_its_columns(browser, visited):
    visited()

    drop(browser, line(f"{HOSTILE},b,y"), f"{HOSTILE}.csv")
    browser.until("!document.querySelector('#start').hidden")

    assert browser.run("[...document.querySelectorAll('#target option')].map(o => o.textContent)") == [
        HOSTILE,
        "b",
        "y",
    ]
    assert browser.run("document.querySelector('#target').selectedOptions[0].textContent") == "y"
    assert browser.run("document.querySelectorAll('#columns input:checked:not(:disabled)').length") == 2
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.errors == []


def test_a_table_that_is_none_is_refused_on_the_page(browser, visited):
    visited()

    drop(browser, "a,a\n1,2\n", "twice.csv")
    browser.until("!document.querySelector('#problem').hidden")

    assert "several columns named 'a'" in browser.run("document.querySelector('#problem').textContent")


@pytest.mark.slow
def test_a_search_is_started_from_the_page_and_finds_the_law(browser, visited, tmp_path, unchecked_types):
    visited()
    drop(browser, line(), "line.csv")
    browser.until("!document.querySelector('#start').hidden")

    browser.run("document.querySelector('#seconds').value = '30'")
    browser.click("#start button.go")
    browser.until("document.querySelector('.status.finished')", 120)

    assert "exact" in browser.run("document.querySelector('.figures').textContent")
    assert (tmp_path / "runs" / "line" / "report.html").exists()
    assert browser.errors == []


# --- with the processes of the command line ---------------------------------------------------------------


@pytest.fixture
def searching(tmp_path):
    """`eqlearn fit --live`, a search that does not end by itself, with its address."""
    rng = np.random.default_rng(0)
    a, b, c = columns = rng.uniform(0.5, 3, size=(3, 60))
    y = np.sin(2 * a * b) + c / (1 + b**2) + 0.05 * rng.normal(size=60)
    table = tmp_path / "data.csv"
    np.savetxt(table, np.vstack([columns, y]).T, delimiter=",", header="a,b,c,y", comments="")
    endless = "import eqlearn.search.search as s; s._ended = lambda *_: ''; import eqlearn.cli as c; c.main()"
    words = ["fit", str(table), "--target", "y", "--live", "--no-browser"]
    command = [sys.executable, "-c", endless, *words]
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    process.address = process.stderr.readline().split()[-1]
    yield process
    process.kill()
    process.communicate()


def ended(address, seconds=30):
    """Whether nobody answers any more, soon."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(address, timeout=5).close()
        except urllib.error.HTTPError as refused:
            refused.close()
        except TimeoutError:
            continue  # it has not answered yet: a busy machine
        except OSError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
def test_a_search_is_watched_and_stopped_and_its_page_stays(browser, searching, tmp_path):
    browser.errors.clear()
    browser.visit(searching.address)
    browser.until("document.querySelectorAll('#rows tr').length", 120)

    browser.click("button.stop")
    browser.until("document.querySelector('.status.finished')", 120)

    assert "interrupted" in browser.run(EXPLAINED)
    assert browser.run("document.querySelectorAll('#fit circle.point').length") == 60
    assert (tmp_path / "runs" / "data" / "equation.json").exists()
    assert any("stays until Ctrl-C" in line for line in iter(searching.stderr.readline, ""))
    searching.send_signal(signal.SIGINT)
    out, _ = searching.communicate(timeout=60)
    assert searching.returncode == 0
    assert out.startswith("y = ")
    assert ended(searching.address)


def test_the_server_dies_with_a_search_that_is_killed(searching):
    assert not ended(searching.address, 0.2)

    os.kill(searching.pid, signal.SIGKILL)

    assert ended(searching.address)
