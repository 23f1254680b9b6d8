"""The search as a scikit-learn regressor: a table in, an equation out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeAlias

import joblib
import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from eqlearn.errors import InvalidArgument, WrongType
from eqlearn.nn.primitives import PrimitivesLike, parse_kinds
from eqlearn.report.figures import constants_frame, fit_figure, front_frame
from eqlearn.search.candidate import Candidate, Rule, named_rows
from eqlearn.search.display import front_html
from eqlearn.search.gradient import check_trainable, find_settings, search_by_gradient
from eqlearn.search.groups.last import adapted
from eqlearn.search.knowledge.knowledge import Knowledge
from eqlearn.search.search import Found, discover
from eqlearn.search.settings import SCIENCE, Settings
from eqlearn.search.step import Memory, remembered
from eqlearn.search.units.dimensional import constant_units
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import noise_of
from eqlearn.training.presets import Preset
from eqlearn.validation.groups import arrange_groups, taken_apart
from eqlearn.validation.options import check_alone, check_number, check_together, checked_choice, seed_of
from eqlearn.validation.table import (
    Table,
    check_unique,
    column_names,
    read_outside,
    read_table,
    rows_of,
    some_rows,
)
from eqlearn.validation.uncertainty import read_uncertainty

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Outside: TypeAlias = tuple[np.ndarray, np.ndarray] | None
# Parameters that are numbers, if given; the search checks their values.
_NUMBERS = {"hidden_layers": Integral, "seconds": Real, "restarts": Integral, "n_jobs": Integral}


class EQLRegressor(RegressorMixin, BaseEstimator):
    """Finds an equation for `y` in the columns of `X`, and predicts with it.

    **Parameters:**

    - `primitives`: the functions an equation may hold, as text ("id square sin1 mul") or as `Primitive`
      objects; by default those common in science (or those of the preset in `settings`).
    - `hidden_layers`: the greatest depth of nesting; by default 3 (or that of the preset).
    - `penalty`: "half" or "l0", how networks are made sparse.
    - `settings`: "modern"; a `Settings`; or "paper" or "released" (or a `Preset`), which train `restarts`
      networks by gradient descent, as in Kim et al. (2019).
    - `select`: which equation of the front is chosen: by "description" length, "accuracy", the "simplest"
      within one standard error, best "extrapolation", or a function of the candidates.
    - `seconds`, `restarts`: the budget; without one, the search ends when it is exact or stops improving.
      `restarts` counts the networks fitted, including those of the first, linear rounds.
    - `loss`: "squares"; "auto", which leaves gross outliers out (`outliers_`); or "huber".
    - `units`: of columns and target, {"L": "m", "T": "s"}; `free_constants`: whether constants may have any.
    - `knows`: what is known of the law, a `Knowledge` or a dictionary: {"even": "x", "positive": True}.
    - `multi_output`: with several targets, one network "shared" by all, or "separate" searches.
    - `n_jobs`: workers of the active joblib backend, at most 4 of which are useful; the result is the same.
    - `random_state`: a number for the same equations every time (unless `seconds` cuts it short), or None.
    - `verbose`, `warm_start`: whether to show progress; whether to continue the last `fit` on the same data.

    **Fitted:** `equation_` (a tuple for several targets), `equations_` (the Pareto front, a data frame),
    `constants_` (where they vary, one row a group), `noise_` (standard deviation of the residuals),
    `n_trials_` (networks started), `failures_` (those without a result, by reason), `outliers_` (rows left
    out), `found_` (everything), `target_names_`, `n_features_in_`, `feature_names_in_`. Ctrl-C in `fit` keeps
    the best equation so far.
    """

    def __init__(
        self,
        *,
        primitives: PrimitivesLike | None = None,
        hidden_layers: int | None = None,
        penalty: str = "half",
        settings: str | Settings | Preset = "modern",
        select: str | Rule = "description",
        seconds: float | None = None,
        restarts: int | None = None,
        loss: str = "squares",
        units: Mapping[str, str] | None = None,
        free_constants: bool = False,
        knows: Knowledge | Mapping[str, Any] | None = None,
        multi_output: str = "shared",
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: bool = False,
        warm_start: bool = False,
    ) -> None:
        self.primitives = primitives
        self.hidden_layers = hidden_layers
        self.penalty = penalty
        self.settings = settings
        self.select = select
        self.seconds = seconds
        self.restarts = restarts
        self.loss = loss
        self.units = units
        self.free_constants = free_constants
        self.knows = knows
        self.multi_output = multi_output
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        extrapolation: tuple[Any, Any] | None = None,
        groups: Any = None,
        varies: str | int | None = None,
        y_error: Any = None,
        x_error: Any = None,
    ) -> EQLRegressor:
        """Searches for the equation.

        `sample_weight` holds the weight of each row; whole numbers count equal rows. `extrapolation` is data
        `(X, y)` outside the training range, never fitted. The others are as for `discover`.
        """
        checked_choice("`multi_output`", self.multi_output, ("shared", "separate"))
        for name, kind in _NUMBERS.items():
            check_number(name, getattr(self, name), kind)
        # scikit-learn's own message does not say which columns share a name.
        check_unique(getattr(X, "columns", ()))
        names, (X, groups) = column_names(y), taken_apart(X, groups)
        X, y = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, multi_output=True, ensure_min_samples=2
        )
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        y = y.astype(np.float64, copy=False)
        own = list(getattr(self, "feature_names_in_", ())) or None
        table, given = read_table(X, y, sample_weight, own)
        known = read_uncertainty(y_error, x_error, table, given)
        data, self._members = arrange_groups(X, y, sample_weight, groups, known)
        self._varies = varies
        count = data.y.shape[1]
        self._flat = y.ndim == 1
        self.target_names_ = names or (["y"] if count == 1 else [f"y{k + 1}" for k in range(count)])
        self._groups = [list(range(count))] if self.multi_output == "shared" else [[k] for k in range(count)]
        if extrapolation is not None:
            if not isinstance(extrapolation, tuple) or len(extrapolation) != 2:
                raise WrongType("`extrapolation` must be a pair `(X, y)` of rows outside the training range")
            try:
                outside = validate_data(self, extrapolation[0], reset=False, dtype=np.float64)
            except ValueError as error:
                raise InvalidArgument(f"`extrapolation` can't be used: {error}") from error
            extrapolation = (outside, extrapolation[1])
        far = read_outside(extrapolation, X, count)
        founds = self._search_all(data, far)
        self.found_: Found | tuple[Found, ...] = founds[0] if len(founds) == 1 else founds
        self._describe(data)
        self.outliers_ = rows_of(data, {i for found in founds for i in found.outliers}, X, y)
        return self

    def _search_all(self, data: Table, far: Table | None) -> tuple[Found, ...]:
        seed = seed_of(self.random_state)
        memories = self._memories(data, seed) if self.warm_start else [None] * len(self._groups)
        founds = []
        for group, memory in zip(self._groups, memories, strict=True):
            outside = None if far is None else (far.X, far.y[:, group])
            errors = None if data.errors is None else replace(data.errors, y=data.errors.y[:, group])
            part = Table(data.X, data.y[:, group], data.weight, errors)
            founds.append(self._search(part, outside, seed if memory is None else memory.seed, memory))
        return tuple(founds)

    def _search(self, data: Table, far: Outside, seed: int, memory: Memory | None) -> Found:
        variables = [str(name) for name in getattr(self, "feature_names_in_", ())] or None
        settings, preset = find_settings(self.settings, self.penalty)
        if preset is not None:
            return self._train(preset, data, far, seed, variables)
        display: Any = nullcontext()
        if self.verbose:
            from eqlearn.report.progress import show_progress

            display = show_progress(self._share(), ", ".join(self.target_names_))
        with display as progress:
            return discover(
                data.X, data.y,
                primitives=SCIENCE if self.primitives is None else self.primitives,
                hidden_layers=3 if self.hidden_layers is None else self.hidden_layers,
                penalty=self.penalty, seconds=self._share(), restarts=self.restarts, seed=seed,
                variables=variables, sample_weight=data.weight, extrapolation=far, select=self.select,
                n_jobs=self.n_jobs, settings=settings, progress=progress, journal=memory,
                groups=self._members, varies=self._varies, loss=self.loss, units=self.units,
                free_constants=self.free_constants, knows=self.knows,
                **({} if data.errors is None else {"y_error": data.errors.y, "x_error": data.errors.x}),
            )  # fmt: skip

    def _share(self) -> float | None:
        """The seconds for each search."""
        return None if self.seconds is None else self.seconds / len(self._groups)

    def _train(
        self, preset: Preset, data: Table, far: Outside, seed: int, variables: list[str] | None
    ) -> Found:
        own = {name: getattr(self, name) for name in ("seconds", "warm_start", "loss", "units", "knows")}
        own |= {"sample_weight": data.weight, "groups": self._members, "varies": self._varies}
        check_trainable(preset, {**own, "y_error": data.errors})
        if self.primitives is not None:
            preset = replace(preset, primitives=parse_kinds(self.primitives))
        if self.hidden_layers is not None:
            preset = replace(preset, hidden_layers=self.hidden_layers)
        known: dict[str, Any] = {"variables": variables, "extrapolation": far, "select": self.select}
        known["restarts"] = 20 if self.restarts is None else self.restarts
        return search_by_gradient(preset, data.X, data.y, seed=seed, **known)

    def _memories(self, data: Table, seed: int) -> list[Memory]:
        """The memories of the last fit, if its data and settings were the same; else empty ones."""
        same = (
            data.X, data.y, data.weight, data.errors, self.target_names_, self.primitives, self.hidden_layers,
            self.penalty, self.settings, self.multi_output, self.random_state, self.loss, self.units,
            self.free_constants, self.knows, getattr(self._members, "codes", None), self._varies,
        )  # fmt: skip
        old: list[Memory] = getattr(self, "_remembered", [])
        self._remembered = remembered(old, joblib.hash(same), seed, len(self._groups))
        return self._remembered

    def _describe(self, data: Table) -> None:
        """Sets the fitted attributes that are derived from `found_`."""
        import pandas as pd

        founds = self._founds()
        equations = self._equations(None)
        self.equation_ = equations[0] if self._flat else equations
        fronts = [front_frame(found.front, found.best) for found in founds]
        if len(fronts) > 1:
            for name, front in zip(self.target_names_, fronts, strict=True):
                front.insert(0, "output", name)
        self.equations_ = pd.concat(fronts, ignore_index=True)
        grouped = zip(founds, self._groups, strict=True)
        constants = [constants_frame(f.best, [self.target_names_[k] for k in g]) for f, g in grouped]
        self.constants_ = pd.concat(constants, ignore_index=True)
        if self.units is not None:
            self.constants_["unit"] = constant_units(founds[0], self.units, self.free_constants)
        if self._flat:
            self.constants_ = self.constants_.drop(columns="output", errors="ignore")
        self.n_trials_ = sum(found.restarts for found in founds)
        self.failures_ = dict(sum((Counter(found.failures) for found in founds), Counter()))
        rows = some_rows(data.rows, 2000)
        labels = None if self._members is None else self._members.of_rows()
        kept = np.setdiff1d(np.arange(data.rows), [i for f in founds for i in f.outliers])
        inputs = [found.best.inputs(data.X, labels)[kept] for found in founds for _ in found.best.equations]
        seen = data.take(kept)
        noise = [noise_of(e, inputs[k], seen.y[:, k], seen.weight) for k, e in enumerate(equations)]
        self.noise_ = noise[0] if self._flat else np.array(noise)
        self._drawn = data.take(rows)  # for drawing
        self._drawn_groups = None if labels is None else labels[rows]

    def _founds(self) -> tuple[Found, ...]:
        check_is_fitted(self)
        return self.found_ if isinstance(self.found_, tuple) else (self.found_,)

    def _candidates(self, index: int | Sequence[int] | None) -> list[Candidate]:
        founds = self._founds()
        return [f.best for f in founds] if index is None else named_rows([f.front for f in founds], index)

    def _equations(self, index: int | Sequence[int] | None) -> tuple[Equation, ...]:
        return tuple(equation for candidate in self._candidates(index) for equation in candidate.equations)

    def predict(
        self,
        X: Any,
        index: int | Sequence[int] | None = None,
        *,
        groups: Any = None,
        new_group: tuple[Any, Any] | None = None,
    ) -> np.ndarray:
        """Values of the chosen equation, or of row `index` of `equations_` (with separate searches, one per
        target); NaN or infinite where it is not defined.

        Where constants vary, `groups` holds the group of each row; or `new_group` a few rows `(X, y)` of a
        group that was not in the fit, whose constants are fitted to them and used for all rows of `X`.
        """
        check_is_fitted(self)
        X, groups = taken_apart(X, groups)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        check_alone({"groups": groups}, {"new_group": new_group})
        columns = []
        for candidate in self._candidates(index):
            new = None if new_group is None else adapted(candidate, new_group)
            inputs = candidate.inputs(X, groups) if new is None else new.inputs(X, 0)
            columns += [equation(inputs) for equation in candidate.equations]
        return columns[0] if self._flat else np.stack(columns, axis=1)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> float:
        """R² of the predictions, with the group of each row where constants vary."""
        from sklearn.metrics import r2_score  # takes its time

        return float(r2_score(y, self.predict(X, groups=groups), sample_weight=sample_weight))

    def sympy(self, index: int | Sequence[int] | None = None) -> Any:
        """The equation as a SymPy expression; a tuple for several targets."""
        found = tuple(equation.expr for equation in self._equations(index))
        return found[0] if self._flat else found

    def latex(self, index: int | Sequence[int] | None = None, digits: int | None = 6) -> Any:
        """The equation in LaTeX; a tuple for several targets."""
        texts = tuple(equation.latex(digits) for equation in self._equations(index))
        return texts[0] if self._flat else texts

    def plot(
        self, kind: str = "all", *, X: Any = None, y: Any = None, output: int = 0, groups: Any = None
    ) -> Figure:
        """A figure: the "pareto" front, the sparse "network", "predictions", "residuals", or "all".

        Predictions are for the target `output`, on `X` and `y` (with their `groups`, if constants vary) or
        else on at most 2,000 training rows.
        """
        founds = self._founds()
        check_together(X, y)
        if not 0 <= output < len(self.target_names_):
            raise InvalidArgument(f"there is no `output` {output} among {len(self.target_names_)}")
        if X is None:
            X, true, groups = self._drawn.X, self._drawn.y[:, output], self._drawn_groups
        else:
            X, true = validate_data(self, X, reset=False, dtype=np.float64), read_table(X, y)[0].y[:, output]
        which = next(i for i, group in enumerate(self._groups) if output in group)
        names = [self.target_names_[k] for k in self._groups[which]]
        inputs = founds[which].best.inputs(X, groups)
        return fit_figure(founds[which], kind, inputs, true, names, self._groups[which].index(output))

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        for found, group in zip(self._founds(), self._groups, strict=True) if hasattr(self, "found_") else ():
            page = front_html(found.front, found.best, [self.target_names_[k] for k in group])
            bundle["text/html"] = page if group[0] == 0 else bundle["text/html"] + page
        return bundle

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
