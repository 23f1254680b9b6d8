"""The contract of every function of the table: one entry, and every language agrees."""

import ctypes
import math
import pickle
import shutil
import subprocess

import mpmath
import numpy as np
import pytest
import sympy as sp
import torch

from eqlearn.errors import InvalidArgument, InvalidExpression
from eqlearn.functions import FUNCTIONS, NAMES, NUMPY, TORCH, Algebra, Function, register_function
from eqlearn.nn.eql import EQL
from eqlearn.nn.primitives import PRIMITIVES, Primitive, RegistrySnapshot, lookup, register
from eqlearn.report.mathml import mathml
from eqlearn.search.ansatz.target_transform import transforms
from eqlearn.search.candidate import structure_cost
from eqlearn.search.networks.starts import angular_frequency
from eqlearn.search.search import discover
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import real_symbol
from eqlearn.symbolic.parse import parse
from eqlearn.symbolic.printing import write
from eqlearn.verify.judge import judge

every_function = pytest.mark.parametrize("function", list(FUNCTIONS.values()), ids=lambda f: f.name)
X = real_symbol("x")
MPMATH = Algebra("mpmath")


@pytest.fixture
def table():
    """Takes functions that a test registers out again."""
    before = dict(FUNCTIONS), dict(NAMES), dict(PRIMITIVES)
    yield FUNCTIONS
    for now, known in zip((FUNCTIONS, NAMES, PRIMITIVES), before, strict=True):
        now.clear()
        now.update(known)


def precise(function, point):
    value = complex(function.sympy(sp.Float(point, 30)).evalf(30))
    assert value.imag == 0
    return value.real


def equation_of(name):
    return Equation.parse(f"1.5*{name}(x) + 0.25", ["x"])


def expected_of(function, points):
    return np.array([1.5 * precise(function, x) + 0.25 for x in points])


# One entry: computed alike everywhere


@every_function
@pytest.mark.parametrize("library", ["numpy", "torch", "mpmath", "jax"])
def test_every_library_agrees_with_sympy(function, library):
    if library == "jax":
        pytest.importorskip("jax").config.update("jax_enable_x64", True)
    if getattr(function, library) is None:
        pytest.skip(f"{library} has no {function.name}")
    points = function.points()
    array = {"torch": lambda p: torch.tensor(p, dtype=torch.float64), "mpmath": mpmath.mpf}.get(
        library, np.float64
    )

    values = [float(function.on(library)(array(x))) for x in points]

    np.testing.assert_allclose(values, [precise(function, x) for x in points], rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "path"), [("sin", "numpy.sin"), ("asin", "numpy.arcsin"), ("erf", "scipy.special.erf")]
)
def test_jax_names_its_functions_as_numpy_and_scipy_do(name, path):
    assert FUNCTIONS[name].path("numpy") == path
    assert FUNCTIONS[name].path("jax") == f"jax.{path}"


@every_function
def test_slopes_of_tensors_are_those_of_symbols(function):
    points = torch.tensor(function.points(), dtype=torch.float64, requires_grad=True)

    TORCH[function.name](points).sum().backward()

    slope = sp.lambdify(X, function.sympy(X).diff(X), "mpmath")
    np.testing.assert_allclose(points.grad, [float(slope(x)) for x in points.tolist()], rtol=1e-10)


@every_function
def test_an_equation_is_read_and_written_and_read_again(function):
    equation = equation_of(function.name)

    assert parse(write(equation.expr, ["x"]), ["x"]) == equation.expr
    np.testing.assert_allclose(
        equation(np.array(function.points())[:, None]), expected_of(function, function.points()), rtol=1e-12
    )


@every_function
def test_python_source_runs_by_itself(function):
    points = np.array(function.points())
    scope = {}
    exec(equation_of(function.name).python(), scope)

    np.testing.assert_allclose(scope["equation"](points), expected_of(function, points), rtol=1e-12)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
def test_c_compiles_and_agrees(tmp_path):
    written = [f for f in FUNCTIONS.values() if f.c is not None]
    sources = [equation_of(f.name).c(f"eq_{f.name}") for f in written]
    path, library = tmp_path / "all.c", tmp_path / "all.so"
    path.write_text("\n".join(sources), encoding="utf-8")
    command = ["gcc", "-Wall", "-Werror", "-O0", "-shared", "-fPIC", str(path), "-o", str(library), "-lm"]
    subprocess.run(command, check=True)

    compiled = ctypes.CDLL(str(library))

    for function in written:
        call = compiled[f"eq_{function.name}"]
        call.restype, call.argtypes = ctypes.c_double, [ctypes.c_double]
        values = [call(x) for x in function.points()]
        np.testing.assert_allclose(values, expected_of(function, function.points()), rtol=1e-12)


def test_c_says_what_it_has_not():
    with pytest.raises(InvalidArgument, match="no function 'erfinv' in C"):
        Equation.parse("erfinv(x)", ["x"]).c()


