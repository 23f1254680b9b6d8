"""One step of the search: a batch of small networks proposed or drawn, made sparse, refitted, eliminated."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from eqlearn.errors import InvalidArgument, WrongType
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import ENOUGH_LOSS, EXACT_LOSS, EXACT_SHARE, NO_COEFFICIENT
from eqlearn.search.ansatz.layout import Ansatz, layout
from eqlearn.search.ansatz.target_transform import TargetTransform
from eqlearn.search.evolution.evolve import evolved_ansatzes
from eqlearn.search.networks.fit import Fit, Samples, levenberg_marquardt, normal_equations, stack, take
from eqlearn.search.networks.population import Population
from eqlearn.search.networks.refine import eliminate_fits
from eqlearn.search.networks.starts import Start, grown_start, random_start
from eqlearn.search.networks.structures import Level
from eqlearn.search.problem import Problem
from eqlearn.search.strategies import Strategy, is_worth

T = TypeVar("T")
Proposal: TypeAlias = tuple[TargetTransform | None, Start]


@dataclass(frozen=True)
class Step:
    """What one round of the search is to do; equal steps give equal results, wherever they run.

    It takes up what its `strategy` proposes; without one, it draws networks at a `level`. For a strategy that
    looks for exact laws it gives what fits exactly, or else what is small, unless the values hold noise: to
    eliminate the rest takes longer than to find it.
    """

    number: int
    seed: int
    strategy: Strategy | None = None
    level: Level | None = None
    members: int = 0
    parents: tuple[Fit, ...] = ()
    draw: int = 0  # which round of networks, so that a strategy more or less changes none of them
    island: int | None = None  # which island of an evolution

    @property
    def method(self) -> str:
        """How it looks: a strategy's name, or "networks"."""
        if self.island is not None:
            return "evolution"
        return "networks" if self.strategy is None else self.strategy.name

    @property
    def exact(self) -> bool:
        """Whether it looks for exact laws."""
        return self.strategy is not None and self.strategy.exact


@dataclass(frozen=True)
class StepResult:
    """What a step found, by which method: eliminated networks, how many members it started, and why some
    failed."""

    number: int
    method: str
    fits: list[Fit]
    started: int
    exact: int
    failures: dict[str, int] = field(default_factory=dict)


def take_step(
    task: Step, problem: Problem, stop: Callable[[], bool] = never, proposed: Callable[[], bool] | None = None
) -> StepResult:
    """Runs one round of the search, whose proposals end when `proposed()` holds, if that is sooner."""
    rng = np.random.default_rng([task.seed, task.draw])
    fits: list[Fit] = []
    failures: Counter[str] = Counter()
    started = 0 if task.island is None else problem.settings.island.members  # the trees an island begins with
    for batch in _alike(sorted(_starts(task, problem, rng, proposed or stop), key=_kind), _kind):
        started += len(batch)
        found, reasons = _solve(task, problem, batch, rng, stop)
        fits += found
        failures.update(reasons)
    rows = problem.samples.rows
    # A library comes close to anything smooth; only what is at rounding is meant.
    exact = [fit for fit in fits if fit.exact(rows) and (not task.exact or fit.loss < EXACT_SHARE)]
    # Beside an exact fit the others need no further work.
    worth = [_trimmed(fit, problem.samples, stop) for fit in exact] or fits
    settings = problem.settings
    if task.exact and not exact and not problem.noisy:
        worth = [fit for fit in fits if fit.weights <= settings.max_quick_weights]
    best = _finalists(worth, rows, settings.finalists, settings.max_weights)
    best = [
        f
        for group in _alike(best, lambda f: f.kind)
        for f in eliminate_fits(group, problem.samples, stop=stop)
    ]
    reasons = {reason: count for reason, count in failures.items() if count > 0}
    return StepResult(task.number, task.method, best, started, len(exact), reasons)


