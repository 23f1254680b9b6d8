"""The weak form of a field's equations: every term, integrated over test functions."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from eqlearn.errors import InvalidArgument
from eqlearn.fields.settings import FieldSettings
from eqlearn.fields.terms import Jet, Order, Term
from eqlearn.numerics.grids import local_polynomials, spectral
from eqlearn.numerics.noise import product, white_noise
from eqlearn.numerics.windows import Window, amplitudes, corner, half_width
from eqlearn.validation.fields import Field, thinned

# Spectra are means over about so many lines.
LINES = 400


class Jets:
    """Derivatives of a field at its points, each made once; `half` as for `differentiated`."""

    def __init__(self, field: Field, half: tuple[int, ...]) -> None:
        self.field, self.half = field, half
        self._known: dict[tuple[int, Jet], np.ndarray] = {}

    def __call__(self, experiment: int, jet: Jet) -> np.ndarray:
        if (experiment, jet) not in self._known:
            values = self.field.experiments[experiment][self.field.names[jet.field]]
            made = differentiated(self.field, values.astype(np.float64), jet.order, self.half)
            self._known[experiment, jet] = made
        return self._known[experiment, jet]


def differentiated(field: Field, values: np.ndarray, order: Order, half: tuple[int, ...]) -> np.ndarray:
    """The derivative of values `(space..., time)`; local polynomials are as wide as `half` windows along each
    axis, and smooth as far as they are wide."""
    for place, count in enumerate(order):
        axis = tuple(field.axes)[place]
        if axis in field.periodic and half[place] == 0:
            values = spectral(values, place, field.length(axis), count)
        elif count or half[place]:
            matrix = local_polynomials(field.axes[axis], count, max(half[place], count + 2))
            moved = np.moveaxis(values, place, 0)
            rest = matrix @ moved.reshape(len(moved), -1)
            values = np.moveaxis(rest.reshape(moved.shape), 0, place)
    return values


@dataclass(eq=False)
class WeakForm:
    """Test functions on a field's grid, and integrals over them.

    `noise` are the deviations of the fields' noise. Rows are those of all experiments one after the other;
    `keep` are those whose test function sees no hole.
    """

    field: Field
    windows: tuple[Window, ...]
    noise: tuple[float, ...]
    settings: FieldSettings
    jets: Jets

    def __post_init__(self) -> None:
        self.keep = np.concatenate([self._whole(e) for e in range(len(self.field.experiments))])
        self._columns: dict[Term, np.ndarray] = {}
        self._covaried: dict[tuple[tuple[int, ...], ...], dict[tuple[tuple[int, ...], ...], float]] = {}

    @property
    def independent(self) -> float:
        """How many rows are independent in what noise adds to a first derivative: (tr K)² / tr K² of its
        covariance K, which is a product over the axes."""
        total = self.keep.mean() * len(self.field.experiments)
        for one in self.windows:
            shared = one.weights(1) @ one.weights(1).T
            total *= np.trace(shared) ** 2 / np.square(shared).sum()
        return max(float(total), 2.0)

    def integrated(self, parts: Sequence[np.ndarray], order: Order) -> np.ndarray:
        """The integral of each test function with the derivative of values on the grid, by parts; one array
        for each experiment, without rows that see holes."""
        return self.over_space(self.over_time(parts, order[-1]), order)

    def over_time(
        self, parts: Sequence[np.ndarray], order: int, factor: np.ndarray | None = None
    ) -> list[np.ndarray]:
        """Integrals over time alone, which leave few numbers of each array; a `factor` depends on time."""
        weights = self.windows[-1].weights(order)
        weights = weights if factor is None else weights * factor
        whole = [np.nan_to_num(p) if self.field.masked else p for p in parts]
        return [np.broadcast_to(p, self.field.shape) @ weights.T for p in whole]

    def over_space(
        self, parts: Sequence[np.ndarray], order: Order, along: tuple[int, np.ndarray] | None = None
    ) -> np.ndarray:
        """The rest of the integrals; `along` is an axis and a factor that depends on it."""
        rows = []
        for values in parts:
            for place in range(len(order) - 1):
                weights = self.windows[place].weights(order[place])
                weights = weights if along is None or along[0] != place else weights * along[1]
                values = np.moveaxis(np.tensordot(weights, values, axes=(1, place)), 0, place)
            rows.append(np.ravel(values))
        return np.asarray(np.concatenate(rows)[self.keep])

    def beside(
        self,
        parts: Sequence[np.ndarray],
        order: Order,
        place: int,
        function: Callable[[int], np.ndarray],
        late: Sequence[np.ndarray] | None = None,
    ) -> np.ndarray:
        """The integrals of a derivative times a function of a coordinate, both by parts (Leibniz); `function`
        gives its derivative of an order at all points of the axis, and `late` are integrals over time, if
        they are known."""
        total = np.zeros(int(self.keep.sum()))
        for times in range(order[place] + 1):
            values = function(times)
            if not values.any():
                continue
            lower = tuple(n - times * (k == place) for k, n in enumerate(order))
            if place == len(order) - 1:
                found = self.over_space(self.over_time(parts, lower[-1], values), lower)
            else:
                late = self.over_time(parts, lower[-1]) if late is None else late
                found = self.over_space(late, lower, (place, values))
            total += math.comb(order[place], times) * (-1) ** times * found
        return total

    def column(self, term: Term) -> np.ndarray:
        """The integrals of a term."""
        if term not in self._columns:
            self.columns([term])
        return self._columns[term]

    def columns(self, terms: Sequence[Term]) -> np.ndarray:
        """The integrals of terms, `(rows, terms)`; each product is made once."""
        todo = [t for t in terms if t not in self._columns]
        groups: dict[tuple[tuple[int, ...], tuple[Jet, ...]], list[Term]] = {}
        for term in todo:
            groups.setdefault((term.powers, term.factors), []).append(term)
        for (powers, factors), members in groups.items():
            parts = [self.product(e, powers, factors) for e in range(len(self.field.experiments))]
            known: dict[int, list[np.ndarray]] = {}
            for term in members:
                late = term.order[-1]
                known[late] = known[late] if late in known else self.over_time(parts, late)
                if term.weight[1]:
                    power = functools.partial(self._power, term.weight)
                    found = self.beside(parts, term.order, term.weight[0], power, known[late])
                else:
                    found = self.over_space(known[late], term.order)
                self._columns[term] = found
        return np.stack([self._columns[t] for t in terms], axis=1)

    def _power(self, weight: tuple[int, int], order: int) -> np.ndarray:
        """The derivative of a power of a coordinate at all points of its axis."""
        place, power = weight
        falling = math.prod(power - k for k in range(order))
        values = list(self.field.axes.values())[place]
        return falling * values ** (power - order) if falling else np.zeros(len(values))

    def product(self, experiment: int, powers: Sequence[int], factors: Sequence[Jet]) -> np.ndarray:
        """A product of fields and of derivatives at points, in one experiment."""
        values = [v.astype(np.float64, copy=False) for v in self.field.experiments[experiment].values()]
        found = product(values, powers, self.noise)
        for factor in factors:
            found = found * self.jets(experiment, factor)
        return found

    def noise_products(self, terms: Sequence[Term]) -> np.ndarray:
        """What noise adds on average to the products of columns, `(terms, terms)`, for all rows together;
        nothing where derivatives are taken at points."""
        plain = [k for k, t in enumerate(terms) if not t.factors]
        found = np.zeros((len(terms), len(terms)))
        share = float(self.keep.sum()) / math.prod(len(w.centres) for w in self.windows)
        if not any(self.noise):
            return found
        shared = self._covariances([terms[k].powers for k in plain])
        overlaps: dict[tuple[Order, Order], float] = {}
        weights: dict[tuple[tuple[int, int], tuple[int, int]], float] = {}
        for i, j in itertools.combinations_with_replacement(plain, 2):
            orders, along = (terms[i].order, terms[j].order), (terms[i].weight, terms[j].weight)
            if orders not in overlaps:
                overlaps[orders] = self._overlap(*orders) * share
            if along not in weights:
                weights[along] = self._mean_weight(*along)
            found[i, j] = found[j, i] = (
                overlaps[orders] * shared[terms[i].powers, terms[j].powers] * weights[along]
            )
        return found

    def _covariances(self, powers: Sequence[tuple[int, ...]]) -> dict[tuple[tuple[int, ...], ...], float]:
        """The mean covariance that noise gives to two products at the same point."""
        distinct = tuple(dict.fromkeys(powers))
        if distinct not in self._covaried:
            self._covaried[distinct] = self._covaried_of(distinct)
        return self._covaried[distinct]

    def _covaried_of(self, distinct: Sequence[tuple[int, ...]]) -> dict[tuple[tuple[int, ...], ...], float]:
        values = self._sample
        each = {p: product(values, p, self.noise) for p in distinct}
        sums = {tuple(a + b for a, b in zip(p, q, strict=True)) for p in distinct for q in distinct}
        both = {r: float(np.mean(product(values, r, self.noise))) for r in sums}
        count = len(values[0])
        return {
            (p, q): float(each[p] @ each[q]) / count - both[tuple(a + b for a, b in zip(p, q, strict=True))]
            for p in distinct
            for q in distinct
        }

    def _mean_weight(self, first: tuple[int, int], second: tuple[int, int]) -> float:
        if not first[1] or not second[1] or first[0] == second[0]:
            some = [self._power(w, 0) for w in (first, second) if w[1]]
            return float(np.mean(math.prod(some))) if some else 1.0
        return float(np.mean(self._power(first, 0))) * float(np.mean(self._power(second, 0)))

    @cached_property
    def _sample(self) -> list[np.ndarray]:
        """Some points of all fields, without holes."""
        joined = [
            np.concatenate([one[n].ravel() for one in self.field.experiments]) for n in self.field.names
        ]
        stride = max(1, len(joined[0]) // self.settings.sampled_points)
        some = [j[::stride].astype(np.float64) for j in joined]
        fine = np.logical_and.reduce([np.isfinite(s) for s in some])
        return [s[fine] for s in some]

    def _overlap(self, first: Order, second: Order) -> float:
        pairs = zip(self.windows, first, second, strict=True)
        return math.prod(float((w.weights(a) * w.weights(b)).sum()) for w, a, b in pairs)

    def _whole(self, experiment: int) -> np.ndarray:
        rows = math.prod(len(w.centres) for w in self.windows)
        if not self.field.masked:
            return np.ones(rows, dtype=bool)
        holes = np.logical_or.reduce([np.isnan(v) for v in self.field.experiments[experiment].values()])
        values = holes.astype(np.float64)
        for place in reversed(range(values.ndim)):
            weights = (self.windows[place].weights(0) != 0).astype(np.float64)
            values = np.moveaxis(np.tensordot(weights, values, axes=(1, place)), 0, place)
        return np.asarray(np.ravel(values) == 0)

    def blocks(self) -> np.ndarray:
        """The block that each row belongs to: neighbours in time and along the first axis are together."""
        shape = tuple(len(w.centres) for w in self.windows)
        across = max(1, min(round(math.sqrt(self.settings.blocks)), shape[0]))
        along = max(1, min(round(self.settings.blocks / across), shape[-1]))
        first = np.arange(shape[0]) * across // shape[0]
        last = np.arange(shape[-1]) * along // shape[-1]
        grid = first.reshape(-1, *(1,) * (len(shape) - 1)) * along + last
        one = np.broadcast_to(grid, shape).ravel()
        return np.asarray(np.concatenate([one for _ in self.field.experiments])[self.keep])


def noise_levels(field: Field, settings: FieldSettings) -> dict[str, float]:
    """The standard deviation of each field's noise, at most: the smallest along any axis with even steps."""
    even = [k for k, axis in enumerate(field.axes) if field.even(axis)] or list(range(len(field.axes)))
    arrays = {n: [one[n] for one in field.experiments] for n in field.names}
    return {n: min(white_noise(a, settings.max_difference, k) for k in even) for n, a in arrays.items()}


