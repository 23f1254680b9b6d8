"""How many subexpressions there are and what is put together from them: every tuned number, as data."""

from __future__ import annotations

import math

from eqlearn.validation.options import tuned


@tuned
class Span:
    """A span of subexpressions, and what is looked up in it: the `simplest` of the bank, led by products of
    columns where there are `monomials` (so many at the most), and `quotients` of two if asked; `entries` that
    an operation may have taken off the target, each seen on `rows` rows, and two operations two of the
    simplest, of which there are `twice`. Beside the span, another entry is
    looked up or, where some are `coupled`, what so many of the simplest make by twos. Functions are undone on
    what is left of the target and, if `nested`, of its transforms. Sums have at most `max_terms`."""

    simplest: int
    entries: int
    rows: int
    monomials: int = 0
    quotients: bool = False
    twice: int = 0
    coupled: int = 0
    nested: bool = False
    max_terms: int = 8


@tuned
class BankSettings:
    """Subexpressions that laws are put together from, and how many of their combinations are looked at.

    They grow up to `max_level` operations, until there are `surplus` times as many as wanted, of which the
    simplest are kept; a function of a function costs `nested` more, a number inside `number`, each column of
    a product or sum after the second `longer`. None owes more than the part `max_one_row` of its variance to
    one row. Up to `max_grid_level`, functions are also of multiples of their arguments: `factors` as they
    stand, `relative` to the argument's size, or as many radians over its range as `turns` of a column,
    `few_turns` of anything else; and of columns with `shifts` added, or so much that the nearest value is
    `gaps` of its range from zero. Exact laws are looked for with `entries` on `exact_rows` rows, pairs of
    `small` entries compared on `rows`. `spans`, and later `wide_spans`, are looked at in their order, until
    there is an exact law in one. Fitted are the nearest `kept`. Fewer than `min_rows` rows can't tell that
    many combinations apart.
    """

    max_level: int = 6
    surplus: float = 4.0
    nested: float = 0.5
    number: float = 1.2
    longer: float = 0.1
    max_one_row: float = 0.6
    max_grid_level: int = 5
    factors: tuple[float, ...] = (0.5, 2.0, 3.0, math.pi, 2 * math.pi)
    relative: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    turns: tuple[float, ...] = tuple(float(k) for k in range(1, 34))
    few_turns: tuple[float, ...] = tuple(float(k) for k in range(2, 20, 2))
    shifts: tuple[float, ...] = (1.0, 2.0, 3.0, -1.0, -2.0)
    gaps: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0)
    entries: int = 8_000
    exact_rows: int = 96
    rows: int = 128
    min_rows: int = 24
    small: int = 300
    spans: tuple[Span, ...] = (
        Span(8, 8_000, 24, twice=80),
        Span(0, 1_000, 120, monomials=60, max_terms=16),
        Span(0, 1_000, 120, monomials=20, quotients=True, max_terms=10),
        Span(8, 2_000, 24, coupled=300),
    )
    wide_spans: tuple[Span, ...] = (Span(8, 8_000, 24, nested=True), Span(8, 2_000, 24, coupled=800))
    kept: int = 12


@tuned
class AffineSettings:
    """Laws p + h·q for entries h of a bank.

    For exact laws, p is of at most `outside` products of columns and q of one and the columns; with up to
    `inside` simple terms in q for the `simplest` of them. Where none is exact, an entry stands out if, beside
    at most `smooth` products of columns, it leaves less than the part `gap` of what the one in place `beams`
    leaves; those of its terms that make more than the part `part` of the target's spread are kept while a
    quotient is looked for. Sums have at most `max_terms`; `kept` are the most of a kind.
    """

    outside: int = 25
    inside: int = 24
    simplest: int = 4_000
    smooth: int = 40
    gap: float = 0.1
    beams: int = 8
    part: float = 1e-3
    max_terms: int = 10
    kept: int = 6


@tuned
class SubsetSettings:
    """Sums of at most `max_terms` of the `entries` of a bank, of which products of columns, at most
    `monomials`, come first; the `beam` best of each size grow and shrink, and `kept` are proposed for the
    target, and in values that hold noise for each of its transforms that `min_rows` rows or more have a part
    in."""

    entries: int = 800
    monomials: int = 60
    max_terms: int = 6
    beam: int = 6
    kept: int = 3
    min_rows: int = 24
