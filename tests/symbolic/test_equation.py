"""The equation as an object: what it says, what it computes, what it refuses."""

import copy
import json
import pickle

import numpy as np
import pytest
import sympy as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from eqlearn.errors import EqlearnError, InvalidArgument, InvalidExpression, InvalidFile, NotFinite, WrongType
from eqlearn.nn.eql import EQL
from eqlearn.nn.sparse import SparseLinear
from eqlearn.symbolic.equation import Equation

X = np.random.default_rng(0).uniform(-2, 2, size=(50, 2))
AWKWARD = (
    "lambda",
    "my var",
    "I",
    "S",
    "E",
    "pi",
    "gamma",
    "θ",
    r"\dot{x}",
    "x_1",
    "a`b",
    "<b>",
    "1st",
    "sin",
)


def made(text, variables=("x", "y")):
    return Equation.parse(text, variables)


# --- what it says


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("x", 1),
        ("2.5", 1),
        ("2*pi", 1),
        ("-x", 1),
        ("x + y", 3),
        ("x - y", 3),
        ("2.5*x", 3),
        ("2*pi*x", 3),
        ("-2.5*x", 3),
        ("x/3", 3),
        ("x*y", 3),
        ("x/y", 3),
        ("1/x", 3),
        ("2.5/x", 3),
        ("x**2", 3),
        ("x**(-2)", 5),
        ("y/x**2", 5),
        ("sqrt(x)", 2),
        ("y/sqrt(x)", 4),
        ("x**1.5", 3),
        ("x**y", 3),
        ("exp(x)", 2),
        ("sin(2*pi*x)", 4),
        ("exp(-x**2)", 4),
        ("1/(x*y)", 5),
        ("x**2 + 2.5*y - 1", 9),
    ],
)
def test_complexity_counts_variables_numbers_functions_and_operators(text, nodes):
    assert made(text).complexity == nodes


def test_snapping_does_not_change_the_complexity():
    fitted = made("0.3333333333*x + sin(6.283185307*y) + 1.4142135624")

    assert fitted.snapped().constants == ()
    assert fitted.snapped().complexity == fitted.complexity


def test_constants_come_in_the_order_they_are_read():
    equation = made("0.1 + 0.2*x + 0.3*x**2 + 0.4*sin(0.5*y)")

    assert str(equation) == "0.3*x**2 + 0.2*x + 0.4*sin(0.5*y) + 0.1"
    assert equation.constants == (0.3, 0.2, 0.4, 0.5, 0.1)


def test_exact_numbers_are_no_constants():
    assert made("x**2/3 + sin(2*pi*y) + sqrt(2)").constants == ()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0.1, 9.0), min_size=5, max_size=5))
def test_other_constants_keep_their_places(values):
    skeleton = made("1.1*x**2 + 1.2*x*y + 1.3*exp(1.4*y) + 1.5")

    changed = skeleton.with_constants(values)

    assert changed.constants == tuple(values) or 1.0 in values


def test_its_own_constants_change_nothing():
    equation = made("2.5*x + sin(1.5*y)*exp(0.3*x) - 0.7")

    assert equation.with_constants(equation.constants) == equation


def test_a_shown_equation_is_short_but_keeps_its_digits():
    equation = made("0.123456789012345*x")

    assert str(equation) == "0.123457*x"
    assert repr(equation) == "Equation('0.123457*x', ['x', 'y'])"
    assert equation.constants == (0.123456789012345,)


def test_a_fitted_two_is_not_shown_as_an_exact_two():
    assert str(made("2.0*x + 2*y")) == "2.0*x + 2*y"


def test_a_huge_formula_is_not_written_out():
    x = sp.Symbol("x")
    for _ in range(9):
        x = sp.sin(x) + sp.cos(x) * sp.tanh(x)

    shown = Equation(x, ["x"])

    assert shown.complexity > 20_000
    assert len(str(shown)) < 100
    assert len(repr(shown)) < 200


# --- frozen, equal, saved


def test_it_is_frozen():
    with pytest.raises(AttributeError):
        made("x").expr = sp.Integer(1)


def test_equal_equations_hash_alike():
    assert len({made("x + y"), made("y + x"), made("x - y")}) == 2


