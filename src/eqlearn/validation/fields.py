"""Fields: quantities that were observed on a grid of places and times, in one or several experiments."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqlearn.errors import InvalidArgument, NotFinite, WrongType, counted, listed
from eqlearn.validation.options import check_whole, checked_choice

Array = NDArray[np.float64]
# A step that differs from the mean one by more than this part of it makes an axis uneven.
EVEN = 1e-4
# A field that holds more than this part of its power beyond two thirds of the highest wave number is too
# coarse: white noise holds a third there.
ALIASED = 0.6
# What is said of whole fields is said of at most about this many of their values.
LOOKED_AT = 4_000_000
# To see whether an axis is periodic, at least so many points and such parts of it are looked at on each side
# of its seam, in so many means over times.
SEAM, SEAM_PARTS, MEANS = 4, (24, 10), 12


@dataclass(frozen=True, eq=False, init=False)
class Field:
    """Fields `u(x, ..., t)` on a grid, with time as the last axis of every array.

    `experiments` hold the fields by name, one mapping for each experiment; all have the same axes. `axes`
    are the coordinates by name, space first and `time` last; `periodic` are the axes of space whose last
    point is followed by the first. NaN marks what was not observed, where that is allowed.
    """

    experiments: tuple[dict[str, Array], ...]
    axes: dict[str, Array]
    time: str
    periodic: frozenset[str]

    def __init__(
        self,
        fields: Any,
        axes: Any,
        time: str = "t",
        *,
        periodic: bool | Iterable[str] | None = None,
        masked: bool = False,
    ) -> None:
        """From arrays by name, `{"u": u}`, or a list of such for several experiments; the order of `axes` is
        that of the arrays' dimensions. `periodic` names axes, or says it of all; by default the data tell.
        With `masked`, NaN is left out."""
        coordinates = _coordinates(axes, time)
        each = [fields] if isinstance(fields, Mapping) else list(fields) if _listed(fields) else []
        if not each or not all(isinstance(one, Mapping) and one for one in each):
            raise WrongType('`fields` must be arrays by name such as {"u": u}, or a list of such')
        names = tuple(each[0])
        _check_names((*names, *coordinates))
        order = [*(a for a in coordinates if a != time), time]
        moved = tuple(list(coordinates).index(a) for a in order)
        experiments = tuple(
            {n: np.transpose(_values(n, one, names, coordinates, masked), moved) for n in names}
            for one in each
        )
        ordered = {a: coordinates[a] for a in order}
        self.__dict__.update(experiments=experiments, axes=ordered, time=time, periodic=frozenset())
        self.__dict__["periodic"] = _periodic(self, periodic)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.experiments[0])

    def only(self, experiment: int) -> Field:
        """One of the experiments."""
        return self.with_parts((self.experiments[experiment],), self.axes, self.periodic)

    def with_parts(
        self, experiments: tuple[dict[str, Array], ...], axes: dict[str, Array], periodic: frozenset[str]
    ) -> Field:
        """Parts of this field, which need no check."""
        made = object.__new__(Field)
        made.__dict__.update(experiments=experiments, axes=axes, time=self.time, periodic=periodic)
        return made

    @property
    def space(self) -> tuple[str, ...]:
        return tuple(self.axes)[:-1]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one field in one experiment."""
        return tuple(len(a) for a in self.axes.values())

    @cached_property
    def masked(self) -> bool:
        """Whether some values were not observed."""
        return any(_holes(v) for one in self.experiments for v in one.values())

    @cached_property
    def scales(self) -> dict[str, float]:
        """The root mean square of each field over all experiments."""
        squares = {
            n: [np.nanmean(np.square(thinned(one[n]))) for one in self.experiments] for n in self.names
        }
        return {n: float(np.sqrt(np.mean(each))) for n, each in squares.items()}

    @cached_property
    def spreads(self) -> dict[str, float]:
        """The standard deviation of each field over all experiments."""
        return {
            n: float(np.mean([np.nanstd(thinned(one[n])) for one in self.experiments])) for n in self.names
        }

    def even(self, axis: str) -> bool:
        """Whether an axis has equal steps."""
        steps = np.diff(self.axes[axis])
        return bool(np.abs(steps - steps.mean()).max() <= EVEN * steps.mean())

    def step(self, axis: str) -> float:
        """The mean step of an axis."""
        values = self.axes[axis]
        return float(values[-1] - values[0]) / (len(values) - 1)

    def length(self, axis: str) -> float:
        """How long an axis is; once around, if it is periodic."""
        values = self.axes[axis]
        return self.step(axis) * (len(values) if axis in self.periodic else len(values) - 1)


