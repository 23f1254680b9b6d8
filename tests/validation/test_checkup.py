import numpy as np
import pandas as pd
import pytest

from eqlearn import examine
from eqlearn.errors import InvalidArgument

RNG = np.random.default_rng(3)
A, B = RNG.uniform(1, 9, (2, 120))
Y = A * B + 1
SEQUENCE = np.arange(120.0)

SICK = {
    "is 3 in every row": ([A, np.full(120, 3.0)], Y),
    "is 2.54 times 'x1' + 1": ([A, 2.54 * A + 1], Y),
    "'x2' is 'x1' in every row": ([A, A], Y),
    "rise and fall together": ([A, A**3 + 1e-3 * B], Y),
    "depend on each other": ([A, B, A + 2 * B], Y),
    "far from all others: 1e+06": ([A, np.where(SEQUENCE == 5, 1e6, B)], Y),
    "is -999 in 12 rows": ([A, np.where(SEQUENCE % 10 == 0, -999.0, B)], Y),
    "varies by only": ([A, 1000 + B], Y),
    "nothing to explain": ([A, B], np.ones(120)),
    "float64 can't hold": ([A, B * 1e200], Y),
    "'y' spans": ([A, B], np.exp(3 * A)),
    "without a value": ([A, np.where(SEQUENCE < 9, np.nan, B)], Y),
    "is empty": ([A, np.full(120, np.nan)], Y),
    "different whole numbers": ([A, np.round(RNG.uniform(0, 3, 120))], Y),
    "numbers the rows": ([A, SEQUENCE], Y),
    "two values only": ([A, B], (A > 4).astype(float)),
    "law may be one of motion": ([SEQUENCE, np.sin(SEQUENCE / 9)], np.cos(SEQUENCE / 9)),
    "no equation can leave less": ([np.round(A)], np.round(A) + 0.1 * RNG.normal(size=120)),
    "are copies of others": ([np.tile(A[:60], 2), np.tile(B[:60], 2)], np.tile(Y[:60], 2)),
    "same quantity once more": ([A, B], A * 1000),
}


@pytest.mark.parametrize(("words", "table"), SICK.items(), ids=SICK)
def test_what_would_mislead_a_search_is_said(words, table):
    columns, y = table

    assert words in str(examine(np.column_stack(columns), y))


@pytest.mark.parametrize("seed", range(20))
def test_a_healthy_table_has_no_findings(seed):
    rng = np.random.default_rng(seed)
    a, b, c = rng.uniform(0.5, 5, (3, 100))
    far = rng.lognormal(0, 2, 100)

    seen = examine(np.column_stack([a, b, c, far]), a * np.exp(-b) + c + far)

    assert [f for f in seen.findings if f.weight != "note"] == []


def test_few_rows_stop_and_more_rows_warn():
    few, more = (examine(np.column_stack([A, B])[:n], Y[:n]) for n in (4, 9))

    assert not few.healthy
    assert more.healthy
    assert "9 rows are few for 2 inputs" in str(more)


def test_columns_of_a_data_frame_are_named():
    frame = pd.DataFrame({"size": A, "twice": 2 * A})

    seen = examine(frame, pd.Series(Y, name="result"))

    assert seen.columns == ("size", "twice", "result")
    assert seen.useless == ("twice",)


def test_a_wide_table_is_looked_at_quickly_and_says_how_many_inputs_are_seen():
    X = np.random.default_rng(0).normal(size=(400, 300))

    assert "300 inputs are more than a search sees at once" in str(examine(X, X[:, 7]))


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (np.empty((0, 2)), None, "at least one row"),
        (np.ones((3, 2)), np.ones(4), "as many rows"),
        ([["a"]], None, "numbers only"),
    ],
)
def test_what_is_no_table_is_refused(X, y, words):
    with pytest.raises(InvalidArgument, match=words):
        examine(X, y)


def test_names_must_be_as_many_as_columns():
    with pytest.raises(InvalidArgument, match="`variables` holds 1 names for 2"):
        examine(np.ones((9, 2)), variables=["a"])
