"""`eqlearn reproduce mnist`, as users run it, with a recipe that is shorter than ours."""

import json
from dataclasses import replace

import pytest
import torch

from eqlearn.cli import main
from eqlearn.errors import InvalidArgument
from eqlearn.paper.mnist import recipes as mnist_recipes
from eqlearn.paper.mnist import trials as mnist

SHORT = {"learn": 30, "sparsify": 20, "refine": 5, "finish": 5}


@pytest.fixture(autouse=True)
def short(monkeypatch):
    recipes = dict(mnist_recipes.RECIPES)
    for name in ("modern-half", "modern-l0"):
        ours = recipes[name]
        schedules = {
            stage: mnist_recipes.shortened(getattr(ours, stage), steps) for stage, steps in SHORT.items()
        }
        recipes[name] = replace(ours, primitives="one id*2 mul", heads=2, observed=200, **schedules)
    monkeypatch.setattr(mnist_recipes, "RECIPES", recipes)
    monkeypatch.setattr(mnist, "POLISHED", 1_000)


def test_a_quick_run_leaves_page_pictures_trials_and_a_model_once(tmp_path, capsys):
    arguments = ["reproduce", "mnist", "--quick", "--penalty", "l0", "--out", str(tmp_path)]

    assert main(arguments) == 0
    first = (tmp_path / "modern-l0-digits.json").read_text()
    assert main(arguments) == 0

    assert (tmp_path / "modern-l0-digits.json").read_text() == first
    trial = json.loads(first)["trials"]["seed 0"]
    assert {head["origin"] for head in trial["heads"]} <= {"trained", "one id", "one id mul"}
    assert sum(head["kept"] for head in trial["heads"]) == 1
    for name in ("seed-0", "latents"):
        assert (tmp_path / f"modern-l0-digits-{name}.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "modern-l0-digits.md").read_text()
    assert trial["equation"] in page
    assert "also offered with some kinds of units only: `one id` and `one id mul`" in page
    folder = tmp_path / "models" / "modern-l0-digits-seed-0"
    assert {path.name for path in folder.iterdir()} == {"system.safetensors", "equation.safetensors"}
    assert capsys.readouterr().out.count("test: ") == 1


def test_a_twin_that_saw_small_sums_is_set_beside_its_bound(tmp_path, capsys):
    twin = ["--network", "relu", "--below", "15"]

    assert main(["reproduce", "mnist", "--quick", *twin, "--out", str(tmp_path)]) == 0

    picture = tmp_path / "modern-half-digits-below-15-generalisation.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "| test | ReLU |" in capsys.readouterr().out
    assert mnist.load_system(tmp_path / "models" / "modern-half-digits-below-15-relu-seed-0")


def test_ctrl_c_leaves_a_system_that_can_be_used(tmp_path, capsys, monkeypatch):
    whole = mnist.trained

    def interrupted(*arguments, on_record, **options):
        def stop(record):
            on_record(record)
            raise KeyboardInterrupt

        return whole(*arguments, on_record=stop, record_every=5, **options)

    monkeypatch.setattr(mnist, "trained", interrupted)

    code = main(["reproduce", "mnist", "--quick", "--out", str(tmp_path)])

    assert code == 130
    assert "the same command goes on" in " ".join(capsys.readouterr().out.split())
    model, _ = mnist.load_system(tmp_path / "models" / "modern-half-digits-seed-0")
    images = torch.zeros(3, 8, 8, dtype=torch.uint8)
    assert bool(torch.isfinite(model(images, images)).all())


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--operation", "a+"], "a+"),
        (["--operation", "a/b"], "must vary with its labels"),
        (["--operation", "open('x')"], "open"),
        (["--below", "0"], "they begin at 0"),
    ],
)
def test_what_can_not_be_learned_is_refused_in_one_sentence(tmp_path, capsys, options, reason):
    assert main(["reproduce", "mnist", "--quick", *options, "--out", str(tmp_path)]) == 2

    told = capsys.readouterr().err
    assert reason in told
    assert "Traceback" not in told
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_mnist_is_refused_in_one_sentence(tmp_path, capsys):
    assert main(["reproduce", "mnist", "--data-dir", str(tmp_path), "--out", str(tmp_path / "out")]) == 2

    told = capsys.readouterr().err
    assert f"the data folder {tmp_path} has no train-images-idx3-ubyte.gz" in told
    assert "Traceback" not in told


def test_a_seed_that_comes_to_nothing_is_entered_and_the_next_one_begins(tmp_path, capsys, monkeypatch):
    def diverged(*arguments, state, **options):
        state.with_name("state.learn.safetensors").parent.mkdir(parents=True, exist_ok=True)
        state.with_name("state.learn.safetensors").write_bytes(b"as it stood")
        raise InvalidArgument("every equation came to nothing")

    monkeypatch.setattr(mnist, "trained", diverged)
    arguments = ["reproduce", "mnist", "--dataset", "digits", "--seeds", "2", "--out", str(tmp_path)]

    assert main(arguments) == 0

    trials = json.loads((tmp_path / "modern-half-digits.json").read_text())["trials"]
    assert [trial["failure"] for trial in trials.values()] == ["every equation came to nothing"] * 2
    assert not list(tmp_path.rglob("state.*"))
    assert "Came to nothing: seed 0" in (tmp_path / "modern-half-digits.md").read_text()
