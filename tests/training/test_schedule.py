import math
import subprocess
import sys
from dataclasses import FrozenInstanceError, asdict

import pytest

from eqlearn.errors import InvalidArgument, WrongType
from eqlearn.training.schedule import Phase, check_schedule


def phase(**changes) -> Phase:
    return Phase(**({"name": "p", "steps": 100, "lr": 0.1} | changes))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("steps", 0),
        ("lr", 0.0),
        ("lr", math.nan),
        ("lr", math.inf),
        ("penalty", -1.0),
        ("penalty", math.nan),
        ("ramp_start", -1),
        ("ramp_steps", 0),
        ("warm_up", -1),
        ("warm_up", 101),
        ("prune_below", 0.0),
        ("clip", -1.0),
        ("horizon", 0),
    ],
)
def test_a_wrong_value_is_refused_by_name(field, value):
    with pytest.raises(InvalidArgument, match=f"phase 'p': `{field}` must be .*, got {value}"):
        phase(**{field: value})


def test_all_problems_of_a_phase_are_told_at_once():
    with pytest.raises(InvalidArgument) as told:
        phase(steps=0, lr=-1.0, penalty=-2.0, clip=0.0)

    assert all(f"`{name}`" in str(told.value) for name in ("steps", "lr", "penalty", "clip"))


def test_one_cycle_refuses_a_second_warm_up():
    with pytest.raises(InvalidArgument, match=r"one-cycle.*`warm_up`=5"):
        phase(warm_up=5, decay="one-cycle")


def test_a_phase_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        phase().lr = 1.0


def test_a_phase_survives_plain_data():
    original = phase(penalty=0.5, ramp="sin2", prune_below=0.01, horizon=3)

    assert Phase(**asdict(original)) == original


def test_constant_settings_never_move():
    steady = phase(penalty=0.3)

    assert {(steady.lr_at(i), steady.penalty_at(i)) for i in range(100)} == {(0.1, 0.3)}


def test_warm_up_rises_evenly_to_the_full_rate():
    rates = [phase(warm_up=4).lr_at(i) for i in range(6)]

    assert rates == pytest.approx([0.025, 0.05, 0.075, 0.1, 0.1, 0.1])


@pytest.mark.parametrize("decay", ["cosine", "one-cycle"])
def test_decay_ends_near_zero_and_peaks_at_the_rate(decay):
    rates = [phase(decay=decay).lr_at(i) for i in range(100)]

    assert max(rates) == pytest.approx(0.1)
    assert rates[-1] < 1e-3 * max(rates)
    assert min(rates) > 0


def test_one_cycle_rises_before_it_falls():
    rates = [phase(decay="one-cycle").lr_at(i) for i in range(100)]

    assert rates[0] == pytest.approx(0.1 / 25)
    assert rates.index(max(rates)) == 30


def test_linear_ramp_starts_from_zero():
    ramped = phase(penalty=2.0, ramp="linear")

    assert [ramped.penalty_at(i) for i in (0, 25, 50)] == pytest.approx([0.0, 0.5, 1.0])


def test_sin2_ramp_is_the_released_one():
    ramped = Phase(name="mnist", steps=10_001, lr=1e-2, penalty=1.0, ramp="sin2")
    values = [ramped.penalty_at(i) for i in range(10_001)]

    assert values[0] == 0
    assert values.index(max(values)) == pytest.approx(5500, abs=1)
    assert values[-1] == pytest.approx(0.08, abs=0.001)


def test_a_ramp_can_span_phases():
    """The oscillator's, whose λ jumps in the middle of one sin²: 2.1e-5 to 1.06e-4 at step 2000."""
    first = phase(steps=2_001, penalty=4e-5, ramp="sin2", ramp_steps=7_002)
    second = phase(steps=5_001, penalty=2e-4, ramp="sin2", ramp_start=2_001, ramp_steps=7_002)

    assert first.penalty_at(2_000) == pytest.approx(2.1e-5, rel=0.02)
    assert second.penalty_at(0) == pytest.approx(1.06e-4, rel=0.02)
    assert second.penalty_at(5_000) == pytest.approx(1.6e-5, rel=0.02)


def test_an_empty_schedule_is_refused():
    with pytest.raises(InvalidArgument, match="empty"):
        check_schedule(())


def test_repeated_names_are_all_told_at_once():
    with pytest.raises(InvalidArgument, match=r"2 phases are named 'a'.*2 phases are named 'b'"):
        check_schedule([phase(name=n) for n in "abab"])


def test_schedules_need_no_torch():
    """Run without the package around it, whose import brings its own."""
    code = "import sys, eqlearn.training.schedule; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_strangers_in_a_schedule_are_refused():
    with pytest.raises((WrongType, TypeError)):
        check_schedule([{"name": "a"}])
