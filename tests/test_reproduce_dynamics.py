"""`eqlearn reproduce kinematics` and `oscillator`, as users run them."""

import json

import pytest
from typer.testing import CliRunner

from eqlearn.experiments.dynamics_presets import find_preset
from eqlearn.experiments.dynamics_trials import equation_trial
from eqlearn.reproduce import app


def test_a_quick_look_leaves_table_picture_and_trials(tmp_path):
    command = ["kinematics", "--quick", "--no-twins", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, command)

    assert result.exit_code == 0, result.output
    assert {p.name for p in tmp_path.iterdir()} == {f"modern-half-quick.{e}" for e in ("json", "md", "png")}
    trials = json.loads((tmp_path / "modern-half-quick.json").read_text())["trials"]
    assert set(trials) == {"eql 0", "euler 0"}
    assert "paper: found" in (tmp_path / "modern-half-quick.md").read_text()


@pytest.mark.slow
def test_kinematics_reaches_its_table():
    trial = equation_trial(find_preset("kinematics", "modern", "half"), 0)

    assert trial["right"]
    assert abs(trial["correlation"]) > 0.9999


@pytest.mark.slow
def test_the_oscillator_reaches_its_table():
    trial = equation_trial(find_preset("oscillator", "modern", "half"), 0)

    assert trial["right"]
    assert abs(trial["correlation"]) > 0.999
