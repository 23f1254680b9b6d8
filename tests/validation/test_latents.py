"""What users hand over before and beside an equation with latents: read, checked, divided."""

import numpy as np
import pandas as pd
import pytest
import torch

from eqlearn.errors import EqlearnError, InvalidArgument, WrongType
from eqlearn.validation.latents import Gathered, read_columns, read_latent_data

ROWS = 100
A = torch.arange(2.0 * ROWS).reshape(ROWS, 2)
Y = torch.arange(1.0 * ROWS)


def read(inputs=None, columns=None, y=Y, data=None, held=0.2, measured=4_000, seed=0):
    inputs = {"a": A} if inputs is None and data is None else inputs
    y = None if data is not None else y
    return read_latent_data(("a",), inputs, columns, y, data, held=held, measured=measured, seed=seed)


def test_rows_are_divided_and_stay_together():
    data = read(columns={"x": 2 * Y})

    assert (len(data.training), len(data.held)) == (80, 20)
    for part in (data.training, data.held):
        assert torch.equal(part.inputs["a"][:, 0].double(), 2 * part.y[:, 0])
        assert torch.equal(part.columns[:, 0], 2 * part.y[:, 0])
    assert set(data.training.y[:, 0].tolist()).isdisjoint(data.held.y[:, 0].tolist())


def test_the_division_is_the_seeds():
    assert torch.equal(read(seed=1).held.y, read(seed=1).held.y)
    assert not torch.equal(read(seed=1).held.y, read(seed=2).held.y)


@pytest.mark.parametrize(
    "y",
    [Y.tolist(), Y.numpy(), Y.int(), Y.half(), pd.Series(Y.numpy()), Y[:, None], (Y + 0).requires_grad_()],
    ids=["list", "array", "whole", "half", "series", "column", "with a gradient"],
)
def test_a_target_may_be_any_numbers(y):
    data = read(y=y)

    assert data.training.y.dtype == torch.float64
    assert not data.training.y.requires_grad
    assert sorted([*data.training.y[:, 0].tolist(), *data.held.y[:, 0].tolist()]) == Y.tolist()


@pytest.mark.parametrize(
    "columns",
    [{"x": Y, "q": Y + 1}, {"x": Y.numpy(), "q": (Y + 1).tolist()}, pd.DataFrame({"x": Y, "q": Y + 1})],
    ids=["tensors", "arrays", "a data frame"],
)
def test_columns_may_be_tensors_arrays_or_a_frame(columns):
    data = read(columns=columns)

    assert data.columns == ("x", "q")
    assert torch.equal(data.training.columns[:, 1] - data.training.columns[:, 0], torch.ones(80).double())


def test_a_sample_is_spread_evenly_and_a_draw_is_the_generators():
    data = read()

    assert len(data.sample(10)) == 10
    assert len(data.sample(1_000)) == 80
    first, again = (data.draw(16, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first.y, again.y)
    assert len(first) == 16


def test_a_batch_comes_in_pieces():
    batch = read(columns={"x": 2 * Y}).training

    pieces = batch.pieces(30)

    assert [len(piece) for piece in pieces] == [30, 30, 20]
    assert torch.equal(torch.cat([piece.inputs["a"] for piece in pieces]), batch.inputs["a"])
    assert torch.equal(torch.cat([piece.columns for piece in pieces]), batch.columns)
    assert torch.equal(torch.cat([piece.y for piece in pieces]), batch.y)


@pytest.mark.parametrize("inputs", [{"a": A}, {}])
def test_a_column_can_not_have_the_name_of_an_encoder(inputs):
    with pytest.raises(InvalidArgument, match="a names an encoder and a column; rename one of them"):
        read(inputs=inputs, columns={"a": Y})


def test_gathered_rows_are_taken_by_index():
    rows = Gathered(A, torch.tensor([3, 1, 3]))

    assert len(rows) == 3
    assert rows[torch.tensor([0, 2])].index.tolist() == [3, 3]
    assert rows[:2].values is A


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("values", "index", "said"),
    [
        ([1, 2], torch.tensor([0]), "needs tensors"),
        (A, torch.tensor([0.0]), "one whole number for each row"),
        (A, torch.tensor([[0]]), "one whole number for each row"),
        (A, torch.tensor([ROWS]), "within its 100 `values`"),
        (A, torch.tensor([-1]), "within its 100 `values`"),
    ],
)
def test_an_index_that_leads_nowhere_is_refused(values, index, said):
    with pytest.raises(EqlearnError, match=said):
        Gathered(values, index)


def batches(size=20):
    return [{"a": A[i : i + size], "x": Y[i : i + size], "y": Y[i : i + size]} for i in range(0, ROWS, size)]


def test_batches_are_set_aside_to_measure_on_and_drawn_by_turns():
    data = read(data=batches())

    assert data.columns == ("x",)
    assert len(data.training) + len(data.held) == ROWS
    drawn = [data.draw(1, torch.Generator()).y[0].item() for _ in range(6)]
    assert drawn == [0, 20, 40, 60, 80, 0]


def test_no_batch_of_a_generator_is_lost():
    data = read(data=(b for b in batches()))

    assert sorted([*data.training.y[:, 0].tolist(), *data.held.y[:, 0].tolist()]) == Y.tolist()


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("data", "said"),
    [
        (3, "`data` must be an iterable of batches, got int"),
        ([], "`data` holds no batch"),
        ([A], "a batch must be a dictionary of tensors by name, got Tensor"),
        ([{"a": A}], "there is no 'y'"),
        ([{"y": Y}], "there is no 'a'"),
        ([{"a": A[:5], "y": Y[:5]}], "`data` holds 5 rows; give 30 or more"),
        ([{"a": A, "y": 0 * Y}], "`y` is the same in all rows"),
        ([{"a": A, "y": Y}, {"a": A, "y": Y, "x": Y}], "no encoder is named 'x'"),
        ([{"a": A, "x": Y, "y": Y}, {"a": A, "y": Y}], "there is no 'x'"),
        ([{"a": A, "x": Y[:3], "y": Y}], "'x' holds 3 rows and `y` 100"),
    ],
)
def test_batches_that_can_not_be_read_are_refused(data, said):
    with pytest.raises(EqlearnError, match=said):
        read(data=data)


def test_one_of_several_targets_that_does_not_vary_is_named():
    with pytest.raises(InvalidArgument, match="output 2 of `y` is the same in all rows"):
        read(y=torch.stack([Y, 0 * Y], dim=1))


@pytest.mark.parametrize("y", [Y > 3, (Y > 3).numpy(), ["a"] * ROWS, [None] * ROWS, Y + 1j])
def test_a_target_that_is_no_number_is_refused(y):
    with pytest.raises(InvalidArgument, match="classes are out of scope"):
        read(y=y)


def test_columns_of_a_model_come_in_its_order():
    table = read_columns({"q": Y, "x": Y + 1, "more": Y}, ("x", "q"), ROWS)

    assert torch.equal(table, torch.stack([Y + 1, Y], dim=1).double())
    assert read_columns(None, (), 7).shape == (7, 0)


def test_columns_without_names_are_refused():
    with pytest.raises(WrongType, match="name each column"):
        read(columns=np.zeros((ROWS, 2)))
