"""Laws of constants in a column."""

import numpy as np
import pytest
import torch
from made import grouped

from eqlearn.numerics.budget import never
from eqlearn.search.candidate import Candidate
from eqlearn.search.groups.draft import drafts_of, refitted
from eqlearn.search.groups.group_settings import GroupSettings
from eqlearn.search.groups.laws import with_laws, with_relations
from eqlearn.search.groups.rank import Ranking
from eqlearn.symbolic.equation import Equation

AT = np.linspace(1, 3, 8)


def draft(constants):
    """`c1[t]*x` in columns x and t, of groups at `AT`."""
    rows, _, _ = grouped(lambda x, c: c[0] * x[0], constants, columns=2, noise=0.001)
    rows.columns[1] = torch.from_numpy(AT)[rows.codes]
    ranking = Ranking(rows, GroupSettings())
    ranking.add([Equation.parse("2.0*x", ["x", "t"])])
    structure, fit = ranking.finalists()[0]
    return drafts_of(structure, fit, "t", GroupSettings())[0]


def found(*texts):
    equations = [Equation.parse(text, ["t"]) for text in texts]
    return lambda table: tuple(Candidate((e,), 0.0, 0.0, False) for e in equations)


def test_a_law_takes_the_place_of_the_constant_and_is_refitted():
    whole = with_laws(draft(AT**2), "t", AT, "t", found("3.0", "1.1*t", "1.05*t**2"), GroupSettings(), never)

    assert whole.names == ()
    assert whole.equation == Equation.parse("t**2*x", ["x", "t"])


def test_a_law_that_does_not_hold_is_not_taken():
    jagged = np.array([1.0, 3, 2, 5, 1, 4, 2, 3])

    whole = with_laws(draft(jagged), "t", AT, "t", found("1.1*t", "2.0*sin(t)"), GroupSettings(), never)

    assert whole.names == ("c1[t]",)


def test_constants_that_differ_together_are_one():
    constants = np.stack([np.linspace(5, 30, 8), [0.5, 1.4, 0.7, 1.1, 0.9, 0.6, 1.3, 0.8]], axis=1)
    rows, _, _ = grouped(
        lambda x, c: 20.4 + c[0] * (1 - np.exp(-c[1] * x[0])), constants, rows=30, noise=0.01, low=0, high=5
    )
    ranking = Ranking(rows, GroupSettings())
    ranking.add([Equation.parse("20.0 - 8.0*exp(-1.1*x)", ["x"])])
    forms = drafts_of(*ranking.finalists()[0], "g", GroupSettings())
    apart = next(d for d in forms if str(d.equation) == "c1[g] + c2[g]*exp(c3[g]*x)")

    whole = with_relations(apart, "g", GroupSettings(), never)

    assert whole.names == ("c1[g]", "c2[g]")
    assert whole.equation.constants == pytest.approx([20.4], rel=0.01)
    assert whole.length < apart.length


def test_a_constant_that_is_one_of_two_is_shared_if_it_is_the_same_everywhere():
    constants = np.array([0.4, 1.1, 2.6, 0.8, 1.7, 3.0])
    rows, _, _ = grouped(lambda x, c: 2.8 - 2.8 / (1 + c[0] * x[0]), constants, rows=30, noise=0.01)
    equation = Equation.parse("c1[g] + c2[g]/(1 + c3[g]*x)", ["x", "c1[g]", "c2[g]", "c3[g]"])
    wobble = torch.linspace(-0.05, 0.05, 6, dtype=torch.float64)
    start = {"c1[g]": 2.8 + wobble, "c2[g]": -2.8 - wobble, "c3[g]": torch.from_numpy(constants)}
    apart = refitted(equation, ["x"], "g", start, rows, GroupSettings())

    whole = with_relations(apart, "g", GroupSettings(), never)

    assert len(apart.names) == 3
    assert len(whole.names) == 1


def test_constants_that_differ_each_in_its_own_way_stay():
    constants = np.random.default_rng(1).uniform(1, 3, (8, 2))
    rows, _, _ = grouped(lambda x, c: c[0] + c[1] * x[0], constants, noise=0.01)
    ranking = Ranking(rows, GroupSettings())
    ranking.add([Equation.parse("2.1 + 1.1*x", ["x"])])
    apart = drafts_of(*ranking.finalists()[0], "g", GroupSettings())[0]

    assert with_relations(apart, "g", GroupSettings(min_correlation=0.0), never) is apart
