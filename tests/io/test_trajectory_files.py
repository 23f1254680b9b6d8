import numpy as np
import pandas as pd
import pytest

from eqlearn.errors import InvalidArgument, InvalidFile, NotFinite, UnknownName
from eqlearn.io.trajectories import read_series


def table(lengths=(6, 6), dt=0.5):
    """Series of u = t² + run and v = t, told apart by a column."""
    frames = []
    for run, count in enumerate(lengths):
        t = dt * np.arange(count)
        frames.append(pd.DataFrame({"run": run, "t": t, "u": t**2 + run, "v": t}))
    return pd.concat(frames, ignore_index=True)


@pytest.fixture
def write(tmp_path):
    def save(frame):
        path = tmp_path / "series.csv"
        frame.to_csv(path, index=False)
        return path

    return save


def refused(path, message, error=InvalidArgument, **options):
    with pytest.raises(error, match=message) as raised:
        read_series(path, ["u", "v"], **options)
    assert "\n" not in str(raised.value)


def test_series_are_told_apart_by_their_id(write):
    trajectories = read_series(write(table()), ["u", "v"], time="t", run="run").trajectories

    assert [len(one) for one in trajectories.series] == [6, 6]
    np.testing.assert_allclose(trajectories.series[1][:, 0], table().u[6:])


def test_the_step_comes_from_the_times(write):
    assert read_series(write(table(dt=0.25)), ["u"], time="t", run="run").trajectories.dt == 0.25


def test_without_times_rows_are_one_unit_apart(write):
    trajectories = read_series(write(table((6,))), ["u", "v"]).trajectories

    assert (trajectories.dt, len(trajectories.series)) == (1.0, 1)


def test_rows_are_put_in_order_of_time(write):
    mixed = table().sample(frac=1, random_state=0)

    shuffled = read_series(write(mixed), ["u", "v"], time="t", run="run")
    ordered = read_series(write(mixed.sort_values(["run", "t"])), ["u", "v"], time="t", run="run")

    by_start = {float(one[0, 0]): one for one in shuffled.trajectories.series}
    for one in ordered.trajectories.series:
        np.testing.assert_array_equal(by_start[float(one[0, 0])], one)


def test_times_rounded_in_a_file_are_even(write):
    frame = table((40,), dt=1 / 3).assign(t=lambda f: f.t.round(3))

    assert read_series(write(frame), ["u"], time="t").trajectories.dt == pytest.approx(1 / 3, rel=1e-3)


def test_series_may_have_unequal_lengths(write):
    trajectories = read_series(write(table((6, 9))), ["u", "v"], time="t", run="run").trajectories

    assert [len(one) for one in trajectories.series] == [6, 9]


def test_unequal_lengths_are_no_single_tensor(write):
    read = read_series(write(table((6, 9))), ["u", "v"], time="t", run="run")

    with pytest.raises(InvalidArgument, match="unequal lengths, from 6 to 9 times; cut all to 6"):
        assert read.trajectories.states is None


def test_equal_lengths_are_one_tensor(write):
    trajectories = read_series(write(table()), ["u", "v"], time="t", run="run").trajectories

    assert (tuple(trajectories.states.shape), trajectories.dt) == ((2, 6, 2), 0.5)


def test_the_fingerprint_is_that_of_the_values(write):
    first = read_series(write(table()), ["u", "v"], time="t", run="run").fingerprint
    same = read_series(write(table().assign(other=3)), ["u", "v"], time="t", run="run").fingerprint
    other = read_series(write(table(dt=0.25)), ["u", "v"], time="t", run="run").fingerprint

    assert first == same != other


def test_a_file_names_what_is_made_of_it(write):
    assert read_series(write(table()), ["u"], time="t", run="run").stem == "series"


def test_states_must_be_named(write):
    with pytest.raises(InvalidArgument, match="name the columns that move with `states`"):
        read_series(write(table()), [])


def test_a_column_that_is_not_there_is_refused(write):
    refused(write(table()), "no column 'tt'", UnknownName, time="tt")


