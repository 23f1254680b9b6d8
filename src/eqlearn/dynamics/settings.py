"""How a search for equations of motion looks: every tuned number, named for its quantity, as data."""

from __future__ import annotations

from eqlearn.search.settings import STRATEGY_ORDER, Settings
from eqlearn.validation.options import check_fields, tuned


@tuned
class MotionSettings:
    """How a search for dynamics looks; the defaults serve all systems.

    Rates of change come from Savitzky-Golay filters of these degrees, each judged by the one two degrees
    above it (wider windows than `max_half_window` change little and cost much) and by how well it predicts
    values from the others: `faithful` times the least mean square is too much. They are searched in
    `rate_rows`: neighbouring rates come from the same values. States whose noise is below `clean`, in units
    of the spread, are not smoothed, and where it is below `maybe_clean` sums of terms are tried without.
    Noise is at most what differences up to the order `max_difference` leave; in proportion to a state, it is
    at least what it is at `least_noise` of the largest value. Series with
    longer gaps than `max_gap` steps are cut there; a spline goes through values that every other one of them
    predicts to `exact_spline` of the spread.

    Test functions of the weak form, at most `max_tests`, are `widths` times as wide as the one whose
    spectrum ends, at `corner_deviations` standard deviations, where that of the data turns into noise; one is
    a quarter of a series wide. None is below `min_half_width` steps to either side.

    Monomials have at most `max_monomial_degree` and are at most `max_monomials`; at most `max_plain`
    terms have no constants inside. Constants inside functions are tried at `slopes` (of exp, tanh, waves
    and steps), `halves` (where a Hill function is half of its largest), in units of the argument's size,
    `exponents`, and `middles` (of steps, in units of the argument's range). Logarithms, roots and
    inverses are of arguments above `min_argument` of their size, poles at least `min_pole` away, and
    divisors c + u nowhere lose more than `max_cancelled` of c. Sums have at most `max_terms`, and the
    `beam` best of each length grow, among them the best pairs beside each of the `max_given` simplest
    terms and beside each two of `max_twice_given`. Terms with constants inside are seen beside
    `max_beside` monomials, pairs of them beside each two of `max_few`; the `tuned` best of each length
    are tuned in about `max_tries` steps for each constant, where not exact by at most `tuning_reach` beyond
    those that are tried, and grow `max_grown` times, to at most `max_tuned` terms. A short sum that many more
    terms mend by less than a factor `settled` is the law. What is left of exact values counts as `clean_rows`
    residuals: it is the integrators', and not independent. At most `max_sums`, at most `max_behind` nats
    behind the best, are simulated; it takes one of `symbols` to write each part of a term. In at most
    `max_reweighted` times, noise inside the terms is counted, too. Coefficients
    that vary are those of the first `max_varying_terms` terms without constants inside, of at most
    `max_varying_degree`.

    Simulations that choose among equations take `short_steps` of `choice_segments`, or `noisy_steps` where
    there is more noise than `noisy`: then pieces are fitted and chosen on that are twice as long, and again,
    up to `long_steps`, as far as a law follows them. The last fit takes `fit_segments`. In noise a
    coefficient is also tried as one if it is as `near_one` as this, and other numbers than 0 and 1 are so
    many bits `rarer`: one is near most constants. A state is explained when its simulation misses by at most
    `above_noise` times the noise. An integrator's own error may be `below_noise` times the noise, and a fit
    for a choice ends where a step gains less than the share `little_gain` of the squares; a step of time is
    divided at most `max_substeps` times for it, fewer where a piece would take more than `max_piece_steps`,
    and up to `max_stride` are taken at once where the error may be more than `coarse`. Laws of more than
    `max_simulated` nodes follow the errors of the rates, not the motion. States try their alternatives in at
    most `sweeps`. Sums of terms, the first choice, sums in the states as the model moves and their choice,
    the search in rates and the last choice end at these shares of the time; the rest is for the fit.

    A hidden parameter needs `min_series`; the one that moves most gets the share `leading` of the time, each
    is then fitted on `hidden_segments`, in noise of `hidden_steps`. A constant differs between them if it
    varies by more than `differing_errors` standard errors and `differing_share` of its size.
    """

    window_degrees: tuple[int, ...] = (2, 4, 6, 8)
    max_half_window: int = 250
    faithful: float = 1.2
    short_steps: int = 10
    long_steps: int = 511
    choice_segments: int = 40
    fit_segments: int = 120
    rate_rows: int = 300
    above_noise: float = 1.15
    below_noise: float = 0.02
    little_gain: float = 1e-5
    rarer: float = 3.0
    near_one: float = 0.1
    noisy: float = 1e-4
    max_simulated: int = 60
    sweeps: int = 3
    max_substeps: int = 32
    max_stride: int = 8
    max_piece_steps: int = 640
    coarse: float = 1e-5
    until_all_layers: float = 0.8
    min_series: int = 5
    leading: float = 0.8
    hidden_segments: int = 20
    hidden_steps: int = 255
    differing_errors: float = 4.0
    differing_share: float = 1e-4
    corner_deviations: float = 2.0
    widths: tuple[float, ...] = (0.5, 1.0, 2.0)
    min_half_width: int = 8
    max_tests: int = 240
    max_monomial_degree: int = 6
    max_monomials: int = 36
    max_plain: int = 450
    slopes: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)
    halves: tuple[float, ...] = tuple(0.05 * 60 ** (k / 8) for k in range(9))
    frequencies: tuple[float, ...] = (1.0, 2.0, 4.0)
    exponents: tuple[float, ...] = (-0.5, 0.3, 0.7, 1.3, 1.7, 2.5)
    middles: tuple[float, ...] = (-0.5, 0.0, 0.5, 1.0, 1.5)
    min_argument: float = 1e-3
    min_pole: float = 0.02
    max_cancelled: float = 0.5
    max_terms: int = 8
    beam: int = 24
    max_given: int = 40
    max_twice_given: int = 8
    max_beside: int = 15
    max_few: int = 5
    tuned: int = 2
    max_tuned: int = 6
    max_grown: int = 2
    max_tries: int = 12
    tuning_reach: float = 1.3
    settled: float = 100.0
    clean_rows: int = 12
    max_reweighted: int = 1200
    max_sums: int = 7
    symbols: int = 8
    max_behind: float = 20.0
    max_varying_degree: int = 3
    max_varying_terms: int = 40
    clean: float = 1e-5
    maybe_clean: float = 5e-3
    max_difference: int = 10
    least_noise: float = 0.01
    max_gap: float = 10.0
    exact_spline: float = 1e-3
    noisy_steps: int = 31
    until_sums: float = 0.45
    until_choice: float = 0.56
    until_second: float = 0.64
    until_second_choice: float = 0.72
    until_last_choice: float = 0.9

    def __post_init__(self) -> None:
        check_fields(self, ("max_terms", "beam", "max_tests", "max_difference", "sweeps", "rate_rows"))
        check_fields(self, ("corner_deviations", "above_noise", "below_noise"), least=0)


@tuned
class FinishSettings:
    """How a law behind an encoder is finished.

    Laws are ranked by a glance at `glanced` series. Which terms one has is decided on `max_series`; their
    numbers are then fitted to all. Terms below `faint` times the largest of the same equation are tried
    without, and runs of terms whose removal is predicted to cost less than `hopeless` times what may be lost:
    such a prediction is of second order, and latents can move together. A law of a smaller loss than `enough`
    needs no other member of the population. For each observed series the encoder is distilled from
    `simulated` ones, a third of them to calibrate it, with latents up to `moved` of the way from one series'
    to another's.
    """

    glanced: int = 60
    max_series: int = 250
    faint: float = 1e-2
    hopeless: float = 1e5
    enough: float = 1e-6
    simulated: int = 12
    moved: float = 0.1


MOTION, FINISH = MotionSettings(), FinishSettings()
# Sums of library terms come from the weak form; what is left is no sum of one bank of inputs.
SEARCHES = {"all": Settings(strategies=STRATEGY_ORDER[1:])}
