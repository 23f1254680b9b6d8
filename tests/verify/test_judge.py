"""The judge accepts the truth in any form and with constants a little off, and nothing that only fits."""

from __future__ import annotations

import dataclasses
import math
import time
from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sp

from eqlearn.errors import InvalidArgument, WrongType
from eqlearn.symbolic.equation import Equation
from eqlearn.verify.judge import Verdict, judge

X = {"x": (-1.0, 1.0)}
XY = {**X, "y": (-1.0, 1.0)}
XYZ = {**XY, "z": (-1.0, 1.0)}
POSITIVE = {"x": (1.0, 5.0)}
SIGMOID = "1/(1 + exp(-10*x))"
LORENTZ = {"x": (5.0, 10.0), "u": (1.0, 2.0), "c": (3.0, 20.0), "t": (1.0, 2.0)}


def positive(*names):
    return dict.fromkeys(names, (1.0, 5.0))


def verdict(candidate, truth, box, **options):
    names = tuple(box)
    return judge(Equation.parse(candidate, names), Equation.parse(truth, names), box, **options)


EXACT = [
    ("x", "x", X),
    ("0.5*(1 + tanh(5*x))", SIGMOID, X),
    ("0.5*tanh(5.0*x) + 0.5", SIGMOID, X),
    ("1 - 1/(1 + exp(10.0*x))", SIGMOID, X),
    ("sin(6.283185307179586*x)", "sin(2*pi*x)", X),
    ("sin(2*pi*x + 4*pi)", "sin(2*pi*x)", X),
    ("-sin(6.283185307179586*x + 3.141592653589793)", "sin(2*pi*x)", X),
    ("cos(2*pi*x - pi/2)", "sin(2*pi*x)", X),
    ("0.25*(x + y)**2 - 0.25*(x - y)**2", "x*y", XY),
    ("x**3 + 3*x**2*y*z + 3*x*y**2*z**2 + y**3*z**3", "(x + y*z)**3", XYZ),
    ("1/exp(x**2)", "exp(-x**2)", X),
    ("1 - 2*sin(x)**2", "cos(2*x)", X),
    ("x*(1.0*x + 1.0)", "x**2 + x", X),
    ("x + 1e-13*y", "x", XY),
    ("3.0", "3", X),
    ("0.07957747154594767*q*p/(e*r**2)", "q*p/(4*pi*e*r**2)", positive("q", "p", "e", "r")),
    ("sqrt(g)*sqrt(p/r)", "sqrt(g*p/r)", positive("g", "p", "r")),
    ("c*(x - u*t)/sqrt(c**2 - u**2)", "(x - u*t)/sqrt(1 - u**2/c**2)", LORENTZ),
    ("a*b/(b + n*a)", "1/(1/a + n/b)", positive("a", "b", "n")),
    ("asin(a/b/n)", "asin(a/(n*b))", {"a": (1.0, 2.0), "b": (2.0, 5.0), "n": (1.0, 5.0)}),
    ("0.5*log(x**2)", "log(x)", POSITIVE),
    ("w*exp(-w/t)/(1 - exp(-w/t))", "w/(exp(w/t) - 1)", positive("w", "t")),
    ("x*exp(-x)/(1 - exp(-x))", "x/(exp(x) - 1)", {"x": (1.0, 800.0)}),
    ("x + 1e-13*x**3", "x", X),
    ("1.5707963267948966 - asin(x)", "acos(x)", X),
    ("x**2", "x**2", {"x": (0.0, 1e-9)}),
    ("1e-9*sin(6283185307.179586*x)", "sin(2000000000*pi*x)/1000000000", {"x": (-1e-9, 1e-9)}),
    ("(x + 1e9)*x - 1e9*x", "x**2", {"x": (-1e9, 1e9)}),
    # A truth with a corner at zero is not asked what it is on the side without data.
    ("sqrt(y)*tanh(x)", "sqrt(y*tanh(x)**2)", positive("x", "y")),
    ("x/y**3", "x*sqrt(1/y**6)", {"x": (-1.0, 1.0), "y": (1.0, 5.0)}),
]

SYMBOLIC = [
    ("1.0005*x", "x", X),
    ("0.9991*x**3", "x**3", X),
    ("sin(6.28*x)", "sin(2*pi*x)", X),
    ("cos(6.2832*x - 1.5709)", "sin(2*pi*x)", X),
    ("sin(6.283*x + 12.566)", "sin(2*pi*x)", X),
    ("0.5001*tanh(4.999*x) + 0.4999", SIGMOID, X),
    ("1.0002*exp(-1.0004*x**2)", "exp(-x**2)", X),
    ("0.49995*x*y + 0.5001*z", "x*y/2 + z/2", XYZ),
    ("1.0003*x**2 + 0.9998*sin(6.285*y)", "x**2 + sin(2*pi*y)", XY),
    ("1.0003*(x + 1.0001*y*z)**3", "(x + y*z)**3", XYZ),
    ("2.001*x*0.4999*y", "x*y", XY),
    ("x**2.0003", "x**2", POSITIVE),
    ("x**0.4999", "sqrt(x)", {"x": (0.0, 4.0)}),
    ("1.4427*log(x)", "log(x)/log(2)", POSITIVE),
    ("1.0002*x**3", "x**3", {"x": (-1e9, 1e9)}),
    ("3.001", "3", X),
]

