"""Searches of tables with groups, from end to end."""

import numpy as np
import pandas as pd
import pytest
from made import grouped

from eqlearn import Equation, Settings, discover
from eqlearn.errors import InvalidArgument, UnknownName
from eqlearn.search.groups.driver import Shifted, compared
from eqlearn.search.groups.group_settings import GroupSettings
from eqlearn.search.step import Memory

RNG = np.random.default_rng(0)
G = np.arange(6).repeat(15)
X = RNG.uniform(0.5, 3, (len(G), 1))
K = RNG.uniform(1, 2, 6)


def test_exact_groups_give_the_law_with_a_name_for_what_varies():
    found = discover(X, 3 * X[:, 0] / (K[G] + X[:, 0]), groups=pd.Series(G, name="sample"))

    best = found.best
    assert found.ended == "exact"
    assert found.exact
    assert str(best) == "3*x/(c1[sample] + x)"
    np.testing.assert_allclose(best.varying.values[:, 0], K, rtol=1e-8)
    np.testing.assert_allclose(best.equation(best.inputs(X, G)), 3 * X[:, 0] / (K[G] + X[:, 0]), rtol=1e-9)


def test_a_law_without_anything_that_varies_has_no_names():
    best = discover(X, 2 * X[:, 0] ** 2 + 1, groups=G).best

    assert best.varying is None
    assert best.equation.matches("2*x**2 + 1")


def test_weights_of_zero_leave_rows_out():
    y, weight = K[G] * X[:, 0], np.ones(len(G))
    y[::15], weight[::15] = 100.0, 0.0

    best = discover(X, y, groups=G, sample_weight=weight).best

    np.testing.assert_allclose(best.varying.values[:, 0], K, rtol=1e-8)


def test_a_column_that_varies_the_constants_becomes_part_of_one_law():
    t = np.linspace(1, 2, 6)[G]
    frame = pd.DataFrame({"x": X[:, 0], "t": t})

    best = discover(frame, np.exp(-t * X[:, 0]) * t, varies="t").best

    assert best.varying is None
    assert best.equation.matches("t*exp(-t*x)")


def test_a_constant_without_a_law_is_interpolated_and_unknown_beyond():
    level = np.array([1.0, 5, 2, 4, 1, 3])
    t = np.linspace(0, 5, 6)[G]
    best = discover(pd.DataFrame({"x": X[:, 0], "t": t}), level[G] * X[:, 0], varies="t").best

    inputs = best.inputs(pd.DataFrame({"x": [1.0, 1.0, 1.0], "t": [1.0, 1.5, 6.0]}))
    assert best.equation.variables == ("x", "t", "c1[t]")
    assert inputs[0, 2] == pytest.approx(5)
    assert 2 < inputs[1, 2] < 5
    assert np.isnan(inputs[2, 2])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"groups": G, "extrapolation": (X, X)}, InvalidArgument, "`extrapolation` can't be used"),
        ({"groups": G[:-1]}, InvalidArgument, "each of the 90 rows"),
        ({"varies": "x"}, InvalidArgument, "another column"),
        ({"varies": "time"}, UnknownName, "`varies` names no column"),
    ],
)
def test_what_can_t_be_used_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        discover(X, X[:, 0], **options)


def test_several_targets_are_refused():
    with pytest.raises(InvalidArgument, match="one target at a time, and `y` has 2"):
        discover(X, np.hstack([X, X]), groups=G)


def test_a_journal_gives_the_same_again_without_searching():
    memory, y = Memory("", 0), 3 * X[:, 0] + K[G]
    first = discover(X, y, groups=G, journal=memory)
    rounds = len(memory.results)

    again = discover(X, y, groups=G, journal=memory)

    assert rounds > 0
    assert len(memory.results) == rounds
    assert str(first.best) == str(again.best)


def test_rounds_of_several_searches_are_kept_apart():
    memory = Memory("", 0)
    discover(X, X[:, 0], journal=Shifted(memory, 2000), settings=Settings(networks=False))

    assert min(memory.results) >= 2000
    assert Shifted(memory, 2000).recall(0).number == 0


def test_structures_are_compared_on_the_largest_groups_and_thinned():
    rows, _, _ = grouped(lambda x, c: c[0] * x[0], np.arange(1.0, 9.0), rows=100)

    part = compared(rows, GroupSettings(max_groups=4, max_rows=80))

    assert part.count == 4
    assert part.sizes.tolist() == [20] * 4


@pytest.mark.slow
def test_noise_leaves_structure_and_sharing_alone():
    groups = np.arange(20).repeat(30)
    x = RNG.uniform(0.2, 4, (600, 1))
    a = RNG.uniform(1, 3, 20)
    y = a[groups] * np.exp(-0.62 * x[:, 0])
    y = y + 0.01 * y.std() * RNG.normal(size=600)

    best = discover(x, y, groups=groups).best

    assert len(best.varying.names) == 1
    one = best.varying.equation_of(best.equation, 3)
    assert one.error(x[groups == 3], y[groups == 3]) < 0.02 * y.std()


@pytest.mark.slow
def test_ten_thousand_groups_take_time_and_memory_in_proportion():
    groups = np.arange(10_000).repeat(100)
    x = RNG.uniform(0.5, 3, (len(groups), 1))
    k = RNG.uniform(1, 2, 10_000)

    best = discover(x, 3 * x[:, 0] / (k[groups] + x[:, 0]), groups=groups).best

    assert best.equation == Equation.parse("3*x/(c1[group] + x)", ["x", "c1[group]"])
    np.testing.assert_allclose(best.varying.values[:, 0], k, rtol=1e-6)
