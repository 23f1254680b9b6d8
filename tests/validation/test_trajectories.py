"""Trajectories: what is refused, and why."""

import numpy as np
import pytest
import torch

from eqlearn.errors import InvalidArgument, NotFinite
from eqlearn.validation.trajectories import Trajectories

STATES = torch.arange(24.0, dtype=torch.float64).reshape(2, 6, 2)


def made(states=STATES, dt=0.1, names=("u", "v"), parameter=None) -> Trajectories:
    return Trajectories(states, dt, names, parameter)


def test_single_precision_becomes_double():
    assert made(STATES.float()).states.dtype == torch.float64


def test_arrays_and_lists_of_arrays_are_read_alike():
    both = Trajectories.of(STATES.numpy(), 0.1, ["u", "v"]), Trajectories.of(list(STATES), 0.1, ["u", "v"])

    assert torch.equal(both[0].states, both[1].states)


def test_unequal_lengths_are_explained():
    with pytest.raises(InvalidArgument, match="unequal lengths, from 4 to 6"):
        Trajectories.of([np.ones((6, 2)), np.ones((4, 2))], 0.1, ["u", "v"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"states": STATES[:, :1]}, "at least one step"),
        ({"states": STATES[:0]}, "no series"),
        ({"names": ("u",)}, "1 names for 2 states"),
        ({"names": ("u", "u")}, "distinct"),
        ({"dt": 0.0}, "`dt`"),
        ({"dt": float("nan")}, "`dt`"),
        ({"states": STATES * torch.tensor([1.0, 0.0], dtype=torch.float64)}, "v never changes"),
    ],
)
def test_bad_trajectories_are_explained(change, words):
    with pytest.raises(InvalidArgument, match=words):
        made(**change)


@pytest.mark.usefixtures("unchecked_types")
def test_one_series_without_its_axis_is_explained():
    with pytest.raises(InvalidArgument, match=r"must be \(series, times, states\), got shape"):
        made(states=STATES[0])


@pytest.mark.usefixtures("unchecked_types")
def test_a_parameter_for_other_series_is_explained():
    with pytest.raises(InvalidArgument, match="3 values for 2 series"):
        made(parameter=torch.ones(3, dtype=torch.float64))


def test_the_place_of_a_nan_is_named():
    states = STATES.clone()
    states[1, 3, 0] = torch.nan

    with pytest.raises(NotFinite, match="series 1 at time 3"):
        made(states)


def test_no_series_at_all_is_explained():
    with pytest.raises(InvalidArgument, match="at least one"):
        Trajectories.of([], 0.1, ["u"])


def test_a_flat_series_is_explained():
    with pytest.raises(InvalidArgument, match="must be"):
        Trajectories.of([np.ones(5)], 0.1, ["u"])