PAPER = [
    ("1.03*x", "x", X),
    ("0.97*sin(6.2*x)", "sin(2*pi*x)", X),
    ("exp(-x**2) + 0.004*x", "exp(-x**2)", X),
    ("x**3 + 0.0007*x**5", "x**3", X),
    ("(x + 0.001)*(y - 0.002)", "x*y", XY),
    ("1.02*x**2 + 0.99*y - 2.03*z + 0.01", "x**2 + y - 2*z", XYZ),
    ("1.02*(0.5*x**2 + 0.5*x)", "x*(x + 1)/2", {"x": (1.0, 100.0)}),
]

WRONG = [
    ("20*sin(0.05*x)", "x", X),
    ("20.0*sin(0.05*x)", "x", X),
    ("200000.0*sin(0.000005*x)", "x", X),
    ("1e7*tanh(1e-7*x)", "x", X),
    ("1000000.0*exp(0.000001*x) - 1000000.0", "x", X),
    ("100000.0*sin(0.00001*x) + log(y)", "x + log(y)", positive("x", "y")),
    ("0.5 + 0.5*cos(1.6*x)", "exp(-x**2)", X),
    ("0.499*cos(x + sin(x)) + 0.501", "exp(-x**2)", X),
    ("10000000.5 + 0.5*cos(1.6*x)", "10000000 + exp(-x**2)", X),
    ("1 - x**2 + x**4/2", "exp(-x**2)", X),
    ("1 - x**2 + x**4/2 - x**6/6 + x**8/24 - x**10/120", "exp(-x**2)", X),
    ("x - x**3/6 + x**5/120 - x**7/5040", "sin(x)", {"x": (-0.1, 0.1)}),
    ("0.17*sin(3*x)*x + 0.98*x**3", "x**3", X),
    ("1.2*x - 0.2*sin(3.0*x)", "x**3", X),
    ("0.5 + 0.25*x*10 - 0.9*x**3", SIGMOID, X),
    ("x", "y", XY),
    ("x + 0.1*y", "x", XY),
    ("x + 0.5", "x", X),
    ("1.5*x", "x", X),
    ("sin(3*x)", "sin(2*pi*x)", X),
    ("abs(x)", "x", POSITIVE),
    ("sqrt(x**2)", "x", POSITIVE),
    ("x*y", "y*sqrt(x**2)", XY),
    ("sqrt(x)**3.5", "x**2", POSITIVE),
    ("asin(sin(x))", "x", X),
    ("sqrt(x**2 + 1e-9)", "abs(x)", X),
    ("log(x)", "x - 1", {"x": (0.9, 1.1)}),
    ("exp(exp(exp(9*x)))", "x", X),
    ("x**3 + 1e15*x**2", "x**3", {"x": (-1e9, 1e9)}),
    ("0", "x", X),
]


@pytest.mark.parametrize(("candidate", "truth", "box"), EXACT)
def test_another_form_of_the_truth_is_exact(candidate, truth, box):
    assert verdict(candidate, truth, box).tier == "exact"


@pytest.mark.parametrize(("candidate", "truth", "box"), SYMBOLIC)
def test_the_truth_with_constants_a_thousandth_off_is_symbolic(candidate, truth, box):
    found = verdict(candidate, truth, box)

    assert found.tier == "symbolic"
    assert 0 < found.moved <= 1e-3 * (1 + 1e-9)
    assert found.deviation < 1e-8


@pytest.mark.parametrize(("candidate", "truth", "box"), PAPER)
def test_small_terms_and_rough_constants_are_as_the_authors_counted(candidate, truth, box):
    assert verdict(candidate, truth, box).tier == "paper"


@pytest.mark.parametrize(("candidate", "truth", "box"), WRONG)
def test_what_only_comes_near_is_wrong(candidate, truth, box):
    found = verdict(candidate, truth, box)

    assert found.tier == "wrong"
    assert found.reason


@pytest.mark.parametrize(("candidate", "truth", "box"), EXACT[:12] + SYMBOLIC[:8])
def test_a_stray_term_is_not_symbolic(candidate, truth, box):
    assert not verdict(f"{candidate} + 0.0001*x**2", truth, box).at_least("symbolic")


