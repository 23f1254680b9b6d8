"""`eqlearn reproduce mnist`, as users run it, shorter than ours."""

import json

import pytest
import torch
from short_mnist import add_short

from eqlearn.cli import main
from eqlearn.errors import InvalidArgument
from eqlearn.paper.mnist import recipes, search, trials


@pytest.fixture(autouse=True)
def short(monkeypatch):
    add_short(monkeypatch.setattr, warm_steps=60)
    monkeypatch.setitem(recipes.RECIPES, "paper-half", recipes.RECIPES["short"])


def test_a_quick_run_leaves_page_pictures_trials_and_a_law_once(tmp_path, capsys):
    arguments = ["reproduce", "mnist", "--quick", "--out", str(tmp_path)]

    assert main(arguments) == 0
    first = (tmp_path / "modern-digits.json").read_text()
    assert main(arguments) == 0

    assert (tmp_path / "modern-digits.json").read_text() == first
    trial = json.loads(first)["trials"]["seed 0"]
    assert trial["search"]["ended"] == "complete"
    for name in ("seed-0", "latents"):
        assert (tmp_path / f"modern-digits-{name}.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "modern-digits.md").read_text()
    assert trial["equation"] in page
    assert f"| 0 | {trial['search']['agreed']} of {trial['search']['starts']} |" in page
    folder = tmp_path / "models" / "modern-digits-seed-0"
    assert {path.name for path in folder.iterdir()} == {"law.json", "model.safetensors"}
    assert capsys.readouterr().out.count("test: ") == 1


@pytest.mark.slow
def test_a_twin_that_saw_small_sums_is_set_beside_its_bound(tmp_path, capsys):
    twin = ["--network", "relu", "--below", "15"]

    assert main(["reproduce", "mnist", "--quick", *twin, "--out", str(tmp_path)]) == 0

    picture = tmp_path / "modern-digits-below-15-generalisation.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "| test | ReLU |" in capsys.readouterr().out
    assert trials.load_system(tmp_path / "models" / "modern-digits-below-15-relu-seed-0")


def test_ctrl_c_leaves_a_system_that_can_be_used(tmp_path, capsys, monkeypatch):
    whole = trials.trained

    def interrupted(*arguments, on_record, **options):
        def stop(record):
            on_record(record)
            raise KeyboardInterrupt

        return whole(*arguments, on_record=stop, record_every=5, **options)

    monkeypatch.setattr(trials, "trained", interrupted)

    code = main(["reproduce", "mnist", "--quick", "--preset", "paper", "--out", str(tmp_path)])

    assert code == 130
    assert "the same command goes on" in " ".join(capsys.readouterr().out.split())
    model, _ = trials.load_system(tmp_path / "models" / "paper-half-digits-seed-0")
    images = torch.zeros(3, 8, 8, dtype=torch.uint8)
    assert bool(torch.isfinite(model(images, images)).all())


@pytest.mark.slow
def test_a_search_that_is_stopped_goes_on_from_its_journal(tmp_path, monkeypatch):
    arguments = ["reproduce", "mnist", "--quick", "--out", str(tmp_path)]
    state = tmp_path / "models" / "modern-digits-seed-0" / "state"
    whole, kept = search.discover_latent, []

    def interrupted(*arguments, progress, **options):
        def stop(now):
            if now.stage == "refinement":
                raise KeyboardInterrupt

        return whole(*arguments, progress=stop, **options)

    def watched(*arguments, journal, **options):
        kept.extend(path.name for path in journal.iterdir())
        return whole(*arguments, journal=journal, **options)

    monkeypatch.setattr(search, "discover_latent", interrupted)
    assert main(arguments) == 130
    assert not (tmp_path / "modern-digits.json").exists()
    monkeypatch.setattr(search, "discover_latent", watched)
    assert main(arguments) == 0

    assert any(name.startswith("start-") for name in kept)
    assert json.loads((tmp_path / "modern-digits.json").read_text())["trials"]["seed 0"]["resumed"]
    assert not state.exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--operation", "a+"], "a+"),
        (["--operation", "a/b"], "must vary with its labels"),
        (["--operation", "open('x')"], "open"),
        (["--below", "0"], "they begin at 0"),
        (["--penalty", "l0"], "the search has no penalty"),
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
    def diverged(*arguments, journal, **options):
        journal.mkdir(parents=True)
        (journal / "start-0-3.safetensors").write_bytes(b"as it stood")
        raise InvalidArgument("every warm start diverged")

    monkeypatch.setattr(search, "discover_latent", diverged)
    arguments = ["reproduce", "mnist", "--dataset", "digits", "--seeds", "2", "--out", str(tmp_path)]

    assert main(arguments) == 0

    entered = json.loads((tmp_path / "modern-digits.json").read_text())["trials"]
    assert [trial["failure"] for trial in entered.values()] == ["every warm start diverged"] * 2
    assert not list(tmp_path.rglob("state"))
    assert "Came to nothing: seed 0" in (tmp_path / "modern-digits.md").read_text()
