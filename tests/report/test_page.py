import json
import unicodedata

import pytest

from browser import CONTRAST
from eqlearn.report.page import page
from eqlearn.report.payload import embedded
from made_runs import make_record, make_sample

HOSTILE = "</script><script>window.owned = 1</script><img src=x onerror='window.owned = 1'>\"`{{script}}"


def circles(browser, chart):
    return browser.run(
        f"[...document.querySelectorAll('#{chart} circle.point')].map(c => c.getAttribute('cy')).join()"
    )


def curve(browser):
    return browser.run("document.querySelector('#beyond path.curve').getAttribute('d')")


def test_the_page_opens_from_disk_without_an_error_and_without_the_network(opened):
    browser = opened(make_record())

    assert browser.errors == []
    assert len(browser.requests) == 1
    assert browser.requests[0].startswith("file://")


def test_the_equation_is_typeset_as_text_that_can_be_selected(opened):
    browser = opened(make_record())

    browser.run("getSelection().selectAllChildren(document.querySelector('.hero .formula'))")
    # Browsers write variables in the letters that Unicode has for mathematics.
    selected = unicodedata.normalize("NFKC", browser.run("getSelection().toString()"))

    for part in ("y", "=", "1.5", "0.25", "a", "b"):
        assert part in selected


@pytest.mark.parametrize("chart", ["pareto", "fit", "residuals", "beyond", "history"])
def test_every_chart_is_drawn_inside_its_frame(opened, chart):
    browser = opened(make_record())

    numbers = browser.run(
        f"[...document.querySelectorAll('#{chart} svg *')].flatMap(e => [...e.attributes])"
        ".map(a => a.value).join(' ')"
    )

    assert numbers
    assert "NaN" not in numbers
    assert "undefined" not in numbers


def test_clicking_a_point_of_the_front_changes_the_plots(opened):
    browser = opened(make_record())
    before = [circles(browser, "fit"), circles(browser, "residuals"), curve(browser)]

    browser.click("#pareto .candidate[data-index='1'] .dot")

    after = [circles(browser, "fit"), circles(browser, "residuals"), curve(browser)]
    assert [a != b for a, b in zip(before, after, strict=True)] == [True, True, True]
    assert browser.run("document.querySelector('#choices input:checked').value") == "1"


def test_clicking_a_row_shows_its_equation(opened):
    browser = opened(make_record())

    browser.click("#choices tr[data-index='3'] td:last-child")

    assert "sin" in browser.run("document.querySelector('#shown').textContent")


def test_pointing_shows_an_equation_only_as_long_as_one_points(opened):
    browser = opened(make_record())
    before = circles(browser, "fit")

    browser.point("#pareto .candidate[data-index='0'] .dot")
    pointed = circles(browser, "fit")
    browser.point("h1")

    assert pointed != before
    assert circles(browser, "fit") == before


def test_the_arrow_keys_choose_an_equation_without_a_pointer(opened):
    browser = opened(make_record())
    before = circles(browser, "fit")
    browser.run("document.querySelector('#choices input:checked').focus()")

    browser.press("ArrowDown", 40)

    assert browser.run("document.querySelector('#choices input:checked').value") == "3"
    assert circles(browser, "fit") != before


@pytest.mark.parametrize("language", ["LaTeX", "text", "Python", "torch", "C"])
def test_a_button_copies_the_equation(opened, language):
    browser = opened(make_record())
    browser.run("navigator.clipboard.writeText = async (text) => { window.copied = text }")

    browser.click(f".hero button[data-language='{language}']")

    assert "1.5" in browser.run("window.copied")
    assert browser.run("document.querySelector('#toast').textContent") == f"{language} copied"


def test_a_browser_that_keeps_the_clipboard_to_itself_is_asked_the_old_way(opened):
    browser = opened(make_record())
    browser.run("navigator.clipboard.writeText = async () => { throw new Error('refused') }")
    browser.run("document.execCommand = (name) => { window.asked = name; return true }")

    browser.click(".hero button[data-language='LaTeX']")

    assert browser.run("window.asked") == "copy"