@pytest.mark.parametrize("off", [1.0009, 0.9991])
def test_the_allowance_is_a_thousandth_from_inside(off):
    assert verdict(f"{off}*x**2 + y", "x**2 + y", XY).tier == "symbolic"


@pytest.mark.parametrize("off", [1.0011, 0.9989])
def test_the_allowance_is_a_thousandth_from_outside(off):
    assert verdict(f"{off}*x**2 + y", "x**2 + y", XY).tier == "paper"


def test_whole_numbers_do_not_move():
    assert verdict("sin(628*x/100)", "sin(2*pi*x)", X).tier == "wrong"


# --- noise ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("candidate", "truth", "box", "errors"),
    [
        ("1.02*x", "x", X, [0.01]),
        ("1.01*sin(6.26*x + 0.02)", "sin(2*pi*x)", X, [0.01, 0.02, 0.01]),
        ("0.98*exp(-1.04*x**2)", "exp(-x**2)", X, [0.01, 0.02]),
        ("1.01*x**2 + 0.98*y - 2.02*z + 0.004*x*y", "x**2 + y - 2*z", XYZ, [0.01] * 4),
        ("1.01*x**1.97", "x**2", POSITIVE, [0.01, 0.02]),
        ("0.7*(1.45*x + 0.05)*(y + 0.02)", "x*y", XY, [0.3, 0.6, 0.1, 0.02]),
    ],
)
def test_three_standard_errors_reach_the_truth(candidate, truth, box, errors):
    equation = Equation.parse(candidate, tuple(box))
    assert len(equation.constants) == len(errors)

    assert verdict(candidate, truth, box, standard_errors=errors).tier == "symbolic"


@pytest.mark.parametrize(
    ("candidate", "truth", "box", "errors"),
    [
        ("1.04*x", "x", X, [0.01]),
        ("x**2 + 0.04*x", "x**2", X, [0.01]),
        ("0.5*cos(1.6*x) + 0.5", "exp(-x**2)", X, [0.1, 0.3, 0.1]),
        ("20.0*sin(0.05*x)", "x", X, [1e6, 1.0]),
        ("x**2 - 0.17*x**4 + 0.01", "sin(x)**2", X, [0.1, 0.1]),
    ],
)
def test_three_standard_errors_reach_no_farther(candidate, truth, box, errors):
    assert not verdict(candidate, truth, box, standard_errors=errors).at_least("symbolic")


@pytest.mark.parametrize("unknown", [None, math.nan])
def test_a_constant_without_standard_error_moves_by_a_thousandth(unknown):
    errors = [unknown, 0.01]

    assert verdict("1.0005*x + 0.98*y", "x + y", XY, standard_errors=errors).tier == "symbolic"
    assert verdict("1.0015*x + 0.98*y", "x + y", XY, standard_errors=errors).tier == "paper"


def test_constants_that_make_up_for_each_other_may_move_by_their_size():
    pair = ("0.8*x*(1.3*y + 1.2*x)", "x*(y + x)", XY)

    assert verdict(*pair, standard_errors=[math.inf] * 3).tier == "symbolic"
    assert not verdict(*pair, standard_errors=[None] * 3).at_least("symbolic")


@pytest.mark.parametrize("seed", range(5))
def test_random_errors_within_their_size_are_undone(seed):
    truth = Equation.parse("1.1*sin(6.3*x) + 1.2*y**2*z + 0.5*exp(2.1*z) + 0.3", tuple(XYZ))
    constants = np.array(truth.constants)
    errors = 0.02 * np.abs(constants)
    noise = np.random.default_rng(seed).uniform(-2.9, 2.9, len(errors)) * errors

    found = judge(truth.with_constants(constants + noise), truth, XYZ, standard_errors=list(errors))

    assert found.tier == "symbolic"
    assert found.deviation < 1e-8


# --- refusals and failures -------------------------------------------------------------------------------

x = sp.Symbol("x", real=True)


def raw(expr):
    return SimpleNamespace(expr=sp.S(expr), variables=("x",))


@pytest.mark.parametrize(
    "expr",
    [
        sp.Piecewise((x, x > -50), (0, True)),
        sp.Max(x, -50),
        sp.Min(x, 50),
        sp.floor(x),
        sp.sign(x) * sp.Abs(x),
        sp.I * x,
        sp.zoo,
        sp.nan,
        sp.oo,
        x + sp.Symbol("w"),
        sp.Function("f")(x),
        x * sp.Float("1e600"),
    ],
    ids=str,
)
def test_what_is_no_elementary_formula_of_the_variables_is_refused(expr):
    found = judge(raw(expr), raw(x), X)

    assert found == Verdict("wrong", found.reason)
    assert found.reason


