"""`eqlearn reproduce kinematics` and `oscillator`, as users run them."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

from eqlearn.errors import Diverged, InvalidArgument
from eqlearn.latent.motion.find import train_dynamics
from eqlearn.paper.commands import app
from eqlearn.paper.dynamics.presets import DYNAMICS_PRESETS, find_preset
from eqlearn.paper.dynamics.trials import equation_trial
from eqlearn.training.state import restart_seed

QUICK = ["kinematics", "--quick", "--no-twins", "--out"]
PATIENCE = 300.0


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("kinematics")
    result = CliRunner().invoke(app, [*QUICK, str(folder)])
    assert result.exit_code == 0, result.output
    return folder


def trials(folder, condition="modern"):
    return json.loads((folder / f"{condition}-quick.json").read_text())["trials"]


def test_a_quick_look_leaves_table_picture_and_trials(quick):
    assert {p.name for p in quick.iterdir()} == {f"modern-quick.{e}" for e in ("json", "md", "png")}
    assert set(trials(quick)) == {"eql 0", "euler 0"}
    assert trials(quick)["eql 0"]["right"]
    assert "paper: found" in (quick / "modern-quick.md").read_text()


def test_a_search_has_no_penalty(tmp_path):
    result = CliRunner().invoke(app, [*QUICK, str(tmp_path), "--penalty", "l0"])

    assert isinstance(result.exception, InvalidArgument)
    assert "the search has no penalty" in str(result.exception)


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was_to_the_same_end(tmp_path):
    words, whole, part = [*QUICK[:-1], "--preset", "paper", "--out"], tmp_path / "whole", tmp_path / "part"
    result = CliRunner().invoke(app, [*words, str(whole)])
    assert result.exit_code == 0, result.output
    command = [sys.executable, "-c", "from eqlearn.paper.commands import app; app()", *words, str(part)]
    threads = {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    state, began = part / "paper-half-quick-0" / "training.safetensors", time.monotonic()
    with subprocess.Popen(command, env=os.environ | threads, stdout=subprocess.DEVNULL) as run:
        while not state.exists() and run.poll() is None and time.monotonic() - began < PATIENCE:
            time.sleep(0.02)
        run.kill()
    assert state.exists()
    assert not (part / "paper-half-quick.json").exists()

    again = CliRunner().invoke(app, [*words, str(part)])

    assert again.exit_code == 0, again.output
    assert "step 100" not in again.output  # what was trained is not trained again
    mine, other = trials(part, "paper-half")["eql 0"], trials(whole, "paper-half")["eql 0"]
    clocks = {"seconds": 0, "cpu_seconds": 0}
    assert mine | clocks == other | clocks
    assert not state.exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in DYNAMICS_PRESETS if "modern" not in name])
def test_each_recipe_ends_and_begins_again_after_a_loss_that_is_not_finite(name, monkeypatch, tmp_path):
    preset, calls = DYNAMICS_PRESETS[name], []
    brief = tuple(replace(phase, steps=3) for phase in preset.settings.schedule)

    def once_diverging(*arguments, **options):
        calls.append(options["seed"])
        if len(calls) == 1:
            raise Diverged("one step", 3)
        return train_dynamics(*arguments, **options)

    monkeypatch.setattr("eqlearn.paper.dynamics.trials.train_dynamics", once_diverging)
    trial = equation_trial(
        replace(preset, settings=replace(preset.settings, schedule=brief)), 4, journal=tmp_path
    )

    assert calls == [4, restart_seed(4, 1)]
    assert trial["failure"] or trial["restarts"] == 1  # three steps need not have led to a latent
    assert "non-finite" not in trial["failure"]


@pytest.mark.slow
def test_kinematics_reaches_its_table():
    trial = equation_trial(find_preset("kinematics", "modern"), 0)

    assert trial["right"]
    assert abs(trial["correlation"]) > 0.9999


@pytest.mark.slow
def test_the_oscillator_reaches_its_table():
    trial = equation_trial(find_preset("oscillator", "modern"), 0)

    assert trial["right"]
    assert abs(trial["correlation"]) > 0.999