def spectrum(field: Field, place: int) -> np.ndarray:
    """The mean modulus of the fields' Fourier coefficients by wave number along one axis, each field by its
    spread."""
    axis = tuple(field.axes)[place]
    total = np.zeros(len(field.axes[axis]) // 2 + 1)
    for one in field.experiments:
        for name, values in one.items():
            few = thinned(values, LINES * values.shape[place], whole=(place,))
            lines = np.moveaxis(few, place, 0)
            lines = np.nan_to_num(lines.reshape(len(lines), -1).astype(np.float64))
            total += amplitudes(lines, axis in field.periodic) / max(field.spreads[name], 1e-300)
    return total


def _window(
    field: Field, place: int, order: int, widened: float, noisy: bool, settings: FieldSettings
) -> Window:
    """The test functions along one axis for derivatives up to `order`."""
    axis = tuple(field.axes)[place]
    count = len(field.axes[axis])
    wave = 2 * math.pi * corner(spectrum(field, place)) / count
    most = (count - 1) // 2 if axis in field.periodic else int((count - 1) / settings.min_windows)
    least = max(settings.min_half_width, order + 2)
    half = half_width(settings.corner_deviations * widened / wave, order, least, min(most, (count - 1) // 2))
    period = field.length(axis) if axis in field.periodic else None
    found = Window.over(field.axes[axis], half, order, period, settings.per_width)
    if field.even(axis):
        return found
    # The smoothest spline through uneven points that does not amplify noise between them.
    each = [replace(found, spline=degree, finer=settings.finer) for degree in (1, 3, 5)]
    sizes = [float(np.square(w.weights(order)).sum()) for w in each]
    allowed = settings.max_amplified if noisy else settings.max_amplified_clean
    return [w for w, size in zip(each, sizes, strict=True) if size <= allowed * sizes[0]][-1]


def weak_forms(
    field: Field, time_order: int, highest: int, noise: Sequence[float], settings: FieldSettings
) -> list[WeakForm]:
    """Test functions of several widths for equations of this order in time and in space, thinned to
    `max_rows`."""
    last = len(field.axes) - 1
    noisy = any(n > settings.clean * field.spreads[f] for f, n in zip(field.names, noise, strict=True))
    made: list[list[Window]] = []
    for width in settings.widths:
        windows = [
            _window(field, k, time_order if k == last else highest, width, noisy, settings)
            for k in range(len(field.axes))
        ]
        rows = math.prod(len(w.centres) for w in windows) * len(field.experiments)
        thinner = min(1.0, settings.max_rows / rows) ** (1 / len(windows))
        made.append([w.thinned(thinner) for w in windows])
    jets = Jets(field, tuple(_half(w, field, noisy) for w in made[-1]))
    forms = [WeakForm(field, tuple(windows), tuple(noise), settings, jets) for windows in made]
    seen = [form for form in forms if form.keep.sum() > settings.min_rows or not field.masked]
    if not seen:
        raise InvalidArgument("the fields hold so many NaN that hardly a test function sees none; fill some")
    return seen


def strong_form(form: WeakForm) -> WeakForm:
    """The same terms at points, with derivatives taken there, away from ends that are no seam."""
    windows = []
    for window, half in zip(form.windows, form.jets.half, strict=True):
        edge = 0 if window.period is not None else len(window.points) // 10 + 1
        inside = window.points[edge : len(window.points) - edge]
        windows.append(replace(window, half=half, centres=inside, pointwise=True))
    rows = math.prod(len(w.centres) for w in windows) * len(form.field.experiments)
    thinner = min(1.0, form.settings.max_rows / rows) ** (1 / len(windows))
    return replace(form, windows=tuple(w.thinned(thinner) for w in windows))


def _half(one: Window, field: Field, noisy: bool) -> int:
    """How wide derivatives at points look: as far as the narrowest test functions where there is noise."""
    if noisy:
        return max(3, round(2 * one.deviation))
    return 0 if one.period is not None else 4
