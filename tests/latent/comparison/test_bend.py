"""Bends of latents: a basis that can be any smooth change, straight beyond what was seen."""

import numpy as np
import pytest
import torch
from scipy.interpolate import BSpline

from eqlearn.latent.comparison.bend import Basis, Bend


def drawn(rows=400, latents=1, seed=0):
    return torch.randn(rows, latents, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


Z = drawn()
SKEWED = drawn().exp()


@pytest.mark.parametrize("z", [Z, SKEWED, Z.round()], ids=["normal", "skewed", "repeated values"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_splines_sum_to_one_within_and_beyond_what_was_seen(z, dtype):
    basis = Basis(z)
    wide = torch.linspace(float(z.min()) - 3, float(z.max()) + 3, 301, dtype=dtype)[:, None]

    values = basis(torch.cat([wide, z.to(dtype)]))

    torch.testing.assert_close(values.sum(dim=1), torch.ones(len(values), dtype=dtype), rtol=0, atol=1e-4)


def test_the_ends_are_inside_however_many_rows_there_are():
    # Quantiles of many rows are taken of some of them; an end that was left out would have no spline.
    z = drawn(30_001).flip(0)
    z[1], z[3] = z.min() - 0.5, z.max() + 0.5

    sums = Basis(z)(z).sum(dim=1)

    torch.testing.assert_close(sums, torch.ones_like(sums))


def test_the_functions_are_scipys_splines():
    basis = Basis(Z, 8)
    inside = torch.linspace(*basis.limits.flatten().tolist(), 50, dtype=torch.float64)[1:-1]

    expected = BSpline.design_matrix(inside.numpy(), basis.knots.numpy(), 3).toarray()
    np.testing.assert_allclose(basis(inside[:, None]), expected, atol=1e-12)


@pytest.mark.parametrize("latents", [1, 2, 3])
def test_a_straight_line_is_exact(latents):
    z = drawn(latents=latents)
    slope = torch.arange(1.0, latents + 1, dtype=torch.float64)
    basis = Basis(z)

    coefficients = basis.coefficients(z, z @ slope + 0.5)

    torch.testing.assert_close(basis(z) @ coefficients, z @ slope + 0.5, rtol=0, atol=1e-5)


@pytest.mark.parametrize("value", [lambda z: z.exp(), lambda z: z**2, lambda z: torch.tanh(z)])
def test_a_smooth_bend_comes_near(value):
    basis = Basis(Z)
    left = basis(Z) @ basis.coefficients(Z, value(Z[:, 0])) - value(Z[:, 0])

    assert float(left.var() / value(Z[:, 0]).var()) < 1e-4


def test_a_bend_goes_on_straight_beyond_the_ends():
    bend = Bend(Basis(Z), drawn(1, 10, seed=1))
    low, high = bend.basis.limits.flatten().tolist()
    for end, way in ((low, -1), (high, 1)):
        at = torch.tensor([end, end + way, end + 2 * way, end + 7 * way], dtype=torch.float64)
        values = bend(at[:, None])[:, 0].detach()
        torch.testing.assert_close(values[2] - values[1], values[1] - values[0])
        torch.testing.assert_close(values[3] - values[2], 5 * (values[1] - values[0]))
        inside = bend(torch.tensor([[end - 1e-6 * way]], dtype=torch.float64))[0, 0].detach()
        torch.testing.assert_close((values[0] - inside) / 1e-6, values[1] - values[0], rtol=1e-4, atol=1e-5)


def test_several_latents_are_held_at_the_ends():
    z = drawn(latents=2)
    basis = Basis(z)
    corner = basis.limits[1:]

    torch.testing.assert_close(basis(corner + 5.0), basis(corner))


@pytest.mark.parametrize("latents", [1, 2])
def test_slopes_are_finite_in_float32_at_the_ends_and_the_knots(latents):
    z = drawn(latents=latents).float()
    bend = Bend(Basis(z), torch.ones(1, Basis(z).size))
    knots = bend.basis.knots.float()[:, None] if latents == 1 else z
    at = torch.cat([knots, z, bend.basis.limits.float(), bend.basis.limits.float() * 2]).requires_grad_()

    bend(at).sum().backward()

    assert bool(torch.isfinite(at.grad).all())
    assert bool(torch.isfinite(bend.coefficients.grad).all())


@pytest.mark.parametrize(("latents", "size"), [(1, 10), (1, 6), (2, 10), (3, 10), (4, 10)])
def test_a_bend_is_restored_from_its_numbers(latents, size):
    z = drawn(latents=latents)
    bend = Bend(Basis(z, size), drawn(2, Basis(z, size).size, seed=1))
    other = Bend(Basis.of_size(latents, bend.basis.size), torch.zeros_like(bend.coefficients))
    assert not torch.equal(other(z), bend(z))

    other.load_state_dict(bend.state_dict())

    torch.testing.assert_close(other(2 * z), bend(2 * z), rtol=0, atol=0)


def test_no_rows_have_no_values():
    assert Basis(Z)(Z[:0]).shape == (0, 10)