@pytest.mark.parametrize(
    ("truth", "candidate"),
    [
        (sp.sign(x) + x, sp.sign(x) + sp.Float(1.0004) * x),
        (sp.Max(x, 0), sp.Float(0.9998) * sp.Max(x, 0)),
        (sp.Abs(x), sp.Abs(sp.Float(1.0003) * x)),
    ],
)
def test_a_function_is_allowed_if_the_truth_has_it(truth, candidate):
    assert judge(raw(truth), raw(truth), X).tier == "exact"
    assert judge(raw(candidate), raw(truth), X).tier == "symbolic"
    assert judge(raw(x), raw(truth), X).tier == "wrong"


def test_a_truth_with_conditions_is_judged_as_delivered():
    truth = sp.Piecewise((x, x > 0), (2 * x, True))

    assert judge(raw(truth), raw(truth), X).tier == "exact"
    assert judge(raw(sp.Float(1.0004) * truth), raw(truth), X).tier == "wrong"
    assert judge(raw(x), raw(truth), X).tier == "wrong"


def test_symbols_are_told_by_name_alone():
    plain = SimpleNamespace(expr=sp.Symbol("x", positive=True) ** 2, variables=("x",))

    assert judge(plain, raw(x**2), X).tier == "exact"


def test_twice_the_size_of_the_truth_and_eight_is_too_large():
    padded = "x*(sin(x)**2 + cos(x)**2)"

    assert verdict(padded, "x", X).tier == "wrong"
    assert "nodes" in verdict(padded, "x", X).reason
    assert verdict(f"{padded} + y*z", "x + y*z", XYZ).tier == "exact"


def test_a_candidate_without_real_values_where_the_truth_has_them_is_wrong():
    assert "not real" in verdict("x*sqrt(x)/sqrt(x - 0.5)", "x", X).reason


def test_running_out_of_time_is_wrong_and_says_so():
    found = verdict("1.0003*x**2 + 0.9998*sin(6.285*y)", "x**2 + sin(2*pi*y)", XY, seconds=0.0)

    assert found == Verdict("wrong", "undecided within `seconds`=0.0")


def test_a_huge_candidate_ends_in_bounded_time():
    rng = np.random.default_rng(0)
    waves = (f"{a:.4f}*sin({b:.4f}*x + {c:.4f}*y)**2" for a, b, c in rng.normal(size=(50, 3)))
    start = time.process_time()

    found = verdict(" + ".join(waves), "x*y", XY)

    assert found.tier == "wrong"
    assert time.process_time() - start < 20


def test_towers_of_powers_end():
    assert verdict("x**x**x**x**x", "x", POSITIVE).tier == "wrong"


def test_the_same_pair_gets_the_same_verdict():
    pair = ("1.0003*x**2 + 0.9998*sin(6.285*y)", "x**2 + sin(2*pi*y)", XY)

    assert verdict(*pair) == verdict(*pair)


def test_the_global_random_state_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002

    verdict("1.0003*x", "x", X)

    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


# --- the verdict, and bad input ---------------------------------------------------------------------------


def test_tiers_are_ordered():
    tiers = ["wrong", "paper", "symbolic", "exact"]

    reached = [[Verdict(tier, "").at_least(other) for other in tiers] for tier in tiers]

    assert reached == np.tri(4, dtype=bool).tolist()


def test_a_verdict_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Verdict("exact", "").tier = "wrong"


@pytest.mark.parametrize(
    ("box", "message"),
    [
        ({}, "range of x"),
        ({"y": (0.0, 1.0)}, "range of x"),
        ({"x": (1.0, 1.0)}, "low < high"),
        ({"x": (0.0, math.inf)}, "finite"),
    ],
)
def test_a_bad_box_is_refused(box, message):
    with pytest.raises(InvalidArgument, match=message):
        judge(raw(x), raw(x), box)


def test_a_box_on_which_the_truth_is_not_real_is_refused():
    with pytest.raises(InvalidArgument, match="real and finite at only 0"):
        judge(raw(x), raw(sp.log(x)), {"x": (-2.0, -1.0)})


def test_a_complex_truth_is_refused():
    with pytest.raises(InvalidArgument, match="`truth` must be real"):
        judge(raw(x), raw(sp.I * x), X)


def test_what_is_no_equation_is_refused():
    with pytest.raises(WrongType, match="`candidate` must be an Equation, got str"):
        judge("x", raw(x), X)


@pytest.mark.parametrize(("errors", "message"), [([0.1, 0.1], "2 entries for the 1"), ([-0.1], "negative")])
def test_standard_errors_that_do_not_fit_are_refused(errors, message):
    with pytest.raises(InvalidArgument, match=message):
        judge(raw(sp.Float(1.5) * x), raw(x), X, standard_errors=errors)
