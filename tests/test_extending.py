"""What people add from outside the package: each kind is one object and one registration."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
import torch
from torch import nn

import eqlearn
from eqlearn import (
    EQL,
    Ansatz,
    DynamicsSystem,
    EQLCell,
    Equation,
    Export,
    Form,
    Function,
    ImageArithmetic,
    Settings,
    Strategy,
    Sum,
    Trajectories,
    discover,
    discover_dynamics,
    errors,
    make_encoder,
    register_encoder,
    register_export,
    register_form,
    register_function,
    register_rule,
    register_strategy,
)
from eqlearn.dynamics.forms import FORMS
from eqlearn.functions import FUNCTIONS, NAMES
from eqlearn.latent.encoder import ENCODERS, Encoder
from eqlearn.search.candidate import RULES
from eqlearn.search.strategies import STRATEGIES
from eqlearn.symbolic.languages import EXPORTS, source


@pytest.fixture(autouse=True)
def nothing_stays():
    """Registries as they were, whatever a test adds."""
    registries = (STRATEGIES, RULES, EXPORTS, FORMS, ENCODERS)
    before = [dict(registry) for registry in registries]
    yield
    for registry, old in zip(registries, before, strict=True):
        registry.clear()
        registry.update(old)


def test_a_strategy_of_one_s_own():
    register_strategy(Strategy("thirds", lambda problem, stop: [Ansatz(None, Sum(((0, 3.0),), (), 0.3))]))
    X = np.random.default_rng(0).uniform(1, 2, (50, 1))

    found = discover(X, X[:, 0] / 3 + 1, settings=Settings(strategies=("thirds",), networks=False))

    assert str(found.best.equation) == "x/3 + 1"
    assert found.best.method == "thirds"


def test_a_selection_rule_of_one_s_own():
    register_rule("shortest", lambda front: min(front, key=lambda c: c.complexity))
    X = np.random.default_rng(0).uniform(1, 2, (50, 1))

    found = discover(X, 3 * X[:, 0] + 1, select="shortest")

    assert found.best.complexity == min(c.complexity for c in found.front) == 1


def test_a_language_of_one_s_own():
    register_export(Export("julia", "Julia", lambda equation, name: f"{name}(x) = {equation}"))

    text = source([Equation.parse("2*x + 1", ["x"])], ["line"], "julia")

    assert text == "line(x) = 2*x + 1"


def difference():
    """Equations that say by how much a state changes from one time to the next."""

    def table(trajectories, settings):
        series = trajectories.series
        return np.concatenate([s[:-1] for s in series]), np.concatenate([np.diff(s, axis=0) for s in series])

    return Form("difference", lambda name: f"Δ{name}", table, lambda f, y, dt, substeps: y + f(y))


def test_a_system_of_equations_of_one_s_own():
    register_form(difference())
    x = [0.1]
    for _ in range(60):
        x.append(x[-1] + 0.3 * x[-1] * (1 - x[-1]))

    found = discover_dynamics(Trajectories.of([np.array(x)[:, None]], names=["x"]), "difference")

    assert found.targets == ("Δx",)
    assert found.equations[0].matches(Equation.parse("0.3*x*(1 - x)", ["x"]))
    np.testing.assert_allclose(found.simulate([0.1], 60)[:, 0], x, rtol=1e-8)


class Mean(nn.Module):
    """An encoder without anything that the package's own have."""

    def __init__(self, latents=1):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(latents))

    def forward(self, x):
        return x.flatten(1).mean(dim=1, keepdim=True) * self.scale


def test_an_encoder_of_one_s_own_before_an_equation_and_a_cell():
    register_encoder("mean", Mean)
    encoder = make_encoder("mean", latents=1)

    sums = ImageArithmetic(encoder, EQL(2, 1, "id*2", 1, seed=0))
    system = DynamicsSystem(encoder, EQLCell(2, 1, seed=0))

    assert isinstance(encoder, Encoder)
    assert sums(torch.rand(5, 8, 8), torch.rand(5, 8, 8)).shape == (5,)
    assert system.member(0)(torch.rand(4, 9, 2), torch.rand(4, 2), steps=3).shape == (3, 2, 4)


