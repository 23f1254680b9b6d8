"""Which constants all groups share: decided by description length, from none shared on (backward)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import sympy as sp
import torch

from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_ERROR
from eqlearn.numerics.stepwise import eliminate
from eqlearn.search.groups.group_fit import GroupFit, fit_shared
from eqlearn.symbolic.snap import snap_in_turn


def shared(fit: GroupFit, steps: int, stop: Callable[[], bool] = never) -> GroupFit:
    """The fit with as many constants common to all groups as make data and constants together shorter to
    tell, the one that costs least first."""

    def smaller(fits: list[GroupFit]) -> list[Iterable[GroupFit]]:
        return [
            [_one_more(f, i, steps, stop) for i in np.flatnonzero(~f.common.numpy()).tolist()] for f in fits
        ]

    return eliminate([fit], smaller, lambda f: f.cost, stop=stop)[0]


def _one_more(fit: GroupFit, place: int, steps: int, stop: Callable[[], bool]) -> GroupFit:
    common = fit.common.clone()
    common[place] = True
    return fit_shared(fit.structure, fit.rows, common, fit.values, steps=steps, stop=stop)


@dataclass(frozen=True, eq=False)
class _Common:
    """The common constants of a fit, as `snap_in_turn` wants them."""

    fit: GroupFit

    @property
    def values(self) -> np.ndarray:
        values: np.ndarray = self.fit.values[0, self.fit.common].numpy().copy()
        return values

    @property
    def standard_errors(self) -> np.ndarray:
        errors: np.ndarray = self.fit.errors[0, self.fit.common].numpy()
        return errors


def snapped(
    fit: GroupFit, steps: int, stop: Callable[[], bool] = never
) -> tuple[GroupFit, dict[int, sp.Expr | float]]:
    """The common constants, by their places, moved to simple numbers where the description gets no longer;
    and the fit that goes with them."""
    rows, places = fit.rows.rows, np.flatnonzero(fit.common.numpy())

    def refit(before: _Common, start: np.ndarray, fixed: np.ndarray) -> _Common:
        values = before.fit.values.clone()
        values[:, before.fit.common] = torch.from_numpy(start)
        held = torch.from_numpy(fixed)
        return _Common(
            fit_shared(fit.structure, fit.rows, fit.common, values, fixed=held, steps=steps, stop=stop)
        )

    def rise(before: _Common, after: _Common) -> float:
        errors = (max(f.fit.error, EXACT_ERROR) for f in (before, after))
        first, second = errors
        return rows * (math.log(second) - math.log(first)) if math.isfinite(second) else math.inf

    numbers, after = snap_in_turn(_Common(fit), rows, refit, rise, stop=stop)
    return after.fit, dict(zip(places.tolist(), numbers, strict=True))
