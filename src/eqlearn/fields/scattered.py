"""Fields from samples at scattered places and times, on a grid by penalised splines; boxes of larger ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.interpolate import BSpline
from scipy.sparse.linalg import splu

from eqlearn.errors import InvalidArgument, NotFinite, counted
from eqlearn.fields.settings import FIELDS, FieldSettings
from eqlearn.validation.fields import Field, thinned

QUINTIC = 5
# Of each box so many values are looked at.
SEEN = 2_000


def read_fields(fields: Any, axes: Any, time: str, periodic: Any, masked: bool) -> Field:
    """Fields on a grid, or through samples."""
    if axes is None:
        raise InvalidArgument('`axes` must name the coordinates, such as {"x": x, "t": t}')
    if is_scattered(fields, axes):
        return field_of_samples(fields, axes, time, periodic=periodic)
    return Field(fields, axes, time, periodic=periodic, masked=masked)


def is_scattered(fields: Any, axes: Any) -> bool:
    """Whether fields and axes are columns of one length, a row for each sample, rather than a grid's."""
    if not isinstance(fields, Mapping) or not isinstance(axes, Mapping) or len(axes) < 2:
        return False
    columns = [np.asarray(v) for v in (*fields.values(), *axes.values())]
    return all(c.ndim == 1 for c in columns) and len({len(c) for c in columns}) == 1


def in_memory(field: Field, settings: FieldSettings) -> Field:
    """The field itself, or of one with more than `max_values` the box of so many that changes most in time.

    Boxes are cut alike along all axes; an axis that is cut is no longer periodic. Coordinates stay what they
    are.
    """
    share = settings.max_values / (len(field.names) * len(field.experiments) * math.prod(field.shape))
    if share >= 1:
        return field
    part = share ** (1 / len(field.shape))
    sizes = [min(n, max(settings.least_side, math.floor(n * part))) for n in field.shape]
    each = math.floor(settings.boxes ** (1 / len(sizes)))
    starts = [np.linspace(0, n - k, each).astype(int) for n, k in zip(field.shape, sizes, strict=True)]
    boxes = [
        tuple(slice(int(a), int(a) + k) for a, k in zip(corner, sizes, strict=True))
        for corner in itertools.product(*starts)
    ]
    best = max(boxes, key=lambda box: _liveliness(field, box))
    experiments = tuple(
        {n: np.ascontiguousarray(v[best], dtype=v.dtype.newbyteorder("=")) for n, v in one.items()}
        for one in field.experiments
    )
    axes = {a: v[part] for (a, v), part in zip(field.axes.items(), best, strict=True)}
    whole = frozenset(a for a in field.periodic if len(axes[a]) == len(field.axes[a]))
    return field.with_parts(experiments, axes, whole)


def _liveliness(field: Field, box: tuple[slice, ...]) -> float:
    """How much all fields change in time there, each by its spread."""
    total = 0.0
    for one in field.experiments:
        for name, values in one.items():
            few = thinned(values[box], SEEN).astype(np.float64)
            total += float(np.nanstd(few - few.mean(axis=-1, keepdims=True))) / (field.spreads[name] or 1.0)
    return total


