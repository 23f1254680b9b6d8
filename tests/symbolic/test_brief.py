"""The shortest of a formula's equivalents: no longer than what was made ugly, with the same values."""

import time

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from eqlearn.errors import InvalidExpression, NotFinite
from eqlearn.symbolic.brief import brief
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import real_symbol

NAMES = ["x", "y", "z"]
X = np.random.default_rng(0).uniform(0.2, 0.9, size=(120, 3))

LAWS = [
    "x/(1 - x - z) + y - a",
    "a/(b + x) + c*y",
    "a/(b + x) + c/(d + y)",
    "a/(b + x) + c/(d + x)",
    "(x + a)*(y + b)",
    "(x + a)*(y + b) + z",
    "(x + a)*(y + b)*(z + c)",
    "a*(x + b)*(x + c)",
    "(a*x + y)**2",
    "(a*x + b*y + z)**2",
    "(a*x + b*y)**3",
    "a*x*(y + z) + b",
    "(x + y)*(a*x - z)",
    "(x*y + a)/(x + z)",
    "x*y/(x + y)",
    "a*x*y/(b + c*x)",
    "a*x/(b + x)*y/(c + y)",
    "x + 1/(a + x*y)",
    "y*(a + b/(x + c))",
    "a + b*x/(y*z)",
    "a*x**2/(1 + b*y**2)",
    "(x - y)/(x + y)",
    "a/(x**2 + b) + y",
    "z + a*(x - y)**2",
    "a*sin(b*x + c)",
    "y*sin(b*x + c) + a",
    "a*cos(x)*y + a*z*cos(x)",
    "sin(x)*(a + b*cos(y))",
    "exp(x)*(y + a) + b",
    "a*x*exp(-b*y)",
    "(exp(x) + a)*(y + b)",
    "log(x*y) + a",
    "a*log(x/y)",
    "log(a*x + b*y)",
    "(x + a)*log(y) + b",
    "sqrt(x)*(y + a)",
    "sqrt(x*y) + a*z",
    "x**a*y**b",
    "a*(x + b)/sqrt(y)",
    "sqrt(x**2 + a*y**2)",
    "a*tanh(b*x)",
    "a*tanh(x) + b*y",
    "a*cosh(b*x)",
    "1/(1 + a*exp(-b*x))",
    "(x + a)*(y + b) + c",
    "a*x*y/((x + b)*(y + c)) + z",
    "a/(1 + b*x**2) + c*sin(y)",
    "(x + y)/(z + a) + b",
    "(a + x)/(b + y)",
    "exp(-a*x)*(b + cos(c*y))",
    "log(x**2/(y + a))",
    "x/(y + a) + y/(x + b)",
    "sqrt((x + a)*(y + b))",
    "log((x + a)*(y + b))",
]


def with_numbers(law, seed):
    """The law with random numbers for a, b, c and d."""
    rng = np.random.default_rng(seed)
    numbers = {real_symbol(name): sp.Float(rng.uniform(1.1, 2.9), 17) for name in "abcd"}
    return Equation(Equation.parse(law, [*NAMES, *"abcd"]).expr.xreplace(numbers), NAMES)


def one_fraction(expr):
    top, bottom = sp.fraction(sp.together(expr))
    return sp.expand(top) / sp.expand(bottom)


UGLY = {
    "expand": sp.expand,
    "together": one_fraction,
    "expand_log": lambda e: sp.expand_log(e, force=True),
    "expand_trig": lambda e: sp.expand_trig(sp.expand(e)),
    "exp": lambda e: sp.expand(e.rewrite(sp.exp)) if e.has(sp.tanh, sp.cosh) else e,
    "exp_log": lambda e: sp.exp(sp.expand_log(sp.log(e), force=True)),
}


def cases():
    for seed, law in enumerate(LAWS):
        equation = with_numbers(law, seed)
        known = {equation.expr}
        for kind, change in UGLY.items():
            ugly = change(equation.expr)
            if ugly not in known:
                known.add(ugly)
                yield pytest.param(equation, noisy(Equation(ugly, NAMES), seed), id=f"{kind}: {law}")


def noisy(equation, seed):
    """The constants with errors as a fit leaves them."""
    rng = np.random.default_rng(seed)
    return equation.with_constants([c * (1 + 1e-12 * rng.normal()) for c in equation.constants])