def test_it_survives_pickle_and_json():
    equation = made("0.1*x**2 + sin(2*pi*y)/3 + 1e-300*exp(700.5*x)")

    assert pickle.loads(pickle.dumps(equation)) == equation
    assert Equation.from_json(json.loads(json.dumps(equation.to_json()))) == equation
    assert Equation.from_json(json.dumps(equation.to_json())) == equation


def test_a_copy_is_itself():
    equation = made("x")

    assert copy.deepcopy(equation) is equation


def test_a_read_network_survives_pickle_with_every_bit():
    net = EQL(2, 1, "id square sin exp mul", 2, seed=0).double()
    equation = Equation.read(net, ["x", "y"])

    back = pickle.loads(pickle.dumps(equation))

    assert np.array_equal(back(X), equation(X))


@pytest.mark.parametrize(
    "data",
    [
        "",
        "{",
        "[]",
        "null",
        {},
        {"format": "eqlearn-equation", "version": 2, "variables": [], "expression": "1"},
        {"format": "eqlearn-equation", "version": 1, "variables": ["x"]},
        {"format": "eqlearn-equation", "version": 1, "variables": "x", "expression": "x"},
        {"format": "eqlearn-equation", "version": 1, "variables": ["x"], "expression": 3},
    ],
    ids=str,
)
def test_json_that_is_no_equation_is_refused(data):
    with pytest.raises(InvalidFile):
        Equation.from_json(data)


@pytest.mark.parametrize("text", ["__import__('os')", "x + z", "9**9**9", "x.__class__", ""])
def test_json_with_a_crafted_formula_is_refused(text):
    data = {"format": "eqlearn-equation", "version": 1, "variables": ["x"], "expression": text}

    with pytest.raises(InvalidExpression):
        Equation.from_json(data)


# --- the same with other numbers


def test_rounding_gives_a_new_equation():
    equation = made("0.123456*x + 98765.4")

    assert equation.rounded(3).constants == (0.123, 98800.0)
    assert equation.constants == (0.123456, 98765.4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: e.rounded(0), "digits"),
        (lambda e: e.with_constants([1.0, 2.0]), "1 numbers"),
        (lambda e: e.with_constants([np.nan]), "finite"),
        (lambda e: e.matches("x", box=(1.0, 0.0)), "low < high"),
        (lambda e: e.matches("x", box={"x": 3.0}), "box"),
        (lambda e: e.matches("z"), "'z'"),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    with pytest.raises(EqlearnError, match=message):
        call(made("2.5*x"))


# --- construction


@pytest.mark.parametrize("name", AWKWARD)
def test_any_text_is_a_plain_variable(name):
    equation = Equation(2 * sp.Symbol(name) + 1, [name])

    assert equation([1.0, 2.0]).tolist() == [3.0, 5.0]
    assert pickle.loads(pickle.dumps(equation)) == equation


def test_plain_symbols_become_real_ones():
    x = sp.Symbol("x", positive=True)

    assert Equation(x**2, ["x"]).expr.free_symbols == {sp.Symbol("x", real=True)}


@pytest.mark.parametrize(
    ("expr", "variables", "error"),
    [
        (sp.Symbol("z"), ["x"], InvalidArgument),
        (sp.Symbol("x"), ["x", "x"], InvalidArgument),
        (sp.Symbol("x"), ["x", ""], InvalidArgument),
        (sp.Symbol("x"), "x", WrongType),
        (sp.zoo, ["x"], NotFinite),
        (sp.nan, ["x"], NotFinite),
        (sp.oo * sp.Symbol("x"), ["x"], NotFinite),
        (sp.I * sp.Symbol("x"), ["x"], NotFinite),
        (sp.sqrt(sp.Float(-2.0)), ["x"], NotFinite),
        (sp.asin(2) * sp.Symbol("x"), ["x"], NotFinite),
        (sp.exp(1000) * sp.Symbol("x"), ["x"], NotFinite),
        (sp.Float("1e400") * sp.Symbol("x"), ["x"], NotFinite),
        (sp.gamma(sp.Symbol("x")), ["x"], InvalidExpression),
        (sp.Function("f")(sp.Symbol("x")), ["x"], InvalidExpression),
    ],
    ids=str,
)
def test_what_is_no_real_formula_in_the_variables_is_refused(expr, variables, error):
    with pytest.raises(error):
        Equation(expr, variables)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(("expr", "variables"), [("x", ["x"]), (None, ["x"]), (sp.Symbol("x"), [1])])