def _solve(
    task: Step,
    problem: Problem,
    batch: Sequence[Proposal],
    rng: np.random.Generator,
    stop: Callable[[], bool],
) -> tuple[list[Fit], dict[str, int]]:
    """Fits to the target from starts of one depth, and why some starts led to none."""
    if stop():
        return [], {"cut off by the clock": len(batch)}
    samples = problem.samples
    drawn, starts = zip(*batch, strict=True)
    # Only what a start names is there: the rest of the inputs belong to other banks.
    population, theta = Population.started([s.structure for s in starts], [s.weights for s in starts])
    targets = [samples.y if i is None else i.target / i.scale for i in drawn]
    seen = Samples(samples.x, torch.stack(targets), samples.weight)
    # What is linear has one optimum, and elimination finds the sparse one from there, given enough rows.
    drawn_at_random = task.strategy is None and task.island is None
    if drawn_at_random or (not task.exact and samples.rows < int(population.counts.max()) + 3):
        seed = int(rng.integers(2**31))
        population, theta = problem.sparsifier(population, theta, seen, seed=seed, stop=stop)
    if stop():
        return [], {"cut off by the clock": len(starts)}
    theta = population.turn_signs(theta, seen.x)
    lost = int((population.counts == 0).sum())
    theta, loss = levenberg_marquardt(population, theta, seen, steps=40, enough=ENOUGH_LOSS, stop=stop)
    fits = _to_target(population, theta, loss, drawn, samples, stop)
    return fits, {"every weight dropped": lost, "not finite on the data": len(starts) - lost - len(fits)}


def _trimmed(fit: Fit, samples: Samples, stop: Callable[[], bool]) -> Fit:
    """An exact fit without the weights that move nothing: all at once, if it stays exact."""
    if stop():
        return fit
    state = normal_equations(fit.population, fit.theta, samples)
    influence = fit.theta[0].abs() * state.curvature[0].diagonal().sqrt()
    keep = influence > NO_COEFFICIENT * influence.max()
    if bool(keep.all()):
        return fit
    population, theta = fit.population.restrict(fit.theta, keep[None], [0])
    theta, loss = levenberg_marquardt(population, theta, samples, steps=15, enough=ENOUGH_LOSS)
    smaller = Fit(population, theta, float(loss[0]))
    return smaller if smaller.exact(samples.rows) else fit


def _alike(items: Iterable[T], kind: Callable[[T], tuple[int, bool]]) -> list[list[T]]:
    """The items in groups that can be solved together."""
    groups: dict[tuple[int, bool], list[T]] = {}
    for item in items:
        groups.setdefault(kind(item), []).append(item)
    return list(groups.values())


def _kind(proposal: Proposal) -> tuple[int, bool]:
    return proposal[1].structure.kind


def _starts(
    task: Step, problem: Problem, rng: np.random.Generator, stop: Callable[[], bool]
) -> Iterator[Proposal]:
    proposed: Iterable[Ansatz] = ()
    if task.island is not None:
        proposed = evolved_ansatzes(problem, task.island, task.seed, stop)
    elif task.strategy is not None and is_worth(task.strategy, problem):
        proposed = task.strategy.propose(problem, stop) or ()
    inputs, identity = problem.features.count, problem.vocabulary.identity
    for ansatz in proposed:
        if not isinstance(ansatz, Ansatz):
            raise WrongType(f"strategy {task.method!r} must propose Ansatz objects, got {ansatz!r:.60}")
        yield ansatz.transform, layout([ansatz.readout] * ansatz.outputs, inputs, identity)
    for _ in range(task.members):
        if stop():
            return
        yield _drawn(task, problem, rng)


def _transform(level: Level, problem: Problem, rng: np.random.Generator) -> TargetTransform | None:
    """Half of the members (more where logarithms are seen) get the target through a transformed last unit,
    where depth and signs allow it; the first transform as often as all the others."""
    depth, drawing = level.depth + problem.features.layers(level.bank), problem.settings.drawing
    plain = drawing.plain_of_logarithms if level.bank in ("log", "rich") else drawing.plain
    if not problem.transforms or depth >= problem.hidden_layers or rng.random() < plain:
        return None
    first, *others = problem.transforms
    return first if not others or rng.random() < 0.5 else others[int(rng.integers(len(others)))]


