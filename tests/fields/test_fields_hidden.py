"""Coefficients that differ from experiment to experiment are found with the equation."""

import numpy as np
import pytest

import made_fields as made
from eqlearn import InvalidArgument, discover_pde
from eqlearn.fields.hidden import Moments, hidden_law, same_parameters

TIMES = np.linspace(0, 2, 41)
AXES = {"x": made.X, "t": TIMES}
SPREAD = np.array([0.2, 0.5, 0.3, 0.6, 0.4, 0.25])


@pytest.fixture(scope="module")
def experiments():
    fields = []
    for k, size in enumerate(SPREAD):
        u = made.solved(lambda u, s=size: [s * made.d(u, 2) - u * made.d(u)], made.start(k, 3), times=TIMES)[
            0
        ]
        fields.append({"u": made.with_noise(u, 0.01, k)})
    return fields


def test_a_hidden_diffusion_constant_is_found_with_its_equation(experiments):
    found = discover_pde(experiments, AXES, latents=1)

    assert found.equations[0].matches("-u*u_x + u_xx*z", tolerance=0.02)
    assert np.corrcoef(found.latents[:, 0], SPREAD)[0, 1] ** 2 > 0.999
    assert np.abs(found.latents[:, 0] - SPREAD).max() < 0.03
    assert (found.latent_errors > 0).all()
    assert found.read_latents(experiments[:2])[:, 0] == pytest.approx(found.latents[:2, 0], rel=1e-3)
    simulated = found.simulate(experiments[0]["u"][:, 0], TIMES, latents=[0.2])["u"]
    assert np.abs(simulated - experiments[0]["u"]).max() < 0.2


def test_what_does_not_differ_has_no_parameter():
    fields = [
        {"u": made.solved(lambda u: [0.5 * made.d(u, 2) - made.d(u)], made.start(k), times=TIMES)[0]}
        for k in range(4)
    ]

    found = discover_pde(fields, AXES, latents=1)

    assert found.latents.shape == (4, 0)
    assert found.equations[0].matches("0.5*u_xx - u_x", tolerance=1e-3)


def test_too_few_experiments_and_missing_values_are_refused(experiments):
    with pytest.raises(InvalidArgument, match="give at least 4"):
        discover_pde(experiments[:2], AXES, latents=1)
    with pytest.raises(InvalidArgument, match="`latents` must be a whole number"):
        discover_pde(experiments, AXES, latents=-1)


def test_columns_with_own_coefficients_leave_what_they_can_not_follow():
    generator = np.random.default_rng(0)
    columns = generator.normal(size=(3, 50, 3))
    target = 2 * columns[..., 1] + np.array([1.0, 2.0, 3.0])[:, None] * columns[..., 0]
    both = np.concatenate([columns, target[..., None]], axis=2)
    products = np.swapaxes(both, 1, 2) @ both
    moments = Moments(products, np.zeros_like(products), np.full(3, 50.0))

    one = moments.beside([0]).fitted([1])
    values, errors = moments.own([0], np.array([0.0, 2.0, 0.0, -1.0]))

    assert one.coefficients == pytest.approx([2.0], rel=1e-6)
    assert values[:, 0] == pytest.approx([1, 2, 3], rel=1e-6)
    assert (errors < 1e-5).all()


def test_parameters_on_a_straight_line_are_one():
    known = np.linspace(0, 1, 8)[:, None]

    numbers, _ = same_parameters(1 + 2 * known[:, 0], np.full(8, 1e-3), known)

    assert numbers == pytest.approx([1, 2])
    assert same_parameters(known[:, 0] ** 2, np.full(8, 1e-3), known) is None
    assert hidden_law is not None
