"""Every export of a formula gives the values of the formula."""

import ctypes
import functools
import importlib.util
import shutil
import subprocess
import sys
import types

import numpy as np
import pytest
import torch

from eqlearn.errors import InvalidArgument, MissingExtra, NotFinite, WrongType
from eqlearn.nn.eql import EQL
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.export import identifiers

FORMULAS = {
    "polynomial": "2.5*x**2 - 3*x*y + y/7 - 0.125",
    "rational": "(x + 1.5)/(y**2 + 2)",
    "functions": "sin(2*pi*x) + cos(y)*tan(0.3*x) + tanh(x - y) + abs(x)",
    "inverse functions": "asin(x/4) + acos(y/4) + atan(x) + sinh(y) + cosh(x)",
    "powers": "abs(x)**1.7 + sqrt(abs(y) + 0.1) + 1/sqrt(x**2 + 1) + x**(-3) + abs(y)**(2/3)",
    "exponentials": "exp(-x**2) + 1/(1 + 3.5*exp(-20*x)) + 0.7**y + log(x**2 + 1)",
    "shared parts": "sin(x + 0.5*y)**2 + exp(sin(x + 0.5*y)) + 1/sin(x + 0.5*y)",
    "far exponential": "1e200*exp(-460.5*x**2) + 1e-400*exp(921.0*x)",
    "negative": "-(-x)**3 - 2.5*(-y)",
    "constant": "2.5 + pi",
    "one variable only": "0.3*y",
}
POINTS = np.random.default_rng(0).uniform(-2, 2, size=(60, 2))
WORDS = (
    "x",
    "y",
    "lambda",
    "my var",
    "θ",
    "µ",
    "μ",
    "a-b",
    "a_b",
    "2nd",
    "t0",
    "np",
    "sin",
    "int",
    "NAN",
    "'",
)


@functools.cache
def network_formula():
    net = EQL(2, 1, "id square sin exp sigmoid mul div", 2, bias=True, seed=0).double()
    return Equation.read(net, ["x", "y"])


@pytest.fixture(params=[*FORMULAS, "network"])
def equation(request):
    if request.param == "network":
        return network_formula()
    return Equation.parse(FORMULAS[request.param], ["x", "y"])


def run_python(source, tmp_path):
    path = tmp_path / "exported.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("exported", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.equation


def run_c(source, tmp_path, variables):
    path = tmp_path / "exported.c"
    path.write_text(source)
    compiled = subprocess.run(
        ["gcc", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-O1", "-shared", "-fPIC", "-o",
         tmp_path / "exported.so", path, "-lm"], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert compiled.returncode == 0, compiled.stderr
    function = ctypes.CDLL(str(tmp_path / "exported.so")).equation
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * variables
    return function


needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")


def test_python_source_gives_the_same_values(equation, tmp_path):
    function = run_python(equation.python(), tmp_path)

    values = function(POINTS[:, 0], POINTS[:, 1])

    np.testing.assert_allclose(values, equation(POINTS), rtol=1e-12)


@needs_gcc
def test_c_source_gives_the_same_values(equation, tmp_path):
    function = run_c(equation.c(), tmp_path, 2)

    values = [function(x, y) for x, y in POINTS]

    np.testing.assert_allclose(values, equation(POINTS), rtol=1e-12)


def test_the_torch_module_gives_the_same_values(equation):
    if "e-400" in str(equation.to_json()):
        pytest.skip("a constant beyond float64 can't be trained")

    values = equation.torch()(torch.tensor(POINTS))[:, 0].detach().numpy()

    np.testing.assert_allclose(values, equation(POINTS), rtol=1e-12)


def test_the_jax_function_gives_the_same_values(equation):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)

    values = np.asarray(jax.jit(equation.jax())(POINTS))

    np.testing.assert_allclose(values, equation(POINTS), rtol=1e-12)


def test_the_jax_function_needs_nothing_but_an_array_library(equation, monkeypatch):
    stand_in = types.ModuleType("jax.numpy")
    stand_in.__dict__.update({name: getattr(np, name) for name in dir(np) if not name.startswith("_")})
    package = types.ModuleType("jax")
    package.numpy = stand_in
    monkeypatch.setitem(sys.modules, "jax", package)
    monkeypatch.setitem(sys.modules, "jax.numpy", stand_in)

    with np.errstate(all="ignore"):
        values = equation.jax()(POINTS)

    np.testing.assert_allclose(values, equation(POINTS), rtol=1e-12)


def test_without_jax_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.setitem(sys.modules, "jax.numpy", None)

    with pytest.raises(MissingExtra, match=r"eqlearn\[jax\]"):
        Equation.parse("x", ["x"]).jax()


def test_domain_errors_are_quiet_in_every_export(tmp_path):
    equation = Equation.parse("log(x) + sqrt(y) + 1/x", ["x", "y"])
    rows = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, -1.0], [2.0, 2.0]])

    expected = np.isfinite(equation(rows)).tolist()
    by_python = np.isfinite(run_python(equation.python(), tmp_path)(*rows.T)).tolist()
    by_torch = torch.isfinite(equation.torch()(torch.tensor(rows))[:, 0]).tolist()

    assert expected == by_python == by_torch == [False, False, False, True]


def test_python_source_broadcasts_and_takes_whole_numbers(tmp_path):
    function = run_python(Equation.parse("1/x + y**2", ["x", "y"]).python(), tmp_path)

    assert function(2, np.array([1, 2, 3])).tolist() == [1.5, 4.5, 9.5]


