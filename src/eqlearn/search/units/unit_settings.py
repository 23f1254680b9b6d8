"""How searches with units go: every tuned number, as data."""

from __future__ import annotations

from dataclasses import field

from eqlearn.validation.options import tuned


@tuned
class Enumeration:
    """How many dimensionally right laws are put together.

    Products of columns have exponents out of `powers`, the first ones for many columns, so that at most
    `max_products` are looked at; the shortest `scales` with the target's unit and `groups` without one are
    kept. Expressions in these are grown from `numbers` and groups, up to `max_level` nodes (a `function`
    counts for so many) and `most` of them; the shortest `factors` are multiplied with each other and with
    `scales_of_factors`. Sums grow from the `beam` best: `one_by_one` says of how many of the shortest
    expressions further terms are, how many terms, and of how many of the shortest products the first two may
    be. All that for the `target_powers`, where a target counts as at least the part `floor` of its size, and
    also with whole numbers in the `proportion` of the fitted ones: the largest, and the part by which each
    may be off. The best `kept` by nats of data and formula, each node one of `symbols`, become candidates. On
    `rows` rows, and for at most the `share` of the time.
    """

    powers: tuple[float, ...] = (0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, 4, -4, 1.5, -1.5)
    max_products: int = 1_000_000
    scales: int = 40
    groups: int = 40
    numbers: tuple[int, ...] = (1, 2)
    function: int = 2
    max_level: int = 12
    most: int = 12_000
    factors: int = 800
    scales_of_factors: int = 8
    beam: int = 16
    one_by_one: tuple[int, int, int] = (2000, 3, 12)
    target_powers: tuple[int, ...] = (1, -1, 2)
    floor: float = 0.2
    proportion: tuple[int, float] = (4, 0.15)
    kept: int = 10
    symbols: int = 8
    rows: int = 256
    share: float = 0.15


@tuned
class Dimensional:
    """How dimensionless groups are searched: `max_choices` of columns that all groups repeat are compared
    (they grow as binomials), the `searched` best of them get the part `share` of the budget each, and the
    columns themselves the rest; before, right laws are put together by `enumeration`."""

    max_choices: int = 3000
    searched: int = 2
    share: float = 0.35
    enumeration: Enumeration = field(default_factory=Enumeration)