def check_moving(field: Field, targets: Iterable[str]) -> None:
    """Refuses targets that never change."""
    for name in targets:
        slabs = (slab for one in field.experiments for slab in one[name])
        if all(float(np.nanmax(np.abs(np.diff(slab, axis=-1)), initial=0.0)) == 0 for slab in slabs):
            raise InvalidArgument(
                f"{name} is at rest: it never changes in time, so it has no equation; name the others as "
                "`targets`, or leave it out"
            )


def check_experiments(field: Field, latents: int) -> None:
    """Refuses hidden parameters without experiments that could differ in them."""
    check_whole("latents", latents, 0)
    if latents and len(field.experiments) < latents + 3:
        raise InvalidArgument(
            f"{counted(latents, 'hidden parameter')} can't be told from "
            f"{counted(len(field.experiments), 'experiment')}; give at least {latents + 3}"
        )


def check_enough(field: Field, order: int, derivatives: int) -> None:
    """Refuses grids that are too small for this `order` in time and so many `derivatives` in space."""
    check_whole("order", order)
    if order > 2:
        raise InvalidArgument(f"`order` must be 1 or 2, the order in time, got {order}")
    for axis, values in field.axes.items():
        least = 2 * order + 5 if axis == field.time else 2 * derivatives + 5
        if len(values) < least:
            what = "times" if axis == field.time else f"points along {axis}"
            raise InvalidArgument(
                f"the fields have {len(values)} {what}, too few for equations of order {order} in time and "
                f"{derivatives} in space; give at least {least}"
            )