def test_a_column_serves_once(write):
    refused(write(table()), "'u' is named twice", time="u")


def test_two_rows_at_one_time_suggest_an_id(write):
    refused(write(table()), "two rows at the time 0; .* tell them apart with `id`", time="t")


def test_uneven_steps_are_kept_as_times(write):
    frame = table((8,)).drop(index=4)

    read = read_series(write(frame), ["u", "v"], time="t").trajectories

    np.testing.assert_allclose(read.times(0), frame["t"])
    assert read.dt == 0.5


def test_series_may_have_different_steps(write):
    frame = pd.concat([table((6,)), table((6,), dt=0.1).assign(run=1)])

    read = read_series(write(frame), ["u", "v"], time="t", run="run").trajectories

    assert [float(np.diff(read.times(i))[0].round(9)) for i in (0, 1)] == [0.5, 0.1]


def test_inputs_are_read_beside_the_states(write):
    read = read_series(write(table((8,))), ["u"], time="t", inputs=["v", "t"]).trajectories

    assert (read.names, read.input_names) == (("u",), ("v", "t"))
    np.testing.assert_allclose(read.inputs[0][:, 1], read.times(0))


def test_a_missing_input_is_explained(write):
    frame = table((8,))
    frame.loc[3, "v"] = np.nan

    with pytest.raises(NotFinite, match="missing or infinite 'v' in row 4"):
        read_series(write(frame), ["u"], time="t", inputs=["v"])


def test_a_series_of_one_row_is_explained(write):
    refused(write(table((6, 1))), "'run' 1 of .* has 1 row", time="t", run="run")


def test_a_missing_state_is_kept_as_not_observed(write):
    frame = table((8,))
    frame.loc[3, "v"] = np.nan

    read = read_series(write(frame), ["u", "v"], time="t").trajectories

    assert np.argwhere(np.isnan(read.series[0])).tolist() == [[3, 1]]


def test_a_missing_time_is_explained(write):
    frame = table((8,))
    frame.loc[3, "t"] = np.nan

    refused(write(frame), "missing or infinite 't' in row 4", NotFinite, time="t")


def test_a_state_that_never_changes_is_explained(write):
    refused(write(table().assign(v=2.0)), "v never changes", time="t", run="run")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
@pytest.mark.parametrize(
    ("ids", "called"), [(["left", "right, say"], ("left", "right, say")), ([7.0, 10.0], ("7", "10"))], ids=str
)
def test_series_are_called_what_the_file_calls_them(tmp_path, suffix, ids, called):
    frame = table().assign(run=np.repeat(ids, 6).tolist())
    if suffix == ".csv":
        # Text files are taken at their word.
        frame["run"] = np.repeat(called, 6)
    save = {".csv": frame.to_csv, ".parquet": frame.to_parquet}.get(suffix)
    path = tmp_path / f"series{suffix}"
    if save is None:
        np.savez(path, **{name: np.array(frame[name].tolist()) for name in frame})
    else:
        save(path, index=False)

    found = read_series(path, ["u", "v"], time="t", run="run")

    assert found.ids == called
    np.testing.assert_allclose(found.trajectories.series[1][:, 0], table().u[6:])


def test_a_table_without_an_id_is_one_series(write):
    assert read_series(write(table((6,))), ["u", "v"], time="t").ids == ("1",)


def test_a_series_may_be_called_like_a_missing_value(write):
    frame = table()
    frame["run"] = frame["run"].map({0: "NA", 1: "None"})

    assert read_series(write(frame), ["u", "v"], time="t", run="run").ids == ("NA", "None")


def test_a_missing_id_is_explained(write):
    frame = table().astype({"run": object})
    frame.loc[4, "run"] = None

    refused(write(frame), "has no 'run' in row 5; fill it in", time="t", run="run")


def test_a_table_without_rows_is_explained(write):
    refused(write(table().iloc[:0]), "no rows|is empty", (InvalidArgument, InvalidFile))
