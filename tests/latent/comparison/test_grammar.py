"""Which structures there are: each once, none that a bend makes superfluous."""

import itertools

import numpy as np
import pytest
import sympy as sp

from eqlearn.latent.comparison.grammar import Grammar, from_sympy
from eqlearn.latent.comparison.structures import ANY, SHIFT, compiled, leaves, parts, size, symbolic
from eqlearn.nn.primitives import PAPER, parse_kinds
from eqlearn.search.settings import SCIENCE
from eqlearn.symbolic.expressions import real_symbol


def grammar(primitives, groups=(0,), columns=1):
    return Grammar.of(parse_kinds(primitives), groups, columns)


def same_function(one, other, variables):
    """Whether two structures agree up to a factor and an offset, on points of the test's own."""
    points = np.random.default_rng(5).uniform(0.7, 1.3, size=(variables, 40))
    both = []
    for tree in (one, other):
        program = compiled(tree)
        both.append(program.value(points, np.full((program.constants, 1), 0.51)))
    return abs(np.corrcoef(both)[0, 1]) > 1 - 1e-9


@pytest.mark.parametrize("groups", [(0,), (0, 0), (0, 1)])
def test_no_two_structures_are_one_function(groups):
    found = grammar("square exp mul div", groups).enumerate(range(len(groups) + 1), 60)

    assert len(found) > 5
    alike = [p for p in itertools.combinations(found, 2) if same_function(*p, len(groups) + 1)]
    assert alike == []


def test_sums_and_products_of_a_latent_and_a_column_are_few():
    # z + x and z - x are one, as the encoder may turn z; beside z the column may be shifted.
    found = grammar("mul").enumerate([0, 1], 1_000)

    assert [t for t in found if size(t) == 3] == [("add", 0, 1), ("mul", 0, 1)]
    assert ("mul", 0, (SHIFT, 1)) in found
    assert ("add", 0, (SHIFT, 1)) not in found
    assert len(found) == 3


def test_a_latent_alone_is_one_structure():
    # Whatever function stands on it is the encoder's.
    assert grammar(SCIENCE, columns=0).enumerate([0], 1_000) == [0]


def test_two_latents_of_one_encoder_may_be_added_subtracted_or_under_functions_that_differ():
    # The same function on both is the encoder's; log(a*b) is log a + log b, which a bend makes a + b.
    found = grammar("square mul", groups=(0, 0), columns=0).enumerate([0, 1], 1_000)

    assert ("add", 0, 1) in found
    assert ("sub", 0, 1) in found
    assert ("mul", 0, 1) in found
    assert ("square", ("sub", 0, 1)) in found
    assert ("add", ("square", 0), 1) in found or ("add", 0, ("square", 1)) in found
    assert ("add", ("square", 0), ("square", 1)) not in found


@pytest.mark.parametrize(
    ("tree", "redundant"),
    [
        (("exp", 0), True),
        (("mul", ("exp", 0), 2), True),
        (("mul", ("exp", 2), 0), False),  # 2 is a column
        (("add", ("exp", 0), ("exp", 1)), True),  # both latents are of one encoder
        (("add", ("exp", 0), 1), False),
        (("sub", 0, 1), False),
        (("add", ("sub", 2, 0), ("sub", 2, 1)), False),
        ((SHIFT, ("mul", 0, 2)), True),  # every output has an offset
        (("exp", (SHIFT, ("add", 0, 2))), True),
        (("exp", (SHIFT, ("mul", 0, 2))), False),
        (("exp", ("scale", ("mul", 0, 2))), True),
        (("inv", ("mul", 0, 2)), True),  # a bent latent over the column
        (("inv", ("add", 0, 2)), False),
    ],
)
def test_what_a_bend_or_another_constant_covers_is_redundant(tree, redundant):
    assert grammar(SCIENCE, groups=(0, 0)).is_redundant(tree) is redundant


def test_a_latent_under_a_minus_or_a_fraction_line_of_its_own_encoder_is_redundant():
    own = grammar(SCIENCE, groups=(0,))

    assert own.is_redundant(("sub", 1, 0))
    assert own.is_redundant(("div", 1, 0))
    assert not own.is_redundant(("div", 0, 1))


@pytest.mark.parametrize("primitives", [SCIENCE, PAPER])
def test_each_needed_variable_stands_once_and_sizes_rise(primitives):
    found = grammar(primitives, groups=(0, 1), columns=2).enumerate([0, 1, 3], 150)

    assert len(found) > 9
    assert all({leaf for leaf, _ in leaves(tree)} == {0, 1, 3} for tree in found)
    assert all(sum(isinstance(p, int) for _, p in parts(tree)) == 3 for tree in found)
    nodes = [sum(1 for _ in parts(tree)) for tree in found]
    assert nodes == sorted(nodes)


def test_the_limit_is_kept_in_whole_sizes():
    own = grammar(SCIENCE, groups=(0, 0), columns=0)
    few, many = own.enumerate([0, 1], 50), own.enumerate([0, 1], 300)

    assert 0 < len(few) <= 50 < len(many) <= 300
    assert many[: len(few)] == few
    nodes = [sum(1 for _ in parts(tree)) for tree in many]
    assert nodes[len(few)] > nodes[len(few) - 1]


def test_equal_functions_have_equal_signatures_and_others_do_not():
    own = grammar(SCIENCE, groups=(0, 1))

    assert own.signature(("sub", 0, 1)) == own.signature(("sub", 1, 0))
    assert own.signature(("mul", 0, ("mul", 1, 2))) == own.signature(("mul", ("mul", 0, 2), 1))
    assert own.signature(("mul", 0, 1)) != own.signature(("mul", 0, 2))
    assert own.signature(("log", ("sub", ("sub", 0, 1), 2))) is None


