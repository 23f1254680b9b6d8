"""How a search for partial differential equations looks: every tuned number, named for its quantity."""

from __future__ import annotations

from eqlearn.validation.fields import Field
from eqlearn.validation.options import check_fields, tuned


@tuned
class FieldSettings:
    """How fields are looked at; the defaults serve all equations.

    **The library:** products of fields up to `degree`, and their derivatives in space up to `derivatives` (or
    `derivatives_in_space` in two or three dimensions, where those of products end at the second).

    **Test functions**, in Fourier space, reach the corner of the fields' spectrum `corner_deviations`
    standard deviations from their middle, times each of `widths`. Their support has at least `min_half_width`
    points to each side and leaves room for `min_windows` side by side. They stand `per_width` times for each
    standard deviation, at most `max_rows` of them in all; fewer than `min_rows` that see no hole can't tell
    terms apart. Widths are left out whose best sum holds more noise than `max_noise`, of the target's square,
    and than `as_quiet` times the least, or which have fewer than `min_independent` rows. Uneven axes are
    integrated on a grid `finer` times as fine, through splines of the highest degree that amplifies the
    square of noise at most `max_amplified` times as much as straight lines do, or `max_amplified_clean` where
    there is none.

    **Noise** is at most what differences up to the order `max_difference` leave. Below `clean`, of a field's
    spread, it leaves derivatives at points alone; what it adds to products is measured at `sampled_points`.

    **Memory:** of fields of more than `max_values` in all, the liveliest of `boxes` boxes of so many is taken
    that have at least `least_side` points along each axis.

    **Selection:** sums of up to `max_terms` columns, of which the best `beam` of each number are carried on,
    and `shortlist` compared at all widths; columns of which less than `min_signal` is not noise are not
    tried. Misfit that noise does not explain counts as `systematic_rows` independent ones (errors of a solver
    or a grid are the same everywhere), and below `systematic_error`, of the target, as nothing. Standard
    errors come from leaving out each of `blocks` parts of the data. Sums of more than `max_short` terms are
    taken for a sign that the library lacks a term. Up to `compared` that noise explains alike are told apart
    by their likelihood, at `compared_rows` test functions and `points_per_deviation` of theirs; noise above
    the part `heavy` of a field's spread has squares that count, which are left out there. Powers below zero
    of a coordinate are tried where it stays above `min_coordinate` of its largest value. (u*w)_x + (v*w)_y is
    written u*w_x + v*w_y where the sources u_x + v_y hold less than the part `sourceless` of the squares of
    both.

    **Free functions** have `knots` splines of `spline_degree`, so that derivatives are smooth, and stand
    beside at most `free_terms` terms; they are tried where misfit is unexplained or `alike` terms are powers
    of one field beside another. The best `free_tried` of them are searched for formulas, each for
    `function_seconds`, in a table of `function_points` points without the part `function_edge` of the values
    at either end, nor those that are `max_spread` times as uncertain as most; `formulas` are fitted, and the
    best `simple` functions whose argument reaches a number within `rates`.

    **Coefficients that vary** are seen through test functions of `varying_widths`, at most `varying_rows`.

    **Hidden parameters** are tried in the coefficients of the `parameters_tried` terms that leave least at
    one width; each experiment has up to `rows_each` test functions.

    **Scattered samples** are put on a grid by `splines_each`, of the number of samples along each axis, with
    `penalties` on their second differences, as is best for the part `samples_held` that is left out; the grid
    has `points_per_spline`.

    **Simulation** is by spectra or finite differences with `stencil` points to each side, and integrators of
    this relative `tolerance`, implicit ones up to `max_implicit` values: beyond, Jacobians take too long.
    """

    degree: int = 3
    derivatives: int = 4
    derivatives_in_space: int = 4
    corner_deviations: float = 2.0
    widths: tuple[float, ...] = (1.5, 1.0, 0.6, 0.4)
    min_half_width: int = 6
    min_windows: float = 4.0
    per_width: float = 2.0
    max_rows: int = 4000
    max_noise: float = 0.1
    as_quiet: float = 1.5
    min_independent: float = 8.0
    clean: float = 1e-4
    sampled_points: int = 100_000
    max_difference: int = 10
    min_rows: int = 12
    finer: int = 4
    max_values: int = 60_000_000
    boxes: int = 256
    least_side: int = 40
    max_amplified: float = 1.2
    max_amplified_clean: float = 100.0
    max_terms: int = 9
    beam: int = 24
    shortlist: int = 60
    min_signal: float = 0.3
    systematic_rows: float = 20.0
    systematic_error: float = 3e-4
    blocks: int = 20
    compared: int = 6
    compared_rows: int = 800
    points_per_deviation: float = 2.5
    heavy: float = 0.3
    max_short: int = 4
    min_coordinate: float = 0.02
    sourceless: float = 1e-3
    knots: int = 12
    spline_degree: int = 5
    free_terms: int = 4
    alike: int = 1
    free_tried: int = 2
    function_seconds: float = 20.0
    function_points: int = 80
    function_edge: float = 0.01
    max_spread: float = 5.0
    formulas: int = 8
    simple: int = 12
    rates: tuple[float, float] = (0.1, 30.0)
    varying_widths: tuple[float, ...] = (1.0, 0.4, 0.25, 0.15, 0.1)
    varying_rows: int = 8000
    parameters_tried: int = 5
    rows_each: int = 1000
    splines_each: tuple[float, ...] = (0.15, 0.25, 0.4, 0.6)
    penalties: tuple[float, ...] = (1e-8, 1e-6, 1e-4, 1e-2, 1.0)
    samples_held: float = 0.1
    points_per_spline: int = 3
    stencil: int = 3
    tolerance: float = 1e-6
    max_implicit: int = 1500
    start_waves: int = 120
    motion_points: int = 50_000
    motion_misfit: float = 1.2
    motion_step: float = 1e-3
    motion_steps: int = 8
    motion_gain: float = 1e-4

    def __post_init__(self) -> None:
        check_fields(self, ("degree", "max_terms", "beam", "blocks", "max_rows", "max_difference", "stencil"))
        check_fields(self, ("derivatives", "derivatives_in_space"), least=2)
        check_fields(self, ("corner_deviations", "per_width", "tolerance"), least=0)

    def highest(self, field: Field) -> int:
        """The highest derivative in space that a field's grid allows, up to that of the library."""
        most = self.derivatives if len(field.space) == 1 else self.derivatives_in_space
        points = min(len(field.axes[a]) for a in field.space)
        return max(2, min(most, (points - 5) // 2))


FIELDS = FieldSettings()