def test_the_wrong_types_are_refused(expr, variables):
    with pytest.raises(WrongType):
        Equation(expr, variables)


# --- reading


def test_reading_all_gives_one_equation_per_output():
    net = EQL(2, 3, "id square", 1, seed=0).double()

    equations = Equation.read_all(net, ["x", "y"])

    assert equations == tuple(Equation.read(net, ["x", "y"], output=i) for i in range(3))


def test_a_member_is_read_as_the_network_it_is():
    net = EQL(2, 1, "id square", 1, members=3, seed=0).double()

    assert Equation.read(net, ["x", "y"], member=1) == Equation.read(net.member(1), ["x", "y"])


@pytest.mark.parametrize(
    ("net", "arguments", "error"),
    [
        (EQL(2, 1, "id", 1, members=2), {}, InvalidArgument),
        (EQL(2, 1, "id", 1, members=2), {"member": 5}, InvalidArgument),
        (EQL(2, 1, "id", 1), {"member": 0}, InvalidArgument),
        (EQL(2, 1, "id", 1), {"output": 1}, InvalidArgument),
        (EQL(3, 1, "id", 1), {}, InvalidArgument),
        (torch.nn.Linear(2, 1), {}, WrongType),
        (torch.nn.Sequential(EQL(2, 2, "id", 1), torch.nn.ReLU()), {}, WrongType),
    ],
)
def test_what_cannot_be_read_is_refused(net, arguments, error):
    with pytest.raises(error):
        Equation.read(net, ["x", "y"], **arguments)


def test_a_network_with_a_broken_weight_has_no_equation():
    net = EQL(1, 1, "id", 1)
    with torch.no_grad():
        net.readout.raw.fill_(torch.nan)

    with pytest.raises(NotFinite, match="weight"):
        Equation.read(net, ["x"])


def test_any_module_with_symbolic_can_be_read():
    layer = SparseLinear(2, 1)
    with torch.no_grad():
        layer.raw.copy_(torch.tensor([[0.5, 0.25]]))

    class Composite(torch.nn.Module):
        def symbolic(self, x):
            return layer.symbolic(sp.Matrix(list(x)))

    assert str(Equation.read(Composite(), ["u", "v"])) == "0.5*u + 0.25*v"


# --- shown in notebooks


def test_latex_is_typeset_with_six_digits_and_the_given_names():
    equation = Equation.parse(r"0.123456789*`\dot{x}`**2 + sqrt(alpha_1)/2", [r"\dot{x}", "alpha_1"])

    latex = equation.latex()

    assert r"\dot{x}^{2}" in latex
    assert r"\alpha_{1}" in latex
    assert "0.123457" in latex


@pytest.mark.parametrize("name", ["50%", "a&b", "$5", "#1", "my var", "under_"])
def test_latex_escapes_what_would_break_it(name):
    latex = Equation.parse("2*`" + name + "`", [name]).latex()

    assert r"\mathrm{" in latex
    assert not any(f"{c}" in latex.replace("\\" + c, "") for c in "%&$#")


@pytest.mark.parametrize("name", ["<script>1</script>", '"onload="x', r"\href{javascript:1}{x}"])
def test_html_cannot_be_broken_out_of(name):
    page = Equation.parse("2*`" + name + "`", [name])._repr_html_()

    assert "<script" not in page
    assert "\\href" not in page
    assert page.startswith("<div>$")


def test_a_long_formula_is_shown_as_clipped_text():
    equation = made(" + ".join(f"{i + 0.5}*sin({i + 1}*x)" for i in range(80)))

    assert equation._repr_latex_() is None
    assert equation._repr_html_().startswith("<code>")
    assert len(equation._repr_html_()) < 2000


def test_one_of_several_outputs_must_be_named():
    with pytest.raises(InvalidArgument, match="has 3 outputs; say which with `output`"):
        Equation.read(EQL(2, 3, "id square", 1, seed=0), ["x", "y"])


def test_a_word_is_no_product_of_its_letters_in_latex():
    names = ["length", "x", "x_1", "alpha"]

    latex = Equation.parse("length + x + x_1 + alpha", names).latex()

    assert r"\mathrm{length}" in latex
    assert r"\alpha" in latex
    assert "x_{1}" in latex
