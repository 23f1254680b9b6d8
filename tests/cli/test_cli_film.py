"""`eqlearn film`: from a file to a run folder."""

import json
from pathlib import Path

import numpy as np
import pytest

from eqlearn import make_films
from eqlearn.cli import main

OPTIONS = ["--latents", "1", "--order", "2", "--primitives", "id sin1", "--out", "run"]


@pytest.fixture
def film(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    films, _ = make_films("pendulum", films=1, frames=45)
    np.save("film.npy", films[0])
    return tmp_path


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_film_leaves_a_run_that_can_be_taken_up_again(film, capsys):
    assert main(["film", "film.npy", "--fps", "30", "--json", *OPTIONS]) == 0
    first = json.loads(capsys.readouterr().out)

    assert {"law.json", "model.safetensors", "report.html", "run.json", "log.txt"} <= {
        p.name for p in Path("run").iterdir()
    }
    assert main(["film", "film.npy", "--fps", "30", "--json", "--resume", *OPTIONS]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == first["text"]
    assert main(["film", "film.npy", "--fps", "25", "--resume", *OPTIONS]) == 2
    assert "other data" in capsys.readouterr().err
    assert main(["film", "film.npy", "--fps", "30", *OPTIONS]) == 2
    assert "--resume" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.npy", "--fps", "30"], "no file"),
        (["film.npy"], "give `--fps`"),
        (["film.npy", "--fps", "-3"], "`--fps` must be positive"),
        (["film.npy", "--fps", "30", "--latents", "7"], "`--latents` must be 1, 2 or auto"),
        (["film.npy", "--fps", "30", "--resume"], "`--out`"),
    ],
)
def test_wrong_use_is_refused_in_one_sentence(film, capsys, words, message):
    assert main(["film", *words]) == 2

    refused = capsys.readouterr().err
    assert message in refused
    assert refused.count("\n") == 1
