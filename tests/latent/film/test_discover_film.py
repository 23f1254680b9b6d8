"""A law of motion from films, by one call; its page and files."""

import json
from dataclasses import replace

import numpy as np
import pytest

from eqlearn import FilmSettings, discover_film, make_films
from eqlearn.errors import EqlearnError
from eqlearn.latent.film.film_page import animated

# A quick search: few proposals, and none grows.
QUICK = replace(
    FilmSettings(), proposed=(2,), most_terms=1, horizons=(0.3, 1.0), parents=(0, 0), survivors=(2, 2)
)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    films, _ = make_films("pendulum", films=3, frames=60)
    return discover_film(films, 30, latents=1, order=2, settings=QUICK, seconds=None,
                         journal=tmp_path_factory.mktemp("journal"))  # fmt: skip


def test_a_pendulum_is_a_sine_in_radians(found):
    assert found.targets == ("d²z/dt²",)
    assert [t.name for t in found.motion.structure.terms] == ["sin"]
    np.testing.assert_allclose(found.motion.numbers, [-14.15], rtol=0.02)
    assert not found.unexplained


def test_encoder_decoder_and_forecast_go_together(found):
    frames = found.frames[0]

    z = found.latents(frames[..., 0])
    seen, moved = found.pictures(0)

    assert np.abs(z[:, 0] - found.states[0][:, 0]).max() < 0.1
    assert np.sqrt(np.mean((seen - frames) ** 2)) < 0.05
    assert np.sqrt(np.mean((moved - frames) ** 2)) < 0.05
    assert found.forecast(5).shape == (5, 27, 24, 1)
    assert found.simulate([0.1, 0.0], 3).shape == (4, 2)
    with pytest.raises(EqlearnError, match="size"):
        found.latents(frames[:, :20, :, 0])


def test_law_and_page_are_saved(found, tmp_path):
    found.save(tmp_path)
    page = found.report(tmp_path).read_text(encoding="utf-8")

    assert json.loads((tmp_path / "law.json").read_text())["text"] == [str(found)]
    assert (tmp_path / "model.safetensors").stat().st_size > 1000
    assert "data:image/gif" in page
    assert "<script" not in page


def test_a_moving_picture_has_a_frame_for_each():
    panels = [np.random.default_rng(k).uniform(size=(4, 5, 6, 1)) for k in range(3)]

    assert animated(panels, 10).startswith(b"GIF89a")


@pytest.mark.parametrize(
    ("options", "message"), [({"latents": 3}, "`latents` must be"), ({"order": 0}, "`order` must be"),
                             ({"fps": None}, "`fps` must be a number"), ({"seconds": -1.0}, "seconds")]
)  # fmt: skip
def test_bad_options_are_refused(options, message):
    films, _ = make_films("spring", films=1, frames=30)

    with pytest.raises(EqlearnError, match=message):
        discover_film(films, **{"fps": 30, **options})


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("name", "terms"),
    [("pendulum", {"sin"}), ("spring", {"q"}), ("damped spring", {"q", "v"}), ("ball", {"1"})],
)
def test_laws_of_made_films_are_found_on_most_seeds(name, terms):
    right = 0
    for seed in (20, 21, 22):
        found = discover_film(make_films(name, seed=seed)[0], 30, seconds=None)
        right += {t.name for t in found.motion.structure.terms} == terms

    assert right >= 2
