import io
import sys
import types
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from eqlearn.io import source
from eqlearn.io.tables import read_measurements
from eqlearn.runs.blocks import refined
from eqlearn.search.candidate import Candidate
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Constant


@pytest.fixture
def table(tmp_path, monkeypatch):
    """5,000 noisy rows in a file that is read in blocks of 500, of which a search sees 300."""
    monkeypatch.setattr(source, "CELLS", 1500)
    rng = np.random.default_rng(0)
    a, b = rng.uniform(1, 3, size=(2, 5000))
    frame = pd.DataFrame({"a": a, "b": b, "y": 1.5 * a - 0.7 * b**2 + 0.2 * rng.normal(size=5000)})
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


def candidate(text, errors=0.01):
    equation = Equation.parse(text, ["a", "b"])
    constants = (tuple(Constant(c, errors) for c in equation.constants),)
    return Candidate((equation,), 0.1, -100.0, False, constants=constants)


def test_constants_become_those_of_all_rows(table):
    frame = pd.read_csv(table)
    design = np.stack([-(frame.b**2), frame.a], axis=1)
    expected, square = np.linalg.lstsq(design, frame.y, rcond=None)[:2]
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * square / (5000 - 2))

    better = refined(candidate("1.52*a - 0.69*b**2"), read_measurements(table, ["y"], most_rows=300))

    found = {abs(c.value): c.standard_error for c in better.constants[0]}
    np.testing.assert_allclose(sorted(found), sorted(expected), rtol=1e-10)
    np.testing.assert_allclose([found[v] for v in sorted(found)], errors[np.argsort(expected)], rtol=1e-6)
    assert sorted(map(abs, better.equation.constants)) == sorted(found)


def test_nothing_changes_when_the_search_saw_every_row(table):
    chosen = candidate("1.52*a - 0.69*b**2")

    assert refined(chosen, read_measurements(table, ["y"])) is chosen


def test_rows_with_missing_values_are_left_out(table):
    with table.open("a") as file:
        file.write("1.5,,1\n" * 20)
    chosen = candidate("1.52*a - 0.69*b**2")

    data = read_measurements(table, ["y"], most_rows=300, drop_missing=True)

    assert all(np.isfinite(c.standard_error) for c in refined(chosen, data).constants[0])


def test_a_step_that_leads_away_is_not_taken(table):
    chosen = candidate("exp(9.5*a)")

    better = refined(chosen, read_measurements(table, ["y"], most_rows=300))

    data = pd.read_csv(table)
    assert better.equation.error(data, data.y) <= chosen.equation.error(data, data.y)


def test_an_equation_without_constants_is_left_as_it_is(table):
    data = read_measurements(table, ["y"], most_rows=300)

    assert refined(candidate("a - b"), data).equation == Equation.parse("a - b", ["a", "b"])


def test_what_came_through_a_pipe_can_not_be_read_again(table, monkeypatch):
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(table.read_bytes())))
    chosen = candidate("1.52*a - 0.69*b**2")

    assert refined(chosen, read_measurements("-", ["y"], most_rows=300)) is chosen


def test_the_error_follows_the_constants(table):
    data = read_measurements(table, ["y"], most_rows=300)
    chosen = candidate("1.7*a - 0.69*b**2")
    true = replace(chosen, training_error=chosen.equation.error(data.X, data.y[:, 0]))

    better = refined(true, data)

    assert better.training_error == pytest.approx(better.equation.error(data.X, data.y[:, 0]))
