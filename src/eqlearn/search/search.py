"""The search itself: strategies and small networks, the simplest first, until a law or the budget ends it."""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import joblib
import numpy as np
import sympy as sp
import torch

from eqlearn.errors import InvalidArgument
from eqlearn.nn.primitives import PrimitivesLike, RegistrySnapshot, lookup, parse_kinds
from eqlearn.numerics.budget import Deadline, one_thread
from eqlearn.numerics.residuals import noise_seen
from eqlearn.search.ansatz.target_transform import transforms
from eqlearn.search.archive import Archive
from eqlearn.search.candidate import Candidate, Rule, choose, find_rule
from eqlearn.search.curriculum import Curriculum
from eqlearn.search.display import front_html
from eqlearn.search.features import Features, screen
from eqlearn.search.finish import Finisher
from eqlearn.search.groups.driver import by_groups
from eqlearn.search.knowledge.demands import NO_DEMANDS, Demands
from eqlearn.search.knowledge.knowing import knowingly
from eqlearn.search.knowledge.knowledge import Knowledge
from eqlearn.search.measured import first_weights, weighed
from eqlearn.search.networks.fit import Samples
from eqlearn.search.networks.starts import Waves
from eqlearn.search.networks.structures import Vocabulary
from eqlearn.search.problem import Problem
from eqlearn.search.robust import LOSSES, robustly
from eqlearn.search.settings import DEFAULTS, SCIENCE, Settings, for_parts
from eqlearn.search.step import Journal, Step, StepResult, recalled, take_step
from eqlearn.search.units.dimensional import dimensionally
from eqlearn.validation.groups import taken_apart
from eqlearn.validation.options import (
    SearchPenalty,
    check_alone,
    check_budget,
    check_jobs,
    check_settings,
    checked_choice,
    checked_seed,
)
from eqlearn.validation.table import read_outside, read_table, split_rows
from eqlearn.validation.uncertainty import read_uncertainty


@dataclass(frozen=True)
class Progress:
    """How far a search has come, after each round; `front` holds the Pareto front of what was read so far,
    where a search has one."""

    round: int
    restarts: int
    seconds: float
    best: Candidate
    front: tuple[Candidate, ...] = ()


@dataclass(frozen=True)
class Found:
    """What a search led to. `front` is the Pareto front, simplest first; `best` the chosen one of it;
    `restarts` counts every network started, `failures` those that came to nothing, by reason; `ended` says
    why the search stopped.
    """

    best: Candidate
    front: tuple[Candidate, ...]
    restarts: int
    rounds: int
    exact_restarts: int
    failures: dict[str, int]
    seconds: float
    ended: str
    variables: tuple[str, ...]
    inputs: tuple[str, ...]  # what a candidate's network sees, by name
    outliers: tuple[int, ...] = ()  # the rows of `X` that `loss="auto"` left out

    @property
    def exact(self) -> bool:
        """Whether the chosen equation fits the training data to rounding error."""
        return self.best.exact

    def _repr_html_(self) -> str:
        names = [f"y{k + 1}" for k in range(len(self.best.equations))]
        return front_html(self.front, self.best, names if len(names) > 1 else ["y"])


