"""A structure becomes an equation with names for what varies."""

import numpy as np
import pytest
from made import grouped

from eqlearn.search.groups.draft import drafts_of, structure_of
from eqlearn.search.groups.group_settings import GroupSettings
from eqlearn.search.groups.rank import Ranking
from eqlearn.symbolic.equation import Equation

RNG = np.random.default_rng(0)


def best_draft(law, constants, text, **options):
    rows, _, _ = grouped(law, constants, **options)
    ranking = Ranking(rows, GroupSettings())
    ranking.add([Equation.parse(text, ["x"])])
    structure, fit = ranking.finalists()[0]
    return drafts_of(structure, fit, "sample", GroupSettings())[0]


@pytest.mark.parametrize(
    ("law", "start", "expected"),
    [
        (lambda x, c: c[0] * x[0] + 3, "2.0*x + 1.0", "c1[sample]*x + 3"),
        (lambda x, c: 2 * x[0] / (c[0] + x[0]), "1.6/(0.7 + 1/x)", "2*x/(c1[sample] + x)"),
        (lambda x, c: 4 * np.exp(-x[0] / 2) + 0 * c[0], "1.0*exp(-0.6*x)", "4*exp(-x/2)"),
    ],
)
def test_the_equation_is_the_law_whatever_form_it_was_found_in(law, start, expected):
    found = best_draft(law, RNG.uniform(1, 2, 8), start, noise=0.002, rows=30)

    assert found.equation.matches(Equation.parse(expected, found.equation.variables), box=(0.5, 3))
    assert found.names == found.equation.variables[1:]


def test_a_structure_of_an_equation_has_common_constants_first():
    structure = structure_of(Equation.parse("2.5*x + c1[s]", ["x", "c1[s]"]), 1)

    assert structure.variables == ("x",)
    assert structure.start.tolist() == [2.5, 1.0]