@pytest.mark.parametrize(("law", "ugly"), list(cases()))
def test_an_ugly_equivalent_is_given_back_no_longer_than_the_law(law, ugly):
    short = brief(ugly, X)

    assert short.complexity <= law.complexity
    assert len(short.constants) <= len(ugly.constants)
    assert short(X) == pytest.approx(law(X), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "shorter"),
    [
        ("log(x**2)", "2*log(x)"),
        ("log(abs(x)*y**3)", "log(x*y**3)"),
        ("sqrt(x**2*y)", "x*sqrt(y)"),
        ("abs(x - 1)", "-x + 1"),
        ("sqrt(x**2 + 2*x*y + y**2)", "x + y"),
        ("exp(2*log(x) + y)", "x**2*exp(y)"),
        ("x**0.5000000001 + y", "y + sqrt(x)"),
        ("x**2 + y + 1e-10*z", "x**2 + y"),
        ("(x**2 - y**2)/(x - y)", "x + y"),
        ("1/(1/x + 1/y)", "x*y/(x + y)"),
        ("1 - 2/(exp(2*x) + 1)", "tanh(x)"),
        ("x*sin(y)**2 + x*cos(y)**2", "x"),
        ("sin(x)/cos(x)", "tan(x)"),
        ("0.49*x**2 + 1.4*x*y + y**2", "(7*x/10 + y)**2"),
        ("x*y + 2.5*x + 1.5*y + 3.75 + z", "z + (x + 3/2)*(y + 5/2)"),
    ],
)
def test_known_disguises_come_out_plain(text, shorter):
    assert str(brief(Equation.parse(text, NAMES), X)) == shorter


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "2.5",
        "1.2*x + 3.4*y",
        "1.2*x**2 + 3.4*x + 0.5",
        "x**1.37",
        "sin(1.7*x + 0.3)",
        "x + 1e-6*y",
        "x**y",
    ],
)
def test_what_is_short_stays_as_it_is(text):
    equation = Equation.parse(text, NAMES)

    assert brief(equation, X) is equation


def test_a_law_of_positive_numbers_is_not_used_where_a_row_is_negative():
    equation = Equation.parse("log(x**2)", ["x"])

    assert brief(equation, np.linspace(-1.1, 1.0, 20)[:, None]) is equation


def test_a_formula_that_is_not_finite_on_the_rows_is_left_alone():
    equation = Equation.parse("log(x) - log(y) + 1.5", ["x", "y"])

    assert brief(equation, np.array([[1.0, 2.0], [-1.0, 2.0], [3.0, 0.0]])) is equation


def test_units_far_from_one_do_not_matter():
    law = Equation.parse("312.34567*y + 2.2512345678e9/(x + 1.5123456789e8)", ["x", "y"])
    equation = Equation(one_fraction(law.expr), law.variables)
    rows = np.random.default_rng(1).uniform(1.0, 2.0, size=(50, 2)) * [1e8, 1e-3]

    short = brief(equation, rows)

    assert short.complexity <= 9 < equation.complexity
    assert short(rows) == pytest.approx(equation(rows), rel=1e-9)


def test_out_of_time_nothing_is_changed():
    equation = Equation.parse("(x*y + 1.7*y + 2.2)/(x + 1.7)", NAMES)

    assert brief(equation, X, stop=lambda: True) is equation


def test_a_long_formula_takes_no_longer():
    terms = (f"{1 + k / 7}*sin({k + 0.3}*x)/(y + {k + 1.1})" for k in range(15))
    equation = Equation.parse(" + ".join(terms), NAMES)
    began = time.process_time()

    short = brief(equation, X)

    assert time.process_time() - began < 10
    assert short.complexity <= equation.complexity
    assert short(X) == pytest.approx(equation(X), rel=1e-9)


def formulas():
    numbers = st.floats(-3, 3).filter(lambda v: abs(v) > 1e-3).map(lambda v: sp.Float(v, 17))
    leaves = st.one_of(
        st.sampled_from([real_symbol(n) for n in NAMES]), numbers, st.integers(-3, 3).map(sp.Integer)
    )
    functions = [sp.sin, sp.cos, sp.exp, sp.log, sp.sqrt, sp.Abs, sp.tanh]
    powers = st.sampled_from([-1, -2, 2, 3, sp.S.Half, sp.Float(1.5, 17)])

    def grow(inner):
        several = st.lists(inner, min_size=2, max_size=3)
        return st.one_of(
            several.map(lambda a: sp.Add(*a)),
            several.map(lambda a: sp.Mul(*a)),
            st.tuples(inner, powers).map(lambda t: sp.Pow(*t)),
            st.tuples(st.sampled_from(functions), inner).map(lambda t: t[0](t[1])),
        )

    return st.recursive(leaves, grow, max_leaves=12)


@settings(max_examples=60, deadline=None)
@given(formulas())
def test_any_formula_keeps_its_values_and_grows_no_longer(expr):
    try:
        equation = Equation(expr, NAMES)
    except (NotFinite, InvalidExpression):
        return

    short = brief(equation, X)

    values = equation(X)
    assert short.complexity <= equation.complexity
    assert short is equation or np.isfinite(values).all()
    if short is not equation:
        spread = values.std() or np.abs(values).max()
        assert np.sqrt(np.mean((short(X) - values) ** 2)) <= 2e-9 * spread


def test_the_same_formula_has_the_same_short_form():
    equation = noisy(with_numbers("(x + a)*(y + b)*(z + c)", 3), 1)

    assert brief(equation, X) == brief(equation, X)