def field_of_samples(
    fields: Mapping[str, Any],
    axes: Mapping[str, Any],
    time: str = "t",
    *,
    periodic: bool | Iterable[str] | None = None,
    settings: FieldSettings = FIELDS,
) -> Field:
    """The field through samples, one in each place of all columns: products of quintic splines along the axes
    with penalised second differences (P-splines: Eilers & Marx 1996), of a number and a penalty that predict
    samples left out best."""
    points = np.column_stack([np.asarray(v, dtype=np.float64) for v in axes.values()])
    values = np.column_stack([np.asarray(v, dtype=np.float64) for v in fields.values()])
    if not (np.isfinite(points).all() and np.isfinite(values).all()):
        raise NotFinite("the samples hold NaN or infinite values; leave their rows out")
    least = (2 * QUINTIC) ** points.shape[1]
    if len(points) < least:
        raise InvalidArgument(f"{counted(len(points), 'sample')} can't tell a field; give at least {least}")
    low, high = points.min(axis=0), points.max(axis=0)
    if not (high > low).all():
        flat = [a for a, same in zip(axes, high <= low, strict=True) if same]
        raise InvalidArgument(f"all samples have the same {flat[0]}; leave this axis out")
    places, size = (points - low) / (high - low), values.std(axis=0)
    scaled = (values - values.mean(axis=0)) / np.where(size > 0, size, 1.0)
    held = np.random.default_rng(0).random(len(points)) < settings.samples_held
    most = len(points) ** (1 / points.shape[1])
    tried = []
    for share in settings.splines_each:
        count = max(QUINTIC + 3, round(share * most))
        fit = _Splines((count,) * points.shape[1], places[~held], scaled[~held])
        for penalty in settings.penalties:
            missed = fit.values(fit.solved(penalty), places[held]) - scaled[held]
            tried.append((float(np.mean(missed**2)), count, penalty))
    _, count, penalty = min(tried)
    whole = _Splines((count,) * points.shape[1], places, scaled)
    grid = [np.linspace(0, 1, settings.points_per_spline * count)] * points.shape[1]
    made = whole.on(whole.solved(penalty), grid) * size + values.mean(axis=0)
    coordinates = {a: low[k] + (high[k] - low[k]) * grid[k] for k, a in enumerate(axes)}
    arrays = {name: made[..., k] for k, name in enumerate(fields)}
    return Field(arrays, coordinates, time, periodic=False if periodic is None else periodic)


class _Splines:
    """Products of splines along all axes of the unit cube, fitted to values there."""

    def __init__(self, counts: tuple[int, ...], places: np.ndarray, values: np.ndarray) -> None:
        self.counts = counts
        self.knots = [
            np.concatenate([[0.0] * QUINTIC, np.linspace(0, 1, n - QUINTIC + 1), [1.0] * QUINTIC])
            for n in counts
        ]
        design = self._design(places)
        self.products = sparse.csc_array(design.T @ design)
        self.along = design.T @ values
        rough: Any = sparse.csc_array(self.products.shape)
        for place, count in enumerate(counts):
            bend = sparse.csr_array(np.diff(np.eye(count), 2, axis=0))
            parts = [sparse.eye_array(n) for n in counts]
            parts[place] = bend.T @ bend
            product = parts[0]
            for part in parts[1:]:
                product = sparse.kron(product, part)
            rough = rough + product
        self.rough = sparse.csc_array(rough) * (self.products.trace() / rough.trace())

    def _design(self, places: np.ndarray) -> Any:
        """The products of splines at places, `(places, splines)`."""
        found = None
        for column, knots in zip(places.T, self.knots, strict=True):
            one = sparse.csr_array(BSpline.design_matrix(np.clip(column, 0, 1), knots, QUINTIC))
            found = one if found is None else _row_by_row(found, one)
        return found

    def solved(self, penalty: float) -> np.ndarray:
        """The coefficients, `(splines, values)`."""
        return np.asarray(splu(sparse.csc_matrix(self.products + penalty * self.rough)).solve(self.along))

    def values(self, coefficients: np.ndarray, places: np.ndarray) -> np.ndarray:
        return np.asarray(self._design(places) @ coefficients)

    def on(self, coefficients: np.ndarray, grid: list[np.ndarray]) -> np.ndarray:
        """The values on a grid, `(*grid, values)`."""
        found = coefficients.reshape(*self.counts, -1)
        for place, (points, knots) in enumerate(zip(grid, self.knots, strict=True)):
            matrix = BSpline.design_matrix(points, knots, QUINTIC).toarray()
            found = np.moveaxis(np.tensordot(matrix, found, axes=(1, place)), 0, place)
        return np.asarray(found)


def _row_by_row(first: Any, second: Any) -> Any:
    """The products of all entries of each row with all of the same row of another (Khatri & Rao)."""
    rows, (a, b) = first.shape[0], (first.indptr[1], second.indptr[1])
    data = first.data.reshape(rows, a, 1) * second.data.reshape(rows, 1, b)
    columns = first.indices.reshape(rows, a, 1) * second.shape[1] + second.indices.reshape(rows, 1, b)
    starts = np.arange(rows + 1) * (a * b)
    shape = (rows, first.shape[1] * second.shape[1])
    return sparse.csr_array((data.ravel(), columns.ravel(), starts), shape=shape)
