"""Hidden parameters of a system: constants of its equations of motion that differ from series to series."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy as sp

from eqlearn.dynamics.discover import discover_dynamics
from eqlearn.dynamics.forms import find_form
from eqlearn.dynamics.found import FoundMotion
from eqlearn.dynamics.segments import Segments
from eqlearn.dynamics.settings import MOTION, MotionSettings
from eqlearn.dynamics.shooting import ShootingFit, VectorField, enough_substeps, shoot
from eqlearn.errors import InvalidArgument
from eqlearn.numerics.criteria import EXACT_MOTION, MOTION_TOLERANCE
from eqlearn.search.candidate import Candidate
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import fitted, real_symbol
from eqlearn.symbolic.parametric import Constant
from eqlearn.symbolic.snap import simple_number, snap_constant
from eqlearn.validation.options import check_budget
from eqlearn.validation.trajectories import Trajectories, check_latents, latent_names, read_trajectories


def discover_hidden(
    series: Any,
    form: str = "ode",
    *,
    latents: int = 1,
    dt: float | None = None,
    names: Iterable[str] | None = None,
    seconds: float | None = None,
    settings: MotionSettings = MOTION,
    **options: Any,
) -> FoundMotion:
    """Finds equations of motion in which up to `latents` parameters z are different in each series.

    The law is found in the series that moves most, then every constant is fitted to every series by itself.
    The constants that differ *are* the parameters, in their own units and with the sign that makes them
    positive, so that no gauge is left open. Other arguments are those of `discover_dynamics`;
    `FoundMotion.latents` holds every series' parameters, `FoundMotion.latent_errors` their standard errors.
    """
    check_budget(seconds, None)
    kind = find_form(form)
    trajectories = read_trajectories(series, dt, names, kind.continuous, kind.min_times)
    check_latents(latents, trajectories, settings.min_series)
    usual = {"times": None, "inputs": (), "order": 1}
    refused = [name for name, value in usual.items() if options.get(name, value) is not value]
    if refused or trajectories.clocks is not None or trajectories.inputs:
        raise InvalidArgument(
            "hidden parameters are found in series at even steps of time, with no value missing, without "
            f"inputs and of order 1; leave out `{(refused or ['latents'])[0]}`"
        )
    began = time.time()
    size = [float((one / trajectories.spread).std(axis=0).sum()) for one in trajectories.series]
    leader = trajectories.series[int(np.argmax(size))]
    first = discover_dynamics(
        [leader], form, dt=trajectories.dt, names=trajectories.names, settings=settings,
        seconds=None if seconds is None else settings.leading * seconds, **options,
    )  # fmt: skip
    steps = settings.hidden_steps if first.horizon > settings.short_steps else settings.short_steps
    freed = tuple(Equation(_with_constants(e.expr), e.variables) for e in first.equations)
    law = _Law(freed, trajectories, form, steps, first.found.best.training_error, settings)
    law = replace(law, fits=_fits(law))
    law = law.with_latents(law.hidden(latents))
    return _found(law, first, trajectories, time.time() - began)


@dataclass(frozen=True, eq=False)
class _Law:
    """Equations with a constant before every term, and those constants in every series, with errors.

    `varying` are the places of the constants that became parameters, `signs` how these are counted, and
    `known` the standard errors of the constants that are the same everywhere.
    """

    equations: tuple[Equation, ...]
    trajectories: Trajectories
    form: str
    steps: int
    noise: float
    settings: MotionSettings
    fits: tuple[ShootingFit, ...] = ()
    varying: tuple[int, ...] = ()
    signs: tuple[int, ...] = ()
    known: tuple[float, ...] = ()

    @property
    def values(self) -> np.ndarray:
        """Every series' constants, `(series, constants)`."""
        return np.stack([fit.values for fit in self.fits])

    @property
    def errors(self) -> np.ndarray:
        return np.stack([np.maximum(s.standard_errors, 1e-12 * np.abs(s.values)) for s in self.fits])

    def hidden(self, latents: int) -> list[int]:
        """The places of the constants that differ between series, the surest first."""
        # Each by its own error: in a series that hardly moves a constant may be far off.
        common = np.array([self._mean(i) for i in range(self.values.shape[1])])
        sure = np.sqrt((((self.values - common) / self.errors) ** 2).mean(axis=0))
        least = self.settings.differing_share * np.abs(self.values).mean(axis=0)
        differs = (sure > self.settings.differing_errors) & (self.values.std(axis=0) > least)
        places = [int(i) for i in np.argsort(-sure) if differs[i]]
        if not places:
            raise InvalidArgument(
                "no constant of the equations of motion differs between the series; search without `latents`"
            )
        if len(places) > latents:
            raise InvalidArgument(
                f"{len(places)} constants of the equations of motion differ between the series, more than "
                f"`latents`, {latents}; allow as many"
            )
        return places

    def with_latents(self, places: Sequence[int]) -> _Law:
        """The constants that are the same everywhere set to their common value, the simplest within its
        error, and the parameters fitted again."""
        fixed = ~np.isin(np.arange(self.values.shape[1]), places)
        common = np.array([self._common(i) if fixed[i] else math.nan for i in range(len(fixed))])
        fits = _fits(self, fixed, common)
        signs = tuple(1 if np.median(self.values[:, p]) >= 0 else -1 for p in places)
        known = tuple(self.common_errors.tolist())
        return replace(self, fits=fits, varying=tuple(places), signs=signs, known=known)

    @property
    def common_errors(self) -> np.ndarray:
        """Standard errors of the constants, if they are the same in all series."""
        return np.asarray(1 / np.sqrt((1 / self.errors**2).sum(axis=0)))

    def _mean(self, place: int) -> float:
        weights = 1 / self.errors[:, place] ** 2
        return float(weights @ self.values[:, place] / weights.sum())

    def _common(self, place: int) -> float:
        value = self._mean(place)
        simple = simple_number(value, float(self.common_errors[place]))
        return value if simple is None else float(simple)


