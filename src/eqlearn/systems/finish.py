"""From a trained cell to a short law: refined, eliminated, taken to the next order, in a canonical gauge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from eqlearn.discovery.least_squares import linear_fit, never
from eqlearn.discovery.table import some_rows
from eqlearn.systems.gauge import Gauge, canonical_gauge
from eqlearn.systems.law import Law
from eqlearn.systems.refine import Propagation, Refined, eliminate_terms, refine
from eqlearn.systems.trajectories import Trajectories

# A term of less than this share of the largest, in the same state's equation, is tried without.
FAINT = 1e-2
# Which terms there are is decided on so many series; their numbers are then fitted to all.
SERIES = 250


def finish(
    law: Law,
    z: Float[Tensor, "latents series"],
    propagated: Trajectories,
    *,
    orders: int = 1,
    stop: Callable[[], bool] = never,
) -> Refined:
    """The law with the fewest terms that the propagated series ask for, each to all its digits.

    `z` is what the encoder says of each series; here it is only where the search for each series' own
    latent starts. `orders` times, terms multiplied by a latent are offered too, and stay if the information
    criterion improves. The result is in a canonical gauge (see `gauge`).
    """
    some = torch.as_tensor(some_rows(z.shape[1], SERIES))
    problem = Propagation.of(propagated, some)
    fit = eliminate_terms(refine(law, z[:, some], problem, stop=stop), problem, stop=stop)
    fit = _tidied(fit, problem, stop)
    for _ in range(orders if law.latents else 0):
        wider = refine(fit.law.next_order(), fit.latent, problem, steps=30, stop=stop)
        wider = _tidied(eliminate_terms(wider, problem, stop=stop), problem, stop)
        if stop() or wider.score(problem.rows) >= fit.score(problem.rows):
            break
        fit = wider
    if z.shape[1] <= SERIES:
        return fit
    return _canonical(refine(fit.law, _carried(z, fit.latent, some), Propagation.of(propagated), stop=stop))


def _carried(z: Tensor, known: Tensor, some: Tensor) -> Tensor:
    """Latents of all series in the gauge that is known of some, by the straight line that leads there."""
    if not len(z):
        return z
    columns = torch.cat([z, torch.ones_like(z[:1])])
    lines = torch.stack([linear_fit(columns[:, some], latent) for latent in known])
    return lines @ columns


def _tidied(fit: Refined, problem: Propagation, stop: Callable[[], bool]) -> Refined:
    """The fit in its canonical gauge, without the faint terms that this gauge makes superfluous."""
    fit = _canonical(fit)
    bare = refine(fit.law.keeping(~_faint(fit, problem)), fit.latent, problem, stop=stop)
    if bare.score(problem.rows) < fit.score(problem.rows):
        fit = _canonical(eliminate_terms(bare, problem, stop=stop))
    return fit


def _faint(fit: Refined, problem: Propagation) -> Tensor:
    """Which terms are small in the law, by the root mean square over the initial states."""
    law, series = fit.law, problem.initial.shape[1]
    columns = {name: row.numpy() for name, row in zip(law.states, problem.initial, strict=True)}
    columns |= {name: row.numpy() for name, row in zip(law.latents, fit.latent, strict=True)}
    symbols = list(columns.values())
    values = [np.broadcast_to(program.evaluate(symbols), (series,)) for program in law.programs]
    sizes = torch.tensor([float(np.sqrt(np.mean(np.square(v)))) for v in values], dtype=torch.float64)
    shares = law.coefficients.abs() * sizes
    return shares < FAINT * shares.amax(dim=1, keepdim=True)


def _canonical(fit: Refined) -> Refined:
    """The fit with every latent in its canonical gauge, one after the other."""
    law, latent = fit.law, fit.latent.clone()
    for number, name in enumerate(law.latents):
        gauge = canonical_gauge(
            law.equations(), name, latent[number], states=law.states, dt=law.dt,
            form="ode" if law.form == "ode" else "map",
        )  # fmt: skip
        gauges = [gauge if i == number else Gauge(1.0, 0.0) for i in range(len(law.latents))]
        law = law.regauged(gauges)
        latent[number] = gauge.parameter(latent[number])
    return replace(fit, law=law, latent=latent)
