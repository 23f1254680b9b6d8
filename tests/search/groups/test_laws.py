"""Laws of constants in a column."""

import numpy as np
import torch
from made import grouped

from eqlearn.numerics.budget import never
from eqlearn.search.candidate import Candidate
from eqlearn.search.groups.draft import drafts_of
from eqlearn.search.groups.group_settings import GroupSettings
from eqlearn.search.groups.laws import with_laws
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
