"""The shortest of a formula's equivalents: no longer than what was made ugly, with the same values."""

import numpy as np
import pytest
import sympy as sp

from eqlearn.symbolic.brief import brief
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import constant_holders, fill_constants, held_constant

NAMES = ["x", "y", "z"]
X = np.random.default_rng(0).uniform(0.2, 0.9, size=(120, 3))
A, B, C, D = "abcd"

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
]


def with_numbers(law, seed):
    rng = np.random.default_rng(seed)
    text = law
    values = {name: rng.uniform(1.1, 2.9) for name in "abcd"}
    symbols = {name: sp.Symbol(name, real=True) for name in "abcd"}
    expr = Equation.parse(law, [*NAMES, *"abcd"]).expr
    del text
    return Equation(expr.xreplace({symbols[k]: sp.Float(v, 17) for k, v in values.items()}), NAMES)


def ugly_forms(expr):
    def one_fraction(e):
        top, bottom = sp.fraction(sp.together(e))
        return sp.expand(top) / sp.expand(bottom)

    return {
        "expand": lambda: sp.expand(expr),
        "together": lambda: one_fraction(expr),
        "log": lambda: sp.expand_log(expr, force=True),
        "trig": lambda: sp.expand_trig(sp.expand(expr)),
        "exp": lambda: sp.expand(expr.rewrite(sp.exp)) if expr.has(sp.tanh, sp.cosh) else expr,
        "square": lambda: sp.exp(sp.expand_log(sp.log(expr), force=True)),
    }


def noisy(equation, seed):
    """The constants with errors as a fit leaves them."""
    rng = np.random.default_rng(seed)
    holders = constant_holders(equation.expr)
    numbers = [sp.Float(float(held_constant(h)) * (1 + 1e-12 * rng.normal()), 17) for h in holders]
    return Equation(fill_constants(equation.expr, holders, numbers), equation.variables)