@one_thread()
def discover(
    X: Any,
    y: Any,
    *,
    primitives: PrimitivesLike = SCIENCE,
    penalty: str = "half",
    hidden_layers: int = 3,
    seconds: float | None = None,
    restarts: int | None = None,
    seed: int = 0,
    variables: Sequence[str] | None = None,
    sample_weight: Any = None,
    y_error: Any = None,
    x_error: Any = None,
    loss: str = "squares",
    units: Any = None,
    free_constants: bool = False,
    knows: Knowledge | Mapping[str, Any] | Demands | None = None,
    extrapolation: tuple[Any, Any] | None = None,
    select: str | Rule = "description",
    n_jobs: int | None = None,
    settings: Settings = DEFAULTS,
    progress: Callable[[Progress], None] | None = None,
    journal: Journal | None = None,
    groups: Any = None,
    varies: str | int | None = None,
) -> Found:
    """Finds equations for `y` in terms of the columns of `X`.

    **Main arguments:** `X` `(rows, in)`, an array or a data frame whose columns name the variables; `y`
    `(rows,)` or `(rows, out)`; `primitives`, one set for all layers; `penalty` "half" (L0.5, by re-weighted
    least squares) or "l0" (hard-concrete gates); `hidden_layers`, the greatest depth; `seconds` and
    `restarts`, the budget; `seed`.

    **Other arguments:** `y_error` and `x_error`, standard deviations of the targets (a number, or one per
    row) and of the inputs (a dictionary by column, or one per column, or per row and column), by which rows
    are weighed, constants fitted and equations chosen; `loss`, "squares", or "auto", which leaves gross
    outliers out, or "huber", which bounds what they count; `units`, those of columns and target by name, such
    as {"L": "m", "g": "m/s**2", "T": "s"}, so that every law is dimensionally right, and `free_constants`,
    whether constants may have units; `knows`, what is known of the law, a `Knowledge` or a dictionary of its
    arguments, such as {"even": "x", "limits": {"x": inf, "y": 0}}; `extrapolation`, data `(X, y)` outside the
    training range, measured and never used for the search; `select`, a rule's name or a function; `n_jobs`,
    workers of the active joblib backend (the same seed gives the same candidates whatever their number);
    `progress`, called after each round; `groups`, one label a row, or the name of a data frame's column of
    them: one structure for all rows, each constant of it shared by all groups or with a value in each, as
    `candidate.varying` says; `varies`, the name or place of a column that constants are functions of, each a
    law if there is one, else a table that is interpolated.

    Ctrl-C ends the search and gives the best found so far.
    """
    if groups is not None or varies is not None:
        beside = {"y_error": y_error, "x_error": x_error, "units": units, "knows": knows}
        check_alone(
            {"groups": groups, "varies": varies}, beside | {"loss": loss if loss != "squares" else None}
        )
    if knows is not None:
        check_alone({"knows": knows}, {"y_error": y_error, "x_error": x_error, "units": units})
    if checked_choice("`loss`", loss, LOSSES) != "squares":
        robust: Found = robustly(discover, dict(locals()))
        return robust
    if units is not None:
        right: Found = dimensionally(discover, dict(locals()))
        return right
    knows = None if knows == Knowledge() or knows == {} else knows
    if knows is not None and not isinstance(knows, Demands):
        agreeing: Found = knowingly(discover, dict(locals()))
        return agreeing
    demands = NO_DEMANDS if knows is None else knows
    began = time.time()
    checked_choice("search penalty", penalty, tuple(SearchPenalty))
    check_budget(seconds, restarts)
    check_settings(settings, Settings)
    seed = checked_seed(seed)
    check_jobs(n_jobs)
    rule = find_rule(select, outside=extrapolation is not None)
    if groups is not None or varies is not None:
        X, groups = taken_apart(X, groups)
        again = partial(
            discover, primitives=primitives, penalty=penalty, hidden_layers=hidden_layers, restarts=restarts,
            seed=seed, n_jobs=n_jobs, settings=for_parts(settings, np.shape(X)[1] if np.ndim(X) == 2 else 1),
        )  # fmt: skip
        of_laws = for_parts(settings, 1, settings.groups.left_out_of_laws)
        found: Found = by_groups(
            again, X, y, groups, varies, laws=of_laws, variables=variables, sample_weight=sample_weight,
            extrapolation=extrapolation, seconds=seconds, rule=rule, settings=settings.groups,
            progress=progress, journal=journal,
        )  # fmt: skip
        return found
    table, names = read_table(X, y, sample_weight, variables)
    if table.weight is not None:
        table = table.take(np.flatnonzero(table.weight))
    table = replace(table, errors=read_uncertainty(y_error, x_error, table, names))
    if table.errors is not None:
        table = replace(table, weight=first_weights(table))
    units = parse_kinds(primitives)
    others = [p for p in units if p.name != "pow"]
    if not others:
        raise InvalidArgument("`primitives` holds `pow` alone, which needs others beside it, such as `id`")
    names_of = {p.name for p in units}
    powers, most = "pow" in names_of, settings.max_inputs
    # Logarithms stand for powers, where the base is positive; beside the square, a cube needs no sign.
    vocabulary = Vocabulary.of([*others, lookup("cube")] if powers else others)
    degree = 2**hidden_layers if names_of & {"square", "mul", "pow"} else 1
    columns = screen(table.X, table.y, most, settings.screening)
    features = Features.of(table.X, table.y, logarithms=powers, degree=degree, columns=columns, most=most)
    training, validation = split_rows(table, settings.validation, settings.enough_rows, seed)
    outside = read_outside(extrapolation, X, table.y.shape[1], names)
    deadline, last, end = _deadlines(began, seconds, table.rows, settings)
    share = math.inf if seconds is None else settings.shares.proposals * seconds
    # Formulas are read and compared on so large a sample that more rows would add nothing.
    read_rows = settings.reading.rows
    shown = split_rows(training, 1 - read_rows / training.rows, read_rows + 1, seed)[0]
    finisher = Finisher(features, names, shown, validation, outside, last, demands)
    archive = Archive(finisher, settings)
    seen = split_rows(training, 1 - settings.rows / training.rows, settings.rows + 1, seed)[0]
    # Penalties are weighed against the error, so the unit of the weights must not count.
    weight = None if seen.weight is None else torch.as_tensor(seen.weight / seen.weight.mean())
    samples = Samples(features.tensor(seen.X), torch.as_tensor((seen.y / features.units).T), weight)
    waves = Waves.of(samples.x[: len(features.columns)].numpy())
    through = tuple(transforms(vocabulary.unary, samples.y, features.outputs[0]))
    sparsifier = settings.half if penalty == "half" else settings.l0
    visible, largest = shown.X[:, features.columns], settings.reading.max_noise
    seen_noise = [noise_seen(visible, target) for target in shown.y.T]
    noisy = all(noise is not None and 0 < noise < largest for noise in seen_noise)
    gives_up = seconds is None or any(noise != 0 for noise in seen_noise)  # exact values are worth all of it
    how = (sparsifier, hidden_layers, settings, noisy)
    problem = Problem(samples, features, vocabulary, waves, through, *how)
    curriculum = Curriculum(settings, hidden_layers, features, samples.rows, seed)

    started, exact, rounds, ended = 0, 0, 0, ""
    failures: Counter[str] = Counter()
    try:
        while not ended:
            workers = 1 if curriculum.generation(rounds) == 1 else n_jobs
            tasks = curriculum.steps(rounds, archive.parents)
            seen_so_far = replace(problem, settled=archive.settled)
            for result in _run(tasks, seen_so_far, deadline, share, workers, journal):
                archive.add(result, last)
                started, exact, rounds = started + result.started, exact + result.exact, rounds + 1
                failures.update(result.failures)
                if progress is not None:
                    progress(Progress(rounds, started, time.time() - began, archive.best, archive.seen_front))
                ended = _ended(archive, rounds, started, restarts, deadline, gives_up, curriculum)
                if ended:
                    break
    except KeyboardInterrupt:
        ended = "interrupted"
    front = archive.front(last)
    failures.update(archive.failures)
    if table.errors is not None:
        front = tuple(weighed(c, table, finisher.spreads, end) for c in front)
    best = choose(rule, front)
    fitted = table.errors is not None  # by their errors, to all rows
    chosen = (c for c in front if not fitted and (c is best or (table.rows <= read_rows and not last())))
    polished = {id(c): finisher.refit(c, table, end) for c in chosen}
    return Found(
        best=polished.get(id(best), best), front=tuple(polished.get(id(c), c) for c in front),
        restarts=started, rounds=rounds, exact_restarts=exact, failures=dict(failures),
        seconds=time.time() - began, ended=ended, variables=names, inputs=features.names(names),
    )  # fmt: skip


