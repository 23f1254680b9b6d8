import os
import signal
import time

import numpy as np
import pytest

from eqlearn.errors import InvalidArgument
from eqlearn.io.checksummed import read_checksummed
from eqlearn.io.tables import Measurements
from eqlearn.report.record import RunRecord
from eqlearn.runs import session
from eqlearn.runs.folder import RunFolder
from eqlearn.runs.session import Plan, search
from eqlearn.runs.under_way import Pace, ask_to_stop, is_alive, stoppable
from eqlearn.search.search import Progress
from made_live import MadeRun

QUICK = Pace(look=0.01)


def measurements():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3, size=(40, 2))
    y = 1.3 * np.sin(2 * X[:, :1]) + 0.4 * X[:, 1:] + 0.05 * rng.normal(size=(40, 1))
    return Measurements(X, y, ("a", "b"), ("y",), "'data.csv'", 40)


def test_the_front_so_far_can_be_read_by_others(tmp_path):
    run = MadeRun(tmp_path / "run")

    run.goes_on(3)

    plain = read_checksummed(tmp_path / "run" / "progress.json")[0]
    record = RunRecord.from_json(plain, "progress.json")
    assert list(map(str, record.front)) == list(map(str, run.record.front[:3]))
    assert record.pick == 2
    assert time.time() - plain["began"] == pytest.approx(3.0, abs=2.0)


def test_a_search_without_a_front_has_one_of_its_best_so_far(tmp_path):
    run = MadeRun(tmp_path / "run")

    for place, best in enumerate(run.record.front[:3]):
        run.history(Progress(place + 1, 1, 1.0, best))

    assert list(map(str, run.history.front)) == list(map(str, run.record.front[:3]))


@pytest.mark.parametrize("ignored", [False, True], ids=["", "where Ctrl-C is ignored"])
def test_a_request_to_stop_ends_the_block_as_ctrl_c_does(tmp_path, ignored):
    folder = RunFolder(tmp_path)
    handler = signal.SIG_IGN if ignored else signal.default_int_handler
    before = signal.signal(signal.SIGINT, handler)

    def asked():
        with stoppable(folder, QUICK):
            (tmp_path / "stop").touch()
            time.sleep(30)

    try:
        with pytest.raises(KeyboardInterrupt):
            asked()
    finally:
        signal.signal(signal.SIGINT, before)

    assert not (tmp_path / "stop").exists()


def test_a_request_to_an_earlier_process_is_forgotten(tmp_path):
    (tmp_path / "stop").touch()

    with stoppable(RunFolder(tmp_path), QUICK):
        time.sleep(0.1)


def test_signs_of_life_are_shown_while_a_search_runs(tmp_path):
    folder = RunFolder(tmp_path)
    (tmp_path / ".lock").touch()
    os.utime(tmp_path / ".lock", (0, 0))
    assert not is_alive(folder)

    with stoppable(folder, QUICK):
        time.sleep(0.2)
        assert is_alive(folder)


def test_nobody_asks_a_run_that_is_not_under_way(write_run, record, tmp_path):
    with pytest.raises(InvalidArgument, match="no search under way"):
        ask_to_stop(write_run(record))
    run = MadeRun(tmp_path / "dead")
    run.died()
    with pytest.raises(InvalidArgument, match="no search under way"):
        ask_to_stop(run.folder)


def test_a_search_that_is_asked_to_stop_keeps_its_best_and_leaves_a_whole_folder(tmp_path):
    folder = RunFolder(tmp_path / "run")

    record = search(
        folder, measurements(), Plan(), progress=lambda state: (tmp_path / "run" / "stop").touch()
    )

    assert record.ended == "interrupted"
    assert RunFolder(tmp_path / "run").read().best.equations == record.best.equations
    names = {p.name for p in (tmp_path / "run").iterdir()}
    assert {"report.html", "equation.json", "sample.safetensors"} <= names
    assert not {"stop", "progress.json"} & names


def test_a_search_interrupted_in_its_last_fits_keeps_the_best_so_far(tmp_path, monkeypatch):
    real = session.discover

    def interrupted(*arguments, **options):
        real(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "discover", interrupted)

    record = search(RunFolder(tmp_path / "run"), measurements(), Plan(restarts=2))

    assert record.ended == "interrupted"
    assert (tmp_path / "run" / "report.html").exists()


def test_a_search_interrupted_before_its_first_round_is_interrupted(tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "discover", interrupted)

    with pytest.raises(KeyboardInterrupt):
        search(RunFolder(tmp_path / "run"), measurements(), Plan(restarts=2))
