"""How a search for equations of motion looks: every tuned number, named for its quantity, as data."""

from __future__ import annotations

from dataclasses import dataclass

from eqlearn.search.settings import STRATEGY_ORDER, Settings


@dataclass(frozen=True)
class MotionSettings:
    """How a search for dynamics looks; the defaults serve all systems.

    Rates of change come from Savitzky-Golay filters of these degrees, each judged by the one two degrees
    above it (wider windows than `max_half_window` change little and cost much), and are searched in
    `rate_rows`: neighbouring rates come from the same values. Simulations that choose among equations take
    `short_steps` of `choice_segments`; the last fit takes `fit_segments`, of `long_steps` where an error
    above `noisy`, in units of the spread, says that constants gain from them. A state is explained when its
    simulation misses by at most `above_noise` times the noise and its law has at most `max_short` nodes. Laws
    of more than `max_simulated` nodes follow the errors of the rates, not the motion. States try their
    alternatives in at most `sweeps`; a step of time is divided at most `max_substeps` times. Searches of one
    layer and of all layers end at these shares of the time; the rest is for the choice and the fit.

    A hidden parameter needs `min_series`; the series that moves most gets the share `leading` of the time,
    and each is then fitted on `hidden_segments`. A constant differs between series if it varies by more than
    `differing_errors` standard errors and `differing_share` of its size.
    """

    window_degrees: tuple[int, ...] = (2, 4, 6, 8)
    max_half_window: int = 250
    min_times: int = 7
    short_steps: int = 10
    long_steps: int = 40
    choice_segments: int = 40
    fit_segments: int = 120
    rate_rows: int = 300
    above_noise: float = 1.15
    noisy: float = 1e-4
    max_short: int = 16
    max_simulated: int = 60
    sweeps: int = 3
    max_substeps: int = 32
    until_one_layer: float = 0.45
    until_all_layers: float = 0.75
    min_series: int = 5
    leading: float = 0.8
    hidden_segments: int = 20
    differing_errors: float = 4.0
    differing_share: float = 1e-4


MOTION = MotionSettings()
# What is linear in products of states is found at once; rates are never exact, so nothing exact comes before.
SEARCHES = {
    "products": Settings(strategies=("elimination",)),
    "one": Settings(strategies=()),
    "all": Settings(strategies=("elimination", *STRATEGY_ORDER[1:-1])),
}
