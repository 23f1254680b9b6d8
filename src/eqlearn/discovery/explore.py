"""One round of the search: a batch of small networks drawn, made sparse, refitted and eliminated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from eqlearn.discovery.eliminate import eliminate_fits
from eqlearn.discovery.inversion import Inversion
from eqlearn.discovery.least_squares import EXACT, Fit, Problem, levenberg_marquardt, never, take
from eqlearn.discovery.population import Population
from eqlearn.discovery.sparsify import Half, HardConcreteL0
from eqlearn.discovery.starts import Start, Waves, grown_start, random_start
from eqlearn.discovery.structures import Level, Vocabulary


@dataclass(frozen=True)
class Round:
    """What a round is to do; equal rounds give equal results, wherever they run."""

    number: int
    level: Level
    members: int
    seed: int
    inversion: Inversion | None = None
    parents: tuple[Fit, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What a round found: eliminated networks, how many members it started, and why some failed."""

    number: int
    fits: list[Fit]
    started: int
    exact: int
    failures: dict[str, int] = field(default_factory=dict)


def explore(
    task: Round,
    problem: Problem,
    vocabulary: Vocabulary,
    sparsifier: Half | HardConcreteL0,
    waves: Waves,
    *,
    finalists: int = 4,
    stop: Callable[[], bool] = never,
) -> Outcome:
    """Runs one round on scaled data."""
    rng = np.random.default_rng([task.seed, task.number])
    inversion = task.inversion
    seen, scale = problem, 1.0
    if inversion is not None:
        scale = float(inversion.target.std()) or 1.0
        seen = Problem(problem.x, inversion.target / scale, problem.weight)
    starts = [_draw(task, seen, vocabulary, waves, rng) for _ in range(task.members)]
    population = Population([s.structure for s in starts], [s.structure.full_masks() for s in starts])
    theta = _pack(population, starts)
    theta = sparsifier(population, theta, seen, seed=int(rng.integers(2**31)), stop=stop)
    if stop():
        return Outcome(task.number, [], task.members, 0, {"interrupted": task.members})
    theta = population.settle_signs(theta, seen.x)
    lost = int((theta == 0).all(dim=1).sum())
    population, theta = population.restrict(theta, theta != 0)
    theta, loss = levenberg_marquardt(population, theta, seen, steps=40, enough=EXACT * 1e-6, stop=stop)
    if inversion is not None:
        theta = torch.where(population.readout(), theta * scale, theta)
        population, theta, loss = _outward(population, theta, loss, inversion, problem)
    finite = torch.isfinite(loss)
    failures = {"every weight dropped": lost, "not finite on the data": int((~finite).sum())}
    fits = [take(population, theta, loss, int(i)) for i in finite.nonzero()[:, 0]]
    fits = [fit for fit in fits if fit.weights > 0]
    exact = sum(fit.loss < EXACT for fit in fits)
    best = _finalists(fits, problem.rows, finalists)
    best = eliminate_fits(best, problem, stop=stop)
    return Outcome(task.number, best, task.members, exact, {k: v for k, v in failures.items() if v})


def _draw(task: Round, problem: Problem, vocabulary: Vocabulary, waves: Waves, rng: np.random.Generator) -> Start:
    if task.parents:
        parent = task.parents[int(rng.integers(len(task.parents)))]
        left = problem.y - parent.population.evaluate(parent.theta, problem.x)[0]
        return grown_start(parent, task.level, vocabulary, waves.spectrum(left.numpy()), rng)
    structure = vocabulary.draw(task.level, problem.x.shape[0], problem.y.shape[0], rng)
    return random_start(structure, waves.spectrum(problem.y.numpy()), rng)


def _pack(population: Population, starts: Sequence[Start]) -> Tensor:
    theta = torch.zeros(population.places.shape, dtype=torch.float64)
    for row, start in enumerate(starts):
        values = torch.cat([w.flatten() for w in start.weights])
        theta[row, : len(values)] = values
    return theta


def _outward(
    population: Population, theta: Tensor, loss: Tensor, inversion: Inversion, problem: Problem
) -> tuple[Population, Tensor, Tensor]:
    """Members fitted to the inverted target, with the last unit put back, refitted to the target itself."""
    deeper = [
        inversion.outer(take(population, theta, loss, int(i)))
        for i in torch.isfinite(loss).nonzero()[:, 0]
        if int(population.counts[i]) > 0
    ]
    joined = Population([p.structures[0] for p, _ in deeper], [p.masks[0] for p, _ in deeper])
    packed = torch.zeros(joined.places.shape, dtype=torch.float64)
    for row, (_, values) in enumerate(deeper):
        packed[row, : values.shape[1]] = values[0]
    packed, loss = levenberg_marquardt(joined, packed, problem, steps=20, enough=EXACT * 1e-6)
    return joined, packed, loss


def _finalists(fits: list[Fit], rows: int, most: int) -> list[Fit]:
    """The best by score, of different sizes or errors: copies of one equation are not worth a second look."""
    chosen: list[Fit] = []
    for fit in sorted(fits, key=lambda f: f.score(rows)):
        twins = [f for f in chosen if f.weights == fit.weights and abs(f.loss - fit.loss) <= 1e-6 * f.loss]
        exact_twins = [f for f in chosen if f.loss < EXACT and fit.loss < EXACT and f.weights <= fit.weights]
        if not twins and len(exact_twins) < 2:
            chosen.append(fit)
        if len(chosen) == most:
            break
    return chosen
