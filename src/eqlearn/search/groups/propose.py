"""Which tables structures are looked for in: single groups, and all rows together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eqlearn.search.groups.group_settings import GroupSettings
from eqlearn.validation.groups import Groups
from eqlearn.validation.table import Table, some_rows


def proposals(table: Table, groups: Groups, settings: GroupSettings) -> Iterator[Table]:
    """A group, all rows, another group, all rows with the target of each group relative to its size there,
    and further groups, those with the largest, middle and smallest spread of the target in turn."""
    single = (table.take(np.flatnonzero(groups.codes == k)) for k in _order(table, groups, settings))
    pooled = iter([_pooled(table, groups, settings, False), _pooled(table, groups, settings, True)])
    for turn in range(settings.max_searches):
        first, second = (pooled, single) if turn in (1, 3) else (single, pooled)
        found = next(first, None) or next(second, None)
        if found is None:
            return
        yield found


def _order(table: Table, groups: Groups, settings: GroupSettings) -> list[int]:
    """Groups large enough to be searched alone, in an order that soon has seen different ones."""
    sizes = groups.sizes
    large = np.flatnonzero(sizes >= max(settings.min_rows, sizes.max() // 2))
    spreads = [float(table.y[groups.codes == place].std()) for place in large]
    ranked = large[np.argsort(spreads, kind="stable")][::-1]
    steps = [0.0, 0.5, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875, 1.0]
    places = [round(step * (len(ranked) - 1)) for step in steps] if len(ranked) else []
    return [int(ranked[place]) for place in dict.fromkeys(places)]


def _pooled(table: Table, groups: Groups, settings: GroupSettings, relative: bool) -> Table:
    chosen = some_rows(table.rows, settings.max_rows)
    part = table.take(chosen)
    if not relative:
        return part
    square = np.bincount(groups.codes, weights=table.y[:, 0] ** 2, minlength=groups.count)
    size = np.sqrt(square / np.maximum(groups.sizes, 1))
    size = np.where(size > 0, size, 1.0)
    return Table(part.X, part.y / size[groups.codes[chosen], None], part.weight)
