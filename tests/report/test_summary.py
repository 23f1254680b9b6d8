import io
import math
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from eqlearn.errors import InvalidArgument, InvalidFile, UnknownName
from eqlearn.report.summary import (
    checks,
    constants_table,
    equations_text,
    percent,
    summary,
    value_text,
    verdict,
)
from eqlearn.runs.blocks import write_predictions
from eqlearn.symbolic.parametric import Constant
from made_runs import make_record


def with_best(**changes):
    record = make_record()
    best = replace(record.best, **changes)
    return replace(record, front=(*record.front[:2], best, record.front[3]))


def constant_target():
    record = make_record(pick=0)
    return replace(record, front=(replace(record.front[0], exact=True), *record.front[1:]))


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (with_best(exact=True, training_error=1e-15), "An exact law was found"),
        (
            with_best(training_error=0.004),
            "No exact law was found, but this one comes close: it leaves 0.40 %",
        ),
        (
            with_best(training_error=0.25),
            "No exact law was found: this equation leaves 25.0 % of the spread of y",
        ),
        (with_best(training_error=0.25), "noise of ±0.125"),
        (make_record(pick=0), "No law was found: no equation describes y better than a constant"),
        (replace(make_record(pick=0), ended="out of time"), "The time was too short"),
        (make_record(targets=("u", "v")), "the spread of u and v"),
        (make_record(targets=("u", "v")), "these"),
        (constant_target(), "There is nothing to explain: y did not vary"),
    ],
)
def test_the_verdict_says_plainly_what_was_found(record, words):
    assert words in verdict(record)


def test_rows_not_seen_are_mentioned_when_there_were_any():
    assert "12 rows held out" in checks(make_record())
    assert checks(with_best(validation_error=math.nan)) == ""


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (1.0, "100 %"), (0.126, "12.6 %"), (0.12, "12.0 %"), (0.0512, "5.1 %"), (0.0008, "0.080 %"),
        (0.0, "0 %"), (1e-15, "1e-13 %"), (1.6e-8, "2e-06 %"), (math.nan, "-"),
        (math.inf, "undefined"), (12.5, "1250 %"),
    ],
)  # fmt: skip
def test_per_cents_have_the_digits_that_matter(fraction, text):
    assert percent(fraction) == text


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (7.20219, 0.63, "7.20"),
        (119.733, 2.1, "119.7"),
        (3.0, 0.0, "3"),
        (1.23456789e-12, 1e-15, "1.2346e-12"),
        (9.8, math.inf, "9.8"),
        (1.5e12, 1e9, "1.5e+12"),
    ],
)
def test_a_constant_is_written_to_its_uncertainty(value, error, text):
    assert value_text(value, error) == text


def test_an_undetermined_constant_says_so():
    record = with_best(constants=((Constant(1.5, math.inf), Constant(-0.25, 0.01)),))

    assert "undetermined" in constants_table(record.targets, record.best.constants)
    assert "not determined by the data" in summary(record)


def test_an_equation_of_exact_numbers_has_no_constants():
    record = make_record(front=("{0}**(3/2)",), pick=0)

    assert "every number in it is exact" in constants_table(record.targets, record.best.constants)


def test_the_summary_holds_the_equation_the_verdict_and_the_front():
    record = make_record()

    text = summary(record)

    for part in (str(record.best.equation), verdict(record), "held out", "*  2"):
        assert part in text


def test_long_equations_are_cut_in_the_list_and_whole_above_it():
    long = " + ".join(f"{i + 0.5}*{{0}}**{i}" for i in range(2, 40))
    record = make_record(front=("2.0", long), pick=1)

    head, *_, front = summary(record, width=80).split("\n\n")

    assert head == f"y = {record.best.equation}"
    assert max(map(len, front.splitlines())) <= 80


def test_names_can_not_take_over_the_terminal():
    record = make_record(inputs=("a\x1b[2J", "b"), targets=("y\x07\n",))

    assert all(line.isprintable() for line in summary(record).splitlines())
    assert len(equations_text(record).splitlines()) == 1


def test_predictions_are_the_values_of_the_equation(tmp_path):
    record = make_record()
    data = pd.DataFrame({"b": np.linspace(0, 1, 7), "extra": 1.0, "a": np.linspace(2, 3, 7)})
    data.to_csv(tmp_path / "new.csv", index=False)

    rows = write_predictions(record, tmp_path / "new.csv", tmp_path / "out.csv")

    written = pd.read_csv(tmp_path / "out.csv")
    np.testing.assert_array_equal(written["y"], record.best.equation(data))
    assert rows == (7, 0)


def test_another_equation_of_the_front_can_predict(tmp_path):
    (tmp_path / "new.csv").write_text("a,b\n2,0\n")

    write_predictions(make_record(), tmp_path / "new.csv", tmp_path / "out.csv", index=1)

    assert (tmp_path / "out.csv").read_text() == "y\n3.0\n"


def test_predictions_go_to_standard_output(tmp_path, monkeypatch):
    (tmp_path / "new.csv").write_text("a,b\n2,0\n")
    monkeypatch.setattr(sys, "stdout", io.StringIO())

    write_predictions(make_record(), tmp_path / "new.csv", index=1)

    assert sys.stdout.getvalue() == "y\n3.0\n"


def test_rows_outside_the_domain_are_counted(tmp_path):
    (tmp_path / "new.csv").write_text("a,b\n-2,0\n2,0\n,1\n")

    counts = write_predictions(
        make_record(front=("log({0})",), pick=0), tmp_path / "new.csv", tmp_path / "out.csv"
    )

    assert counts == (3, 2)


@pytest.mark.parametrize(
    ("content", "options", "error"),
    [
        ("a,c\n1,2\n", {}, UnknownName),
        ("a,b\n", {}, InvalidArgument),
        ("a,b\n1,2\nx,3\n", {}, InvalidFile),
        ("a,b\n1,2\n", {"index": 9}, InvalidArgument),
    ],
)
def test_a_refused_prediction_leaves_no_file(tmp_path, content, options, error):
    (tmp_path / "new.csv").write_text(content)

    with pytest.raises(error):
        write_predictions(make_record(), tmp_path / "new.csv", tmp_path / "out.csv", **options)

    assert [p.name for p in tmp_path.iterdir()] == ["new.csv"]


def test_a_missing_folder_for_predictions_is_named(tmp_path):
    (tmp_path / "new.csv").write_text("a,b\n1,2\n")

    with pytest.raises(InvalidArgument, match="there is no folder"):
        write_predictions(make_record(), tmp_path / "new.csv", tmp_path / "none" / "out.csv")
