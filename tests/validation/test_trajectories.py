"""Trajectories: what is read, what can be asked of them, what is refused, and why."""

from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
import torch

from eqlearn.errors import InvalidArgument, NotFinite, WrongType
from eqlearn.validation.trajectories import Trajectories, check_latents, read_trajectories

STATES = torch.arange(24.0, dtype=torch.float64).reshape(2, 6, 2)
WAVE = np.stack([np.sin(np.arange(9.0)), np.cos(np.arange(9.0))], axis=1)
WHOLE = Trajectories(torch.tensor(WAVE)[None], 0.25, ("u", "v"))


def made(states=STATES, dt=0.1, names=("u", "v"), parameter=None) -> Trajectories:
    return Trajectories(states, dt, names, parameter)


def test_single_precision_becomes_double():
    assert made(STATES.float()).states.dtype == torch.float64


def test_arrays_and_lists_of_arrays_are_read_alike():
    both = Trajectories.of(STATES.numpy(), 0.1, ["u", "v"]), Trajectories.of(list(STATES), 0.1, ["u", "v"])

    assert torch.equal(both[0].states, both[1].states)


def test_one_array_is_one_series():
    assert len(Trajectories.of(WAVE, 0.1).series) == 1


def test_a_tensor_is_one_series():
    assert Trajectories.of(torch.tensor(WAVE)).rows == 9


def test_states_without_names_are_numbered():
    assert Trajectories.of(WAVE).names == ("x0", "x1")


def test_a_data_frame_names_its_states():
    frame = pd.DataFrame(WAVE, columns=["u", "v"])

    assert Trajectories.of(frame).names == ("u", "v")
    assert Trajectories.of(WAVE, names=frame.columns).names == ("u", "v")


def test_trajectories_are_read_as_they_are():
    assert Trajectories.of(WHOLE, 0.25, ["u", "v"]) is WHOLE
    assert (WHOLE.dt, WHOLE.names) == (0.25, ("u", "v"))
    assert Trajectories.of(WHOLE, parameter=[3.0]).parameter.tolist() == [3.0]


def test_trajectories_stay_as_they_are():
    with pytest.raises(FrozenInstanceError):
        WHOLE.dt = 1.0


def test_trajectories_have_one_step_of_time():
    with pytest.raises(InvalidArgument, match=r"`dt` is 0\.5, but the trajectories have steps of 0\.25"):
        Trajectories.of(WHOLE, 0.5)


def test_series_may_have_unequal_lengths():
    trajectories = Trajectories.of([WAVE, WAVE[:4]], 0.1, ["u", "v"])

    assert ([len(one) for one in trajectories.series], trajectories.rows) == ([9, 4], 13)


@pytest.mark.parametrize("asked", ["states", "steps", "scales"])
def test_unequal_lengths_are_explained_where_one_is_needed(asked):
    trajectories = Trajectories.of([WAVE[:6], WAVE[:4]], 0.1, ["u", "v"])

    with pytest.raises(InvalidArgument, match="unequal lengths, from 4 to 6"):
        getattr(trajectories, asked)


def test_times_count_from_zero_in_steps_of_dt():
    trajectories = Trajectories.of([WAVE, WAVE[:4]], 0.5)

    np.testing.assert_array_equal(trajectories.times(1), [0.0, 0.5, 1.0, 1.5])


def test_a_part_holds_its_series_and_their_parameters():
    part = made(parameter=torch.tensor([3.0, 4.0])).part([1], most=3)

    np.testing.assert_array_equal(part.series[0], STATES[1, :3])
    assert (part.dt, part.names, part.parameter.tolist()) == (0.1, ("u", "v"), [4.0])


def test_a_state_may_rest_in_a_part():
    still = np.ones_like(WAVE)

    assert len(Trajectories.of([WAVE, still]).part([1]).series) == 1


