"""How a search for partial differential equations looks: every tuned number, named for its quantity."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FieldSettings:
    """How fields are looked at; the defaults serve all equations.

    **The library:** products of fields up to `degree`, and their derivatives in space up to `derivatives`
    (or up to `derivatives_in_space` in two or three dimensions).

    **Test functions** fall to `edge` at the last point of their support and, in Fourier space, reach the
    corner of the fields' spectrum `corner_deviations` standard deviations from their middle. Their support
    has at least `min_half_width` points to each side and leaves room for `min_windows` side by side. They
    stand `per_width` times for each standard deviation, at most `max_rows` of them in all.

    **Selection:** subsets of up to `max_terms` columns, of which the best `beam` of each size are carried on.
    Misfit that noise does not explain counts as `systematic_rows` independent ones: errors of a solver or a
    grid are the same everywhere. Standard errors come from leaving out each of `blocks` parts of the data.

    **Free functions** have `knots` splines; a term is one of them if the misfit is `unexplained` times what
    noise explains, or there are several terms that one function could be.
    """

    degree: int = 3
    derivatives: int = 4
    derivatives_in_space: int = 4
    edge: float = 1e-10
    corner_deviations: float = 2.0
    min_half_width: int = 6
    min_windows: float = 2.0
    per_width: float = 2.0
    max_rows: int = 4000
    max_terms: int = 9
    max_short: int = 4
    beam: int = 24
    systematic_rows: float = 20.0
    systematic_error: float = 3e-4
    widths: tuple[float, ...] = (1.5, 1.0, 0.6, 0.4)
    min_signal: float = 0.3
    clean: float = 1e-4
    max_noise: float = 0.1
    min_independent: float = 8.0
    shortlist: int = 60
    blocks: int = 20
    knots: int = 12
    formulas: int = 8
    function_points: int = 80
    function_edge: float = 0.01
    max_spread: float = 5.0
    function_seconds: float = 30.0
    free_terms: int = 4
    clean_rates: float = 1e-2
    table_seconds: float = 60.0
    free_tried: int = 2
    one_function: int = 3
    unexplained: float = 1.5
    sampled_points: int = 100_000


FIELDS = FieldSettings()