def _with_constants(expr: sp.Expr) -> sp.Expr:
    """The formula multiplied out, with a number to be fitted before each term."""
    terms = []
    for term in sp.Add.make_args(sp.expand(expr)):
        number, rest = term.as_independent(*term.free_symbols, as_Add=False)
        constant = fitted(float(number))
        terms.append(constant if rest == 1 else sp.Mul(constant, rest, evaluate=False))
    return sp.Add(*terms)


def _fits(
    law: _Law, fixed: np.ndarray | None = None, common: np.ndarray | None = None
) -> tuple[ShootingFit, ...]:
    """Each series' own fit, from where its last one ended; the `fixed` constants have the `common` values."""
    vector_field, trajectories, fits = VectorField(law.equations), law.trajectories, []
    for i in range(len(trajectories.series)):
        pieces = Segments.of(
            trajectories.part([i]), law.form, law.steps, law.settings.hidden_segments, trajectories.spread,
            law.settings,
        )  # fmt: skip
        constants = (law.fits[i].values if law.fits else vector_field.start).copy()
        if fixed is not None and common is not None:
            constants[fixed] = common[fixed]
        equations = vector_field.equations([float(c) for c in constants])
        substeps = enough_substeps(equations, pieces, max(law.noise, 1e-5))
        fit = shoot(vector_field, pieces, constants, fixed=fixed, substeps=substeps, iterations=25)
        if not fit.finite:
            raise InvalidArgument(f"the equations diverge in series {i}; leave it out, or search longer")
        fits.append(fit)
    return tuple(fits)


def _found(law: _Law, first: FoundMotion, trajectories: Trajectories, seconds: float) -> FoundMotion:
    """The equations with the parameters as variables, measured on all series."""
    vector_field = VectorField(law.equations)
    wanted = law.varying
    parameters = law.values[:, list(wanted)] * np.array(law.signs)
    names = latent_names(len(wanted))
    variables = (*trajectories.names, *names)
    common = np.median(law.values, axis=0)
    simple = [snap_constant(float(c), 1e-9 * abs(float(c)) + 1e-12) for c in common]
    numbers: list[Any] = [fitted(float(c)) if s is None else s for c, s in zip(common, simple, strict=True)]
    for place, sign, name in zip(wanted, law.signs, names, strict=True):
        numbers[place] = sign * real_symbol(name)
    equations = tuple(
        Equation(f.filled(numbers[place]), variables).simplified()
        for f, place in zip(vector_field.formulas, vector_field.places, strict=True)
    )
    errors = np.sqrt(np.mean([fit.errors**2 for fit in law.fits], axis=0))
    error = float(np.sqrt((errors**2).mean()))
    best = Candidate(
        equations=equations, training_error=error, exact=error < EXACT_MOTION,
        description_length=float(np.log(np.maximum(errors, MOTION_TOLERANCE)).sum()) * trajectories.rows,
        constants=tuple(tuple(_known(c, common, law.known) for c in e.constants) for e in equations),
    )  # fmt: skip
    X, y = [], []
    for i, z in enumerate(parameters):
        states, targets = find_form(law.form).table(trajectories.part([i]), law.settings)
        X.append(np.concatenate([states, np.tile(z, (len(states), 1))], axis=1))
        y.append(targets)
    found = replace(
        first.found, best=best, front=(best,), variables=variables, inputs=variables, seconds=seconds
    )
    return replace(
        first, found=found, noise=tuple(float(n) for n in errors * trajectories.spread), latents=parameters,
        latent_errors=np.stack([fit.standard_errors[list(wanted)] for fit in law.fits]),
        rows=(np.concatenate(X), np.concatenate(y)), even=None,
    )  # fmt: skip


def _known(value: float, common: np.ndarray, errors: Sequence[float]) -> Constant:
    """A constant of a finished formula with the error of the fitted constant it is, up to its sign."""
    same = [e for c, e in zip(common, errors, strict=True) if math.isclose(abs(c), abs(value))]
    return Constant(value, same[0] if same else math.nan)