def test_a_state_may_rest_in_one_series_as_long_as_it_moves_in_another():
    still = WAVE.copy()
    still[:, 1] = 0

    assert (Trajectories.of([WAVE, still]).spread > 0).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"states": STATES[:, :1]}, "series 0 has 1 time, but must make at least one step"),
        ({"states": STATES[:0]}, "no series"),
        ({"names": ("u",)}, "1 names for 2 states"),
        ({"names": ("u", "u")}, "`names` must be distinct"),
        ({"dt": 0.0}, "`dt`"),
        ({"dt": float("nan")}, "`dt`"),
        ({"states": STATES * torch.tensor([1.0, 0.0], dtype=torch.float64)}, "v never changes"),
        ({"states": STATES[0]}, r"must be \(series, times, states\), got shape"),
        ({"parameter": torch.ones(3)}, "3 values for 2 series"),
        ({"dt": -1.0, "names": ("u",)}, "these trajectories can't be used: .*1 names.*; `dt`"),
    ],
)
def test_bad_trajectories_are_explained(change, words):
    with pytest.raises(InvalidArgument, match=words):
        made(**change)


@pytest.mark.parametrize(
    ("series", "options", "message"),
    [
        ([], {}, "must be arrays.*at least one"),
        ([WAVE, WAVE[:, :1]], {}, "same states"),
        ([WAVE[:, 0]], {}, "must be arrays"),
        ([WAVE, WAVE[:1]], {}, "series 1 has 1 time"),
        ([WAVE], {"dt": 0.0}, "`dt` must be positive"),
        ([WAVE], {"dt": float("inf")}, "`dt` must be positive"),
        ([WAVE], {"names": ["u"]}, "1 names for 2 states"),
        ([np.ones((5, 2))], {"names": ["u", "v"]}, "nothing ever changes"),
        (np.arange(5.0), {}, r"one state over time is `series\[:, None\]`"),
        ([np.stack([WAVE[:, 0], np.full(9, 9.81)], axis=1)], {}, "x1 never changes"),  # its spread rounds
        ([np.column_stack([WAVE, WAVE * 0])], {}, "x2 and x3 never change"),
        (WHOLE, {"names": ["u", "w"]}, r"`names` are \['u', 'w'\], but those of the trajectories"),
        ([[["a", "b"]]], {}, "series 0 must hold numbers only"),
    ],
)
def test_what_is_no_motion_is_explained(series, options, message):
    with pytest.raises(InvalidArgument, match=message):
        Trajectories.of(series, **options)


def test_a_missing_value_is_named_by_series_and_time():
    broken = WAVE.copy()
    broken[3, 1] = np.nan

    with pytest.raises(NotFinite, match="series 1 holds NaN or infinity at time 3"):
        Trajectories.of([WAVE, broken])
    with pytest.raises(NotFinite, match="series 1 holds NaN or infinity at time 3"):
        made(torch.tensor(np.stack([WAVE, broken])))


def test_a_missing_parameter_is_named_by_its_series():
    with pytest.raises(NotFinite, match="`parameter` holds NaN or infinity in series 1"):
        made(parameter=[0.0, np.nan])


def test_a_rate_of_change_needs_a_step_of_time_and_a_few_times():
    assert read_trajectories([WAVE], 0.1, None, True, 9).rows == 9
    with pytest.raises(InvalidArgument, match="`dt`, the step of time, is not given"):
        read_trajectories([WAVE], None, None, True, 5)
    with pytest.raises(InvalidArgument, match=r"series 1 has 4 times, .* fewer than 5"):
        read_trajectories([WAVE, WAVE[:4]], 0.1, None, True, 5)


@pytest.mark.parametrize(
    ("latents", "names", "words"),
    [
        (0, ["u", "v"], "0 hidden parameters in 3 series: give at least 3 series"),
        (2, ["u", "z"], "a state is named z, as hidden parameters are"),
        (2, ["u", "z2"], "a state is named z2, as hidden parameters are"),
    ],
)
def test_hidden_parameters_need_series_and_names(latents, names, words):
    with pytest.raises(InvalidArgument, match=words):
        check_latents(latents, Trajectories.of([WAVE] * 3, 0.1, names), 3)
    check_latents(1, Trajectories.of([WAVE] * 3, 0.1, ["u", "z2"]), 3)


def test_a_map_needs_neither():
    assert read_trajectories([WAVE[:4]], None, None, False, 5).dt == 1.0


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    "bad",
    [
        lambda: Trajectories(None, 0.1, ["u"]),
        lambda: Trajectories([WAVE], 0.1, None),
        lambda: Trajectories([WAVE], None, ["u", "v"]),
        lambda: Trajectories([WAVE], "a", ["u", "v"]),
        lambda: Trajectories.of(None),
        lambda: Trajectories.of(3),
    ],
)
def test_what_can_not_be_series_is_refused(bad):
    with pytest.raises((InvalidArgument, WrongType)):
        bad()
