"""The second judge counts as SRBench does: a constant difference, a constant ratio, rounded floats."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import sympy as sp

from eqlearn.errors import WrongType
from eqlearn.symbolic.equation import Equation
from eqlearn.verify import judge as judging
from eqlearn.verify.judge import symbolic_solution

XY = ("x", "y")


def solution(candidate, truth, *, low=1.0, high=3.0, **options):
    X = np.random.default_rng(0).uniform(low, high, (200, 2))
    true = Equation.parse(truth, XY)
    return symbolic_solution(Equation.parse(candidate, XY), true, X, true(X), **options)


@pytest.mark.parametrize(
    ("candidate", "truth"),
    [
        ("x*y", "x*y"),
        ("y*x + 0.25", "x*y"),
        ("1.1*x*y", "x*y"),
        ("x**2 + 2*x*y + y**2", "(x + y)**2"),
        ("1 - 2*sin(x)**2", "cos(2*x)"),
        ("1.00004*x*y + 0.00001*x", "x*y"),
        ("sin(6.283185307*x)", "sin(2*pi*x)"),
        ("0.0795774715*x/y", "x/(4*pi*y)"),
        ("x*exp(-x)/(1 - exp(-x))", "x/(exp(x) - 1)"),
    ],
)
def test_a_constant_difference_or_ratio_is_a_solution(candidate, truth):
    found = solution(candidate, truth)

    assert found.solved, found.reason


@pytest.mark.parametrize(
    ("candidate", "truth", "why"),
    [
        ("x*y + 0.05*x", "x*y", "the difference from the truth is"),
        ("sin(6.25*x)", "sin(2*pi*x)", "the difference from the truth is"),
        ("1.1*x*y + 0.25", "x*y", "the difference from the truth is"),
        ("9*x*y", "x*y", "R²"),
        ("x*y + 40", "x*y", "R²"),
        ("0", "x*y", "R²"),
        ("2", "2", "R²"),
        ("sqrt(x)*sqrt(y)", "sqrt(x*y)", "the difference from the truth is"),
        ("x + log(y - 2)", "x", "R² is nan"),
    ],
)
def test_anything_else_is_not(candidate, truth, why):
    found = solution(candidate, truth)

    assert not found.solved
    assert why in found.reason


def test_a_formula_whose_constants_round_to_nothing_is_a_constant():
    found = solution("0.00001*x", "0.00001*x")

    assert (found.solved, found.reason) == (False, "it is the constant 0")


def test_without_test_rows_nothing_is_explained():
    parabola = Equation.parse("x**2", ("x",))

    assert not symbolic_solution(parabola, parabola, np.empty((0, 1)), []).solved


def test_work_without_end_is_ended(monkeypatch):
    def endless(expr, **_):
        while True:
            expr = expr + 0

    monkeypatch.setattr(judging.sp, "simplify", endless)
    before, began = threading.active_count(), time.monotonic()
    found = solution("x*y", "x*y", seconds=0.2)

    assert not found.solved
    assert "undecided within `seconds`=0.2" in found.reason
    assert time.monotonic() - began < 2.0
    assert threading.active_count() == before


def test_whatever_sympy_raises_is_a_verdict(monkeypatch):
    def broken(expr, **_):
        raise AttributeError("no such thing")

    monkeypatch.setattr(judging.sp, "simplify", broken)

    assert solution("x*y", "x*y").reason == "can't be computed: AttributeError: no such thing"


def test_a_giant_is_refused_before_sympy_sees_it():
    giant = " + ".join(f"{k}.5*x**{k % 7}*y**{k % 5}*sin({k}*x)/1e9" for k in range(1, 300))

    assert "more than 1000 nodes" in solution(f"x*y + {giant}", "x*y").reason


def test_what_is_no_equation_is_refused(unchecked_types):
    with pytest.raises(WrongType, match="`truth` must be an Equation, got Symbol"):
        symbolic_solution(Equation.parse("x", ("x",)), sp.Symbol("x"), np.ones((3, 1)), np.ones(3))
