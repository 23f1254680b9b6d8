"""One round of the search: a batch of small networks drawn, made sparse, refitted and eliminated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from eqlearn.discovery.eliminate import eliminate_fits
from eqlearn.discovery.features import Features
from eqlearn.discovery.inversion import Inversion
from eqlearn.discovery.least_squares import EXACT, Fit, Problem, levenberg_marquardt, never, stack, take
from eqlearn.discovery.population import Population
from eqlearn.discovery.sparsify import Half, HardConcreteL0
from eqlearn.discovery.starts import Start, Waves, grown_start, linear_start, random_start
from eqlearn.discovery.structures import Level, Vocabulary

# Networks of more weights than this are large.
LARGE = 25
BANKS = ("plain", "log", "quadratic", "products", "powers")


@dataclass(frozen=True)
class Scene:
    """What all rounds of a search share: the scaled data, what networks may see and be made of."""

    problem: Problem
    features: Features
    vocabulary: Vocabulary
    waves: Waves
    inversions: tuple[Inversion, ...]
    sparsifier: Half | HardConcreteL0
    hidden_layers: int
    finalists: int = 4


@dataclass(frozen=True)
class Round:
    """What a round is to do; equal rounds give equal results, wherever they run.

    Without a `level` it tries everything that is linear in one bank of inputs, plain or inverted.
    """

    number: int
    level: Level | None
    members: int
    seed: int
    parents: tuple[Fit, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What a round found: eliminated networks, how many members it started, and why some failed."""

    number: int
    fits: list[Fit]
    started: int
    exact: int
    failures: dict[str, int] = field(default_factory=dict)


def explore(task: Round, scene: Scene, stop: Callable[[], bool] = never) -> Outcome:
    """Runs one round."""
    rng = np.random.default_rng([task.seed, task.number])
    problem = scene.problem
    drawn, starts = zip(*_starts(task, scene, rng), strict=True)
    # Only what a start names is there: the rest of the inputs belong to other banks.
    population = Population([s.structure for s in starts], [[w != 0 for w in s.weights] for s in starts])
    theta = _pack(population, starts)
    scales = [1.0 if i is None else float(i.target.std()) or 1.0 for i in drawn]
    targets = [problem.y if i is None else i.target / s for i, s in zip(drawn, scales, strict=True)]
    seen = Problem(problem.x, torch.stack(targets), problem.weight)
    # What is linear has one optimum, and elimination finds the sparse one from there, given enough rows.
    if task.level is not None or problem.rows < int(population.counts.max()) + 3:
        seed = int(rng.integers(2**31))
        population, theta = scene.sparsifier(population, theta, seen, seed=seed, stop=stop)
    if stop():
        return Outcome(task.number, [], len(starts), 0, {"cut off by the clock": len(starts)})
    theta = population.settle_signs(theta, seen.x)
    lost = int((population.counts == 0).sum())
    theta, loss = levenberg_marquardt(population, theta, seen, steps=40, enough=EXACT * 1e-6, stop=stop)
    fits = _to_target(population, theta, loss, drawn, scales, problem, stop)
    failures = {"every weight dropped": lost, "not finite on the data": len(starts) - lost - len(fits)}
    exact = sum(fit.exact(problem.rows) for fit in fits)
    best = _finalists(fits, problem.rows, scene.finalists)
    best = [f for group in _by_kind(best) for f in eliminate_fits(group, problem, stop=stop)]
    return Outcome(task.number, best, len(starts), exact, {k: v for k, v in failures.items() if v > 0})


def _starts(task: Round, scene: Scene, rng: np.random.Generator) -> Iterator[tuple[Inversion | None, Start]]:
    if task.level is None:
        yield from _linear_starts(scene)
        return
    for _ in range(task.members):
        inversion = _inversion(task.level, scene, rng) if not task.parents else None
        yield inversion, _start(task, task.level, scene, inversion, rng)


def _linear_starts(scene: Scene) -> Iterator[tuple[Inversion | None, Start]]:
    """Every bank with every inversion that the depth allows; a smaller bank is part of a larger one."""
    features, shape = scene.features, (scene.features.count, scene.problem.y.shape[0])
    for inversion in (None, *scene.inversions):
        used = inversion is not None
        allowed = [b for b in BANKS if features.layers(b) + used <= scene.hidden_layers]
        banks = {tuple(features.bank(b)) for b in allowed}
        for bank in sorted(banks):
            yield inversion, linear_start(*shape, bank, scene.vocabulary.identity)


