"""One round of the search: a batch of small networks drawn, made sparse, refitted and eliminated."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from eqlearn.discovery.eliminate import eliminate_fits
from eqlearn.discovery.inversion import Inversion
from eqlearn.discovery.kinds import SKETCHERS
from eqlearn.discovery.least_squares import (
    EXACT,
    Fit,
    LeastSquares,
    levenberg_marquardt,
    never,
    normal_equations,
    stack,
    take,
)
from eqlearn.discovery.linear import EXACT_SHARE, allowed_banks
from eqlearn.discovery.population import Population
from eqlearn.discovery.scene import Scene
from eqlearn.discovery.sketch import layout
from eqlearn.discovery.starts import Start, grown_start, linear_start, random_start
from eqlearn.discovery.structures import Level

# Networks of more weights than this are large.
LARGE = 25
# Networks of at most so many weights are eliminated in no time.
SMALL = 12


@dataclass(frozen=True)
class Round:
    """What a round is to do; equal rounds give equal results, wherever they run.

    `kind` is one of `kinds.SKETCHES`, or "networks", drawn at a `level`. A round that is `quick` gives what
    fits exactly, or else what is small: to eliminate the rest takes longer than to find it.
    """

    number: int
    kind: str
    seed: int
    level: Level | None = None
    members: int = 0
    quick: bool = False
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
    fits: list[Fit] = []
    failures: Counter[str] = Counter()
    started = 0
    for batch in _batches(_starts(task, scene, rng, stop)):
        started += len(batch)
        found, reasons = _solve(task, scene, batch, rng, stop)
        fits += found
        failures.update(reasons)
    rows = scene.problem.rows
    # What a dictionary can come close to, it does; only what is at rounding is meant.
    exact = [fit for fit in fits if fit.exact(rows) and (not task.quick or fit.loss < EXACT_SHARE)]
    # Beside an exact fit the others need no further work.
    worth = [_trimmed(fit, scene.problem, stop) for fit in exact] or fits
    if task.quick and not exact:
        worth = [fit for fit in fits if fit.weights <= SMALL]
    best = _finalists(worth, rows, scene.finalists)
    best = [f for group in _by_kind(best) for f in eliminate_fits(group, scene.problem, stop=stop)]
    return Outcome(task.number, best, started, len(exact), {k: v for k, v in failures.items() if v > 0})


def _solve(
    task: Round,
    scene: Scene,
    batch: Sequence[tuple[Inversion | None, Start]],
    rng: np.random.Generator,
    stop: Callable[[], bool],
) -> tuple[list[Fit], dict[str, int]]:
    """Fits to the target from starts of one depth, and why some starts led to none."""
    if stop():
        return [], {"cut off by the clock": len(batch)}
    problem = scene.problem
    drawn, starts = zip(*batch, strict=True)
    # Only what a start names is there: the rest of the inputs belong to other banks.
    population = Population([s.structure for s in starts], [[w != 0 for w in s.weights] for s in starts])
    theta = _pack(population, starts)
    targets = [problem.y if i is None else i.target / i.scale for i in drawn]
    seen = LeastSquares(problem.x, torch.stack(targets), problem.weight)
    # What is linear has one optimum, and elimination finds the sparse one from there, given enough rows.
    if task.kind == "networks" or (task.kind == "banks" and problem.rows < int(population.counts.max()) + 3):
        seed = int(rng.integers(2**31))
        population, theta = scene.sparsifier(population, theta, seen, seed=seed, stop=stop)
    if stop():
        return [], {"cut off by the clock": len(starts)}
    theta = population.turn_signs(theta, seen.x)
    lost = int((population.counts == 0).sum())
    theta, loss = levenberg_marquardt(population, theta, seen, steps=40, enough=EXACT * 1e-6, stop=stop)
    fits = _to_target(population, theta, loss, drawn, problem, stop)
    return fits, {"every weight dropped": lost, "not finite on the data": len(starts) - lost - len(fits)}


def _trimmed(fit: Fit, problem: LeastSquares, stop: Callable[[], bool]) -> Fit:
    """An exact fit without the weights that move nothing: all at once, if it stays exact."""
    if stop():
        return fit
    state = normal_equations(fit.population, fit.theta, problem)
    influence = fit.theta[0].abs() * state.curvature[0].diagonal().sqrt()
    keep = influence > 1e-7 * influence.max()
    if bool(keep.all()):
        return fit
    population, theta = fit.population.restrict(fit.theta, keep[None], [0])
    theta, loss = levenberg_marquardt(population, theta, problem, steps=15, enough=EXACT * 1e-6)
    smaller = Fit(population, theta, float(loss[0]))
    return smaller if smaller.exact(problem.rows) else fit


def _batches(
    starts: Iterator[tuple[Inversion | None, Start]],
) -> list[list[tuple[Inversion | None, Start]]]:
    """Starts that can be solved together: of one depth and way of joining."""
    groups: dict[tuple[int, bool], list[tuple[Inversion | None, Start]]] = {}
    for inversion, start in starts:
        kind = len(start.structure.layers), start.structure.skip
        groups.setdefault(kind, []).append((inversion, start))
    return [groups[kind] for kind in sorted(groups)]


def _starts(
    task: Round, scene: Scene, rng: np.random.Generator, stop: Callable[[], bool]
) -> Iterator[tuple[Inversion | None, Start]]:
    if task.kind == "banks":
        yield from _bank_starts(scene)
    elif task.kind in SKETCHERS:
        for sketch in SKETCHERS[task.kind](scene, stop):
            start = layout(sketch.readout, scene.features.count, scene.vocabulary.identity)
            yield sketch.inversion, start
    for _ in range(task.members):
        if stop():
            return
        yield _drawn(task, scene, rng)


def _bank_starts(scene: Scene) -> Iterator[tuple[Inversion | None, Start]]:
    """Every bank with every inversion that the depth allows; a smaller bank is part of a larger one."""
    shape = (scene.features.count, scene.problem.y.shape[0])
    for inversion in scene.targets:
        for bank in allowed_banks(scene, int(inversion is not None)):
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


def _drawn(task: Round, scene: Scene, rng: np.random.Generator) -> tuple[Inversion | None, Start]:
    level = task.level or Level(1, 2, 1)
    inversion = _inversion(level, scene, rng) if not task.parents else None
    return inversion, _start(task, level, scene, inversion, rng)


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
    problem: LeastSquares,
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
            unscaled = torch.where(fit.population.readout(), fit.theta * inversion.scale, fit.theta)
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
