import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import torch

from eqlearn.cli import main
from eqlearn.symbolic.equation import Equation

OPTIONS = ["--states", "x,v", "--time", "t", "--id", "run"]
SMALL = ["--primitives", "id square mul", "--hidden-layers", "1", "--restarts", "30"]


def rotation(noise=0.0):
    """Two series of a rotation, x + i v turning once in 2π."""
    t, rng = 0.1 * np.arange(60), np.random.default_rng(0)
    frames = []
    for run, size in enumerate((1.0, 0.6)):
        x, v = size * np.cos(t), -size * np.sin(t)
        frame = pd.DataFrame({"run": run, "t": t, "x": x, "v": v})
        frame[["x", "v"]] += noise * rng.normal(size=(len(t), 2))
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rotation().to_csv("turn.csv", index=False)
    return tmp_path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dynamics")
    rotation().to_csv(folder / "turn.csv", index=False)
    words = ["dynamics", str(folder / "turn.csv"), *OPTIONS, *SMALL, "--out", str(folder / "run"), "--quiet"]
    assert main(words) == 0
    return folder / "run"


def refused(capsys, *words):
    """Runs a command that must be refused: code 2, one sentence, nothing on standard output."""
    code = main(["dynamics", *words])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("eqlearn: ")
    assert err.count("\n") == 1
    return err


def test_the_equations_of_motion_are_printed(here, capsys):
    assert main(["dynamics", "turn.csv", *OPTIONS, *SMALL]) == 0

    out, err = capsys.readouterr()
    assert out.startswith("dx/dt = v\ndv/dt = -x\n")
    assert "Exact equations of motion were found" in out
    assert "Report: runs/turn/report.html" in err


