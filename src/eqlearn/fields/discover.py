"""Discovery of partial differential equations: which terms fields obey, by integrals over test functions."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from eqlearn.errors import InvalidArgument
from eqlearn.fields.evidence import Evidence, FormLike
from eqlearn.fields.formulas import formula_laws
from eqlearn.fields.found import FoundPDE
from eqlearn.fields.free import best_free
from eqlearn.fields.law import Law, linear_law
from eqlearn.fields.settings import FIELDS, FieldSettings
from eqlearn.fields.strong import StrongForm, table_law
from eqlearn.fields.terms import Names, Term, conserved, pointwise, weighted
from eqlearn.fields.varying import VaryingTask, joined
from eqlearn.fields.weak import noise_levels, spectrum, weak_forms
from eqlearn.nn.primitives import PrimitivesLike
from eqlearn.numerics.budget import Deadline
from eqlearn.numerics.criteria import EXACT_ERROR
from eqlearn.search.candidate import Candidate, pareto_front
from eqlearn.search.search import Found, Progress
from eqlearn.search.settings import SCIENCE
from eqlearn.symbolic.varying import Varying
from eqlearn.validation.fields import Field, check_enough, check_moving, check_resolved
from eqlearn.validation.options import check_budget, check_settings, checked_choice, checked_seed

FORMS = ("auto", "weak", "strong")


def discover_pde(
    fields: Any,
    axes: Any = None,
    time: str = "t",
    *,
    order: int = 1,
    form: str = "auto",
    targets: Iterable[str] | None = None,
    varies: str | None = None,
    periodic: bool | Iterable[str] | None = None,
    masked: bool = False,
    primitives: PrimitivesLike = SCIENCE,
    seconds: float | None = None,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
    settings: Any = FIELDS,
) -> FoundPDE:
    """Finds the partial differential equations of fields: u_t = f(u, u_x, u_xx, ..., x, t), or u_tt.

    **Main arguments:** `fields`, arrays by name such as `{"u": u}`, or a list of such for several experiments
    (or a `Field`); `axes`, the coordinates by name, in the order of the arrays' dimensions, and which of them
    is `time`; `order` in time, 1 or 2; `form` "weak" (integrals over test functions), "strong" (derivatives
    at points) or "auto"; `seconds`, the budget; `seed`.

    **Other arguments:** `targets`, the fields to find equations for, all by default; `varies`, an axis that
    coefficients may be functions of; `periodic`, axes that are, by default as the data tell; `masked`, to
    leave out NaN; `progress`, called after each stage.

    Derivatives of products of fields are integrated by parts with test functions whose widths follow from
    the spectrum (Messenger & Bortz 2021), without the bias that noise has in products; the best sums of each
    number of terms are compared by an information criterion. What no sum of such terms explains may hold
    derivatives at points, coordinates, and functions of the fields, which are searched for.
    """
    check_budget(seconds, None)
    check_settings(settings, FieldSettings)
    field = fields if isinstance(fields, Field) else _read(fields, axes, time, periodic, masked)
    checked_choice("form", form, FORMS)
    check_enough(field, order, _highest(field, settings))
    spectra = {axis: spectrum(field, k) ** 2 for k, axis in enumerate(field.axes)}
    check_resolved(field, spectra)
    chosen = (
        field.names if targets is None else tuple(checked_choice("field", n, field.names) for n in targets)
    )
    if varies is not None:
        checked_choice("axis", varies, tuple(field.axes))
        if form == "strong":
            raise InvalidArgument("`varies` takes integrals, never derivatives at points; leave `form` out")
    options = (form, settings, checked_seed(seed), seconds, primitives, progress, varies)
    check_moving(field, chosen)
    task = _Task(field, order, chosen, *options)
    laws = [task.laws(name) for name in chosen]
    return task.finish(laws)


def _read(fields: Any, axes: Any, time: str, periodic: Any, masked: bool) -> Field:
    if axes is None:
        raise InvalidArgument('`axes` must name the coordinates, such as {"x": x, "t": t}')
    return Field(fields, axes, time, periodic=periodic, masked=masked)


def _highest(field: Field, settings: FieldSettings) -> int:
    """The highest derivative in space that the grid allows, up to the settings'."""
    most = settings.derivatives if len(field.space) == 1 else settings.derivatives_in_space
    points = min(len(field.axes[a]) for a in field.space)
    return max(2, min(most, (points - 5) // 2))


@dataclass(eq=False)
class _Task:
    """A search under way."""

    field: Field
    order: int
    targets: tuple[str, ...]
    form: str
    settings: FieldSettings
    seed: int
    seconds: float | None
    primitives: PrimitivesLike
    progress: Callable[[Progress], None] | None
    varies: str | None = None

    def __post_init__(self) -> None:
        self.began = clock.time()
        self.names = Names(self.field.names, tuple(self.field.axes))
        self.noise = noise_levels(self.field, self.settings)
        self.highest = _highest(self.field, self.settings)
        levels = [self.noise[n] for n in self.field.names]
        self.weak = weak_forms(self.field, self.order, self.highest, levels, self.settings)
        self.forms: Sequence[FormLike] = [self.strong] if self.form == "strong" else self.weak
        self.stages = 0
        self.varying: list[Varying] = []

    @cached_property
    def strong(self) -> StrongForm:
        return StrongForm(self.field, self.settings, self.weak[0].jets, self.seed)

    def target(self, name: str) -> Term:
        """The term whose value an equation gives: the rate of change of a field."""
        powers = tuple(int(n == name) for n in self.field.names)
        return Term(powers, (*(0,) * len(self.field.space), self.order))

    def laws(self, name: str) -> list[Law]:
        """Laws for one field, the simplest first; the best of them is the last."""
        dimensions, count = len(self.field.space), len(self.field.names)
        terms = conserved(count, dimensions, self.settings.degree, self.highest, self.order)
        if self.varies is not None:
            return [self._varying(terms, name)]
        evidence = self._evidence(terms, name)
        if evidence.unexplained(evidence.best) or len(evidence.best) > self.settings.max_short:
            more = [*terms, *pointwise(count, dimensions, self.highest), *self._weighted(count)]
            evidence = self._evidence(more, name)
        best = linear_law(evidence, evidence.best, self.names, sourceless=self.settings.sourceless)
        if self.form != "strong" and (best.unexplained or self._like_a_function(evidence)):
            best = min([best, *self._functions(evidence, name, best)], key=lambda law: law.score)
        if self.form != "weak" and best.unexplained and best.noise < self.settings.clean_rates:
            share = self.settings.table_seconds if self.seconds is None else self._left()
            other = table_law(
                self.strong, self.target(name), best, primitives=self.primitives,
                seconds=max(share, 1.0), seed=self.seed,
            )  # fmt: skip
            best = best if other is None else other
        others = [
            linear_law(evidence, places, self.names, sourceless=self.settings.sourceless, snap=False)
            for places in evidence.front
            if len(places) < len(evidence.best)
        ]
        self._report(best, name)
        return [*others, best]

    @cached_property
    def _varying_task(self) -> VaryingTask:
        assert self.varies is not None
        levels = [self.noise[n] for n in self.field.names]
        end = Deadline(math.inf if self.seconds is None else self.began + self.seconds)
        return VaryingTask.of(
            self.field, self.varies, self.order, self.highest, levels, self.names, self.settings,
            self.primitives, self.seed, end,
        )  # fmt: skip

    def _varying(self, terms: Sequence[Term], name: str) -> Law:
        """The law of one field whose coefficients vary along an axis; with terms that can't be integrated by
        parts, where others don't explain the data."""
        given = sum(len(v.names) for v in self.varying)
        law, table = self._varying_task.law(terms, self.target(name), given)
        if law.unexplained and len(self.field.names) > 1:
            more = [*terms, *pointwise(len(self.field.names), len(self.field.space), self.highest)]
            law, table = self._varying_task.law(more, self.target(name), given)
        self.varying += [] if table is None else [table]
        self._report(law, name)
        return law

    def _like_a_function(self, evidence: Evidence) -> bool:
        """Whether so many terms are powers of one field that they might be one function of it."""
        alike: dict[tuple[int, ...], int] = {}
        for term in (evidence.terms[p] for p in evidence.best):
            if not any(term.order) and not term.factors and not term.weight[1]:
                for place in range(len(term.powers)):
                    rest = (*term.powers[:place], -1, *term.powers[place + 1 :])
                    alike[rest] = alike.get(rest, 0) + 1
        return len(evidence.best) > self.settings.max_short or any(
            count >= self.settings.one_function for count in alike.values()
        )

    def _functions(self, evidence: Evidence, name: str, before: Law) -> list[Law]:
        """Laws with a function of a field, a place or time; scored as the law `before` them is."""
        form = next(f for f in self.weak if f is evidence.forms[len(evidence.forms) // 2])
        regression = evidence.regressions[len(evidence.forms) // 2]
        count, dimensions = len(self.field.names), len(self.field.space)
        terms = conserved(count, dimensions, self.settings.degree, self.highest, self.order)
        ranked = best_free(form, terms, self.target(name), self.names, self.settings.free_terms)
        found: list[Law] = []
        for fit, best, standard in ranked[: self.settings.free_tried]:
            plain = standard.score(regression.fitted(evidence.best))
            if found or standard.score(best) > plain:
                break
            share = self.settings.function_seconds if self.seconds is None else self._left() / 2
            laws = formula_laws(
                fit, best.places, standard, best.noise, self.names, primitives=self.primitives,
                seconds=max(share, 1.0), seed=self.seed,
            )  # fmt: skip
            # Scores of different widths are compared by what they gain over the law without a function.
            found += [replace(law, score=before.score + law.score - plain) for law in laws]
        return found

    def _left(self) -> float:
        return math.inf if self.seconds is None else self.began + self.seconds - clock.time()

    def _evidence(self, terms: Sequence[Term], name: str) -> Evidence:
        return Evidence.of(self.forms, terms, self.target(name), self.settings)

    def _weighted(self, fields: int) -> list[Term]:
        """Terms with coordinates; the inverse of one where the axis does not come near zero."""
        axes = []
        for place, values in enumerate(self.field.axes.values()):
            far = float(np.abs(values).min()) > self.settings.min_coordinate * float(np.abs(values).max())
            axes.append((place, (1, 2, -1) if far else (1, 2)))
        return weighted(fields, axes, self.highest)

    def _report(self, law: Law, name: str) -> None:
        self.stages += 1
        if self.progress is not None:
            variables = self.variables([law])
            equation, constants = law.equation(variables)
            best = Candidate(
                (equation,), law.error, law.score, law.error < EXACT_ERROR, constants=(constants,)
            )
            self.progress(Progress(self.stages, self.stages, clock.time() - self.began, best))

    def variables(self, laws: Iterable[Law]) -> tuple[str, ...]:
        """The fields, then what else the laws are written in: derivatives, the lowest first, and axes."""
        used = {s.name for law in laws for s in law.expr.free_symbols} - set(self.field.names)
        axes = [a for a in self.field.axes if a in used]
        jets = sorted(used - set(axes), key=lambda n: (len(n), n))
        return (*self.field.names, *jets, *axes)

    def finish(self, laws: list[list[Law]]) -> FoundPDE:
        best = [each[-1] for each in laws]
        variables = self.variables(law for each in laws for law in each)
        chosen = self._candidate(best, variables)
        sizes = range(max(len(each) for each in laws))
        others = [self._candidate([each[min(k, len(each) - 1)] for each in laws], variables) for k in sizes]
        front = pareto_front([c for c in others if c.complexity < chosen.complexity])
        found = Found(
            best=chosen, front=(*(c for c in front if c.training_error > chosen.training_error), chosen),
            restarts=self.stages, rounds=self.stages, exact_restarts=0, failures={},
            seconds=clock.time() - self.began, ended="exact" if chosen.exact else "no further gain",
            variables=variables, inputs=variables,
        )  # fmt: skip
        label = {n: f"{n}_{self.field.time * self.order}" for n in self.targets}
        missed = tuple(label[n] for n, law in zip(self.targets, best, strict=True) if law.unexplained)
        return FoundPDE(
            found, tuple(label.values()), self.order, self.noise, missed, self.field, self.settings,
            joined(self.varying),
        )  # fmt: skip

    @staticmethod
    def _candidate(laws: Sequence[Law], variables: Sequence[str]) -> Candidate:
        pairs = [law.equation(variables) for law in laws]
        error = math.sqrt(sum(law.error**2 for law in laws) / len(laws))
        return Candidate(
            equations=tuple(e for e, _ in pairs), training_error=error,
            description_length=sum(law.score for law in laws), exact=error < EXACT_ERROR,
            constants=tuple(c for _, c in pairs), method="weak",
        )  # fmt: skip
