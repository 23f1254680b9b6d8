"""Whatever a table is like, a search ends in time, without a warning, in an equation or in one sentence."""

import time

import numpy as np
import pytest

from eqlearn.errors import EqlearnError
from eqlearn.search.search import discover

SECONDS = 1.0
LATEST = 1.1 * SECONDS + 1.0
TABLES = 7  # in a block: with 15 kinds and 7 blocks there are 735
BLOCKS = 7


def shape(rng, rows=3000, columns=40):
    """Rows and columns, small ones as often as large ones."""
    return int(np.exp(rng.uniform(0, np.log(rows)))), int(np.exp(rng.uniform(0, np.log(columns))))


def plain(rng):
    X = rng.normal(size=shape(rng))
    return X, X[:, 0] * X[:, -1] + np.sin(X[:, 0])


def noise(rng):
    X = rng.normal(size=shape(rng))
    return X, rng.normal(size=len(X))


def one_row(rng):
    return rng.normal(size=(1, int(rng.integers(1, 5)))), rng.normal(size=1)


def wide(rng):
    X = rng.normal(size=(int(rng.integers(2, 9)), 40))
    return X, X[:, 3] - X[:, 7]


def large(rng):
    X = rng.uniform(-1, 1, (3000, 40))
    return X, X[:, 0] / (2 + X[:, 1]) + rng.normal(0, rng.choice([0.0, 0.1]), 3000)


def constant_columns(rng):
    X = np.tile(rng.choice([0.0, 1.0, -3.7, 1e9, 1e-9], shape(rng)[1]), (shape(rng)[0], 1))
    X = np.column_stack([X, rng.normal(size=len(X))]) if rng.random() < 0.5 else X
    return X, rng.normal(size=len(X))


def constant_target(rng):
    X = rng.normal(size=shape(rng))
    return X, np.full(len(X), rng.choice([0.0, 1.0, np.pi, -1e200, 1e-200]))


def collinear(rng):
    rows, columns = shape(rng)
    X = rng.normal(size=(rows, 1)) * rng.normal(size=columns) + rng.choice([0.0, 1e-9]) * rng.normal(
        size=(rows, columns)
    )
    return X, X.sum(axis=1) ** 2


def huge(rng):
    X = rng.normal(size=shape(rng)) * 10.0 ** rng.uniform(6, 200)
    return X, rng.choice([1.0, 1e-200]) * X[:, 0] + X[:, -1]


def tiny(rng):
    X = rng.normal(size=shape(rng)) * 10.0 ** rng.uniform(-200, -6)
    return X, X[:, 0] - 2 * X[:, -1]


def mixed_scales(rng):
    X = rng.normal(size=shape(rng))
    X = X * 10.0 ** rng.uniform(-100, 100, X.shape[1])
    return X, X[:, 0] / np.where(X[:, -1] == 0, 1, X[:, -1])


def integers(rng):
    X = rng.integers(-5, 6, shape(rng))
    return X, X[:, 0] ** 2 + X[:, -1]


def switches(rng):
    X = rng.integers(0, 2, shape(rng)).astype(float)
    return X, rng.choice([0.0, 1.0], len(X))


def heavy_tails(rng):
    X = rng.standard_cauchy(shape(rng)) ** int(rng.choice([1, 3]))
    return X, rng.standard_cauchy(len(X)) if rng.random() < 0.5 else X[:, 0] + 0.1 * rng.standard_cauchy(
        len(X)
    )


def repeated_rows(rng):
    few = rng.normal(size=shape(rng, rows=5))
    X = few[rng.integers(0, len(few), int(rng.integers(1, 300)))]
    return X, rng.normal(size=len(X))


KINDS = [
    plain, noise, one_row, wide, large, constant_columns, constant_target, collinear, huge, tiny,
    mixed_scales, integers, switches, heavy_tails, repeated_rows,
]  # fmt: skip


def escape(X, y):
    """What went wrong in a search, in words; empty if nothing did."""
    began = time.perf_counter()
    try:
        equation = discover(X, y, seconds=SECONDS).best.equation
        said = "" if equation(X).shape == y.shape else "an equation without a value for each row"
    except EqlearnError as error:
        said = "" if "\n" not in str(error).strip() else f"more than a sentence: {error}"
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    used = time.perf_counter() - began
    return said or ("" if used <= LATEST else f"{used:.1f} s, where {LATEST:.1f} are allowed")


@pytest.fixture(scope="module", autouse=True)
def warm():
    """The first search of a process also imports."""
    discover([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0], restarts=30)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_table_escapes(kind, block):
    escapes = {}
    for number in range(TABLES * block, TABLES * (block + 1)):
        with np.errstate(all="ignore"):
            X, y = kind(np.random.default_rng([735, KINDS.index(kind), number]))
        if said := escape(X, y):
            escapes[f"{kind.__name__} {number}, {X.shape[0]} x {X.shape[1]}"] = said

    assert not escapes


@pytest.mark.slow
@pytest.mark.parametrize("tails", ["normal", "heavy"])
def test_neither_does_one_of_a_hundred_thousand_rows_and_fifty_columns(tails):
    rng = np.random.default_rng(50)
    X = rng.normal(size=(100_000, 50)) if tails == "normal" else rng.standard_cauchy((100_000, 50))
    y = X[:, 3] * X[:, 41] + rng.normal(0, 0.1, len(X))

    assert not escape(X, y)
