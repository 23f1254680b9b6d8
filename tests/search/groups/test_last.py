"""The last fit: all rows of all groups, small groups from the population, new groups from a few rows."""

import numpy as np
import pytest
import torch

from eqlearn.errors import InvalidArgument
from eqlearn.search.groups.draft import refitted
from eqlearn.search.groups.group_settings import GroupSettings
from eqlearn.search.groups.last import adapted, measured, population_of
from eqlearn.search.groups.rows import GroupedRows
from eqlearn.symbolic.equation import Equation
from eqlearn.validation.groups import Groups
from eqlearn.validation.table import Table

RNG = np.random.default_rng(0)


def candidate(sizes, noise=0.01):
    """`c1[sample]*x + c2[sample]` fitted to groups of these sizes, c1 about 5 and c2 about 2."""
    constants = np.stack(
        [5 + 0.5 * RNG.normal(size=len(sizes)), 2 + 0.1 * RNG.normal(size=len(sizes))], axis=1
    )
    codes = np.arange(len(sizes)).repeat(sizes)
    x = RNG.uniform(0, 3, len(codes))
    y = constants[codes, 0] * x + constants[codes, 1] + noise * RNG.normal(size=len(x))
    groups = Groups("sample", tuple(f"s{i}" for i in range(len(sizes))), codes)
    rows = GroupedRows.of(Table(x[:, None], y[:, None], None), groups)
    equation = Equation.parse("c1[sample]*x + c2[sample]", ["x", "c1[sample]", "c2[sample]"])
    start = {name: torch.ones(rows.count, dtype=torch.float64) for name in equation.variables[1:]}
    draft = refitted(equation, ["x"], "sample", start, rows, GroupSettings())
    return measured([draft], rows, groups, GroupSettings())[0], constants


def test_constants_have_values_and_errors_in_every_group():
    found, constants = candidate([30] * 6)

    away = np.abs(found.varying.values - constants)
    assert (away < 5 * found.varying.standard_errors).all()
    assert (found.varying.standard_errors < 0.05).all()
    assert found.training_error < 0.01


def test_a_group_of_too_few_rows_takes_the_rest_from_the_population_and_is_warned_of():
    with pytest.warns(UserWarning, match=r"1 group of too few rows for 2 constants of their own \('s6'\)"):
        found, constants = candidate([30] * 6 + [1])

    assert np.isfinite(found.varying.values).all()
    assert found.varying.standard_errors[6].min() > 3 * found.varying.standard_errors[:6].max()
    assert abs(found.varying.values[6, 0] - constants[6, 0]) < 4 * found.varying.standard_errors[6, 0] + 0.2


def test_a_new_group_is_fitted_to_a_few_rows():
    found, _ = candidate([30] * 6)
    x = np.array([[0.5], [1.5], [2.5]])

    new = adapted(found, (x, 6.2 * x[:, 0] + 1.9))

    np.testing.assert_allclose(new.equation(new.inputs(x, 0)), 6.2 * x[:, 0] + 1.9, atol=0.02)


def test_a_new_group_needs_a_constant_that_varies():
    found, _ = candidate([30] * 6)
    from dataclasses import replace

    with pytest.raises(InvalidArgument, match="`new_group`"):
        adapted(replace(found, varying=None), ([[1.0]], [1.0]))


def test_errors_are_taken_off_the_spread_of_a_population():
    values = torch.tensor([[1.0], [3.0]], dtype=torch.float64)

    mean, spread = population_of(values, torch.ones_like(values))

    assert mean.item() == 2
    assert spread.item() == pytest.approx(1.0)