def _deadlines(
    began: float, seconds: float | None, rows: int, settings: Settings
) -> tuple[Deadline, Deadline, Deadline]:
    """When to end the rounds, the reading of formulas, and the search."""
    if seconds is None:
        return (Deadline(math.inf),) * 3
    shares = settings.shares
    # The last fit, to all rows of a long table, takes about as long as it took to prepare them.
    prepared = time.time() - began if rows > settings.reading.rows else 0.0
    last = seconds - max(shares.last_fit * seconds, min(prepared, shares.max_last_fit * seconds))
    rounds = min(shares.rounds * seconds, last)
    return Deadline(began + rounds), Deadline(began + last), Deadline(began + seconds)


def _run(
    tasks: Iterator[Step],
    problem: Problem,
    deadline: Deadline,
    share: float,
    n_jobs: int | None,
    journal: Journal | None,
) -> Iterator[StepResult]:
    """The rounds' results in order; remembered ones, which come first, are not run again. No worker waits:
    one that is done begins with the next round, whichever rounds the others are at. A round looks for
    proposals for at most the seconds of its `share`."""
    fresh: list[Step] = []
    for task in tasks:
        known = recalled(task, journal)
        if known is None:
            fresh.append(task)
            break
        yield known
    snapshot = RegistrySnapshot.taken()
    jobs = (joblib.delayed(_one)(snapshot, task, problem, deadline, share) for task in chain(fresh, tasks))
    results = joblib.Parallel(n_jobs=n_jobs, return_as="generator", batch_size=1)(jobs)
    try:
        for result in results:
            if journal is not None and not deadline():
                journal.record(result)
            yield result
    finally:
        with warnings.catch_warnings():  # joblib warns of rounds that nobody waits for any more
            warnings.simplefilter("ignore")
            results.close()


