import io
import json
import os
import signal
import subprocess
import sys
import time
import types

import numpy as np
import pandas as pd
import pytest

from eqlearn.cli import main

COMMANDS = ["fit", "predict", "show", "report", "open"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to work in, with a small table whose law is found at once."""
    monkeypatch.chdir(tmp_path)
    a = np.linspace(1, 4, 12)
    frame = pd.DataFrame({"a": a, "b": np.cos(7 * a), "y": 2.5 * a})
    frame.to_csv("line.csv", index=False)
    return tmp_path


@pytest.fixture
def run(here, capsys):
    assert main(["fit", "line.csv", "--target", "y", "--restarts", "2", "--out", "run", "--quiet"]) == 0
    capsys.readouterr()
    return here / "run"


def refused(capsys, *words):
    """Runs a command that must be refused: code 2, one sentence, nothing on standard output."""
    code = main(list(words))
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("eqlearn: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


def test_fit_prints_the_law_and_says_where_its_report_is(here, capsys):
    code = main(["fit", "line.csv", "--target", "y", "--restarts", "2"])

    out, err = capsys.readouterr()
    assert code == 0
    assert out.startswith("y = ")
    assert "An exact law was found" in out
    assert "Report: runs/line/report.html" in err
    assert (here / "runs" / "line" / "report.html").exists()


def test_fit_ends_with_a_plot_and_then_the_page(here, capsys):
    assert main(["fit", "line.csv", "--target", "y", "--restarts", "2"]) == 0

    out, err = capsys.readouterr()
    assert "●" in out
    assert "└" in out.splitlines()[-2]
    assert err.splitlines()[-1].startswith("Report: ")


def test_a_terminal_without_unicode_gets_a_plot_in_ascii(run, monkeypatch):
    screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", screen)

    assert main(["show", "run"]) == 0
    screen.flush()
    assert "+-----" in screen.buffer.getvalue().decode("ascii")


def test_columns_of_errors_are_no_inputs(here, capsys):
    rows = "".join(f"{a},{2 * a + 0.1 * (-1) ** a},0.1,0.02\n" for a in range(1, 25))
    (here / "known.csv").write_text("a,y,sy,sa\n" + rows)
    words = ["fit", "known.csv", "--target", "y", "--y-error", "sy", "--x-error", "a=sa", "--restarts", "2"]

    assert main([*words, "--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert found["inputs"] == ["a"]
    assert found["front"][found["pick"]]["reduced_chi_square"] == pytest.approx(1.0, abs=0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--y-error", "sz"], "no column 'sz'"),
        (["--y-error", "1,2"], "an error for each of 1 target"),
        (["--y-error", "y"], "can't be an error as well"),
        (["--x-error", "a=0.1"], "`--x-error` needs `--y-error`"),
        (["--y-error", "1", "--x-error", "a"], "pairs such as a=0.1"),
        (["--y-error", "1", "--x-error", "y=1"], "which is no input"),
        (["--y-error", "-1"], "none negative"),
    ],
)
def test_errors_that_make_no_sense_are_refused(here, capsys, options, message):
    assert message in refused(capsys, "fit", "line.csv", "--target", "y", *options)


def test_rows_far_off_the_law_are_named(here, capsys):
    rows = [f"{a},{999 if a == 7 else 2 * a + 1}\n" for a in range(1, 31)]
    (here / "misprint.csv").write_text("a,y\n" + "".join(rows))

    assert main(["fit", "misprint.csv", "--target", "y", "--loss", "auto", "--restarts", "4"]) == 0

    out = capsys.readouterr().out
    assert out.startswith("y = 2*a + 1")
    assert "1 row far off the law left out: 7." in out


def test_missing_values_are_never_made_up(here, capsys):
    assert "leave those rows out" in refused(capsys, "fit", "line.csv", "--target", "y", "--impute")


@pytest.fixture
def falls(here):
    rows = "".join(f"{m},{m % 5 + 1},{m * 9.5 * (m % 5 + 1)}\n" for m in range(1, 25))
    (here / "falls.csv").write_text("m,h,E\nkg,m,J\n" + rows)
    (here / "units.toml").write_text('[units]\nm = "kg"\nh = "m"\nE = "kg*m"\n')


def test_units_come_from_a_file(falls, capsys):
    words = ["fit", "falls.csv", "--target", "E", "--units", "units.toml", "--restarts", "4"]

    assert main(words) == 0
    out = capsys.readouterr().out
    assert "E = 9.5*h*m" in out.replace("19*h*m/2", "9.5*h*m")
    assert "Units: m in kg, h in m, E in kg*m." in out


def test_units_of_the_table_are_checked(falls, capsys):
    error = refused(capsys, "fit", "falls.csv", "--target", "E", "--units", "table", "--quiet")

    assert "no product of powers of the columns (m in kg and h in m) has the target's unit" in error
    assert "`--free-constants`" in error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["line.csv", "--target", "y", "--units", "table"], "has no line of units"),
        (["line.csv", "--target", "y", "--units", "none.toml"], "is no TOML file"),
    ],
)
def test_units_that_are_not_there_are_named(falls, capsys, words, message):
    assert message in refused(capsys, "fit", *words)


@pytest.fixture
def decay(here):
    times = [0.1 * k for k in range(1, 41)]
    (here / "decay.csv").write_text("t,n\n" + "".join(f"{t},{3 * 2.0**-t + 1}\n" for t in times))


@pytest.mark.slow
def test_what_is_known_is_used_and_recorded(decay, here, capsys):
    words = ["--limits", "t=inf,n=1", "--through", "t=0,n=4", "--positive", "--decreasing", "t"]

    assert main(["fit", "decay.csv", "--target", "n", "--restarts", "20", "--out", "run", *words]) == 0

    assert capsys.readouterr().out.startswith("n = ")
    run = json.loads((here / "run" / "run.json").read_text())
    assert run["front"][run["pick"]]["training_error"] < 1e-9
    assert run["settings"]["knows"] == {
        "positive": True, "decreasing": ["t"], "through": [{"t": 0.0, "n": 4.0}],
        "limits": [{"t": "inf", "n": 1.0}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--increasing", "t"], "the data contradict `--increasing` in 't'"),
        (["--even", "q"], "names no column: 'q'"),
        (["--limits", "t=oo,n=1"], "must hold numbers, got 'oo'"),
        (["--through", "t=1"], "by one other name, the target"),
        (["--periodic", "t"], "must be pairs"),
        (["--template", "f(t"], "can't be read"),
        (["--start", "k*t", "--template", "f(t)"], "can't be used together"),
        (["--prefer", "sinus=2"], "names no operator"),
    ],
)
def test_knowledge_that_can_not_be_used_is_refused(decay, capsys, words, message):
    assert message in refused(capsys, "fit", "decay.csv", "--target", "n", "--quiet", *words)


def test_quiet_prints_nothing_but_the_equation(here, capsys):
    assert main(["fit", "line.csv", "--target", "y", "--restarts", "2", "--quiet"]) == 0

    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert out.startswith("y = ")
    assert err == ""


def test_json_is_one_object_that_programs_read(here, capsys):
    assert main(["fit", "line.csv", "--target", "y", "--restarts", "2", "--json"]) == 0

    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["folder"] == "runs/line"
    assert found["front"][found["pick"]]["exact"] is True
    assert err == ""


def test_the_data_that_ship_are_searched_without_a_file(here, capsys):
    assert main(["fit", "--restarts", "40", "--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert (found["inputs"], found["targets"], found["data"]["rows_read"]) == (["a"], ["T"], 13)


def test_standard_input_is_a_table(here, monkeypatch, capsys):
    stream = io.BytesIO((here / "line.csv").read_bytes())
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=stream))

    assert main(["fit", "-", "--target", "y", "--restarts", "2", "--quiet"]) == 0
    assert (here / "runs" / "input").is_dir()


def test_columns_are_chosen_by_name(here, capsys):
    options = ["--target", "y", "--inputs", "a", "--restarts", "2", "--json"]

    assert main(["fit", "line.csv", *options]) == 0
    assert json.loads(capsys.readouterr().out)["inputs"] == ["a"]


def test_several_targets_get_an_equation_each(here, capsys):
    pd.read_csv("line.csv").assign(z=lambda f: f.a**2).to_csv("two.csv", index=False)

    assert main(["fit", "two.csv", "--target", "y,z", "--ignore", "b", "--restarts", "2", "--quiet"]) == 0
    assert [line.partition(" = ")[0] for line in capsys.readouterr().out.splitlines()] == ["y", "z"]


def test_rows_outside_the_range_are_measured(here, capsys):
    far = np.linspace(10, 20, 6)
    pd.DataFrame({"a": far, "b": 0.0, "y": 2.5 * far}).to_csv("far.csv", index=False)
    options = ["--target", "y", "--extrapolation", "far.csv", "--restarts", "2", "--json"]

    assert main(["fit", "line.csv", *options]) == 0

    found = json.loads(capsys.readouterr().out)
    assert found["front"][found["pick"]]["extrapolation_error"] < 1e-9


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nope.csv", "--target", "y"], "there is no file 'nope.csv'"),
        (["lin.csv", "--target", "y"], "did you mean 'line.csv'?"),
        (["line.csv"], "name the column to explain"),
        (["line.csv", "--target", "yy"], "no column 'yy'; did you mean 'y'?"),
        (["line.csv", "--target", "y", "--ignore", "c"], "no column 'c'"),
        (
            ["line.csv", "--target", "y", "--primitives", "sine"],
            "no primitive named 'sine'; did you mean 'sin'?",
        ),
        (["line.csv", "--target", "y", "--penalty", "l7"], "--penalty"),
        (["line.csv", "--target", "y", "--seconds", "-1"], "--seconds"),
        (["line.csv", "--target", "y", "--restarts", "0"], "--restarts"),
        (["line.csv", "--target", "y", "--hidden-layers", "0"], "--hidden-layers"),
        (["line.csv", "--target", "y", "--resume"], "`--resume` needs `--out`"),
        (["line.csv", "--target", "y", "--extrapolation", "far.csv"], "there is no file 'far.csv'"),
        (["line.csv", "--target", "y", "--out", "line.csv"], "is a file; name a folder"),
        (["line.csv", "--target", "y", "--out", "."], "holds other files"),
        (["line.csv", "--target", "y", "--frobnicate"], "--frobnicate"),
    ],
)
def test_a_refused_fit_says_why_and_leaves_nothing_behind(here, capsys, words, message):
    assert message in refused(capsys, "fit", *words)
    assert [p.name for p in here.iterdir()] == ["line.csv"]


def test_an_unknown_command_suggests_the_right_one(capsys):
    assert "show" in refused(capsys, "shw")


def test_a_second_run_gets_a_folder_of_its_own(here, capsys):
    for _ in range(2):
        assert main(["fit", "line.csv", "--target", "y", "--restarts", "2", "--quiet"]) == 0

    assert sorted(p.name for p in (here / "runs").iterdir()) == ["line", "line-2"]


def test_a_folder_with_a_run_is_not_overwritten(run, capsys):
    words = ["fit", "line.csv", "--target", "y", "--restarts", "2", "--out", "run"]

    assert "holds a run already" in refused(capsys, *words)


def test_resume_goes_on_with_the_run_that_is_there(run, capsys):
    before = json.loads((run / "run.json").read_text())

    words = ["fit", "line.csv", "--target", "y", "--restarts", "2", "--out", "run", "--resume", "--json"]
    assert main(words) == 0

    after = json.loads(capsys.readouterr().out)
    assert (after["front"], after["restarts"]) == (before["front"], before["restarts"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--seed", "1"], "`--seed`=0, not 1"),
        (["--inputs", "a"], "other data"),
        (["--penalty", "l0"], "`--penalty`"),
    ],
)
def test_resume_refuses_another_search(run, capsys, change, message):
    words = ["fit", "line.csv", "--target", "y", "--restarts", "2", "--out", "run", "--resume", *change]

    assert message in refused(capsys, *words)


@pytest.mark.parametrize("wrong", [["--jobs", "0"], ["--select", "extrapolation"]], ids=str)
def test_a_refused_resume_leaves_the_run_as_it_was(run, capsys, wrong):
    before = (run / "run.json").read_bytes()

    refused(capsys, "fit", "line.csv", "--target", "y", "--restarts", "2", "--out", "run", "--resume", *wrong)

    assert (run / "run.json").read_bytes() == before
    assert main(["show", "run"]) == 0


@pytest.mark.parametrize("seconds", ["inf", "nan", "-1"])
def test_a_budget_is_a_number_of_seconds(here, capsys, seconds):
    error = refused(capsys, "fit", "line.csv", "--target", "y", "--seconds", seconds, "--out", "run")

    assert "seconds" in error
    assert not (here / "run").exists()


def test_a_folder_that_can_not_be_made_is_named(here, capsys):
    assert "line.csv" in refused(capsys, "fit", "line.csv", "--target", "y", "--out", "line.csv/run")


def test_show_as_json_has_no_equation_that_is_not_there(run, capsys):
    refused(capsys, "show", "run", "--as", "json", "--index", "99")


def test_show_gives_the_run_in_words(run, capsys):
    assert main(["show", "run"]) == 0

    out = capsys.readouterr().out
    assert out.startswith("y = ")
    assert "An exact law was found" in out


@pytest.mark.parametrize(
    ("language", "part"),
    [("latex", "a"), ("python", "def equation("), ("torch", "equation.torch()"), ("c", "double equation(")],
)
def test_show_gives_the_equation_in_other_languages(run, capsys, language, part):
    assert main(["show", "run", "--as", language]) == 0
    assert part in capsys.readouterr().out


def test_the_shown_python_computes_the_equation(run, capsys):
    main(["show", "run", "--as", "python"])
    space = {}
    exec(capsys.readouterr().out, space)

    np.testing.assert_allclose(space["equation"](np.array([2.0]), np.array([1.0])), [5.0], rtol=1e-12)


def test_the_shown_torch_computes_the_equation(run, capsys):
    import torch

    main(["show", "run", "--as", "torch"])
    space = {}
    exec(capsys.readouterr().out, space)

    value = space["module"](torch.tensor([[2.0, 1.0]], dtype=torch.float64))
    torch.testing.assert_close(value, torch.tensor([[5.0]], dtype=torch.float64), rtol=1e-12, atol=0)


def test_show_as_json_is_the_whole_run(run, capsys):
    assert main(["show", "run", "--as", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["targets"] == ["y"]


def test_predict_prints_the_targets_column(run, capsys):
    assert main(["predict", "run", "line.csv"]) == 0

    written = pd.read_csv(io.StringIO(capsys.readouterr().out))
    np.testing.assert_allclose(written["y"], pd.read_csv("line.csv")["y"], rtol=1e-9)


def test_predict_writes_a_file_when_asked(run, capsys):
    assert main(["predict", "run", "line.csv", "--out", "predicted.csv"]) == 0

    assert len(pd.read_csv("predicted.csv")) == 12
    assert capsys.readouterr().out == ""


def test_report_makes_the_page_anew(run, capsys):
    (run / "report.html").unlink()

    assert main(["report", "run"]) == 0

    assert capsys.readouterr().out == "run/report.html\n"
    assert (run / "report.html").exists()


@pytest.mark.parametrize("command", ["show", "report"])
@pytest.mark.parametrize(("folder", "message"), [("none", "no run folder"), (".", "no run.json")])
def test_a_folder_that_is_no_run_is_refused(here, capsys, command, folder, message):
    assert message in refused(capsys, command, folder)


def test_predict_refuses_an_equation_that_is_not_there(run, capsys):
    assert "there is no equation 99" in refused(capsys, "predict", "run", "line.csv", "--index", "99")


def test_hostile_column_names_do_nothing_anywhere(here, capsys):
    name = "a</script><script>alert(1)</script>`$(touch owned)`"
    frame = pd.read_csv("line.csv").drop(columns="b").rename(columns={"a": name})
    frame.to_csv("hostile.csv", index=False)

    assert main(["fit", "hostile.csv", "--target", "y", "--restarts", "2", "--out", "run"]) == 0
    for language in ("text", "latex", "python", "torch", "c", "json"):
        assert main(["show", "run", "--as", language]) == 0

    assert "<script>alert" not in (here / "run" / "report.html").read_text()
    assert not (here / "owned").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(command, capsys):
    assert main([command, "--help"]) == 0
    assert f"Example: eqlearn {command}" in " ".join(capsys.readouterr().out.split())


def test_the_version_is_printed(capsys):
    import eqlearn

    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == eqlearn.__version__


def test_help_loads_nothing_slow():
    heavy = "{'torch', 'sympy', 'numpy', 'pandas', 'sklearn', 'scipy', 'matplotlib', 'joblib'}"
    code = "import sys; from eqlearn.cli import main; main(['fit', '--help'])"
    code += f"; assert not {heavy} & set(sys.modules)"

    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_a_bad_table_is_refused_before_torch_is_loaded(tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("a,y\n1,2\n")
    command = ["fit", str(path), "--target", "y"]
    code = f"import sys; from eqlearn.cli import main; assert main({command!r}) == 2"
    code += "; assert 'torch' not in sys.modules"

    subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.DEVNULL)


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_has_a_short_form(option, capsys):
    assert main(["show", option]) == 0
    assert "Usage: eqlearn show" in capsys.readouterr().out


def test_completion_offers_the_commands():
    environment = {
        **os.environ,
        "_EQLEARN_COMPLETE": "complete_bash",
        "COMP_WORDS": "eqlearn ",
        "COMP_CWORD": "1",
    }

    done = subprocess.run(
        [sys.executable, "-m", "eqlearn.cli"], env=environment, capture_output=True, text=True, check=False
    )

    assert set(COMMANDS) <= set(done.stdout.split())


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_search_still_saves_and_prints_the_best(here, sent):
    rng = np.random.default_rng(0)
    a = rng.uniform(1, 3, 40)
    pd.DataFrame({"a": a, "y": np.sin(3 * a) + 0.2 * rng.normal(size=40)}).to_csv("noisy.csv", index=False)
    # A shell starts what it puts in the background with SIGINT ignored, and children inherit that.
    listening = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    command = listening + "from eqlearn.cli import main; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", command, "fit", "noisy.csv", "--target", "y", "--out", "run"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    end = time.monotonic() + 120
    while not (here / "run" / "rounds").exists() and time.monotonic() < end:
        time.sleep(0.05)

    process.send_signal(sent)
    out, err = process.communicate(timeout=120)

    assert process.returncode == 0
    assert out.startswith("y = ")
    assert "interrupted" in err
    assert json.loads((here / "run" / "run.json").read_text())["ended"] == "interrupted"
    assert "Traceback" not in err


def test_the_bare_command_shows_its_help(capsys):
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("Usage: eqlearn [OPTIONS] COMMAND")


def test_messages_name_the_options_of_the_command(here, capsys):
    assert "`--jobs` must be a number of workers" in refused(
        capsys, "fit", "line.csv", "--target", "y", "--jobs", "0"
    )


def test_a_file_is_no_run_folder(here, capsys):
    assert "'line.csv' is a file; name the folder of a run" in refused(capsys, "show", "line.csv")


def test_only_files_of_a_like_name_are_suggested(here, capsys):
    assert "did you mean 'line.csv'?" in refused(capsys, "fit", "lin.csv", "--target", "y")
    assert "did you mean" not in refused(capsys, "fit", "missing.csv", "--target", "y")


def test_of_a_damaged_run_it_is_said_what_to_do(run, capsys):
    (run / "run.json").write_text("{}")

    assert "begin one in another folder" in refused(capsys, "show", "run")
