"""How structures for groups of rows are looked for and compared: every tuned number, as data."""

from __future__ import annotations

from eqlearn.validation.options import check_fields, tuned


@tuned
class GroupSettings:
    """How equations whose constants vary over groups are looked for.

    Structures come from searches of single groups, of at least `min_rows` rows, and of all rows together: at
    most `max_searches`, and no more once `patience` of them in a row brought no better one. In these, the
    strategies `left_out` cost more time than a further search, as does `symmetry` below `min_columns`, where
    there are no variables to reduce. Structures are compared on `max_groups` groups and `max_rows` rows in
    all, and have at most `max_parameters` numbers. The best `finalists`, if they are at most `max_behind`
    nats a group behind the very best, are fitted with their numbers in up to `max_parametrisations` places.
    Fits take `steps` steps at most, begun also from numbers so many times as large as `factors`. Where a
    column varies the constants, neighbouring values of it with fewer rows than `min_level_rows` are one
    group. For a law of a constant there must be `min_points` values of it; laws are looked for in `max_forms`
    of the equation, without the strategies `left_out_of_laws`, which take half of the time for sums of many
    functions. Constants are taken for functions of one another from a correlation of `min_correlation`;
    in how many groups others could make up for a parameter is asked is `compared`.
    """

    max_searches: int = 8
    patience: int = 2
    left_out: tuple[str, ...] = ("wide-span", "evolution")
    left_out_of_laws: tuple[str, ...] = ("span", "sums")
    min_columns: int = 3
    min_rows: int = 6
    min_level_rows: int = 12
    max_groups: int = 60
    max_rows: int = 6_000
    max_parameters: int = 7
    finalists: int = 6
    max_behind: float = 8.0
    max_parametrisations: int = 8
    steps: int = 40
    factors: tuple[float, ...] = (*(4 ** (k / 8) for k in range(-8, 9) if k), -1.0)
    max_forms: int = 3
    min_points: int = 6
    min_correlation: float = 0.9
    compared: int = 8

    def __post_init__(self) -> None:
        check_fields(
            self, ("max_searches", "patience", "max_groups", "finalists", "max_parametrisations", "steps")
        )