@pytest.mark.parametrize("primitives", ["square sqrt mul", "square mul div inv", "square mul inv"])
def test_a_structure_written_as_a_formula_is_read_back(primitives):
    own, names = grammar(primitives, groups=(0, 1)), ["z0", "z1", "x"]
    symbols = [real_symbol(name) for name in names]
    trees = [t for t in own.enumerate([0, 1, 2], 150) if compiled(t).constants == 0]
    assert len(trees) > 8

    for tree in trees:
        back = from_sympy(symbolic(tree, symbols, iter([])), names, own)
        assert back is not None, tree
        assert own.signature(back) == own.signature(tree)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("2.5*z", 0),  # the factor is the latent's
        ("x + z + 1.5", ("shift", ("add", 1, 0))),
        ("3.1*exp(x*z)", ("scale", ("exp", ("mul", 1, 0)))),
        ("1/(1 + z/x)", ("inv", ("shift", ("div", 0, 1)))),
        ("x/(x + z)", ("div", 1, ("add", 1, 0))),
        ("z - 2*x**2", ("sub", 0, ("scale", ("square", 1)))),
        ("-x - z", ("add", 1, 0)),
        ("sin(x*z)/sqrt(x)", ("div", ("sin1", ("mul", 1, 0)), ("sqrt", 1))),
    ],
)
def test_the_numbers_of_a_formula_become_constants_where_none_are_yet(text, tree):
    symbols = {name: real_symbol(name) for name in ("z", "x")}
    found = from_sympy(sp.sympify(text, symbols), ["z", "x"], grammar(SCIENCE))

    assert ordered(found) == ordered(tree)


def ordered(tree):
    """The structure with the parts of sums and products in one order."""
    if isinstance(tree, int):
        return tree
    inner = [ordered(part) for part in tree[1:]]
    return (tree[0], *(sorted(inner, key=repr) if tree[0] in ("add", "mul") else inner))


def test_a_function_that_the_grammar_lacks_gives_no_structure():
    z = sp.Symbol("z", real=True)

    assert from_sympy(sp.exp(z), ["z"], grammar("sin1 mul", columns=0)) is None
    assert from_sympy(z**2.5, ["z"], grammar("sin1 mul", columns=0)) is None


def test_neighbours_are_one_step_away():
    own = grammar("exp mul", groups=(0,), columns=1)
    found = set(own.neighbours(("mul", 0, 1)))

    assert ("exp", ("mul", 0, 1)) in found
    assert ("add", 0, 1) in found
    assert ("mul", ("exp", 0), 1) in found
    assert ("add", ("mul", 0, 1), 1) in found
    assert 0 in found
    assert ("mul", ("sub", 1, 0), 1) in found
    assert ("mul", ("exp", 0), ("exp", 1)) not in found


def test_every_primitive_of_one_or_two_arguments_is_used_but_powers_and_the_identity():
    own = grammar(SCIENCE)

    assert set(own.unary) == {"square", "sin1", "cos", "exp", "log", "sqrt", "tanh", "inv"}
    assert set(own.binary) == {"add", "sub", "mul", "div"}


def test_a_function_of_something_shifted_is_a_structure():
    assert ("log", ("shift", ("mul", 0, 1))) in grammar("log mul").enumerate([0, 1], 200)


@pytest.mark.parametrize("tree", [("inv", ("add", 0, 1)), ("inv", ("shift", ("div", 0, 1)))])
def test_the_inverse_of_a_sum_is_a_structure_beside_quotients(tree):
    # 1/(z + x) and x/(z + x): no quotient of a latent and a column, each of which stands once, is either.
    own = grammar("mul div inv")

    assert own.signature(tree) in {own.signature(found) for found in own.enumerate([0, 1], 200)}


def test_unknown_functions_are_put_on_everything_but_latents():
    own = grammar("exp mul", groups=(0,), columns=1)

    one, two = own.freed([0, 1], 1), own.freed([0, 1], 2)

    assert set(one) == {
        (ANY, ("add", 0, 1)), ("add", 0, (ANY, 1)), (ANY, ("mul", 0, 1)), ("mul", 0, (ANY, 1))
    }  # fmt: skip
    assert set(two) == {(ANY, ("add", 0, (ANY, 1))), (ANY, ("mul", 0, (ANY, 1)))}


def test_with_a_function_inside_a_product_is_more_than_its_factors():
    found = grammar("exp mul", groups=(0,), columns=2).freed([0, 1, 2], 1)
    inside = [t for t in found if isinstance(t, tuple) and t[0] == "mul" and (ANY, ("mul", 0, 2)) in t]

    assert inside == [("mul", 1, (ANY, ("mul", 0, 2)))]


def test_unknown_functions_are_filled_in():
    own = grammar("exp square mul")

    plain = list(own.filled((ANY, ("mul", 0, (ANY, 1))), deep=False))
    deep = list(own.filled((ANY, ("add", 0, 1)), deep=True))

    assert ("exp", ("mul", 0, ("square", 1))) in plain
    assert ("square", (SHIFT, ("mul", 0, ("exp", (SHIFT, 1))))) in plain
    assert len(plain) == len(set(plain)) == 16
    assert ("exp", ("scale", ("square", ("add", 0, 1)))) in deep
    assert not any(
        part[0] == ANY for tree in (*plain, *deep) for _, part in parts(tree) if part not in (0, 1)
    )