def _inversion(level: Level, scene: Scene, rng: np.random.Generator) -> Inversion | None:
    """Half of the members (more where logarithms are seen) get the target through an inverted last unit,
    where depth and signs allow it; the first inversion as often as all the others."""
    depth = level.depth + scene.features.layers(level.bank)
    plain = 0.25 if level.bank in ("log", "rich") else 0.5
    if not scene.inversions or depth >= scene.hidden_layers or rng.random() < plain:
        return None
    first, *others = scene.inversions
    return first if not others or rng.random() < 0.5 else others[int(rng.integers(len(others)))]


def _start(
    task: Round, level: Level, scene: Scene, inversion: Inversion | None, rng: np.random.Generator
) -> Start:
    problem, vocabulary = scene.problem, scene.vocabulary
    bank = scene.features.bank(level.bank)
    if task.parents:
        parent = task.parents[int(rng.integers(len(task.parents)))]
        left = problem.y - parent.population.evaluate(parent.theta, problem.x)[0]
        return grown_start(
            parent, level, bank, scene.features, vocabulary, scene.waves.spectrum(left.numpy()), rng
        )
    target = problem.y if inversion is None else inversion.target
    # A product is a sum of logarithms: where the target's logarithm is fitted, logarithms are what to draw.
    kinds = (
        vocabulary.favouring("log") if inversion is not None and inversion.unit.name == "exp" else vocabulary
    )
    structure = kinds.draw(level, scene.features.count, problem.y.shape[0], rng)
    return random_start(structure, bank, scene.features, scene.waves.spectrum(target.numpy()), rng)


def _to_target(
    population: Population,
    theta: Tensor,
    loss: Tensor,
    drawn: Sequence[Inversion | None],
    scales: Sequence[float],
    problem: Problem,
    stop: Callable[[], bool],
) -> list[Fit]:
    """The finite members as fits to the target itself; inverted last units are put back and refitted."""
    fits, outer = [], []
    for i, inversion in enumerate(drawn):
        if not math.isfinite(loss[i]) or int(population.counts[i]) == 0:
            continue
        fit = take(population, theta, loss, i)
        if inversion is None:
            fits.append(fit)
        else:
            unscaled = torch.where(fit.population.readout(), fit.theta * scales[i], fit.theta)
            outer.append(inversion.outer(Fit(fit.population, unscaled, fit.loss)))
    if outer:
        joined, packed = stack([p for p, _ in outer], [v[0] for _, v in outer])
        packed, loss = levenberg_marquardt(joined, packed, problem, steps=20, enough=EXACT * 1e-6, stop=stop)
        fits += [take(joined, packed, loss, i) for i in range(joined.members) if math.isfinite(loss[i])]
    return fits


def _by_kind(fits: list[Fit]) -> list[list[Fit]]:
    """Fits that can be solved together: of one depth and way of joining."""
    groups: dict[tuple[int, bool], list[Fit]] = {}
    for fit in fits:
        groups.setdefault(fit.kind, []).append(fit)
    return list(groups.values())


def _pack(population: Population, starts: Sequence[Start]) -> Tensor:
    theta = torch.zeros(population.places.shape, dtype=torch.float64)
    for row, start in enumerate(starts):
        values = torch.cat([w[w != 0] for w in start.weights])
        theta[row, : len(values)] = values
    return theta


def _finalists(fits: list[Fit], rows: int, most: int) -> list[Fit]:
    """The best by score that differ; large ones are costly to eliminate and seldom right, so few of them."""
    chosen: list[Fit] = []
    for fit in sorted(fits, key=lambda f: f.score(rows)):
        twins = [f for f in chosen if f.weights == fit.weights and abs(f.loss - fit.loss) <= 1e-6 * f.loss]
        exact_twins = [f for f in chosen if f.loss < EXACT and fit.loss < EXACT and f.weights <= fit.weights]
        large = [f for f in chosen if f.weights > LARGE]
        if not twins and len(exact_twins) < 2 and not (large and fit.weights > LARGE):
            chosen.append(fit)
        if len(chosen) == most:
            break
    return chosen
