"""Discovery of partial differential equations: which terms fields obey, by integrals over test functions."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import sympy as sp

from eqlearn.errors import InvalidArgument
from eqlearn.fields.evidence import Evidence
from eqlearn.fields.formulas import formula_laws
from eqlearn.fields.found import FoundPDE, Reader
from eqlearn.fields.free import best_free
from eqlearn.fields.hidden import Hidden, hidden_law, same_parameters, simple_or_fitted
from eqlearn.fields.law import Law, linear_law
from eqlearn.fields.scattered import in_memory, read_fields
from eqlearn.fields.settings import FIELDS, FieldSettings
from eqlearn.fields.terms import Names, Term, conserved, pointwise, weighted
from eqlearn.fields.varying import VaryingTask, joined
from eqlearn.fields.weak import WeakForm, noise_levels, spectrum, strong_form, weak_forms
from eqlearn.nn.primitives import PrimitivesLike
from eqlearn.numerics.budget import Deadline
from eqlearn.numerics.criteria import DECISIVE, EXACT_ERROR
from eqlearn.search.candidate import Candidate, pareto_front
from eqlearn.search.search import Found, Progress
from eqlearn.search.settings import SCIENCE
from eqlearn.symbolic.expressions import real_symbol
from eqlearn.symbolic.varying import Varying
from eqlearn.validation.fields import Field, check_enough, check_experiments, check_moving, check_resolved
from eqlearn.validation.options import check_budget, check_settings, checked_choice, checked_seed
from eqlearn.validation.trajectories import latent_names

FORMS = ("auto", "weak", "strong")


@runtime_checkable
class Journal(Protocol):
    """Where the laws of each field are kept, so that a search that was killed need not find them again."""

    def recall(self, name: str) -> list[Law] | None: ...

    def record(self, name: str, laws: Sequence[Law]) -> None: ...


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
    latents: int = 0,
    primitives: PrimitivesLike = SCIENCE,
    seconds: float | None = None,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
    settings: Any = FIELDS,
    journal: Journal | None = None,
) -> FoundPDE:
    """Finds the partial differential equations of fields: u_t = f(u, u_x, u_xx, ..., x, t), or u_tt.

    **Main arguments:** `fields`, arrays by name such as `{"u": u}`, or a list of such for several experiments
    (or a `Field`); `axes`, the coordinates by name, in the order of the arrays' dimensions, and which of them
    is `time`; fields and axes that are columns of one length are scattered samples; `order` in time, 1 or 2;
    `form` "weak" (integrals over test functions), "strong" (derivatives at points) or "auto"; `seconds`, the
    budget; `seed`.

    **Other arguments:** `targets`, the fields to find equations for, all by default; `varies`, an axis that
    coefficients may be functions of; `periodic`, axes that are, by default as the data tell; `masked`, to
    leave out NaN; `latents`, how many hidden parameters may differ from experiment to experiment (z, or z1,
    z2, ... in the equations); `progress`, called after each stage; `journal`, where the laws of each field
    are kept and recalled.

    Derivatives of products of fields are integrated by parts with test functions whose widths follow from
    the spectrum (Messenger & Bortz 2021), without the bias that noise has in products; the best sums of each
    number of terms are compared by an information criterion. What no sum of such terms explains may hold
    derivatives at points, coordinates, and functions of the fields, which are searched for.
    """
    check_budget(seconds, None)
    check_settings(settings, FieldSettings)
    whole = fields if isinstance(fields, Field) else read_fields(fields, axes, time, periodic, masked)
    field = in_memory(whole, settings)
    checked_choice("form", form, FORMS)
    chosen = (
        field.names if targets is None else tuple(checked_choice("field", n, field.names) for n in targets)
    )
    check_enough(field, order, settings.highest(field))
    check_moving(field, chosen)
    spectra = {axis: spectrum(field, k) ** 2 for k, axis in enumerate(field.axes)}
    check_resolved(field, spectra)
    if varies is not None:
        checked_choice("axis", varies, tuple(field.axes))
        if form == "strong":
            raise InvalidArgument("`varies` takes integrals, never derivatives at points; leave `form` out")
    options = (form, settings, checked_seed(seed), seconds, primitives, progress, varies)
    check_experiments(field, latents)
    task = _Task(field, order, chosen, *options, latents)
    return task.finish([task.kept(name, None if latents else journal) for name in chosen])


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
    latents: int = 0

    def __post_init__(self) -> None:
        self.began = clock.time()
        self.names = Names(self.field.names, tuple(self.field.axes))
        self.noise = noise_levels(self.field, self.settings)
        self.highest = self.settings.highest(self.field)
        self.levels = [self.noise[n] for n in self.field.names]
        self.weak = weak_forms(self.field, self.order, self.highest, self.levels, self.settings)
        self.forms: Sequence[WeakForm] = [strong_form(self.weak[0])] if self.form == "strong" else self.weak
        count, dimensions = len(self.field.names), len(self.field.space)
        self.terms = conserved(count, dimensions, self.settings.degree, self.highest, self.order)
        self.further = pointwise(count, dimensions, self.highest)
        self.stages = 0
        self.varying: list[Varying] = []
        self._free: dict[WeakForm, Any] = {}
        taken = {*self.field.names, *self.field.axes}
        self.parameters = [n if n not in taken else f"p{n[1:]}" for n in latent_names(self.latents)]
        self.hidden: list[tuple[str, int, Hidden]] = []

    def target(self, name: str) -> Term:
        """The term whose value an equation gives: the rate of change of a field."""
        powers = tuple(int(n == name) for n in self.field.names)
        return Term(powers, (*(0,) * len(self.field.space), self.order))

    def laws(self, name: str) -> list[Law]:
        """Laws for one field, the simplest first; the best of them is the last."""
        law = self._hidden_law(name) if self.latents else None
        if law is not None:
            self._report(law, name)
            return [law]
        if self.varies is not None:
            return [self._varying(name)]
        evidence = Evidence.of(self.forms, self.terms, self.target(name))
        if not evidence.settled:
            hard = evidence.unexplained(evidence.best) or len(evidence.best) > self.settings.max_short
            more = [*self.terms, *(self.further if hard else []), *self._weighted]
            wider = Evidence.of(self.forms, more, self.target(name))
            # Coordinates are what noise hides least of all: where nothing else asks for them, they must win.
            if hard or any(wider.terms[p].weight[1] for p in wider.best):
                evidence = wider
        best = linear_law(evidence, evidence.best, self.names, sourceless=self.settings.sourceless)
        if self.form != "strong" and self._lacking(evidence):
            best = min([best, *self._functions(evidence, name, best)], key=lambda law: law.score)
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
        end = Deadline(math.inf if self.seconds is None else self.began + self.seconds)
        return VaryingTask.of(
            self.field, self.varies, self.order, self.highest, self.levels, self.names, self.settings,
            self.primitives, self.seed, end,
        )  # fmt: skip

    def _varying(self, name: str) -> Law:
        """The law of one field whose coefficients vary along an axis; with terms that can't be integrated by
        parts, where others don't explain the data."""
        given = sum(len(v.names) for v in self.varying)
        law, table = self._varying_task.law(self.terms, self.target(name), given)
        if law.unexplained and len(self.field.names) > 1:
            more = [*self.terms, *self.further]
            law, table = self._varying_task.law(more, self.target(name), given)
        self.varying += [] if table is None else [table]
        self._report(law, name)
        return law

    def kept(self, name: str, journal: Journal | None) -> list[Law]:
        """The laws of one field, found before or now."""
        known = None if journal is None else journal.recall(name)
        if known is not None:
            return known
        laws = self.laws(name)
        if journal is not None:
            journal.record(name, laws)
        return laws

    def _hidden_law(self, name: str) -> Law | None:
        """A law with hidden parameters; those that follow ones that are known already are these."""
        rows = self.settings.rows_each * len(self.field.experiments)
        settings = replace(self.settings, max_rows=max(rows, self.settings.max_rows))
        forms = weak_forms(self.field, self.order, self.highest, self.levels, settings)
        own = [f"{n}_of_{name}" for n in self.parameters]
        found = hidden_law(forms, self.terms, self.target(name), self.names, own, self.settings)
        if found is None:
            return None
        expr, known = found.law.expr, self.known_parameters
        for place in range(found.values.shape[1]):
            symbol, left = real_symbol(own[place]), self.parameters[len(self.hidden) :]
            same = same_parameters(found.values[:, place], found.errors[:, place], known)
            if same is None and left:
                self.hidden.append((left[0], place, found))
                expr = expr.xreplace({symbol: real_symbol(left[0])})
            elif same is None:
                return None
            else:
                names = [real_symbol(n) for n, *_ in self.hidden[: known.shape[1]]]
                numbers = [simple_or_fitted(v, e) for v, e in zip(*same, strict=True)]
                expr = expr.xreplace({symbol: sp.Add(numbers[0], *map(sp.Mul, numbers[1:], names))})
        return replace(found.law, expr=sp.expand(expr))

    @property
    def known_parameters(self) -> np.ndarray:
        """The hidden parameters so far, `(experiments, parameters)`."""
        columns = [h.values[:, place] for _, place, h in self.hidden]
        return np.column_stack(columns) if columns else np.empty((len(self.field.experiments), 0))

    def _lacking(self, evidence: Evidence) -> bool:
        """Whether a sum misses more than it should, or so many terms are powers of one field that they might
        be one function of it."""
        terms = [evidence.terms[p] for p in evidence.best]
        powers = [t.powers for t in terms if not (any(t.order) or t.factors or t.weight[1])]
        rests = [(k, p[:k] + p[k + 1 :]) for p in powers for k in range(len(p))]
        apart = evidence.settled or len(rests) - len(set(rests)) < self.settings.alike
        short = len(terms) <= self.settings.max_short and apart
        return evidence.unexplained(evidence.best) or not short

    def _functions(self, evidence: Evidence, name: str, before: Law) -> list[Law]:
        """Laws with a function of a field, a place or time; scored as the law `before` them is."""
        middle = len(evidence.forms) // 2
        form, regression = evidence.forms[middle], evidence.regressions[middle]
        ranked = best_free(
            form, self.terms, self.target(name), self.names, self.settings.free_terms,
            self._free.setdefault(form, {}),
        )  # fmt: skip
        found: list[Law] = []
        one = regression.fitted(evidence.best)
        most = min(ranked[0][2].score(one), ranked[0][2].score(ranked[0][1]) + DECISIVE)
        first = set(ranked[0][1].places)
        others = [f for f in ranked[1:] if not first <= set(f[1].places)]
        for fit, best, standard in [ranked[0], *others][: self.settings.free_tried]:
            if standard.score(best) > most:
                break
            share = self.settings.function_seconds if self.seconds is None else self._left() / 2
            laws = formula_laws(
                fit, best.places, standard, best.noise, self.names, before=one,
                plain=partial(evidence.kept([middle]).length, evidence.best), primitives=self.primitives,
                seconds=max(share, 1.0), seed=self.seed,
            )  # fmt: skip
            # Scores of different widths are compared by what they gain over the law without a function.
            found += [replace(law, score=before.score + law.score) for law in laws]
        return found

    def _left(self) -> float:
        return math.inf if self.seconds is None else self.began + self.seconds - clock.time()

    @property
    def _weighted(self) -> list[Term]:
        """Terms with coordinates; the inverse of one where the axis does not come near zero."""
        axes = []
        for place, values in enumerate(self.field.axes.values()):
            far = float(np.abs(values).min()) > self.settings.min_coordinate * float(np.abs(values).max())
            axes.append((place, (1, 2, -1) if far else (1, 2)))
        return weighted(len(self.field.names), axes, self.highest)

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
        axes = [a for a in (*self.field.axes, *self.parameters) if a in used]
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
        readers = tuple(Reader(name, place, hidden) for name, place, hidden in self.hidden)
        return FoundPDE(
            found, tuple(label.values()), self.order, self.noise, missed, self.field, readers, self.settings,
            joined(self.varying),
        )  # fmt: skip

    @staticmethod
    def _candidate(laws: Sequence[Law], variables: Sequence[str]) -> Candidate:
        equations, constants = zip(*(law.equation(variables) for law in laws), strict=True)
        error = math.sqrt(sum(law.error**2 for law in laws) / len(laws))
        return Candidate(
            equations=equations, constants=constants, training_error=error, exact=error < EXACT_ERROR,
            description_length=sum(law.score for law in laws), method="weak",
        )  # fmt: skip