def _one(
    snapshot: RegistrySnapshot, task: Step, problem: Problem, deadline: Deadline, share: float
) -> StepResult:
    with one_thread():  # in whichever thread or process this is
        return take_step(task, problem, deadline, deadline.within(share))


def _brief(candidate: Candidate, settings: Settings) -> bool:
    """Whether nothing simpler need be looked for: a formula is short, or a sum of inputs and of no high
    powers, which come to rounding near any smooth function; √(x²) for x is neither."""
    formulas = [equation.expr for equation in candidate.equations]
    if any(formula.has(sp.Abs) for formula in formulas):
        return False
    powers = {p.exp for formula in formulas for p in formula.atoms(sp.Pow) if p.exp.is_Integer}
    plain = candidate.method == "linear" and all(abs(power) <= settings.max_degree for power in powers)
    return candidate.complexity <= settings.reading.max_brief or plain


def _ended(
    archive: Archive,
    rounds: int,
    started: int,
    restarts: int | None,
    deadline: Deadline,
    gives_up: bool,
    curriculum: Curriculum,
) -> str:
    """Why the search is over, or nothing; where rounds bring no gain it `gives_up`, or else goes on."""
    settings = curriculum.settings
    # Where an exact formula is long, the next few rounds may say the same in fewer words.
    if archive.complete and (_brief(archive.best, settings) or rounds >= settings.reading.patience):
        return "exact"
    if deadline():
        return "out of time"
    if restarts is not None and started >= restarts:
        return "out of restarts"
    if not settings.networks and not curriculum.evolves and rounds >= len(curriculum.scheduled):
        return "no further gain"
    first = curriculum.settled_pass if archive.settled else curriculum.first_pass
    patience = curriculum.patience if gives_up or archive.settled else math.inf
    if rounds >= first and archive.rounds_without_gain >= patience:
        return "no further gain"
    return ""
