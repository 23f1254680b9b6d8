"""Run folders made by hand, and a browser to open their pages."""

from dataclasses import replace

import pytest
from browser import EXECUTABLE, Browser
from made_runs import make_network, make_record, make_sample

from eqlearn.report.folder import RunFolder
from eqlearn.report.page import page


@pytest.fixture
def record():
    return make_record()


@pytest.fixture
def write_run(tmp_path):
    """Writes a whole run folder from a record, as a search would."""

    def write_run(record, name="run"):
        folder = RunFolder(tmp_path / name)
        sample, network = make_sample(record), make_network(record)
        best = replace(record.best, network=network)
        front = tuple(best if i == record.pick else c for i, c in enumerate(record.front))
        with folder.locked():
            folder.write_results(replace(record, front=front), sample)
            folder.write_text("report.html", page(record, sample, network))
        return folder

    return write_run


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if EXECUTABLE is None:
        pytest.skip("no Chromium is installed (Debian: apt install chromium)")
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def opened(browser, write_run):
    """Opens the page of a record from disk; the browser has forgotten all earlier pages."""

    def opened(record, width=1200, height=900):
        folder = write_run(record)
        browser.errors.clear()
        browser.requests.clear()
        browser.media()
        browser.open(folder.path / "report.html", width, height)
        return browser

    return opened
