"""The examples run, each ends in a picture, and those with a law to find find it."""

import importlib.util
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import eqlearn

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
# The others search for dynamics or train on images: tens of seconds each, even with `quick`.
SHORT = {"table", "custom_primitive"}

LORENZ = ["10*y - 10*x", "28*x - x*z - y", "x*y - 8*z/3"]
PREY = ["1.1*prey - 0.4*prey*predators", "0.1*prey*predators - 0.4*predators"]
FREE = ["v", "-2*x - 0.3*v"]
DRIVEN = ["v", "-2*x - 0.3*v + 0.8*force", "1.5*behind", "-1.5*force"]
# Deterministic, and enough for all of these: the budget is not the clock's.
BUDGET = {"restarts": 20}


def example(name):
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def terms(equation):
    """An equation's coefficients, by the powers of its variables and of the sine of the first of them."""
    symbols = [sp.Symbol(name, real=True) for name in equation.variables]
    return sp.Poly(sp.expand(sp.N(equation.expr)), *symbols, sp.sin(symbols[0])).as_dict()


def assert_same_terms(found, truth, tolerance):
    for equation, text in zip(found.equations, truth, strict=True):
        mine, true = terms(equation), terms(eqlearn.Equation.parse(text, equation.variables))
        assert set(mine) == set(true), f"{equation} for {text}"
        for powers, value in true.items():
            assert float(mine[powers]) == pytest.approx(float(value), rel=tolerance), f"{equation} for {text}"


@pytest.mark.parametrize(
    "script", [pytest.param(s, id=s.stem, marks=() if s.stem in SHORT else pytest.mark.slow) for s in SCRIPTS]
)
def test_an_example_ends_in_a_picture(script, tmp_path, monkeypatch, unchecked_types):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setattr("eqlearn.nn.primitives.PRIMITIVES", dict(eqlearn.PRIMITIVES))
    module = example(script.stem)
    small = {"quick": True} if "quick" in inspect.signature(module.main).parameters else {}

    module.main(**small)

    picture = tmp_path / f"{script.stem}.png"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_every_example_is_listed():
    listed = re.findall(
        r"^\| \[`(\w+\.py)`\]", (EXAMPLES / "README.md").read_text(encoding="utf-8"), flags=re.M
    )

    assert sorted(listed) == [script.name for script in SCRIPTS]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_is_short(script):
    assert len(script.read_text(encoding="utf-8").splitlines()) <= 120


# Per mille without noise, a few per cent with it. The short ones hold what the long ones do, on less data.
NOISES = [
    pytest.param(0.0, 1e-3, False, id="clean"),
    pytest.param(0.0, 1e-3, True, id="clean-full", marks=pytest.mark.slow),
    pytest.param(0.01, 0.03, True, id="noisy-full", marks=pytest.mark.slow),
]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("noise", "tolerance", "full"), NOISES)
def test_lorenz_finds_the_lorenz_system(noise, tolerance, full, unchecked_types):
    lorenz = example("lorenz")

    found = lorenz.find(lorenz.observe(noise, 10 if full else 3), **BUDGET)

    assert_same_terms(found, LORENZ, tolerance)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("noise", "tolerance", "full"), NOISES)
def test_lotka_volterra_finds_who_eats_whom(noise, tolerance, full, unchecked_types):
    prey = example("lotka_volterra")

    found = prey.find(prey.observe(noise, 20 if full else 8), **BUDGET)

    assert_same_terms(found, PREY, tolerance)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("noise", "tolerance", "full"), NOISES)
@pytest.mark.parametrize(("name", "truth"), [("FREE", FREE), ("DRIVEN", DRIVEN)])
def test_the_damped_oscillator_finds_its_equations(name, truth, noise, tolerance, full, unchecked_types):
    oscillator = example("damped_oscillator")
    system = getattr(oscillator, name)

    found = oscillator.find(system, oscillator.observe(system, noise, 12 if full else 6), **BUDGET)

    assert_same_terms(found, truth, tolerance)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("noise", "tolerance"), [(0.0, 1e-3), (0.01, 0.03)])
def test_pendulum_finds_the_law_and_every_length(noise, tolerance, unchecked_types):
    pendulum = example("pendulum")
    lengths = np.array([0.6, 0.8, 1.0, 1.3, 1.6, 1.9])

    found = pendulum.find(pendulum.observe(lengths, noise), **BUDGET)

    assert_same_terms(found, ["omega", "-z*sin(theta)"], tolerance)
    np.testing.assert_allclose(found.latents[:, 0], pendulum.G / lengths, rtol=tolerance)