def test_json_is_one_object_that_programs_read(here, capsys):
    assert main(["dynamics", "turn.csv", *OPTIONS, *SMALL, "--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert (found["targets"], found["inputs"]) == (["dx/dt", "dv/dt"], ["x", "v"])
    assert found["data"]["dt"] == pytest.approx(0.1)


def test_a_step_of_time_stands_in_for_a_column_of_times(here, capsys):
    words = ["turn.csv", "--states", "x,v", "--id", "run", "--dt", "0.1", *SMALL, "--json"]

    assert main(["dynamics", *words]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["dt"] == 0.1


def test_a_map_is_an_equation_of_the_next_state(here, capsys):
    assert main(["dynamics", "turn.csv", *OPTIONS, *SMALL, "--form", "map", "--quiet"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" = ")[0] for line in lines] == ["x'", "v'"]


@pytest.fixture
def decays(here):
    """Six series x = exp(-k t), each with a k of its own, of unequal lengths; the last is at rest."""
    frames = []
    for run, k in enumerate((0.3, 0.5, 0.7, 0.9, 1.1, 0.6)):
        t = 0.1 * np.arange(40 - 2 * run)
        frames.append(pd.DataFrame({"run": 10 + run, "t": t, "x": np.exp(-k * t) * (run < 5)}))
    pd.concat(frames).to_csv("decays.csv", index=False)
    return here


def test_a_hidden_parameter_of_each_series_is_a_variable(decays, capsys):
    words = ["--states", "x", "--time", "t", "--id", "run", "--latents", "1", *SMALL, "--out", "found"]

    assert main(["dynamics", "decays.csv", *words]) == 0

    out = capsys.readouterr().out
    assert out.splitlines()[0] in ("dx/dt = -x*z", "dx/dt = -z*x")
    assert "z in each series:\n      10   z = 0.3" in out
    assert "15   z not determined by its motion" in out
    table = pd.read_csv(decays / "found" / "parameters.csv", index_col="id")
    np.testing.assert_allclose(table["z"][:5], [0.3, 0.5, 0.7, 0.9, 1.1], rtol=1e-4)
    assert table.loc[15].isna().all()


@pytest.mark.slow
def test_more_hidden_parameters_may_be_allowed_when_a_run_goes_on(decays, capsys):
    words = ["decays.csv", "--states", "x", "--time", "t", "--id", "run", *SMALL, "--out", "found", "--quiet"]
    main(["dynamics", *words, "--latents", "1"])
    first = capsys.readouterr().out

    assert main(["dynamics", *words, "--latents", "2", "--resume"]) == 0
    assert capsys.readouterr().out == first
    assert "was made with `--latents`=2, not 0" in refused(capsys, *words, "--resume")


def test_show_prints_the_run(run, capsys):
    assert main(["show", str(run)]) == 0
    assert capsys.readouterr().out.startswith("dx/dt = v\ndv/dt = -x\n")


@pytest.mark.parametrize("language", ["latex", "python", "torch", "c", "json"])
def test_show_prints_the_run_in_every_language(run, capsys, language):
    assert main(["show", str(run), "--as", language]) == 0
    assert capsys.readouterr().out


def test_the_shown_python_has_a_function_for_each_state(run, capsys):
    main(["show", str(run), "--as", "python"])
    space = {}
    exec(capsys.readouterr().out, space)

    assert (space["dx_dt"](2.0, 3.0), space["dv_dt"](2.0, 3.0)) == pytest.approx((3.0, -2.0))


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
def test_the_shown_c_has_a_function_for_each_state(run, capsys, tmp_path):
    main(["show", str(run), "--as", "c"])
    source, library = tmp_path / "motion.c", tmp_path / "motion.so"
    source.write_text(capsys.readouterr().out)
    options = ["-Wall", "-Werror", "-Wno-unused-parameter", "-shared", "-fPIC"]
    subprocess.run(["gcc", *options, "-o", library, source], check=True)

    functions = ctypes.CDLL(str(library))
    for name, value in {"dx_dt": 3.0, "dv_dt": -2.0}.items():
        function = getattr(functions, name)
        function.restype = ctypes.c_double
        assert function(ctypes.c_double(2.0), ctypes.c_double(3.0)) == pytest.approx(value)


def test_the_shown_torch_has_a_module_for_each_state(run, capsys):
    main(["show", str(run), "--as", "torch"])
    space = {}
    exec(capsys.readouterr().out, space)

    states = torch.tensor([[2.0, 3.0]], dtype=torch.float64)
    assert float(space["dv_dt_module"](states)) == pytest.approx(-2.0)


def test_one_equation_of_the_front_is_shown_as_json(run, capsys):
    main(["show", str(run), "--as", "json", "--index", "0"])

    assert [Equation.from_json(e).variables for e in json.loads(capsys.readouterr().out)] == [("x", "v")] * 2


def test_report_makes_the_same_page_again(run, capsys):
    before = (run / "report.html").read_text()

    assert main(["report", str(run)]) == 0

    assert (run / "report.html").read_text() == before


def test_the_page_shows_the_motion(run):
    page = (run / "report.html").read_text()

    assert "The motion" in page
    assert page.count('class="curve"') == 4


def test_predict_gives_rates(run, tmp_path, capsys):
    pd.DataFrame({"x": [1.0, 0.0], "v": [0.5, 2.0]}).to_csv(tmp_path / "new.csv", index=False)

    assert main(["predict", str(run), str(tmp_path / "new.csv")]) == 0

    head, *rows = capsys.readouterr().out.splitlines()
    assert head == "dx/dt,dv/dt"
    np.testing.assert_allclose(
        [[float(x) for x in r.split(",")] for r in rows], [[0.5, -1], [2, 0]], atol=1e-6
    )


def test_a_motion_that_does_not_fit_the_run_is_refused(run, tmp_path, capsys):
    import shutil

    import torch

    from eqlearn.io.checksummed import read_checksummed, write_tensors

    broken = tmp_path / "broken"
    shutil.copytree(run, broken)
    plain, tensors = read_checksummed(broken / "motion.safetensors")
    write_tensors(broken / "motion.safetensors", plain, {**tensors, "starts": torch.zeros(1, 5).double()})

    assert main(["report", str(broken)]) == 2
    assert "does not fit the run" in capsys.readouterr().err


def test_a_run_can_be_resumed_when_it_is_over(run, capsys):
    words = [str(run.parent / "turn.csv"), *OPTIONS, *SMALL, "--out", str(run), "--resume", "--quiet"]

    assert main(["dynamics", *words]) == 0
    assert capsys.readouterr().out.startswith("dx/dt = v\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nope.csv", "--states", "x"], "there is no file 'nope.csv'"),
        (["turn.csv"], "name the columns that move with `--states`"),
        (["turn.csv", "--states", "x,w"], "no column 'w'"),
        (["turn.csv", "--states", "x,v", "--time", "t"], "two rows at the time 0"),
        (["turn.csv", "--states", "x,x"], "'x' is named twice"),
        (["turn.csv", *OPTIONS, "--form", "pde"], "pde"),
        (["turn.csv", *OPTIONS, "--primitives", "sine"], "sine"),
        (["turn.csv", *OPTIONS, "--resume"], "`--resume` needs `--out`"),
        (["turn.csv", "--states", "x,v", "--id", "run"], "rates of change need a step of time"),
        (["turn.csv", *OPTIONS, "--dt", "0.1"], "`--dt` 0.1; leave one out"),
        (["turn.csv", "--states", "x,v", "--id", "run", "--dt", "0"], "`--dt` must be positive"),
    ],
)
def test_wrong_use_is_explained_in_one_sentence(here, capsys, words, message):
    assert message in refused(capsys, *words)


