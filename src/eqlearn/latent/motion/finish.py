"""From a law that was found to a short and exact one, and an encoder that gives the latents the law needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from eqlearn.dynamics.settings import FINISH
from eqlearn.errors import Diverged
from eqlearn.io.storage import followed
from eqlearn.latent.gauge import Gauge, canonical_gauge
from eqlearn.latent.motion.cells import rollout
from eqlearn.latent.motion.law import Law
from eqlearn.latent.motion.own import OwnEncoder
from eqlearn.latent.motion.refine import Propagation, Refined, eliminate_terms, refine, snapped
from eqlearn.latent.motion.series import SeriesEncoder
from eqlearn.numerics.budget import never
from eqlearn.numerics.least_squares import linear_fit
from eqlearn.training.loop import Beginning, Record, Training, train
from eqlearn.training.schedule import Phase, Schedule
from eqlearn.training.state import TrainingState, step_generator
from eqlearn.validation.table import some_rows
from eqlearn.validation.trajectories import Trajectories

# Runs a training of that name from its beginning, and may keep its state in a file.
Follow = Callable[[str, Beginning], Iterator[Record]]


def kept_in(folder: Path) -> Follow:
    """Runs trainings with their states kept in files of a folder, from which one that was killed goes on."""
    return lambda name, start: followed(folder / f"{name}.safetensors", start)


def plainly(name: str, start: Beginning) -> Iterator[Record]:
    """Runs a training of that name from its beginning, without a file to resume from."""
    return iter(start(None))


def finish(
    law: Law,
    z: Float[Tensor, "latents series"],
    propagated: Trajectories,
    *,
    orders: int = 1,
    stop: Callable[[], bool] = never,
    on_fit: Callable[[Refined], object] | None = None,
) -> Refined:
    """The law with the fewest terms that the propagated series ask for, each to all its digits.

    `z` is the encoder's latent of each series; here it is only where the search for each series' own
    latent starts. `orders` times, terms multiplied by a latent are offered too, and stay if the information
    criterion improves. The result is in a canonical gauge (see `gauge`). `on_fit` is told each step on the
    way, with latents of some of the series only if they are many: see `whole`.
    """
    tell: Callable[[Refined], object] = on_fit or (lambda fit: None)
    some = torch.as_tensor(some_rows(z.shape[1], FINISH.max_series))
    problem = Propagation.of(propagated, some)
    fit = started(law, z[:, some], problem, stop=stop)
    tell(fit)
    problem = problem.floored(fit)
    fit = replace(fit, floor=problem.floor)
    fit = eliminate_terms(fit, problem, stop=stop)
    tell(fit)
    fit = _tidied(fit, problem, stop)
    tell(fit)
    for _ in range(orders if law.latents else 0):
        if law.form == "ode" and fit.loss < FINISH.enough:
            break  # only the integrator's own error is left, which no term should follow
        wider = refine(fit.law.next_order(), fit.latent, problem, steps=30, stop=stop)
        wider = _tidied(eliminate_terms(wider, problem, stop=stop), problem, stop)
        if stop() or wider.score(problem.rows) >= fit.score(problem.rows):
            break
        fit = wider
        tell(fit)
    if z.shape[1] <= FINISH.max_series:
        return snapped(fit, problem, stop=stop)
    problem = replace(Propagation.of(propagated), floor=problem.floor)
    fit = _canonical(refine(fit.law, _carried(z, fit.latent, some), problem, stop=stop))
    return snapped(fit, problem, stop=stop)


def glanced(
    law: Law,
    z: Float[Tensor, "latents series"],
    propagated: Trajectories,
    *,
    stop: Callable[[], bool] = never,
) -> Refined:
    """A first look at how well a law follows some of the series: enough to rank it among others."""
    some = torch.as_tensor(some_rows(z.shape[1], FINISH.glanced))
    return started(law, z[:, some], Propagation.of(propagated, some), steps=12, stop=stop)


def started(
    law: Law,
    z: Float[Tensor, "latents series"],
    problem: Propagation,
    *,
    steps: int = 40,
    stop: Callable[[], bool] = never,
) -> Refined:
    """The law refined step by step first, then through the whole rollout; through that alone if the steps
    lead to a law that diverges."""
    single = refine(law, z, replace(problem, forced=True), steps=steps, stop=stop)
    fit = refine(single.law, single.latent, problem, steps=steps, stop=stop)
    return fit if math.isfinite(fit.loss) else refine(law, z, problem, steps=steps, stop=stop)


def whole(fit: Refined, z: Float[Tensor, "latents series"], propagated: Trajectories) -> Refined:
    """A fit to some of the series with a latent for each of them all, in a canonical gauge; `z` is where the
    latents started. In little time: for a search that was interrupted."""
    count = fit.latent.shape[1]
    if count < z.shape[1]:
        some = torch.as_tensor(some_rows(z.shape[1], count))
        fit = refine(fit.law, _carried(z, fit.latent, some), Propagation.of(propagated), steps=5)
    return _canonical(fit)


def encoder_gauges(fit: Refined) -> tuple[Gauge, ...]:
    """Latents as an encoder gives them: with standard deviation ½, or in the units of a given law."""

    def gauge(name: str, p: Tensor) -> Gauge:
        known = name in fit.law.known
        return Gauge(1.0, 0.0) if known else Gauge(2 * float(p.std(correction=0)) or 1.0, float(p.mean()))

    return tuple(gauge(name, p) for name, p in zip(fit.law.latents, fit.latent, strict=True))


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
    law, columns = fit.law, [*problem.initial.numpy(), *fit.latent.numpy()]
    values = [np.broadcast_to(tape.evaluate(columns), problem.initial.shape[1:]) for tape in law.tapes]
    sizes = torch.tensor([float(np.sqrt(np.mean(np.square(v)))) for v in values], dtype=torch.float64)
    shares = law.coefficients.abs() * sizes
    return shares < FINISH.faint * shares.amax(dim=1, keepdim=True)


def _canonical(fit: Refined) -> Refined:
    """The fit with every latent in its canonical gauge, one after the other, but for those whose units a
    given law sets."""
    law, latent = fit.law, fit.latent.clone()
    for number, name in enumerate(law.latents):
        if name in law.known:
            continue
        form, now = "ode" if law.form == "ode" else "map", latent[number]
        gauge = canonical_gauge(law.equations(), name, now, states=law.states, dt=law.dt, form=form)
        gauges = [gauge if i == number else Gauge(1.0, 0.0) for i in range(len(law.latents))]
        law = law.regauged(gauges)
        latent[number] = gauge.parameter(now)
    return replace(fit, law=law, latent=latent)


@torch.no_grad()
def simulated(
    law: Law, latent: Float[Tensor, "latents series"], observed: Trajectories, count: int, seed: int
) -> tuple[Float[Tensor, "some time states"], Float[Tensor, "some latents"]]:
    """Up to `count` new series as long as the observed ones, and their latents, made by the law.

    Each has the initial value of some observed series for each state, and the latents of another, moved a
    little towards those of a third: further would thin out the ends of their range, where the encoder would
    then be worst. What leaves the range of the observed series is left out.
    """
    generator = torch.Generator().manual_seed(seed)
    series = len(observed.states)

    def some() -> Tensor:
        return torch.randint(series, (count,), generator=generator)

    initial = torch.stack([observed.states[some(), 0, i] for i in range(observed.states.shape[2])])
    near = FINISH.moved * torch.rand(count, generator=generator, dtype=torch.float64)
    z = torch.lerp(latent[:, some()], latent[:, some()], near)
    states = torch.cat([initial[None], rollout(law, initial, z, observed.steps)]).permute(2, 0, 1)
    limit = 1.2 * observed.states.abs().amax(dim=(0, 1))
    inside = (states.abs() <= limit).all(dim=2).all(dim=1)  # false for what is not finite, too
    return states[inside], z.mT[inside]


class DistilLoss(nn.Module):
    """The mean square error of an encoder's latents, in these gauges, on the observed series and on others
    that the law makes; batches are drawn by `seed` and the step's number.

    `held` series and their latents are kept back, for the calibration.
    """

    step: Tensor
    series: Tensor
    latent: Tensor

    def __init__(
        self, fit: Refined, gauges: Sequence[Gauge], observed: Trajectories, *, batch: int, seed: int
    ) -> None:
        super().__init__()
        self.batch, self.seed = batch, seed
        own = observed.states
        series, latent = simulated(fit.law, fit.latent, observed, FINISH.simulated * len(own), seed)
        kept = len(series) // 3
        held, known = series[:kept].float(), latent[:kept]
        series, latent = torch.cat([own, series[kept:]]), torch.cat([fit.latent.mT, latent[kept:]])
        self.exact, truth = (
            torch.stack([g.latent(p) for g, p in zip(gauges, each.mT, strict=True)], dim=1)
            for each in (latent, known)
        )
        self.held = held, truth
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))
        self.register_buffer("series", series.float(), persistent=False)
        self.register_buffer("latent", self.exact.float(), persistent=False)

    def forward(self, encoder: SeriesEncoder | OwnEncoder, phase: Phase) -> Float[Tensor, ""]:
        generator = step_generator(self.seed, self.step)
        self.step += 1
        rows = torch.randint(len(self.series), (min(self.batch, len(self.series)),), generator=generator)
        # The target has its units already: standardising each batch anew would blur them.
        encoder.norm.eval()
        z: Tensor = encoder(self.series[rows])
        return (z - self.latent[rows]).square().mean()


def distil_(
    encoder: SeriesEncoder | OwnEncoder, loss: DistilLoss, schedule: Schedule, follow: Follow
) -> bool:
    """Makes the encoder, in place, give the latents that a law needs: its read-out by least squares, all of
    it over the phases of the schedule; false if that diverged."""
    encoder.eval().solve_readout_(loss.series, loss.exact)

    def start(state: TrainingState | None) -> Training:
        return train(encoder, loss, schedule, optimiser=torch.optim.Adam, record_every=100, resume=state)

    stayed = True
    try:
        for _ in follow("distillation", start) if schedule else ():
            pass
    except Diverged:
        stayed = False
    encoder.eval().solve_readout_(loss.series, loss.exact)
    if len(loss.held[0]) > 2:
        encoder.calibrate_(*loss.held)
    return stayed
