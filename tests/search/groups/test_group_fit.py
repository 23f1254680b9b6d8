"""Structures fitted to groups: each alone, some constants together, and with a population beside few rows."""

import numpy as np
import pytest
import torch
from made import grouped

from eqlearn.search.groups.group_fit import Prior, fit_from_many, fit_own, fit_shared, sums
from eqlearn.search.groups.structure import freed, parametrisations
from eqlearn.symbolic.equation import Equation

FACTORS = (0.5, 0.7, 1.4, 2.0)
CONSTANTS = [0.8, 1.1, 1.9, 2.4]


def form(text, rows):
    structure = freed(Equation.parse(text, ["x"]))
    return next(parametrisations(structure, rows.columns[:, :15], 1))


def test_every_group_finds_its_own_constants():
    rows, _, _ = grouped(lambda x, c: 2 * np.exp(-c[0] * x[0]), CONSTANTS)

    fit = fit_from_many(form("1.0*exp(-1.0*x)", rows), rows, np.array([1.0, -1.0]), FACTORS, steps=40)

    np.testing.assert_allclose(fit.values[:, 0], 2, rtol=1e-9)
    np.testing.assert_allclose(fit.values[:, 1], -np.array(CONSTANTS), rtol=1e-9)
    assert fit.error < 1e-10


def test_a_common_constant_is_fitted_to_all_groups_together():
    rows, _, _ = grouped(lambda x, c: 2 * np.exp(-c[0] * x[0]), CONSTANTS, noise=0.01)
    structure = form("1.0*exp(-1.0*x)", rows)
    own = fit_from_many(structure, rows, np.array([1.0, -1.0]), FACTORS, steps=40)

    fit = fit_shared(structure, rows, torch.tensor([True, False]), own.values, steps=20)

    assert len(set(fit.values[:, 0].tolist())) == 1
    assert abs(float(fit.values[0, 0]) - 2) < 4 * float(fit.errors[0, 0])
    assert bool((fit.errors[:, 0] < own.errors[:, 0].min()).all())
    assert fit.cost < own.cost


def test_a_frequency_is_found_from_a_start_that_is_far_away():
    rows, _, _ = grouped(lambda x, c: 2 * np.sin(c[0] * x[0]), [2.0, 3.0, 4.4], rows=30)

    fit = fit_from_many(
        form("1.0*sin(2.5*x)", rows), rows, np.array([1.0, 2.5]), (0.6, 0.8, 1.2, 1.5, 1.8), steps=40
    )

    np.testing.assert_allclose(fit.values[:, 1], [2.0, 3.0, 4.4], rtol=1e-8)


def test_slopes_and_curvature_are_summed_group_by_group_in_pieces(monkeypatch):
    rows, _, _ = grouped(lambda x, c: c[0] * x[0], CONSTANTS)
    structure = form("2.0*exp(0.1*x)", rows)
    values = torch.tensor([[1.0, 0.1]] * 4, dtype=torch.float64)
    whole = sums(structure, rows, values)

    monkeypatch.setattr("eqlearn.search.groups.group_fit._PIECE", 7)
    pieces = sums(structure, rows, values)

    for name in ("square", "slope", "curvature"):
        torch.testing.assert_close(getattr(pieces, name), getattr(whole, name))


def test_a_prior_decides_what_rows_leave_open():
    rows, _, _ = grouped(lambda x, c: c[0] * x[0] + 1, [2.0, 3.0], rows=1)
    structure = form("2.0*x + 3.0", rows)
    prior = Prior(torch.tensor([2.0, 1.0]).double(), torch.tensor([1e-12, 1.0]).double())

    fit = fit_own(structure, rows, torch.zeros(2, 2, dtype=torch.float64), steps=30, prior=prior)

    assert fit.values[:, 1].tolist() == pytest.approx([1.0, 1.0])
    assert fit.values[:, 0].tolist() == pytest.approx([2.0, 3.0])