def check_resolved(field: Field, spectra: Mapping[str, Array]) -> None:
    """Refuses fields whose `spectra`, powers by wave number along each axis, are largest at the highest."""
    for axis, power in spectra.items():
        high = float(power[2 * len(power) // 3 :].sum() / max(float(power[1:].sum()), 1e-300))
        if len(power) > 8 and high > ALIASED:
            raise InvalidArgument(
                f"{high:.0%} of the fields' power is at the highest wave numbers along {axis}, so that the "
                "grid is too coarse to tell derivatives; give a finer one"
            )


def _listed(fields: Any) -> bool:
    return isinstance(fields, Sequence) and not isinstance(fields, str)


def _coordinates(axes: Any, time: str) -> dict[str, Array]:
    if not isinstance(axes, Mapping) or not axes:
        raise WrongType('`axes` must be coordinates by name such as {"x": x, "t": t}, in the arrays\' order')
    checked_choice("axis", time, list(axes))
    if not 2 <= len(axes) <= 4:
        raise InvalidArgument(f"`axes` must be time and one to three of space, got {listed(list(axes))}")
    found = {}
    for name, given in axes.items():
        if (values := np.asarray(given).squeeze()).dtype.kind not in "fiu":
            raise WrongType(f"axis {name} must hold numbers, got {values.dtype}")
        values = values.astype(np.float64)
        if values.ndim != 1 or len(values) < 2:
            raise InvalidArgument(f"axis {name} must hold at least two coordinates, got shape {values.shape}")
        if not np.isfinite(values).all() or not (np.diff(values) > 0).all():
            raise InvalidArgument(f"axis {name} must be finite and rise from point to point")
        found[str(name)] = values
    return found


def _check_names(names: Sequence[str]) -> None:
    bad = [n for n in names if not isinstance(n, str) or not n.isidentifier() or keyword.iskeyword(n)]
    if bad or len(set(names)) < len(names):
        raise InvalidArgument(f"fields and axes need distinct names such as u and x, got {list(names)!r}")
    if tall := [n for n in names if "_" in n]:
        raise InvalidArgument(
            f"{tall[0]!r} holds an underscore, which marks derivatives as in u_x; rename it"
        )


def _values(
    name: str, one: Mapping[str, Any], names: tuple[str, ...], axes: dict[str, Array], masked: bool
) -> np.ndarray:
    if set(one) != set(names):
        raise InvalidArgument(f"all experiments must hold {listed(list(names))}, but one holds {list(one)}")
    mapped, given = isinstance(one[name], np.memmap), np.asarray(one[name])
    if np.iscomplexobj(given):
        raise InvalidArgument(
            f"`{name}` is complex; give its real and imaginary part as two fields, such as u and v"
        )
    if given.dtype.kind not in "fiub":
        raise WrongType(f"`{name}` must hold numbers, got {given.dtype}")
    shape = tuple(len(a) for a in axes.values())
    if given.shape != shape:
        sizes = ", ".join(f"{a}: {len(v)}" for a, v in axes.items())
        raise InvalidArgument(f"`{name}` has shape {given.shape}, but the axes have {sizes}")
    # What is in a file stays there, in its order of bytes.
    kept = given.dtype == np.float32 or (mapped and given.dtype.kind == "f")
    values = given if kept else given.astype(np.float64, copy=False)
    holes = _holes(values)
    if holes and not masked:
        raise NotFinite(
            f"`{name}` holds {counted(holes, 'NaN or infinite value')}; fill them, or leave them out with "
            "`masked=True`"
        )
    if holes == values.size:
        raise NotFinite(f"`{name}` holds nothing but NaN; leave it out")
    return np.where(np.isfinite(values), values, np.nan) if holes else values


def _holes(values: np.ndarray) -> int:
    """How many values are not finite; never much more than a slab is held."""
    return sum(slab.size - int(np.isfinite(slab).sum()) for slab in values)


def thinned(values: np.ndarray, most: int = LOOKED_AT, whole: Sequence[int] = ()) -> np.ndarray:
    """Every few values along the axes that are not to stay `whole`, so that there are not many more than
    `most`."""
    thin = max(values.ndim - len(whole), 1)
    stride = max(1, round((values.size / most) ** (1 / thin)))
    steps = (slice(None, None, None if k in whole else stride) for k in range(values.ndim))
    return values[tuple(steps)]


def _periodic(field: Field, given: bool | Iterable[str] | None) -> frozenset[str]:
    if isinstance(given, bool):
        return frozenset(field.space if given else ())
    if given is not None:
        return frozenset(checked_choice("axis of space", a, field.space) for a in given)
    return frozenset(a for k, a in enumerate(field.space) if field.even(a) and _wraps(field, k))


def _wraps(field: Field, place: int) -> bool:
    """Whether a field goes on from the last point of an axis to the first as it does elsewhere: third
    differences are no larger across the seam, and straight lines through some points before and after it meet
    there as well as anywhere, in means over times."""
    count = field.shape[place]
    scales = {max(SEAM, count // part) for part in SEAM_PARTS if max(SEAM, count // part) <= count // 4}
    lines = []
    for one in field.experiments:
        for name, values in one.items():
            if field.masked or field.spreads[name] == 0:
                return False
            moved = (
                np.moveaxis(thinned(values, whole=(place,)), place, 0).astype(np.float64)
                / field.spreads[name]
            )
            if not _smooth(moved.reshape(count, -1)):
                return False
            pieces = np.array_split(moved, min(MEANS, moved.shape[-1]), axis=-1)
            lines.append(np.stack([p.mean(axis=-1) for p in pieces], axis=-1).reshape(count, -1))
    joined = np.concatenate(lines, axis=1)
    return all(_meet(joined, scale) for scale in scales)


def _smooth(lines: Array) -> bool:
    """Whether third differences across the seam, which noise makes as large as elsewhere, are no larger."""
    around = np.square(np.diff(np.concatenate([lines[-3:], lines[:3]]), 3, axis=0)).mean(axis=1)
    within = np.square(np.diff(lines, 3, axis=0)).mean(axis=1)
    return float(around.max()) <= 1.5**2 * float(np.quantile(within, 0.9))


def _meet(lines: Array, scale: int) -> bool:
    """A shock that moves makes the mean gap large everywhere, but that at most times only where it stays."""
    each = _gaps(np.concatenate([lines, lines[: 2 * scale - 1]]), scale)
    inside = len(lines) - 2 * scale + 1
    return all(
        float(gaps[inside + scale - 1]) <= 1.5**2 * float(np.quantile(gaps[:inside], 0.9))
        for gaps in (each.mean(axis=1), np.median(each, axis=1))
    )


def _gaps(lines: Array, count: int) -> Array:
    """The squares of how far straight lines through `count` points before and after each place miss each
    other there, in value and in slope, `(places, lines)`."""
    at = np.arange(count) - (count - 1) / 2
    slope = at / np.square(at).sum()
    value = 1 / count + slope * count / 2  # of the line, half a step after its last point
    windows = np.lib.stride_tricks.sliding_window_view(lines, 2 * count, axis=0)
    before, after = windows[..., :count], windows[..., count:]
    values = before @ value - after @ value[::-1]
    slopes = (before @ slope - after @ slope) * count
    return np.asarray(np.square(values) + np.square(slopes))
