import numpy as np
import pandas as pd
import pytest

from eqlearn import EQLRegressor, Settings, discover, unit_of
from eqlearn.errors import InvalidArgument
from eqlearn.search.units.dimensional import dimensionally
from eqlearn.validation.units import dimension_of

pytest.importorskip("pint")
QUICK = Settings(networks=False, strategies=("linear", "rational", "products"))


LAWS = {
    "T": ({"L": "m", "g": "m/s**2"}, "s", lambda L, g: 2 * np.pi * np.sqrt(L / g)),
    "F": (
        {"q": "C", "E": "V/m", "B": "T", "v": "m/s", "t": "1"},
        "N",
        lambda q, E, B, v, t: q * (E + B * v * np.sin(t)),
    ),
    "w": ({"c": "m/s", "u": "m/s", "v": "m/s"}, "m/s", lambda c, u, v: (u + v) / (1 + u * v / c**2)),
}


@pytest.mark.parametrize("target", LAWS)
def test_laws_of_physics_are_found_and_dimensionally_right(target):
    columns, unit, law = LAWS[target]
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.uniform(1, 5, 100) for name in columns})
    units = {**columns, target: unit}

    found = discover(X, law(*X.to_numpy().T), units=units, restarts=20)

    assert found.exact
    for candidate in found.front:
        assert dimension_of(unit_of(candidate.equation, columns), "found") == dimension_of(unit, "y")


def test_noise_does_not_lead_to_a_formula_with_wrong_units():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(1, 5, (40, 3)), columns=["m", "v", "x"])
    y = X.m * X.v**2 / 2 * (1 + 0.1 * rng.normal(size=40))
    units = {"m": "kg", "v": "m/s", "x": "m", "E": "J"}

    found = discover(X, y, units=units, settings=Settings(networks=False, strategies=("linear",)))

    assert {str(s) for s in found.best.equation.expr.free_symbols} == {"m", "v"}
    assert all(unit_of(c.equation, units) == "kg*m**2/s**2" for c in found.front)


def test_what_no_product_can_give_says_what_may_be_missing():
    with pytest.raises(InvalidArgument, match=r"a column is missing, a unit is wrong, .*`free_constants`"):
        discover([[1.0], [2.0], [3.0]], [1.0, 4.0, 9.0], variables=["t"], units={"t": "s", "y": "m"})


def test_free_constants_have_units_and_the_table_of_constants_says_which():
    t = np.linspace(1, 4, 40)
    frame = pd.DataFrame({"t": t})

    model = EQLRegressor(units={"t": "s", "s": "m"}, free_constants=True, settings=QUICK).fit(
        frame, pd.Series(4.905 * t**2 + 0.37, name="s")
    )

    assert sorted(model.constants_["unit"]) == ["m", "m/s**2"]


def test_without_units_for_constants_they_have_none():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(1, 5, (60, 2)), columns=["a", "b"])

    model = EQLRegressor(units={"a": "m", "b": "m", "y": "m"}, settings=QUICK).fit(
        X, 1.2345 * X.a + 0.777 * X.b
    )

    assert set(model.constants_["unit"]) == {"1"}


@pytest.mark.slow
def test_errors_and_outliers_go_with_units():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(1, 5, (100, 2)), columns=["m", "v"])
    y = X.m * X.v**2 / 2 + 0.1 * rng.normal(size=100)
    y[[3, 50]] = 1e4

    found = discover(X, y, units={"m": "kg", "v": "m/s", "E": "J"}, y_error=0.1, loss="auto", settings=QUICK)

    assert found.outliers == (3, 50)
    assert 0.5 < found.best.reduced_chi_square < 2
    assert {str(s) for s in found.best.equation.expr.free_symbols} == {"m", "v"}


def test_several_targets_are_refused():
    given = {
        "units": {"a": "m", "y": "m"},
        "free_constants": False,
        "sample_weight": None,
        "variables": ["a"],
    }

    with pytest.raises(InvalidArgument, match="one target at a time"):
        dimensionally(discover, {"X": np.ones((9, 1)), "y": np.ones((9, 2)), **given})