@pytest.mark.parametrize(
    ("change", "words", "message"),
    [
        (lambda f: f.assign(x=f.x.where(f.index != 3)), ["--form", "map"], "which a map can't step over"),
        (lambda f: f, ["--latents", "1", "--order", "2"], "go with neither `--inputs` nor `--order` 2"),
        (lambda f: f, ["--inputs", "w"], "no column 'w'"),
        (lambda f: f.assign(v=1.5), [], "v never changes, so it tells nothing; leave it out"),
        (lambda f: f[:61], [], "'run' 1 of 'bad.csv' has 1 row, which is no step of time; leave it out"),
        (lambda f: f.drop(columns="v"), [], "no column 'v'"),
        (lambda f: f.drop(index=5), ["--form", "map"], "uneven steps of time, which a map can't have"),
        (lambda f: f[:1], [], "has 1 row, which is no step of time"),
        (lambda f: f[:0], [], "holds no rows"),
        (lambda f: f, ["--latents", "1"], "give at least 5 series, each with a parameter of its own"),
    ],
)
def test_a_table_that_is_no_motion_is_explained_in_one_sentence(here, capsys, change, words, message):
    change(rotation()).to_csv("bad.csv", index=False)

    assert message in refused(capsys, "bad.csv", *OPTIONS, *SMALL, *words)


def test_a_refused_run_leaves_nothing_behind(here, capsys):
    rotation().groupby("run").head(4).to_csv("short.csv", index=False)

    assert "too few to tell a rate of change" in refused(capsys, "short.csv", *OPTIONS, "--out", "run")
    assert not (here / "run").exists()


def test_other_data_do_not_continue_a_run(run, here, capsys):
    assert "other data" in refused(
        capsys, "turn.csv", "--states", "x", "--id", "run", "--dt", "0.1", "--out", str(run), "--resume"
    )


def test_a_run_killed_at_any_moment_goes_on_to_the_same_equations(here, capsys):
    rotation(noise=0.02).to_csv("noisy.csv", index=False)
    words = ["dynamics", "noisy.csv", *OPTIONS, *SMALL, "--json", "--out"]
    assert main([*words, "whole"]) == 0
    whole = json.loads(capsys.readouterr().out)

    for seconds in (random.Random(0).uniform(3, 6), 8):
        child = subprocess.Popen(
            [sys.executable, "-m", "eqlearn.cli", *words, "cut", "--resume"],
            stdout=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        time.sleep(seconds)
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert main([*words, "cut", "--resume"]) == 0

    cut = json.loads(capsys.readouterr().out)
    assert {k: cut[k] for k in ("front", "pick", "noise", "restarts")} == {
        k: whole[k] for k in ("front", "pick", "noise", "restarts")
    }