def _drawn(task: Step, problem: Problem, rng: np.random.Generator) -> Proposal:
    level = task.level or Level(1, 2, 1)
    samples, features, vocabulary = problem.samples, problem.features, problem.vocabulary
    bank, drawing = features.bank(level.bank), problem.settings.drawing
    if task.parents:
        parent = task.parents[int(rng.integers(len(task.parents)))]
        left = samples.y - parent.population.evaluate(parent.theta, samples.x)[0]
        spectrum = problem.waves.spectrum(left.numpy())
        return None, grown_start(parent, level, bank, features, vocabulary, spectrum, rng, drawing)
    transform = _transform(level, problem, rng)
    target = samples.y if transform is None else transform.target
    # A product is a sum of logarithms: where the target's logarithm is fitted, logarithms are what to draw.
    if transform is not None and transform.unit.name == "exp":
        vocabulary = vocabulary.favouring("log")
    structure = vocabulary.draw(level, features.count, samples.y.shape[0], rng)
    spectrum = problem.waves.spectrum(target.numpy())
    return transform, random_start(structure, bank, features, spectrum, rng, drawing)


def _to_target(
    population: Population,
    theta: Tensor,
    loss: Tensor,
    drawn: Sequence[TargetTransform | None],
    samples: Samples,
    stop: Callable[[], bool],
) -> list[Fit]:
    """The finite members as fits to the target itself; transformed last units are put back and refitted."""
    fits, outer = [], []
    for i, transform in enumerate(drawn):
        if not math.isfinite(loss[i]) or int(population.counts[i]) == 0:
            continue
        fit = take(population, theta, loss, i)
        if transform is None:
            fits.append(fit)
        else:
            unscaled = torch.where(fit.population.readout(), fit.theta * transform.scale, fit.theta)
            outer.append(transform.outer(Fit(fit.population, unscaled, fit.loss)))
    if outer:
        joined, packed = stack([p for p, _ in outer], [v[0] for _, v in outer])
        packed, loss = levenberg_marquardt(joined, packed, samples, steps=20, enough=ENOUGH_LOSS, stop=stop)
        fits += [take(joined, packed, loss, i) for i in range(joined.members) if math.isfinite(loss[i])]
    return fits


def _finalists(fits: list[Fit], rows: int, most: int, largest: int) -> list[Fit]:
    """The best by score that differ; large ones are costly to eliminate and seldom right, so few of them."""
    chosen: list[Fit] = []
    ranked = sorted(fits, key=lambda f: f.score(rows))
    for place, fit in enumerate(ranked):
        twins = any(f.alike(fit) for f in chosen)
        # Two exact fits that are no larger, alike or not, leave a third nothing to say.
        exact = [f for f in ranked[:place] if max(f.loss, fit.loss) < EXACT_LOSS and f.weights <= fit.weights]
        large = fit.weights > largest and any(f.weights > largest for f in chosen)
        if not twins and len(exact) < 2 and not large:
            chosen.append(fit)
    return chosen[:most]


@runtime_checkable
class Journal(Protocol):
    """Remembers finished rounds, so that a search that was killed can be resumed."""

    def recall(self, number: int) -> StepResult | None: ...

    def record(self, result: StepResult) -> None: ...


def recalled(task: Step, journal: Journal | None) -> StepResult | None:
    """What a journal remembers of a step, which must be the same step."""
    known = None if journal is None else journal.recall(task.number)
    if known is not None and known.method != task.method:
        raise InvalidArgument(
            f"round {task.number} of the journal was made by {known.method!r}, where this search takes "
            f"{task.method!r}: other settings or another version of eqlearn began it; begin anew"
        )
    return known


@dataclass
class Memory:
    """A journal in memory; `fingerprint` identifies the data and settings it belongs to, `seed` the start."""

    fingerprint: str
    seed: int
    results: dict[int, StepResult] = field(default_factory=dict)

    def recall(self, number: int) -> StepResult | None:
        return self.results.get(number)

    def record(self, result: StepResult) -> None:
        self.results[result.number] = result


def remembered(old: list[Memory], fingerprint: str, seed: int, count: int) -> list[Memory]:
    """The memories of the last searches, if data and settings were the same; else empty ones."""
    if old and old[0].fingerprint == fingerprint:
        return old
    if old:
        warnings.warn(
            "the data or settings are not those of the last fit, so `warm_start` starts anew", stacklevel=5
        )
    return [Memory(fingerprint, seed) for _ in range(count)]
