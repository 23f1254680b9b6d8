"""Bordered normal equations: the same step, optimum and errors as one dense problem."""

import numpy as np
import pytest
import torch

from eqlearn.numerics.bordered import Bordered, Sums, gathered, spread
from eqlearn.numerics.criteria import varying_cost

GROUPS, ROWS = 5, 12


def made(seed=0):
    """Residuals linear in three parameters, slopes `(groups, rows, 3)`; the first is common to all groups."""
    rng = np.random.default_rng(seed)
    slopes, residual = rng.normal(size=(GROUPS, ROWS, 3)), rng.normal(size=(GROUPS, ROWS))
    sums = Sums(
        torch.tensor((residual**2).sum(axis=1)),
        torch.tensor(np.einsum("gri,gr->gi", slopes, residual)),
        torch.tensor(np.einsum("gri,grj->gij", slopes, slopes)),
    )
    dense = np.zeros((GROUPS * ROWS, 1 + 2 * GROUPS))
    for g in range(GROUPS):
        part = slice(g * ROWS, (g + 1) * ROWS)
        dense[part, 0] = slopes[g, :, 0]
        dense[part, 1 + 2 * g : 3 + 2 * g] = slopes[g, :, 1:]
    return Bordered(sums, torch.tensor([True, False, False]), GROUPS * ROWS), dense, residual.ravel()


def test_the_undamped_step_is_that_of_the_dense_problem():
    system, dense, residual = made()
    point = torch.zeros(1, dense.shape[1], dtype=torch.float64)

    move = system.solve(torch.zeros_like(point), point, None, None)

    expected = np.linalg.lstsq(dense, -residual, rcond=None)[0]
    np.testing.assert_allclose(move[0].numpy(), expected, rtol=1e-8, atol=1e-10)
    assert float(system.promised(move)) == pytest.approx(
        (residual @ residual - ((residual + dense @ expected) ** 2).sum()) / len(residual)
    )


def test_a_fixed_common_parameter_stays():
    system, dense, residual = made()
    point = torch.zeros(1, dense.shape[1], dtype=torch.float64)
    fixed = torch.zeros_like(point, dtype=torch.bool)
    fixed[0, 0] = True

    move = system.solve(torch.zeros_like(point), point, None, fixed)

    expected = np.linalg.lstsq(dense[:, 1:], -residual, rcond=None)[0]
    assert float(move[0, 0]) == 0.0
    np.testing.assert_allclose(move[0, 1:].numpy(), expected, rtol=1e-8, atol=1e-10)


def test_standard_errors_are_those_of_the_dense_problem():
    system, dense, _ = made()

    errors = system.errors(4.0)

    expected = np.sqrt(4.0 * np.diag(np.linalg.inv(dense.T @ dense)))
    np.testing.assert_allclose(errors[:, 0], np.full(GROUPS, expected[0]), rtol=1e-8)
    np.testing.assert_allclose(errors[:, 1:].flatten(), expected[1:], rtol=1e-8)


def test_what_the_rows_leave_free_has_an_infinite_error():
    system, _, _ = made()
    system.curvature[2, 1, :] = 0
    system.curvature[2, :, 1] = 0

    errors = system.errors(1.0)

    assert torch.isinf(errors[2, 1])
    assert torch.isfinite(errors[:2]).all()


def test_a_point_is_gathered_and_spread():
    values = torch.tensor([[2.0, 1.0], [2.0, 3.0], [2.0, 5.0]])
    common = torch.tensor([True, False])

    point = gathered(values, common)

    assert point.shape == (1, 4)
    assert torch.equal(spread(point, common, 3), values)


def test_a_constant_that_does_not_vary_costs_little_and_one_that_varies_its_digits():
    rng = np.random.default_rng(0)
    error = 0.01
    information = np.full((50, 1, 1), error**-2)
    same = 3 + error * rng.normal(size=(50, 1))
    other = 3 + rng.normal(size=(50, 1))

    # What the data would lose if the constant were common is half a nat a group.
    assert varying_cost(same, information, 500) < 0.5 * 50 + 20
    assert varying_cost(other, information, 500) == pytest.approx(50 * (np.log(1 / error) + 0.5), rel=0.1)


def test_the_cost_of_varying_constants_does_not_depend_on_their_unit():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(20, 2))
    root = rng.normal(size=(20, 6, 2)) * 50
    information = np.einsum("gri,grj->gij", root, root)
    units = np.array([1e-6, 1e6])

    scaled = varying_cost(values * units, information / np.outer(units, units), 500)

    assert scaled == pytest.approx(varying_cost(values, information, 500))
