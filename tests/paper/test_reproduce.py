"""`eqlearn reproduce` from the command line."""

import json
from dataclasses import replace

import pytest

from eqlearn.cli import main
from eqlearn.search.search import discover


def test_the_benchmark_is_counted_written_and_resumed(tmp_path, capsys):
    arguments = ["reproduce", "benchmark", "--quick", "--only", "x;x*y", "--out", str(tmp_path)]

    assert main(arguments) == 0
    first = (tmp_path / "modern-half.json").read_text()
    assert main(arguments) == 0

    trials = json.loads(first)["trials"]
    assert list(trials) == ["x 0", "x 1", "x*y 0", "x*y 1"]
    assert (tmp_path / "modern-half.json").read_text() == first
    assert "| `x*y` | 0.8 | 2/2 | **2/2** |" in capsys.readouterr().out
    assert "**2/2**" in (tmp_path / "modern-half.md").read_text()
    assert (tmp_path / "modern-half.png").read_bytes().startswith(b"\x89PNG")


def test_a_suite_is_counted(tmp_path, capsys):
    assert (
        main(["reproduce", "suite", "nguyen", "--seeds", "1", "--only", "Nguyen-8", "--out", str(tmp_path)])
        == 0
    )

    said = capsys.readouterr().out
    assert "1 of 1 trials" in said
    assert "Solved by SRBench's rule: 1 of 1." in said
    (trial,) = json.loads((tmp_path / "nguyen-10s.json").read_text())["trials"].values()
    assert trial["srbench"] is True


@pytest.mark.parametrize(
    ("home", "words"),
    [
        ("benchmark", ["benchmark", "--quick", "--only", "x"]),
        ("suites", ["suite", "nguyen", "--only", "Nguyen-8"]),
        ("ablation", ["ablation", "--quick", "--only", "exp(x)"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_half_a_search_is_no_trial(tmp_path, monkeypatch, home, words):
    found = discover([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0], restarts=1)
    monkeypatch.setattr(
        f"eqlearn.paper.{home}.discover", lambda *_, **__: replace(found, ended="interrupted")
    )

    assert main(["reproduce", *words, "--out", str(tmp_path)]) == 130

    assert not [trial for path in tmp_path.glob("*.json") for trial in json.loads(path.read_text())["trials"]]


def test_a_recipe_of_the_authors_keeps_its_sine(tmp_path, capsys):
    assert main(["reproduce", "benchmark", "--preset", "paper", "--sine", "1", "--out", str(tmp_path)]) == 2

    assert "has a sine of its own" in capsys.readouterr().err


def test_a_search_has_no_weight_to_replace(tmp_path, capsys):
    assert main(["reproduce", "benchmark", "--weight", "5e-3", "--out", str(tmp_path)]) == 2

    assert "has no λ of its own" in capsys.readouterr().err


def test_unknown_names_end_with_code_2_and_one_sentence(tmp_path, capsys):
    for arguments in (["suite", "nguyne"], ["benchmark", "--only", "x**7"]):
        assert main(["reproduce", *arguments, "--out", str(tmp_path)]) == 2

    assert "Traceback" not in capsys.readouterr().err


def test_run_times_are_measured_once_and_set_beside_the_papers(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("eqlearn.paper.timing.STEPS", 200)

    for _ in range(2):
        assert main(["reproduce", "timing", "--quick", "--out", str(tmp_path)]) == 0

    told = capsys.readouterr().out
    assert told.count("2 hidden layers, 20 trials") == 1
    assert "| 37 |" in told
    assert all(
        t["seconds"] > 0 for t in json.loads((tmp_path / "timing-quick.json").read_text())["trials"].values()
    )


def test_the_page_is_written_from_what_is_there(tmp_path, capsys):
    main(["reproduce", "benchmark", "--quick", "--only", "x", "--out", str(tmp_path / "benchmark")])

    assert main(["reproduce", "all", "--page", "--out", str(tmp_path)]) == 0

    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| `x` | 1 | 2/2 (0.16 to 1.00) |" in page
    assert "![L0.5, smoothed L0.5, their slopes](regulariser.png)" in page
    assert "data:image/png;base64," in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert str(tmp_path / "index.html") in capsys.readouterr().out


def test_a_page_about_nothing_is_refused(tmp_path, capsys):
    assert main(["reproduce", "all", "--page", "--out", str(tmp_path)]) == 2

    assert "holds no results yet" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_quick_look_at_everything_fills_the_page(tmp_path):
    assert main(["reproduce", "all", "--quick", "--out", str(tmp_path)]) == 0

    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    for heading in ("Benchmark", "Run times", "MNIST arithmetic", "Kinematics", "Harmonic oscillator"):
        assert f"\n## {heading}" in page
    assert page.count(".png)") >= 6
