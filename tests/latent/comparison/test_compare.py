"""The comparison of all small structures on latents whose truth is known: enumerated, filled in, grown."""

from dataclasses import replace

import pytest
import torch

from eqlearn.latent.comparison.compare import compare
from eqlearn.latent.comparison.shortlist import shortlist
from eqlearn.latent.settings import LatentSettings
from eqlearn.latent.warm_start import Headed, Start, Units
from eqlearn.nn.primitives import parse_kinds
from made_latents import idle_encoders, made_data, uniform

SETTINGS = LatentSettings(
    structures=400, kept=24, screened=150, compared=300, serving_starts=6, front_seconds=0.5
)
ROWS = 500
K, X, A, C = (uniform(ROWS, 0.3, 2, seed) for seed in range(4))
M, P, U = (uniform(ROWS, -1, 1, seed) for seed in range(4, 7))


def compared(latents, columns, y, primitives, settings=SETTINGS, head_error=1e-3):
    """The short list on latents that a start has come to, whose head left that error."""
    data, encoders = made_data(latents, columns, y), idle_encoders(latents)
    model = Headed(encoders, Units.of(data.training), width=4)
    start = Start(model, head_error, head_error, ((1.0,) * len(columns),))
    choices = compare(start, data, parse_kinds(primitives), settings=settings)
    listed, _ = shortlist(choices, head_error, settings)
    return choices, [str(c.skeletons()[0]) for c in listed]


@pytest.mark.parametrize(
    ("latents", "columns", "y", "primitives", "law"),
    [
        # Small enough to be enumerated.
        ({"k": K**3}, {"x": X}, X / (K + X), "mul div inv exp", "1/(k*x + "),
        # A function of a function, and one deep inside: unknown at first.
        ({"m": torch.exp(M)}, {"x": X}, torch.exp(-((X - M) ** 2)), "square exp mul", "exp("),
        pytest.param(
            {"k": torch.log(K)},
            {"A": A, "c": C, "t": X},
            A * torch.exp(-K * X) + C,
            "exp mul",
            "A*exp(k*t)",
            marks=pytest.mark.slow,
        ),
        # A column that stands twice: grown.
        ({"m": torch.exp(M)}, {"x": U}, M * U + U**2 / 2, "mul", "x*(m + x)"),
    ],
)
def test_the_law_is_listed_whatever_it_takes(latents, columns, y, primitives, law):
    choices, listed = compared(latents, columns, y, primitives)

    assert choices[0].error < 1e-3
    assert any(law in one for one in listed), listed


@pytest.mark.slow
def test_families_with_more_latents_grow_too():
    both = torch.stack([M + 0.3 * P, M - P], dim=1)
    choices, listed = compared({"p": both}, {"x": U}, M * U + P * U**2, "mul")

    assert choices[0].error < 1e-3
    assert any("p_1" in one and "p_2" in one for one in listed), listed


def test_without_growth_a_law_that_was_not_enumerated_is_not_found():
    case = ({"m": torch.exp(M)}, {"x": U}, M * U + U**2 / 2, "mul")
    stopped = replace(SETTINGS, growth=0, front_seconds=0.01)

    assert compared(*case, stopped)[0][0].error > 10 * compared(*case)[0][0].error