@every_function
def test_it_is_typeset(function):
    equation = equation_of(function.name)

    markup = mathml(equation, "y")

    assert len(equation.latex()) > len("1.5 x + 0.25")
    assert markup.count("<mi>x</mi>") == 1
    assert "{}" not in markup
    assert function.mathml or function.sympy not in NAMES or f"<mi>{function.name}</mi>" in markup


@every_function
def test_a_variable_may_have_its_name(function):
    name = function.name
    equation = Equation.parse(f"{name}(`{name}`) + `{name}`", [name])
    points = np.array(function.points())
    scope = {}
    exec(equation.python(), scope)

    np.testing.assert_array_equal(scope["equation"](points), equation(points[:, None]))
    assert Equation.parse(str(equation), [name]) == equation


@pytest.mark.parametrize(("name", "source"), [("scipy", "v_scipy"), ("arcsin", "arcsin"), ("erf", "v_erf")])
def test_sources_rename_a_variable_only_where_it_hides_something(name, source):
    equation = Equation.parse(f"erf(`{name}`) + asin(`{name}`)", [name])
    scope = {}
    exec(equation.python(), scope)

    assert f"def equation({source}):" in equation.python()
    np.testing.assert_array_equal(scope["equation"](0.5), equation(np.array([[0.5]]))[0])


@pytest.mark.parametrize(
    ("text", "name"),
    [("arccosh(x)", "acosh"), ("ln(x)", "log"), ("fabs(x)", "abs"), ("logistic(x)", "sigmoid")],
)
def test_what_other_systems_call_it_is_a_hint(text, name):
    with pytest.raises(InvalidExpression, match=f"did you mean '{name}'"):
        parse(text, ["x"])


# One entry: what is true of it


@every_function
def test_the_inverse_gives_the_argument_back(function):
    low, high = function.image
    points = np.array(function.points())
    if function.inverse is None:
        # Nothing could be undone: two arguments share a value.
        values = NUMPY[function.name](np.linspace(-20, 20, 4001))
        assert len(set(np.sign(np.diff(values)))) > 1
        with pytest.raises(InvalidArgument, match="no inverse"):
            function.undo(NUMPY, points)
        return
    values = NUMPY[function.name](points)

    assert low <= values.min()
    assert values.max() <= high
    for algebra, array in ((NUMPY, values), (TORCH, torch.tensor(values))):
        np.testing.assert_allclose(function.undo(algebra, array), points, rtol=1e-8)


@every_function
def test_the_parity_is_as_declared(function):
    points = np.array([0.21, 0.47, 0.83])
    with np.errstate(invalid="ignore"):
        there, back = NUMPY[function.name](points), NUMPY[function.name](-points)

    assert np.allclose(there, back) == (function.parity == "even")
    assert np.allclose(there, -back) == (function.parity == "odd")


@every_function
def test_a_factor_comes_out_as_declared(function):
    points = np.array(function.points())[1:-1] / (1 if function.domain[0] >= 0 else 4)
    once, more = NUMPY[function.name](points), NUMPY[function.name](1.5 * points)
    quotient, difference = more / once, more - once

    comes_out = np.allclose(quotient, quotient[0]) or np.allclose(difference, difference[0])

    assert comes_out == function.homogeneous


@every_function
def test_a_wave_turns_once_in_two_pi(function):
    points = np.array(function.points())
    with np.errstate(invalid="ignore"):
        values, later = NUMPY[function.name](points), NUMPY[function.name](points + math.tau)
        half = NUMPY[function.name](points + math.pi)

    assert (np.allclose(values, later) and not np.allclose(values, half)) == function.wave


@every_function
def test_beyond_the_domain_nothing_is_real(function):
    low, high = function.domain
    with np.errstate(all="ignore"):
        for edge, step in ((low, -0.1), (high, 0.1)):
            if math.isfinite(edge):
                assert math.isnan(NUMPY[function.name](edge + step))


@every_function
def test_what_grows_overflows_and_mpmath_refuses_to_try(function):
    with np.errstate(all="ignore"):
        overflows = bool(np.isinf(NUMPY[function.name](1000.0)))

    assert overflows == function.grows
    if function.grows:
        with pytest.raises(OverflowError):
            MPMATH[function.name](mpmath.mpf(10) ** 20)


@every_function
def test_it_is_a_primitive_that_stays_finite_while_training(function):
    primitive = lookup({"sin": "sin1", "sigmoid": "logistic"}.get(function.name, function.name))
    points = torch.tensor(function.points())
    edges = torch.tensor([-1e4, -2.0, -1.0, 0.0, 1.0, 2.0, 1e4])

    torch.testing.assert_close(primitive(points, guarded=True), TORCH[function.name](points))
    assert bool(torch.isfinite(primitive(edges, guarded=True)).all())
    assert angular_frequency(primitive) == (1.0 if function.wave else None)


@pytest.mark.parametrize("name", ["sinh", "asinh", "erf", "tanh", "logistic"])
def test_the_search_undoes_a_last_unit_by_the_table(name):
    inner = torch.linspace(0.1, 2.0, 9, dtype=torch.float64)
    unit = lookup(name)

    (transform,) = transforms([unit], unit(inner)[None])

    torch.testing.assert_close(transform.target[0], inner)


