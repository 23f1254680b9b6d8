"""Rows of groups for tests."""

import numpy as np

from eqlearn.search.groups.rows import GroupedRows
from eqlearn.validation.groups import Groups
from eqlearn.validation.table import Table


def grouped(law, constants, rows=15, noise=0.0, low=0.5, high=3.0, columns=1, seed=0):
    """Rows of `law(X.T, constants of the row)`, and the table and groups they come from."""
    rng = np.random.default_rng(seed)
    constants = np.atleast_2d(np.asarray(constants, dtype=float).T).T
    codes = np.arange(len(constants)).repeat(rows)
    X = rng.uniform(low, high, (len(codes), columns))
    y = law(X.T, constants[codes].T)
    y = y + noise * y.std() * rng.normal(size=len(y))
    table, groups = Table(X, y[:, None], None), Groups("sample", tuple(range(len(constants))), codes)
    return GroupedRows.of(table, groups), table, groups