@pytest.mark.parametrize("width", [360, 400, 700, 1200])
def test_the_page_is_never_wider_than_the_window(opened, width):
    browser = opened(make_record(), width)

    assert browser.run("document.documentElement.scrollWidth") <= width


def test_charts_are_drawn_anew_when_the_window_changes(opened):
    browser = opened(make_record())

    browser.resize(500, 900)
    browser.settle()
    browser.settle()

    assert float(browser.run("document.querySelector('#fit svg').getAttribute('viewBox')").split()[2]) < 500


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_in_light_and_dark(opened, scheme):
    browser = opened(make_record())

    browser.media(prefers_color_scheme=scheme)

    # The least contrast between a text and what lies behind it, as the WCAG define it and ask for it.
    assert browser.run(CONTRAST) >= 4.5


def test_dark_is_dark_and_paper_is_white(opened):
    browser = opened(make_record())
    background = "getComputedStyle(document.body).backgroundColor"

    browser.media(prefers_color_scheme="dark")
    dark = browser.run(background)
    browser.media("print", prefers_color_scheme="dark")
    paper = browser.run(background)

    assert sum(map(int, dark[4:-1].split(","))) < 150
    assert paper == "rgb(255, 255, 255)"


def test_buttons_are_not_printed(opened):
    browser = opened(make_record())

    browser.media("print")

    assert browser.run("[...document.querySelectorAll('button')].every(b => b.offsetParent === null)")


def test_everything_that_can_be_clicked_can_be_reached_by_the_keyboard(opened):
    browser = opened(make_record())

    assert browser.run(
        "[...document.querySelectorAll('button, select, input, summary')].every(e => e.tabIndex >= 0)"
    )
    assert browser.run("document.querySelectorAll('#choices input').length") == 4


def test_hostile_names_are_shown_and_never_run(opened):
    record = make_record(
        inputs=(HOSTILE, "b"), targets=(HOSTILE,), network_inputs=(HOSTILE, "b"), ended=HOSTILE,
        failures={HOSTILE: 1}, settings={HOSTILE: HOSTILE}, environment={HOSTILE: HOSTILE},
        data={HOSTILE: HOSTILE},
    )  # fmt: skip

    browser = opened(record)

    assert browser.run("window.owned") is None
    assert browser.errors == []
    assert len(browser.requests) == 1
    assert browser.run("document.querySelectorAll('img, iframe, object').length") == 0
    assert "</script>" in browser.run("document.querySelector('.hero').textContent")


def test_no_other_script_could_run_even_if_it_got_into_the_page(opened):
    browser = opened(make_record())

    browser.run("window.injected = document.createElement('script')")
    browser.run("window.injected.textContent = 'window.owned = 1'")
    browser.run("document.body.append(window.injected)")

    assert browser.run("window.owned") is None


def test_several_targets_can_be_chosen(opened):
    browser = opened(make_record(targets=("u", "v")))

    assert browser.run("document.querySelectorAll('.hero .formula').length") == 2
    assert browser.run("document.querySelector('#output-choice').hidden") is False


def test_a_front_of_one_constant_makes_a_page_too(opened):
    browser = opened(make_record(front=("2.0",), pick=0))

    assert browser.errors == []
    assert "No law was found" in browser.run("document.querySelector('.verdict').textContent")


def test_values_that_are_not_finite_leave_gaps(opened):
    browser = opened(make_record(front=("log({0} - 1.2)", "sqrt({0} - 1)"), pick=0))

    assert browser.errors == []
    assert "NaN" not in curve(browser)


def test_what_is_filled_in_is_not_filled_again():
    record = make_record(targets=("{{data}}",))

    assert page(record, make_sample(record), None).count('"measured"') == 1


@pytest.mark.parametrize("text", ["</script>", "<!--", "]]>", "\u2028", "&lt;", '"', "\\", "\0"])
def test_embedded_data_can_not_break_out(text):
    inside = embedded({"a": text})

    assert not set("<>&\u2028") & set(inside)
    assert json.loads(inside) == {"a": text}