def test_a_value_that_a_unit_never_takes_is_not_undone():
    assert transforms([lookup("erf")], torch.tensor([[0.5, 1.5]], dtype=torch.float64)) == []


# Functions from outside


def erfc():
    return Function("erfc", sp.erfc, numpy="scipy.special.erfc")


def test_a_function_from_outside_is_known_everywhere(table, tmp_path):
    register_function(erfc())
    x = np.linspace(-2, 2, 9)
    expected = np.array([2.5 * math.erfc(v) for v in x])

    equation = Equation.parse("2.5*erfc(x)", ["x"])

    np.testing.assert_allclose(equation(x[:, None]), expected, rtol=1e-12)
    assert str(equation) == "2.5*erfc(x)"
    assert Equation.parse(str(equation), ["x"]) == equation
    assert "erfc(x)" in equation.c()
    scope = {}
    exec(equation.python(), scope)
    np.testing.assert_allclose(scope["equation"](x), expected, rtol=1e-12)
    module = equation.torch()
    np.testing.assert_allclose(module(torch.tensor(x[:, None]))[:, 0].detach(), expected, rtol=1e-12)
    assert "erfc" in mathml(equation, "y")
    assert "erfc" in equation.latex()


def test_a_function_from_outside_is_a_primitive_and_stands_in_formulas(table):
    register_function(erfc())

    net = EQL(1, 1, "erfc", 1, seed=0).double().eval()
    tail = register(Primitive("tail_for_this_test", 1, lambda m, g: m.erfc(2 * g) / 2))

    x = torch.linspace(-1, 1, 5, dtype=torch.float64)[:, None]
    values = Equation.read(net, ["x"])(x.numpy())
    np.testing.assert_allclose(values, net(x)[:, 0].detach(), rtol=1e-12)
    assert tail(torch.tensor(0.0)) == 0.5


def test_a_function_from_outside_travels_to_other_processes(table):
    name = "erfc"
    register_function(Function(name, sp.erfc, "scipy.special.erfc", "erfc", mpmath="erfc"))
    primitive = lookup(name)
    parcel = pickle.dumps(RegistrySnapshot.taken())
    del FUNCTIONS[name], NAMES[sp.erfc]
    del PRIMITIVES[name]

    pickle.loads(parcel)

    assert FUNCTIONS[name].numpy == "scipy.special.erfc"
    assert lookup(name)(torch.tensor(0.5)) == primitive(torch.tensor(0.5))


def test_a_callable_will_do_where_no_source_is_needed(table):
    register_function(Function("erfc", sp.erfc, numpy=np.vectorize(math.erfc)))
    equation = Equation.parse("erfc(x)", ["x"])

    assert equation(np.array([[0.0]])) == 1.0
    assert "erfc(x)" in equation.c()
    with pytest.raises(InvalidArgument, match="no importable function 'erfc' in numpy"):
        equation.python()


def test_registering_a_function_again_changes_nothing(table):
    function = register_function(erfc())

    assert register_function(function) is function


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (Function("sin", sp.erfc), "'sin' is taken"),
        (Function("mul", sp.erfc), "'mul' is taken"),
        (Function("pi", sp.erfc), "'pi' is taken"),
        (Function("items", sp.erfc), "'items' is taken"),
        (Function("two words", sp.erfc), "must be an identifier, got 'two words'"),
        (Function("sine", sp.sin, "sin", "sin", mpmath="sin"), "known already, as 'sin'"),
        # SymPy's is sin(x)/x, NumPy's sin(πx)/(πx).
        (Function("sinc", sp.sinc), "'sinc': numpy and SymPy give different values"),
        (Function("sinc", sp.sinc, numpy=None), "'sinc': torch and SymPy give different values"),
        (Function("erfc", sp.erfc), "'erfc' can't be computed on its `domain`: AttributeError"),
        (Function("erfc", sp.erfc, numpy="scipy.nowhere.erfc"), "ModuleNotFoundError"),
        (Function("nothing", sp.Function("nothing")), "'nothing' can't be computed"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_function_that_makes_no_sense_is_refused(table, function, words):
    known = set(FUNCTIONS), set(NAMES)

    with pytest.raises(InvalidArgument) as refused:
        register_function(function)

    assert words in str(refused.value)
    assert (set(FUNCTIONS), set(NAMES)) == known


def test_a_search_finds_a_function_from_outside(table):
    register_function(erfc())
    x = np.linspace(-2, 2, 60)
    truth = Equation.parse("2*erfc(1.1*x)", ["x"])

    found = discover(x[:, None], truth(x[:, None]), primitives="id mul erfc", hidden_layers=1, seed=0)

    assert judge(found.best.equation, truth, {"x": (-2.0, 2.0)}).tier == "exact"


def test_a_function_that_is_merely_known_makes_no_formula_dearer(table):
    expr = sp.sin(X) + sp.log(X)
    before = structure_cost(expr, 1)

    register_function(erfc())

    assert structure_cost(expr, 1) == before
    assert structure_cost(sp.erfc(X), 1) == structure_cost(sp.sin(X), 1)
