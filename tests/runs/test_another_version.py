"""What another version, or other strategies, began: refused in a sentence, never mixed."""

import json

import numpy as np
import pandas as pd
import pytest

import eqlearn
from eqlearn import Settings, discover, errors
from eqlearn.cli import main
from eqlearn.search.step import Memory, StepResult

FIT = ["fit", "line.csv", "--target", "y", "--out", "run", "--quiet"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A finished run in its folder, and its `run.json`."""
    monkeypatch.chdir(tmp_path)
    x = np.linspace(1, 2, 20)
    pd.DataFrame({"x": x, "y": 3 * x + 1}).to_csv("line.csv", index=False)
    assert main(FIT) == 0
    return tmp_path / "run" / "run.json"


def test_a_run_says_its_version_and_strategies_and_each_candidate_its_method(run):
    said = json.loads(run.read_text())

    assert said["environment"]["eqlearn"] == eqlearn.__version__
    assert said["settings"]["strategies"] == list(Settings().strategies)
    assert "linear" in {candidate["method"] for candidate in said["front"]}


def test_the_same_version_goes_on(run):
    assert main([*FIT, "--resume"]) == 0


def rewritten(run, change):
    from eqlearn.io.checksummed import read_checksummed, write_json

    said = read_checksummed(run)[0]
    change(said)
    write_json(run, said)


def test_a_run_of_another_version_is_not_continued(run, capsys):
    rewritten(run, lambda said: said["environment"].update(eqlearn="0.1.0"))

    assert main([*FIT, "--resume"]) == 2

    message = capsys.readouterr().err
    assert "begun by eqlearn 0.1.0" in message
    assert message.count("\n") == 1


def test_a_run_with_other_strategies_is_not_continued(run, capsys):
    rewritten(run, lambda said: said["settings"].update(strategies=["sums"]))

    assert main([*FIT, "--resume"]) == 2

    assert "strategies" in capsys.readouterr().err


def test_a_run_that_does_not_say_its_version_is_not_continued(run, capsys):
    rewritten(run, lambda said: said.update(environment=None))

    assert main([*FIT, "--resume"]) == 2

    assert "begun by eqlearn None" in capsys.readouterr().err


def test_a_run_of_an_earlier_version_can_still_be_shown(run, capsys):
    def as_before(said):
        for candidate in said["front"]:
            del candidate["method"]
            candidate["round"] = 0
        del said["settings"]["strategies"]

    rewritten(run, as_before)
    capsys.readouterr()

    assert main(["show", "run", "--as", "latex"]) == 0

    assert capsys.readouterr().out.strip() == "3 x + 1"


def test_a_journal_of_other_strategies_is_refused():
    journal = Memory("data", 0)
    journal.record(StepResult(0, "sums", [], 1, 0))

    with pytest.raises(errors.InvalidArgument, match="'sums', where this search takes 'linear'"):
        discover([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0], journal=journal)