class Broken(nn.Module):
    def __init__(self, give):
        super().__init__()
        self.give = give

    def forward(self, x):
        return self.give(x)


@pytest.mark.parametrize(
    ("give", "words"),
    [
        (lambda x: [1.0], "must give a tensor"),
        (lambda x: x.sum(), "must give \\(rows, latents\\)"),
        (lambda x: x.flatten(1)[:2], "must give \\(rows, latents\\)"),
        (lambda x: x.flatten(1) * torch.nan, "NaN or infinity"),
    ],
)
def test_an_encoder_that_can_not_stand_before_an_equation_is_refused(give, words):
    system = DynamicsSystem(Broken(give), EQLCell(2, 1, seed=0)).eval()

    with pytest.raises((errors.InvalidArgument, errors.WrongType), match=words):
        system.latent(torch.rand(4, 9, 2))


@pytest.mark.parametrize(
    ("register", "again"),
    [
        (register_strategy, lambda: [Strategy("linear", lambda problem, stop: ())]),
        (register_rule, lambda: ["accuracy", min]),
        (register_export, lambda: [Export("c", "C", lambda equation, name: "")]),
        (register_form, lambda: [Form("map", str, lambda t, s: (t, t), lambda f, y, dt, n: f(y))]),
        (register_encoder, lambda: ["image", Mean]),
    ],
)
def test_a_name_that_is_taken_is_refused(register, again):
    with pytest.raises(errors.InvalidArgument, match="exists already"):
        register(*again())


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    "bad",
    [
        lambda: register_strategy("linear"),
        lambda: register_rule("mine", 3),
        lambda: register_export(3),
        lambda: register_form("map"),
        lambda: register_encoder("mine", 3),
        lambda: register_function("erfc"),
        lambda: Strategy("mine", 3),
        lambda: Settings(strategies="linear"),
        lambda: Settings(strategies=None),
        lambda: discover([[0.0], [1.0]], [0.0, 1.0], settings=Settings(strategies=("numbers",))),
        lambda: Export("mine", "Mine", 3),
        lambda: Form("mine", str, 3, 3),
    ],
)
def test_what_is_no_such_thing_is_refused(bad):
    register_strategy(Strategy("numbers", lambda problem, stop: [1, 2]))

    with pytest.raises(errors.WrongType):
        bad()


def test_a_function_of_one_s_own():
    spelled = {"numpy": "scipy.special.erfc", "torch": "torch.special.erfc", "mpmath": "erfc"}
    register_function(Function("erfcx2", sp.erfc, **spelled))
    try:
        equation = Equation.parse("2*erfcx2(x)", ["x"])
        np.testing.assert_allclose(equation(np.array([[0.0], [1.0]])), [2.0, 2 * 0.15729920705028513])
    finally:
        del NAMES[FUNCTIONS.pop("erfcx2").sympy]


@pytest.mark.parametrize("name", ["sin", "cube", "add", "2x", 3])
def test_a_function_whose_name_means_something_else_is_refused(name, unchecked_types):
    with pytest.raises(errors.InvalidArgument, match="name"):
        register_function(Function(name, sp.erfc, numpy="scipy.special.erfc"))


def test_all_of_it_is_public():
    names = (
        "Ansatz Encoder Export Form Function Problem Strategy Sum Unit register_strategy register_function"
    )

    assert set(names.split()) <= set(eqlearn.__all__)


def test_the_how_tos_for_contributors_run():
    page = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", page, re.M | re.S))
    use = """
import numpy as np
X = np.random.default_rng(0).uniform(1, 2, (60, 1))
found = discover(X, 2 * np.sin(X[:, 0]), settings=settings, select="one percent")
print(found.best.method, found.best.equation)
"""

    done = subprocess.run([sys.executable, "-c", code + use], capture_output=True, text=True, check=False)

    assert done.stderr == ""
    assert done.stdout.split() == ["sines", "2*sin(x)"]
