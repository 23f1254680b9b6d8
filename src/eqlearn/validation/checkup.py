"""A table looked at before any search: what would mislead it, and what to do."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from eqlearn.errors import InvalidArgument, counted
from eqlearn.validation.findings import Checkup, Finding, Limits, Seen, named
from eqlearn.validation.options import LARGEST
from eqlearn.validation.redundancy import duplicates, sums


def examine(X: Any, y: Any = None, *, variables: Sequence[str] | None = None) -> Checkup:
    """Looks at the columns of `X`, and at the target `y` if there is one, before any search.

    Finds columns that are constant, duplicated or sums of others, values far from all others, codes for
    missing values, ranges too narrow to tell laws apart, too few rows, names in the guise of numbers, series
    in time, and repeated measurements, which tell how close an equation can come.
    """
    from eqlearn.validation.table import column_names, numbers_of  # imports torch, which takes seconds

    values = numbers_of(X, "`X`")
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or not values.size:
        raise InvalidArgument(f"`X` must hold at least one row and one column, got shape {values.shape}")
    own = [str(c) for c in getattr(X, "columns", ())] or [f"x{k + 1}" for k in range(values.shape[1])]
    names = list(own if variables is None else variables)
    if len(names) != values.shape[1]:
        raise InvalidArgument(f"`variables` holds {len(names)} names for {values.shape[1]} columns of `X`")
    targets: list[str] = []
    if y is not None:
        target = numbers_of(y, "`y`")
        target = target[:, None] if target.ndim == 1 else target
        if target.ndim != 2 or len(target) != len(values):
            raise InvalidArgument(f"`y` must hold as many rows as `X`, {len(values)}; got {target.shape}")
        targets = column_names(y) or (
            ["y"] if target.shape[1] == 1 else [f"y{k + 1}" for k in range(len(target.T))]
        )
        values = np.column_stack([values, target])
    return look(values, [*names, *targets], targets)


Check: TypeAlias = Callable[[Seen], Iterator[Finding]]


def look(
    values: np.ndarray, names: Sequence[str], targets: Sequence[str] = (), limits: Limits | None = None
) -> Checkup:
    """Looks at a table `(rows, columns)` whose missing values are NaN."""
    seen = Seen(values, tuple(names), tuple(targets), limits or Limits())
    with np.errstate(all="ignore"):  # what overflows is found by its size
        findings = [finding for check in CHECKS for finding in check(seen)]
    order = ("stop", "warning", "note")
    return Checkup(len(values), seen.names, tuple(sorted(findings, key=lambda f: order.index(f.weight))))


def _size(seen: Seen) -> Iterator[Finding]:
    rows, inputs, limits = len(seen.values), len(seen.moving), seen.limits
    if rows < limits.rows:
        few = f"{counted(rows, 'row')} can't tell a law from any other formula"
        yield Finding(
            "stop", (), few, f"measure at least {limits.rows}, better {limits.rows_per_column} or more"
        )
    elif rows < limits.rows_per_column * max(inputs, 1):
        few = f"{counted(rows, 'row')} are few for {counted(inputs, 'input')}: formulas may fit by chance"
        yield Finding("warning", (), few, "add rows, or name the inputs that matter with `inputs`")
    if inputs > limits.columns:
        many = f"{inputs} inputs are more than a search sees at once ({limits.columns})"
        yield Finding("note", (), many, "it keeps those that seem to matter; `inputs` names them for sure")


def _missing(seen: Seen) -> Iterator[Finding]:
    bad = ~np.isfinite(seen.values)
    rows = len(seen.values)
    for name, count in zip(seen.names, bad.sum(axis=0), strict=True):
        if count == rows:
            yield Finding("warning", (name,), f"column {name!r} is empty", "leave it out")
        elif count > 0.5 * rows:
            most = f"column {name!r} lacks {count} of {counted(rows, 'value')}"
            yield Finding("warning", (name,), most, "leave it out, or fill it")
    partly = [n for n, count in zip(seen.names, bad.sum(axis=0), strict=True) if 0 < count <= 0.5 * rows]
    if partly:
        lost = int(bad[:, [seen.names.index(n) for n in partly]].any(axis=1).sum())
        what = f"{counted(lost, 'row')} of {rows} without a value, in {named(partly)}"
        yield Finding(
            "warning", tuple(partly), what, "fill them, or leave those rows out with `drop_missing`"
        )


def _constant(seen: Seen) -> Iterator[Finding]:
    for name in seen.names:
        column = seen.column(name)
        if len(column) and not seen.varies(name):
            same = f"column {name!r} is {column[0]:g} in every row"
            if name in seen.targets:
                yield Finding("stop", (name,), same, "there is nothing to explain")
            else:
                yield Finding("warning", (name,), same, "leave it out: a constant would only take its place")


def _outliers(seen: Seen) -> Iterator[Finding]:
    for name in seen.names:
        column = seen.column(name)
        if len(column) < 10:
            continue
        far = _far(column, seen.limits)
        if far.any() and (column > 0).all():  # a column over many magnitudes has none
            far &= _far(np.log(column), seen.limits)
        extreme = column[far]
        if not len(extreme) or len(extreme) > max(1, seen.limits.few * len(column)):
            code = _code(column)
            if code is not None:
                times = int((column == code).sum())
                what = f"{name!r} is {code:g} in {counted(times, 'row')}, far from all other values"
                yield Finding(
                    "warning", (name,), what, "if that stands for a missing value, clear those fields"
                )
            continue
        worst = sorted(set(extreme.tolist()), key=abs, reverse=True)[:3]
        some = ", ".join(f"{v:g}" for v in worst)
        what = f"{name!r} has {counted(len(extreme), 'value')} far from all others: {some}"
        yield Finding(
            "warning", (name,), what, "check those rows: mistakes, codes for missing values, or news"
        )


def _far(column: np.ndarray, limits: Limits) -> np.ndarray:
    low, high = np.quantile(column, (0.25, 0.75))
    reach = limits.far * (high - low)
    far: np.ndarray = (
        (column < low - reach) | (column > high + reach) if reach > 0 else np.zeros(len(column), bool)
    )
    return far


def _code(column: np.ndarray) -> float | None:
    """A value at an end that occurs again and again, far beyond all others: -999 and the like."""
    for end in (column.min(), column.max()):
        others = column[column != end]
        if len(others) > 4 and (column == end).sum() > 1:
            gap = float(np.abs(others - end).min())
            if gap > 2 * float(np.ptp(others)) and float(np.ptp(others)) > 0:
                return float(end)
    return None


def _ranges(seen: Seen) -> Iterator[Finding]:
    for name in seen.names:
        column = seen.column(name)
        if not seen.varies(name):
            continue
        sizes = np.abs(column)
        if sizes.max() > LARGEST or sizes.max() < 1 / LARGEST:
            what = f"{name!r} holds values of about {sizes.max():.0e}"
            yield Finding(
                "stop", (name,), what, "give them in another unit: float64 can't hold their squares"
            )
        one_sign = (column > 0).all() or (column < 0).all()
        ratio = float(sizes.max() / sizes.min()) if one_sign else math.inf
        if ratio < seen.limits.narrow:
            what = f"{name!r} varies by only {100 * (ratio - 1):.2g} %, where powers look like straight lines"
            yield Finding("warning", (name,), what, "measure over a wider range, or count from an offset")
        elif name in seen.targets and one_sign and ratio > seen.limits.wide:
            what = f"{name!r} spans {math.log10(ratio):.1f} powers of ten, so its small values hardly count"
            advice = "weigh them by their errors, or explain the logarithm"
            yield Finding("note", (name,), what, advice)


def _names_as_numbers(seen: Seen) -> Iterator[Finding]:
    for name in seen.names:
        column = seen.column(name)
        if len(column) < 30 or not seen.varies(name) or (column != np.round(column)).any():
            continue
        different = len(np.unique(column))
        if name in seen.targets and different == 2:
            yield Finding(
                "note", (name,), f"{name!r} holds two values only", "a class is not what equations give"
            )
        elif name in seen.inputs and 2 < different <= min(seen.limits.classes, len(column) // 10):
            what = f"{name!r} holds {different} different whole numbers"
            yield Finding(
                "note",
                (name,),
                what,
                "if they are names of groups, not sizes, leave it out or split the table",
            )
        elif name in seen.inputs and different == len(column) and (np.diff(column) == 1).all():
            what = f"{name!r} numbers the rows"
            yield Finding("note", (name,), what, "unless it is a time, leave it out with `ignore`")


def _series(seen: Seen) -> Iterator[Finding]:
    """Rows that follow each other in time."""
    if len(seen.values) < seen.limits.series:
        return
    for name in seen.moving:
        times = seen.values[:, seen.names.index(name)]
        steps = np.diff(times)
        if not np.isfinite(steps).all() or steps.min() <= 0:
            continue
        smooth = [n for n in seen.names if n != name and _smooth(seen, n)]
        if not smooth:
            continue
        even = np.ptp(steps) <= 0.01 * np.median(steps)
        rises = f"{name!r} rises {'in even steps ' if even else ''}from row to row"
        what = f"{rises}, and {named(smooth)} change{'s' if len(smooth) == 1 else ''} smoothly"
        how = f"`eqlearn dynamics --time {name} --states {','.join(smooth[:4])}`"
        advice = f"if it is time, the law may be one of motion: {how}"
        yield Finding("note", (name,), what, advice + ("" if even else ", after interpolation to even steps"))
        return


def _smooth(seen: Seen, name: str) -> bool:
    """Whether rows resemble the next, and there are ups and downs: else any sorted column is smooth."""
    column = seen.column(name)
    if len(column) < seen.limits.series or not seen.varies(name):
        return False
    steps = np.diff(column)
    turns = (steps > 0).any() and (steps < 0).any()
    return bool(turns and np.corrcoef(column[1:], column[:-1])[0, 1] > seen.limits.smooth)


def _repeats(seen: Seen) -> Iterator[Finding]:
    """Rows of equal inputs: their targets differ by noise, or by what was not measured."""
    inputs = seen.inputs
    for target in seen.targets:
        rows = seen.whole([*inputs, target])
        if not inputs or len(rows) < seen.limits.rows:
            continue
        _, group, counts = np.unique(rows[:, :-1], axis=0, return_inverse=True, return_counts=True)
        y, group = rows[:, -1], group.reshape(-1)
        freedom = len(y) - len(counts)
        if not freedom:
            continue
        means = np.bincount(group, y) / counts
        noise = math.sqrt(float(((y - means[group]) ** 2).sum()) / freedom)
        if noise > seen.limits.equal * np.ptp(y):
            share = 100 * noise / float(y.std())
            what = (
                f"{counted(freedom, 'row')} repeat inputs of others, and {target!r} differs by ±{noise:.3g}"
            )
            yield Finding(
                "note",
                (target,),
                f"{what} there: no equation can leave less than {share:.2g} % of its spread",
            )
        elif freedom > 0.1 * len(y):
            yield Finding("note", (), f"{counted(freedom, 'row')} are copies of others", "they count twice")


CHECKS: tuple[Check, ...] = (
    _size, _missing, _constant, duplicates, sums, _outliers, _ranges, _names_as_numbers, _series, _repeats,
)  # fmt: skip
