"""Refinement of a law through its rollout: second order, in coefficients and each series' latent at once."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.func import jvp, vmap

from eqlearn.dynamics.settings import FINISH
from eqlearn.latent.motion.cells import rollout
from eqlearn.latent.motion.law import Law
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import (
    EXACT_LOSS,
    SNAP_ERRORS,
    SNAP_ROUNDING,
    constant_cost,
    information_criterion,
)
from eqlearn.numerics.least_squares import Rule, SquareRoot, levenberg_marquardt
from eqlearn.numerics.stepwise import eliminate, removals, saliencies
from eqlearn.symbolic.snap import number_cost, simple_number
from eqlearn.validation.trajectories import Trajectories


@dataclass(frozen=True, eq=False)
class Refined:
    """A law with the latent of each series that suits it best; `loss` is in units of the states' spread, and
    a smaller one than `floor` says nothing: see `Propagation`."""

    law: Law
    latent: Float[Tensor, "latents series"]
    loss: float
    floor: float = 0.0

    def score(self, rows: int) -> float:
        """Bayes' information criterion, as everywhere in the search; series count, not their many times."""
        if not math.isfinite(self.loss):
            return math.inf
        return information_criterion(rows, max(self.loss, self.floor), self.law.terms)


@dataclass(frozen=True, eq=False)
class Propagation:
    """The least-squares problem: states to be reached from `initial`, in units of `scales`; trajectories as a
    rollout gives them, feature-major. If `forced`, each step begins at the state that was observed there: no
    error grows, so that a law may start far off. No loss is better than `floor`, the square of an
    integrator's error: terms and digits that lower it further follow that, not the motion."""

    initial: Float[Tensor, "states series"]
    target: Float[Tensor, "steps states series"]
    scales: Float[Tensor, " states"]
    forced: bool = False
    floor: float = 0.0

    @classmethod
    def of(cls, trajectories: Trajectories, series: Tensor | None = None) -> Propagation:
        """From these series, by number, or all."""
        states = trajectories.states if series is None else trajectories.states[series]
        return cls(
            states[:, 0].mT.contiguous(), states[:, 1:].permute(1, 2, 0).contiguous(), trajectories.scales
        )

    @property
    def rows(self) -> int:
        """How many independent observations there are: a number for each series and state."""
        return self.initial.numel()

    def residual(
        self, law: Law, theta: Tensor, z: Tensor, initial: Tensor | None = None, dt: Tensor | None = None
    ) -> Tensor:
        """`(steps, states, series)`, with `theta` the free coefficients and then the inner constants."""
        numbers = _table(law, theta), theta[int(law.free.sum()) :], dt
        if self.forced:
            before = torch.cat([self.initial[None], self.target[:-1]]).transpose(0, 1)
            after: Tensor = law(before.flatten(1), z.repeat(1, len(self.target)), *numbers)
            reached = after.view(before.shape).transpose(0, 1)
        else:
            first = self.initial if initial is None else initial
            reached = rollout(lambda y, at: law(y, at, *numbers), first, z, len(self.target))
        return (reached - self.target) / self.scales[:, None]

    @torch.no_grad()
    def floored(self, fit: Refined) -> Propagation:
        """The problem with the floor that is seen at a fit: how far the motion in whole steps of time is from
        that in half steps. Of a map there is none, nor where it is too large to be an integrator's error."""
        law, steps = fit.law, len(self.target)
        if law.form != "ode":
            return self
        whole = rollout(law, self.initial, fit.latent, steps)
        half = rollout(replace(law, dt=law.dt / 2), self.initial, fit.latent, 2 * steps)[1::2]
        floor = float(((whole - half) / self.scales[:, None]).square().mean())
        return replace(self, floor=floor) if floor < FINISH.enough else self

    def slopes(self, law: Law, theta: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """`(theta, ...)` and `(latents, ...)`: a series' residual moves with no latent but its own, so that
        all of them together are one direction."""
        count = len(theta) + len(z)
        if not count:
            return (self.target.new_zeros(0, *self.target.shape),) * 2
        # Forward differentiation is slow where what moves meets what does not: so start and step of time
        # are among what may move, and stay.
        still = self.initial, theta.new_tensor(law.dt)
        along = vmap(
            lambda by, at: jvp(
                lambda *point: self.residual(law, *point),
                (theta, z, *still),
                (by, at, *(torch.zeros_like(one) for one in still)),
            )[1]
        )
        unit = torch.eye(count, dtype=z.dtype)
        by, at = unit.split([len(theta), len(z)], dim=1)
        with warnings.catch_warnings():
            # On its first use, forward differentiation scripts some of torch's own functions, deprecated.
            warnings.simplefilter("ignore", DeprecationWarning)
            both = along(by, at[:, :, None].expand(-1, -1, z.shape[1]).contiguous())
        return both[: len(theta)], both[len(theta) :]


def _table(law: Law, theta: Tensor) -> Tensor:
    """The free coefficients in their places, among those that are given."""
    if not bool(law.free.any()):
        return law.coefficients
    places = (law.free.flatten().cumsum(0) - 1).clamp(min=0)
    return torch.where(law.free, theta[places].view(law.free.shape), law.coefficients)


def _linearised(problem: Propagation, law: Law, point: Tensor) -> SquareRoot:
    """The problem at a point: coefficients and inner constants, then the latents, series by series."""
    latents, (steps, states, series) = len(law.latents), problem.target.shape
    count = len(point) - latents * series
    theta, z = point[:count], point[count:].view(series, latents).mT
    residual = problem.residual(law, theta, z)

    def slopes() -> tuple[np.ndarray, np.ndarray | None]:
        both = (by.reshape(len(by), steps * states, series) for by in problem.slopes(law, theta, z))
        common, own = (by.permute(2, 1, 0).numpy() for by in both)
        return common, own if latents else None

    return SquareRoot(residual.flatten(0, 1).mT.numpy(), slopes)


def _point(law: Law, z: Tensor) -> Tensor:
    return torch.cat([law.coefficients[law.free], law.inner, z.mT.flatten()])


def refine(
    law: Law,
    z: Float[Tensor, "latents series"],
    problem: Propagation,
    *,
    steps: int = 40,
    enough: float = EXACT_LOSS * 1e-4,
    fixed: Bool[Tensor, " theta"] | None = None,
    stop: Callable[[], bool] = never,
) -> Refined:
    """Least squares in coefficients, inner constants and latents, through the whole rollout.

    Each series' latent is eliminated series by series, so the system solved is as small as the law. `fixed`
    says which of the free coefficients and inner constants stay as they are.
    """
    held = None if fixed is None else torch.cat([fixed, torch.zeros(z.numel(), dtype=torch.bool)])[None]
    point, system = levenberg_marquardt(
        lambda point: _linearised(problem, law, point[0]),
        _point(law, z)[None],
        Rule(steps, damping=1e-4, up=5.0, most=1e8, gain=1e-4, enough=enough),
        fixed=held,
        stop=stop,
    )
    count = int(law.free.sum())
    theta, latents = point[0].split([count + len(law.inner), z.numel()])
    fitted = replace(law, coefficients=_table(law, theta), inner=theta[count:].clone())
    latent = latents.view(z.shape[1], len(z)).mT.contiguous()
    return Refined(fitted, latent, float(system.loss), problem.floor)


def eliminate_terms(
    start: Refined, problem: Propagation, *, steps: int = 20, stop: Callable[[], bool] = never
) -> Refined:
    """Takes terms out by saliency while the information criterion improves, refitting all else each time.

    Latents are refitted with the rest. A shift of z that makes terms vanish is therefore found on the way:
    the saliency of such a term is zero, because the latents can take over.
    """

    def smaller(fit: Refined) -> Iterator[Refined]:
        law = fit.law
        for gone in _removals(fit, problem) if law.terms > 1 and bool(law.free.any()) else ():
            active = law.active.clone()
            active.view(-1)[gone] = False
            yield refine(law.keeping(active), fit.latent, problem, steps=steps, stop=stop)

    def score(fit: Refined) -> float:
        return fit.score(problem.rows)

    (fit,) = eliminate([start], lambda fits: list(map(smaller, fits)), score, first=True, stop=stop)
    return replace(fit, law=fit.law.compact())


def _removals(fit: Refined, problem: Propagation) -> list[Tensor]:
    """Places of terms to do without: the longest runs of the least salient first, then each alone.

    A run that is predicted to cost more than `FINISH.hopeless` times what may be lost is not tried. The least
    salient terms alone always are: latents can bend to take over a term, which no prediction sees.
    """
    law, point = fit.law, _point(fit.law, fit.latent)
    system = _linearised(problem, law, point)
    slopes = torch.from_numpy(system.followed)
    rise = saliencies(slopes.mT @ slopes, point[: slopes.shape[1]])[: int(law.free.sum())] / system.rows
    rise, order = rise.sort()
    places = law.free.flatten().nonzero()[:, 0][order]
    bearable = max(fit.loss, fit.floor, EXACT_LOSS) * math.log(problem.rows) / problem.rows
    hope = int((rise < FINISH.hopeless * bearable).sum())
    return removals(places, singles=3, runs=(n for n in (12, 8, 5, 3, 2) if n <= hope))


def snapped(fit: Refined, problem: Propagation, *, stop: Callable[[], bool] = never) -> Refined:
    """The fit with simple numbers in place of coefficients and inner constants that are as near to one as
    rounding or the integrator's error, where the motion can't tell; all others are refitted each time."""
    count = int(fit.law.free.sum())
    held = torch.zeros(count + len(fit.law.inner), dtype=torch.bool)
    for place in range(len(held)):
        law, point = fit.law, _point(fit.law, fit.latent)[: len(held)]
        value = float(point[place])
        error = max(math.sqrt(fit.floor), SNAP_ROUNDING / SNAP_ERRORS) * abs(value)
        number = simple_number(value, error)
        if number is None or stop():
            continue
        point[place], held[place] = float(number), True
        near = replace(law, coefficients=_table(law, point), inner=point[count:])
        trial = refine(near, fit.latent, problem, steps=10, fixed=held, stop=stop)
        rise = trial.score(problem.rows) - fit.score(problem.rows)
        if rise + number_cost(number) * math.log(2) <= constant_cost(value, error, problem.rows):
            fit = trial
        else:
            held[place] = False
    return fit
