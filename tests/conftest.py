"""Checks every shape and type annotation of the package while the tests run; run folders and a browser."""

from dataclasses import replace

import hypothesis
import jaxtyping
import pytest

jaxtyping.install_import_hook("eqlearn", "beartype.beartype")

# Reproducible, and without a time limit per example, which a busy machine would break.
hypothesis.settings.register_profile("eqlearn", deadline=None, derandomize=True)
hypothesis.settings.load_profile("eqlearn")


@pytest.fixture
def unchecked_types():
    """Lets an argument of the wrong type through to the library's own check, as it is for users."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def record():
    from made_runs import make_record

    return make_record()


@pytest.fixture
def write_run(tmp_path):
    """Writes a whole run folder from a record, as a search would."""
    from eqlearn.report.page import page
    from eqlearn.runs.folder import RunFolder
    from made_runs import make_network, make_sample

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
    """Chromium, one for all tests of a worker."""
    from browser import EXECUTABLE, Browser

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
