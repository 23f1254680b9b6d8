"""The paper's search: a population trained by gradient descent, each member read as a candidate."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from eqlearn.errors import InvalidArgument, NotFinite
from eqlearn.nn.eql import EQL
from eqlearn.search.candidate import Candidate, Rule, choose, find_rule, pareto_front
from eqlearn.search.features import Features
from eqlearn.search.finish import Finisher
from eqlearn.search.search import Found
from eqlearn.search.settings import DEFAULTS, Settings
from eqlearn.symbolic.parametric import Constant
from eqlearn.training.presets import PRESETS, Preset, train_population
from eqlearn.validation.options import SearchPenalty, check_budget, checked_choice
from eqlearn.validation.table import read_outside, read_table, split_rows


def search_by_gradient(
    preset: str | Preset,
    X: Any,
    y: Any,
    *,
    restarts: int = 20,
    seed: int = 0,
    variables: Sequence[str] | None = None,
    extrapolation: tuple[Any, Any] | None = None,
    select: str | Rule = "description",
) -> Found:
    """Trains `restarts` networks as `preset` says, on data scaled to about [-1, 1], and chooses among them.

    Constants are as training left them, so they have no standard error.
    """
    check_budget(None, restarts)
    began = time.time()
    rule = find_rule(select, outside=extrapolation is not None)
    table, names = read_table(X, y, None, variables)
    features = Features.of(table.X, table.y, logarithms=False, degree=1)
    training, validation = split_rows(table, DEFAULTS.validation, DEFAULTS.enough_rows, seed)
    outside = read_outside(extrapolation, X, table.y.shape[1], names)
    finisher = Finisher(features, names, training, validation, outside)
    seeds = range(seed, seed + restarts)
    population = train_population(
        preset, features.tensor(training.X).mT, torch.as_tensor(training.y / features.units), list(seeds)
    )
    failures = Counter({"not finite in training": len(population.failures)})
    failed = {failure.member for failure in population.failures}
    candidates = [finisher.constant()]
    for i in range(restarts):
        if i in failed:
            continue
        candidate = _candidate(population.network.member(i), finisher)
        if candidate is None:
            failures["not finite on the data"] += 1
        else:
            candidates.append(candidate)
    front = pareto_front(candidates)
    return Found(
        best=choose(rule, front), front=front, restarts=restarts, rounds=1,
        exact_restarts=sum(c.exact for c in candidates), failures={k: n for k, n in failures.items() if n},
        seconds=time.time() - began, ended="out of restarts", variables=names,
        inputs=features.names(names),
    )  # fmt: skip


def _candidate(network: EQL, finisher: Finisher) -> Candidate | None:
    """The candidate that a member stands for; none if its formula is not finite on the data."""
    network = finisher.in_units_(network.double().eval())
    try:
        equations = finisher.read(network)
    except NotFinite:
        return None
    constants = [tuple(Constant(value, math.nan) for value in e.constants) for e in equations]
    candidate = finisher.measure(equations, constants, network, "gradient")
    return candidate if math.isfinite(candidate.training_error) else None


def find_settings(settings: Any, penalty: str) -> tuple[Settings, Preset | None]:
    """The settings that a user gave, and the preset if it is one that trains by gradient descent."""
    if isinstance(settings, Settings):
        return settings, None
    if isinstance(settings, Preset):
        return Settings(), settings
    if settings == "modern":
        return Settings(), None
    checked_choice("`settings`", settings, ("modern", "paper", "released"))
    checked_choice("`penalty`", penalty, tuple(SearchPenalty))
    return Settings(), PRESETS[settings if penalty == "half" else f"{settings}-l0"]


def check_trainable(preset: Preset, options: Mapping[str, Any]) -> None:
    """Refuses what a search knows and training by gradient descent does not."""
    for name, value in options.items():
        if value is not None and value is not False and not (isinstance(value, str) and value == "squares"):
            hint = "; use `restarts`" if name in ("seconds", "warm_start") else ""
            raise InvalidArgument(f"`{name}` can't be used with the preset {preset.name!r}{hint}")