def test_a_part_that_appears_twice_is_computed_once():
    source = Equation.parse(FORMULAS["shared parts"], ["x", "y"]).python()

    assert source.count("np.sin(") == 1


@pytest.mark.parametrize("names", [WORDS[:3], WORDS], ids=["few", "all"])
def test_awkward_names_become_distinct_identifiers(names):
    made = identifiers(names)

    assert len(set(made)) == len(names)
    assert all(m.isidentifier() and m.isascii() for m in made)


@pytest.mark.parametrize("name", WORDS)
def test_source_code_works_with_an_awkward_name(name, tmp_path):
    equation = Equation.parse("2.5*`" + name + "` + sin(`" + name + "`)", [name])

    by_python = run_python(equation.python(), tmp_path)(np.array([0.5]))

    np.testing.assert_allclose(by_python, equation(np.array([[0.5]])))


@needs_gcc
@pytest.mark.parametrize("name", ["int", "NAN", "linux", "y1", "M_PI", "x\n#error", "*/ broken /*", "a\\"])
def test_c_source_works_with_an_awkward_name(name, tmp_path):
    equation = Equation.parse("2.5*`" + name + "`", [name])

    assert run_c(equation.c(), tmp_path, 1)(2.0) == 5.0


@pytest.mark.parametrize(
    "name", ['"""\nimport os\nos.abort()\n"""', "x): return 0\nraise SystemExit\ndef f(y", "\\", "\r\n1/0"]
)
def test_a_name_cannot_smuggle_code_into_the_source(name, tmp_path):
    equation = Equation.parse("3*`" + name.replace("`", "``") + "`", [name])

    function = run_python(equation.python(), tmp_path)

    assert function(2.0) == 6.0


def test_training_the_module_moves_the_equation():
    X = torch.linspace(0.1, 2, 50, dtype=torch.float64)[:, None]
    target = 3.0 * torch.exp(-0.7 * X)
    module = Equation.parse("1.0*exp(-0.2*t)", ["t"]).torch()
    optimiser = torch.optim.LBFGS(module.parameters(), max_iter=100, line_search_fn="strong_wolfe")

    def loss():
        optimiser.zero_grad()
        value = (module(X) - target).square().mean()
        value.backward()
        return value

    optimiser.step(loss)
    trained = Equation.read(module, ["t"])

    assert trained.constants == pytest.approx((3.0, -0.7), rel=1e-4)
    np.testing.assert_allclose(trained(X.numpy()), module(X).detach()[:, 0].numpy(), rtol=1e-12)


def test_reading_an_untrained_module_gives_the_equation_back(equation):
    if "e-400" in str(equation.to_json()):
        pytest.skip("a constant beyond float64 can't be trained")

    assert Equation.read(equation.torch(), ["x", "y"], simplify=False) == equation


def test_the_module_can_be_read_in_other_variables():
    module = Equation.parse("2.5*x", ["x"]).torch()

    assert str(Equation.read(module, ["time"])) == "2.5*time"


def test_the_module_keeps_batch_axes_and_dtype():
    module = Equation.parse("2.5*x + y", ["x", "y"]).torch()

    out = module(torch.zeros(3, 4, 2))

    assert out.shape == (3, 4, 1)
    assert out.dtype == torch.float32


def test_the_module_starts_in_float64_with_the_constants_in_reading_order():
    equation = Equation.parse("2.5*x**2 + 1.5*x + 0.5", ["x"])
    module = equation.torch()

    assert module.constants.dtype == torch.float64
    assert tuple(module.constants.tolist()) == equation.constants == (2.5, 1.5, 0.5)


def test_an_exact_formula_has_nothing_to_train():
    module = Equation.parse("sin(2*pi*x)", ["x"]).torch()

    assert module.constants.shape == (0,)
    assert module(torch.tensor([[0.25]])).item() == pytest.approx(1.0)


def test_the_module_goes_through_state_dict_and_vmap():
    equation = Equation.parse("2.5*exp(-x)", ["x"])
    module, other = equation.torch(), equation.with_constants([7.0]).torch()
    other.load_state_dict(module.state_dict())
    rows = torch.rand(5, 1, dtype=torch.float64)

    mapped = torch.func.vmap(other)(rows)

    torch.testing.assert_close(mapped, module(rows))


def test_the_module_refuses_the_wrong_number_of_features():
    with pytest.raises(InvalidArgument, match="2 features"):
        Equation.parse("x + y", ["x", "y"]).torch()(torch.zeros(3, 3))


def test_a_broken_constant_is_not_read():
    module = Equation.parse("2.5*x", ["x"]).torch()
    with torch.no_grad():
        module.constants.fill_(torch.nan)

    with pytest.raises(NotFinite, match="constant"):
        Equation.read(module, ["x"])


def test_a_constant_beyond_float64_cannot_be_trained():
    with pytest.raises(NotFinite, match="scale"):
        Equation.parse("1e-400*exp(900.0*x)", ["x"]).torch()


def test_whole_numbers_are_not_cut_off(unchecked_types):
    with pytest.raises(WrongType, match=r"convert it with `\.to\(torch\.float64\)`"):
        Equation.parse("0.5*x", ["x"]).torch()(torch.tensor([[1], [3]]))


def test_source_code_shows_letters_of_all_scripts_and_nothing_that_hides():
    names = ["\u0434\u043b\u0438\u043d\u0430", "a\u202eb"]

    source = Equation.parse(f"`{names[0]}` + `{names[1]}`", names).python()

    assert names[0] in source
    assert "\u202e" not in source
    assert r"\U0000202e" in source
    compile(source, "equation.py", "exec")
