import numpy as np
import pytest

from eqlearn.report.text_plot import fit_plot, text_plot
from made_runs import make_record, make_sample

X = np.linspace(1, 10, 40)


@pytest.mark.parametrize("unicode", [True, False])
def test_a_rising_line_rises_from_left_to_right(unicode):
    mark = "●" if unicode else "o"

    plot = text_plot((X, 2 * X), (X, 2 * X), ("x", "y"), width=30, height=8, unicode=unicode)

    columns = [line.find(mark) for line in plot.splitlines()[1:9]]
    assert columns == sorted(columns, reverse=True)
    assert min(columns) > 0


def test_without_unicode_every_letter_is_ascii():
    assert text_plot((X, X), (X, X**2), ("x", "y"), unicode=False).isascii()


def test_the_ends_of_both_axes_are_written():
    plot = text_plot((X, 3 * X), (X, 3 * X), ("x", "y"))

    assert plot.splitlines()[1].lstrip().startswith("30")
    assert plot.splitlines()[-1].split()[0] == "1"
    assert plot.splitlines()[-1].split()[-1] == "10"


def test_many_powers_of_ten_are_drawn_on_logarithmic_axes():
    x = np.geomspace(1, 1e4, 30)

    plot = text_plot((x, x**1.5), (x, x**1.5), ("a", "T"))

    assert "a (log)" in plot
    assert "T (log)" in plot


@pytest.mark.parametrize(
    "y",
    [np.full(40, 3.0), np.full(40, 0.0), np.where(X > 5, np.nan, X), np.where(X > 9, np.inf, X), 1e300 * X],
    ids=["constant", "zero", "nan", "inf", "huge"],
)
def test_awkward_values_are_drawn_or_left_out(y):
    plot = text_plot((X, y), (X, y), ("x", "y"))

    assert "●" in plot
    assert len({len(line) for line in plot.splitlines()}) > 1


def test_nothing_finite_is_nothing():
    assert text_plot((X, X * np.nan), (X, X), ("x", "y")) == ""


@pytest.mark.parametrize("width", [60, 200])
def test_a_run_fits_the_screen(width):
    record = make_record()

    plot = fit_plot(record, make_sample(record), width=width)

    assert plot
    assert max(map(len, plot.splitlines())) <= width
