import numpy as np
import pytest

from eqlearn.errors import InvalidArgument, NotFinite
from eqlearn.validation.observed import read_observed

TIMES = np.array([0.0, 0.1, 0.25, 0.3, 0.5, 0.6, 0.8, 0.9, 1.0])
SERIES = np.stack([np.sin(TIMES), np.cos(TIMES), TIMES**2], axis=1)


def read(series=SERIES, dt=None, names=("x", "y", "u"), *, continuous=True, **options):
    return read_observed(series, dt, names, continuous=continuous, fewest=7, **options)


def test_times_are_kept_and_their_usual_step_told():
    found = read(times=TIMES)

    np.testing.assert_array_equal(found.times(0), TIMES)
    assert found.dt == pytest.approx(0.1)


def test_each_series_may_have_times_of_its_own():
    found = read([SERIES, SERIES[:8]], times=[TIMES, 2 * TIMES[:8]])

    np.testing.assert_array_equal(found.times(1), 2 * TIMES[:8])


def test_inputs_are_no_states():
    found = read(times=TIMES, inputs=["u"])

    assert (found.names, found.input_names, found.variables) == (("x", "y"), ("u",), ("x", "y", "u"))
    np.testing.assert_array_equal(found.inputs[0][:, 0], TIMES**2)


def test_missing_values_stay_missing():
    holes = SERIES.copy()
    holes[2, 1] = np.nan

    assert np.isnan(read(holes, 0.1).series[0][2, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"times": TIMES, "dt": 0.1}, "so does `dt`, 0.1; leave one out"),
        ({"times": TIMES[::-1]}, "must be finite and increase"),
        ({"times": TIMES[:5]}, "hold 5 for 9 rows"),
        ({"times": [TIMES, TIMES]}, "2 arrays for 1 series"),
        ({"times": TIMES, "continuous": False}, "a map has none of"),
        ({"inputs": ["u"]}, "`dt`, the step of time, is not given"),
        ({"dt": 0.1, "inputs": ["w"]}, "names 'w', which is no column"),
        ({"dt": 0.1, "inputs": ["x", "y", "u"]}, "nothing is left that moves"),
        ({"dt": 0.1, "order": 3}, "`order` must be 1"),
        ({"order": 2, "continuous": False}, "only `form` 'ode' has"),
        ({"dt": 0.1, "order": 2, "names": ["x", "dx", "u"]}, "a column is named dx"),
        ({"dt": -1.0, "inputs": ["u"]}, "`dt` must be positive"),
    ],
)
def test_what_can_not_work_is_refused_in_one_sentence(options, message):
    with pytest.raises(InvalidArgument, match=message):
        read(**options)


def test_an_input_that_is_missing_is_refused():
    holes = SERIES.copy()
    holes[2, 2] = np.nan

    with pytest.raises(NotFinite, match="inputs must be known at all times"):
        read(holes, 0.1, inputs=["u"])


def test_a_state_that_was_hardly_seen_is_refused():
    holes = SERIES.copy()
    holes[3:, 1] = np.nan

    with pytest.raises(InvalidArgument, match="y was observed 3 times in series 0, too few"):
        read(holes, 0.1)


def test_a_map_can_not_step_over_a_hole():
    holes = SERIES.copy()
    holes[2, 1] = np.nan

    with pytest.raises(NotFinite):
        read(holes, continuous=False)


def test_a_column_that_never_changes_is_refused():
    still = SERIES.copy()
    still[:, 2] = 4.0

    with pytest.raises(InvalidArgument, match="u never changes, so it tells nothing"):
        read(still, 0.1, inputs=["u"])
