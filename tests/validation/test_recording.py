import numpy as np
import pandas as pd
import pytest
import torch

from eqlearn.errors import InvalidArgument, NotFinite
from eqlearn.validation.trajectories import Recording, Trajectories

WAVE = np.stack([np.sin(np.arange(9.0)), np.cos(np.arange(9.0))], axis=1)
WHOLE = Trajectories(torch.tensor(WAVE)[None], 0.25, ("u", "v"))


def test_one_array_is_one_series():
    assert len(Recording.of(WAVE, 0.1).series) == 1


def test_series_may_have_unequal_lengths():
    recording = Recording.of([WAVE, WAVE[:4]], 0.1, ["u", "v"])

    assert ([len(one) for one in recording.series], recording.times) == ([9, 4], 13)


def test_trajectories_keep_their_step_and_names():
    recording = Recording.of(WHOLE)

    assert (recording.dt, recording.names) == (0.25, ("u", "v"))


def test_trajectories_have_one_step_of_time():
    with pytest.raises(InvalidArgument, match=r"`dt` is 0\.5, but the trajectories have steps of 0\.25"):
        Recording.of(WHOLE, 0.5)


def test_a_data_frame_names_its_states():
    frame = pd.DataFrame(WAVE, columns=["u", "v"])

    assert Recording.of(frame).names == ("u", "v")
    assert Recording.of(WAVE, names=frame.columns).names == ("u", "v")


def test_a_tensor_is_one_series():
    assert Recording.of(torch.tensor(WAVE)).times == 9


def test_states_without_names_are_numbered():
    assert Recording.of(WAVE).names == ("x0", "x1")


@pytest.mark.parametrize(
    ("series", "options", "message"),
    [
        ([], {}, "must be arrays"),
        ([WAVE, WAVE[:, :1]], {}, "same states"),
        ([WAVE[:, 0]], {}, "must be arrays"),
        ([WAVE, WAVE[:1]], {}, "series 1 has 1 time"),
        ([WAVE], {"dt": 0.0}, "`dt` must be positive"),
        ([WAVE], {"dt": float("inf")}, "`dt` must be positive"),
        ([WAVE], {"names": ["u"]}, "1 names for 2 states"),
        ([np.ones((5, 2))], {"names": ["u", "v"]}, "nothing ever changes"),
        (np.arange(5.0), {}, r"one state over time is `series\[:, None\]`"),
        ([np.stack([WAVE[:, 0], np.full(9, 9.81)], axis=1)], {}, "x1 never changes"),  # its spread rounds
        (WHOLE, {"names": ["u", "w"]}, r"`names` are \['u', 'w'\], but those of the trajectories"),
    ],
)
def test_what_is_no_motion_is_explained(series, options, message):
    with pytest.raises(InvalidArgument, match=message):
        Recording.of(series, **options)


def test_a_missing_value_is_named_by_series_and_time():
    broken = WAVE.copy()
    broken[3, 1] = np.nan

    with pytest.raises(NotFinite, match="series 1 holds NaN or infinity at time 3"):
        Recording.of([WAVE, broken])


def test_a_state_may_rest_in_one_series_as_long_as_it_moves_in_another():
    still = WAVE.copy()
    still[:, 1] = 0

    assert (Recording.of([WAVE, still]).spread > 0).all()
