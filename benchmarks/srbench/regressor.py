"""eqlearn as SRBench asks for a method: `est`, `model`, `eval_kwargs`, a population and its best."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp
from sklearn.base import BaseEstimator, RegressorMixin

from eqlearn import EQLRegressor

# SRBench interrupts `fit` after an hour (ten with more than 1,000 training rows), and what is interrupted has
# no equation. The search ends by itself when it is exact or stops improving, usually long before.
SECONDS = 3000.0
MOST_OF_A_POPULATION = 100

est = EQLRegressor(seconds=SECONDS)

# Columns are not standardised: subtracting means would turn a short law into a long one, and the search takes
# any units. `test_params` is for SRBench's own tests.
eval_kwargs: dict[str, Any] = {"scale_x": False, "scale_y": False, "test_params": {"seconds": 5.0}}

# The version of 2021 asks for these two as well: nothing is tuned.
hyper_params: list[dict[str, Any]] = [{}]


def complexity(est: Any) -> int:
    """The nodes of the equation as SymPy's tree has them, which is how SRBench counts."""
    return sum(1 for _ in sp.preorder_traversal(est.sympy()))


def model(est: Any, X: Any = None) -> str:
    """The equation as text that SymPy reads, in the names of the columns of `X` if it has some."""
    expr = est.sympy()
    columns = getattr(X, "columns", None)
    if columns is None:
        return str(expr)
    renamed = dict(zip(variables(est), map(str, columns), strict=True))
    return str(expr.xreplace({s: sp.Symbol(renamed[s.name]) for s in expr.free_symbols}))


class Row(RegressorMixin, BaseEstimator):
    """One equation of a fitted regressor's front, as a regressor of its own that is fitted already."""

    def __init__(self, fitted: EQLRegressor, index: int) -> None:
        self.fitted = fitted
        self.index = index

    def fit(self, X: Any, y: Any) -> Row:
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.fitted.predict(X, self.index)

    def sympy(self) -> sp.Expr:
        return self.fitted.sympy(self.index)


def variables(est: Any) -> tuple[str, ...]:
    """The names under which the search knows the columns."""
    fitted = est.fitted if isinstance(est, Row) else est
    return tuple(fitted.found_.variables)


def get_population(est: EQLRegressor) -> list[Row]:
    """The front, from the simplest equation to the most accurate; at most a hundred."""
    return [Row(est, k) for k in range(min(len(est.equations_), MOST_OF_A_POPULATION))]


def get_best_solution(est: EQLRegressor) -> EQLRegressor:
    """The regressor itself, which predicts with the equation of the front that it chose."""
    return est
