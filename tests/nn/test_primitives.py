"""The contract of every registered primitive, and the text form of sets."""

import copy
import pickle

import pytest
import sympy as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from eqlearn.errors import EqlearnError, InvalidArgument, UnknownName, WrongType
from eqlearn.nn.eql import EQL
from eqlearn.nn.primitives import (
    PAPER,
    PRIMITIVES,
    RELEASED,
    Primitive,
    format_set,
    lookup,
    parse_layers,
    parse_set,
    register,
)

every_primitive = pytest.mark.parametrize("primitive", list(PRIMITIVES.values()), ids=lambda p: p.name)
with_arguments = pytest.mark.parametrize(
    "primitive", [p for p in PRIMITIVES.values() if p.arity > 0], ids=lambda p: p.name
)
ZERO_POINT = ("exp0", "cos0", "sigmoid0")
EDGES = [0.0, -0.0, 1e-45, 1e-30, 1e-6, 1e-3, 0.5, 1.0, 2.0, 80.0, 89.0, 1e4]
# Where the plain formula is a real number with a finite slope; elsewhere its mathematics is undefined.
DOMAINS = {
    "log": lambda g: g > 0,
    "sqrt": lambda g: g > 0,
    "inv": lambda g: g != 0,
    "div": lambda a, b: b != 0,
    "pow": lambda a, b: a > 0,
    **dict.fromkeys(("asin", "acos", "atanh", "erfinv"), lambda g: g.abs() < 1),
    "acosh": lambda g: g > 1,
}
# Moderate arguments go up to 5, but for what ends at 1, and begin above 0, but for what begins at 1.
REACH = dict.fromkeys(("asin", "acos", "atanh", "erfinv"), 0.19)
START = {"acosh": 1.01}


@pytest.fixture
def registry():
    """Takes primitives that a test registers out again."""
    known = dict(PRIMITIVES)
    yield PRIMITIVES
    PRIMITIVES.clear()
    PRIMITIVES.update(known)


def slopes(primitive: Primitive, *args: torch.Tensor, guarded: bool) -> tuple[torch.Tensor, ...]:
    leaves = [a.detach().clone().requires_grad_() for a in args]
    value = primitive(*leaves, guarded=guarded)
    return value.detach(), *torch.autograd.grad(value.sum(), leaves)


def grid(arity: int) -> list[torch.Tensor]:
    points = torch.tensor([s * e for s in (1, -1) for e in EDGES] + [-3.7, 0.3, 17.0, -5e3])
    return list(torch.cartesian_prod(*[points] * arity).reshape(-1, arity).unbind(dim=1))


@every_primitive
def test_tensors_and_symbols_agree(primitive):
    points = torch.linspace(START.get(primitive.name, 0.1), 1.9, 7, dtype=torch.float64)
    args = [(points + 0.1 * i) * REACH.get(primitive.name, 1.0) for i in range(primitive.arity)]
    symbols = sp.symbols(f"g:{primitive.arity}")
    expected = sp.lambdify(symbols, primitive.symbolic(*symbols), ["scipy", "numpy"])(
        *(a.numpy() for a in args)
    )

    actual = torch.as_tensor(primitive(*args), dtype=torch.float64)

    torch.testing.assert_close(actual, torch.as_tensor(expected, dtype=torch.float64).expand(actual.shape))


@with_arguments
def test_tensors_and_symbols_agree_for_negative_arguments(primitive):
    points = [-0.7 - 0.3 * i for i in range(primitive.arity)]
    symbols = sp.symbols(f"g:{primitive.arity}")
    expected = complex(primitive.symbolic(*symbols).subs(dict(zip(symbols, points, strict=True))).evalf())

    actual = float(primitive(*(torch.tensor(p, dtype=torch.float64) for p in points)))

    assert actual == pytest.approx(expected.real) if expected.imag == 0 else actual != actual


@with_arguments
def test_values_and_slopes_are_finite_while_training(primitive):
    results = slopes(primitive, *grid(primitive.arity), guarded=True)

    assert all(bool(torch.isfinite(r).all()) for r in results)


@given(st.data())
def test_no_finite_input_gives_nan_while_training(data):
    number = st.floats(-1e4, 1e4, width=32)
    primitive = data.draw(st.sampled_from([p for p in PRIMITIVES.values() if p.arity > 0]))
    args = [torch.tensor(data.draw(st.lists(number, min_size=4, max_size=4))) for _ in range(primitive.arity)]

    results = slopes(primitive, *args, guarded=True)

    assert not any(bool(torch.isnan(r).any()) for r in results)


@with_arguments
def test_the_plain_formula_gives_nan_only_where_it_is_undefined(primitive):
    args = grid(primitive.arity)
    defined = DOMAINS.get(primitive.name, lambda *a: torch.ones_like(a[0], dtype=torch.bool))(*args)

    results = slopes(primitive, *args, guarded=False)

    assert not any(bool(torch.isnan(r[defined]).any()) for r in results)


@with_arguments
def test_the_guard_leaves_moderate_arguments_alone(primitive):
    points = torch.linspace(START.get(primitive.name, 0.01), 5, 50) * REACH.get(primitive.name, 1.0)
    args = [points + 0.1 * i for i in range(primitive.arity)]

    assert torch.equal(primitive(*args, guarded=True), primitive(*args))


@with_arguments
def test_even_arguments_may_change_sign_while_training(primitive):
    args = [torch.linspace(-2, 2, 20) + 0.05 * i for i in range(primitive.arity)]
    flipped = [-a if i in primitive.even else a for i, a in enumerate(args)]

    assert torch.equal(primitive(*args, guarded=True), primitive(*flipped, guarded=True))


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("log", lambda g: g.abs().clamp(min=1e-6).log()),
        ("sqrt", lambda g: g.abs().clamp(min=1e-6).sqrt()),
        ("inv", lambda g: torch.where(g < 0, -1.0, 1.0) / g.abs().clamp(min=1e-3)),
        ("exp", lambda g: g.clamp(max=80).exp()),
    ],
)
def test_the_documented_rule_holds_where_the_formula_is_undefined(name, rule):
    (g,) = grid(1)

    torch.testing.assert_close(lookup(name)(g, guarded=True), rule(g))


@every_primitive
def test_a_primitive_pickles_by_name(primitive):
    assert pickle.loads(pickle.dumps(primitive)) is primitive


@every_primitive
def test_a_copy_is_the_primitive_itself(primitive):
    assert copy.deepcopy(primitive) is primitive


@every_primitive
def test_a_primitive_shows_its_formula(primitive):
    assert repr(primitive).startswith(f"<{primitive.name}: ")


@pytest.mark.parametrize("name", ZERO_POINT)
def test_zero_point_consistent_forms_vanish_at_zero(name):
    assert lookup(name).symbolic(0) == 0
    assert float(lookup(name)(torch.zeros(()))) == 0.0


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownName, match="did you mean 'sin'"):
        lookup("sine")


def test_a_hopeless_name_lists_the_known_ones():
    with pytest.raises(UnknownName, match="one, id, square"):
        lookup("qqqqqq")


def test_the_papers_set_is_the_papers():
    units = parse_set(PAPER)
    symbol = sp.Symbol("g")
    sigmoid = 1 / (1 + sp.exp(-20 * symbol))

    counts = {name: [p.name for p in units].count(name) for name in {p.name for p in units}}

    assert counts == {"one": 2, "id": 4, "square": 4, "sin": 2, "exp": 2, "sigmoid": 2, "mul": 2}
    assert lookup("sin").symbolic(symbol) == sp.sin(2 * sp.pi * symbol)
    assert lookup("sigmoid").symbolic(symbol) == sigmoid


@pytest.mark.parametrize("text", [PAPER, RELEASED, "id", "id mul id", "sin*2 cos sin"])
def test_the_text_form_of_a_set_reads_back(text):
    assert format_set(parse_set(text)) == text


@given(st.lists(st.sampled_from(list(PRIMITIVES.values())), min_size=1, max_size=30))
def test_any_units_survive_the_text_form(units):
    assert parse_set(format_set(units)) == tuple(units)


def test_one_set_serves_all_layers():
    assert parse_layers("id mul", 3) == (parse_set("id mul"),) * 3


def test_layers_may_have_sets_of_their_own():
    assert parse_layers(["id", [lookup("mul")]], 2) == (parse_set("id"), parse_set("mul"))


@pytest.mark.parametrize(
    "text", ["", "  ", "sin*0", "sin*-1", "sin*x", "2*sin", "sin**2", "sin*2.5", "sin*" + "9" * 9]
)
def test_a_bad_set_is_refused(text):
    with pytest.raises(InvalidArgument, match="primitives"):
        parse_set(text)


def test_an_unknown_name_in_a_set_is_refused():
    with pytest.raises(UnknownName, match="'sigmoid'"):
        parse_set("id*2 sigmoud*3")


@pytest.mark.parametrize(
    ("sets", "layers"), [("id", 0), ("id", -1), (["id"], 2), (["id", "mul"], 3), ([""], 1)]
)
def test_sets_that_do_not_fit_the_layers_are_refused(sets, layers):
    with pytest.raises(InvalidArgument):
        parse_layers(sets, layers)


@pytest.mark.parametrize("units", [[3], [[3]], [["id"]], 7, None], ids=repr)
def test_sets_of_the_wrong_kind_are_refused(units, unchecked_types):
    with pytest.raises(WrongType, match="primitives"):
        parse_layers(units, 1)


@pytest.mark.parametrize(
    ("arity", "formula"),
    [
        (1, lambda m, g: m.log(1 + m.exp(g))),
        (2, lambda m, a, b: a / (1 + b**2)),
        (3, lambda m, a, b, c: a * b - m.cos(c)),
    ],
)
def test_a_custom_primitive_of_any_arity_is_one_statement(registry, arity, formula):
    custom = register(Primitive("custom", arity, formula))
    net = EQL(2, primitives="id custom*2", seed=0).double()
    x = sp.symbols("x:2")

    y = net(torch.tensor([[0.3, -0.6]], dtype=torch.float64))

    expression = net.symbolic(x)[0].subs({x[0]: 0.3, x[1]: -0.6})
    assert pickle.loads(pickle.dumps(custom)) is custom
    assert float(y.detach()) == pytest.approx(float(expression))


def test_a_constant_primitive_takes_no_argument(registry):
    register(Primitive("golden", 0, lambda m: (1 + 5**0.5) / 2))

    assert lookup("golden")() == pytest.approx(1.618033988749895)


def test_a_formula_may_be_undefined_at_the_points_of_the_check(registry):
    register(Primitive("far", 1, lambda m, g: m.log(g - 1)))

    assert float(lookup("far")(torch.tensor(2.0))) == 0.0


def test_registering_the_same_primitive_twice_is_harmless(registry):
    custom = register(Primitive("custom", 1, lambda m, g: g + 1))

    assert register(custom) is custom


def test_an_unregistered_primitive_works_but_does_not_pickle():
    custom = Primitive("custom", 1, lambda m, g: g + 1)
    net = copy.deepcopy(EQL(1, primitives=[custom], hidden_layers=1, seed=0))

    assert net(torch.zeros(3, 1)).shape == (3, 1)
    with pytest.raises(InvalidArgument, match="register"):
        pickle.dumps(custom)


@pytest.mark.parametrize(
    ("arity", "formula"),
    [
        (2, lambda m, g: g),
        (1, lambda m, g: m.bessel(g)),
        (1, lambda m, g: torch.relu(g)),
        (1, lambda m, g: 3),
        (1, lambda m, g: g.sum() if isinstance(g, torch.Tensor) else g),
        (1, lambda m, g: g + 1 if isinstance(g, torch.Tensor) else g),
        (1, lambda m, g: 1 / 0),
    ],
    ids=["arity", "unknown function", "tensors only", "constant", "reduces", "different twins", "raises"],
)
def test_a_bad_formula_is_refused(registry, arity, formula):
    with pytest.raises(InvalidArgument, match="custom"):
        register(Primitive("custom", arity, formula))
    assert "custom" not in registry


def test_a_bad_guard_is_refused(registry):
    with pytest.raises(InvalidArgument, match="custom"):
        register(Primitive("custom", 1, lambda m, g: g, guard=lambda a, b: (a, b)))


def test_a_name_is_taken_once():
    with pytest.raises(InvalidArgument, match="exists already"):
        register(Primitive("sin", 1, lambda m, g: g))


@pytest.mark.parametrize("name", ["", "two words", "2x", "a*b", "__import__('os')"])
def test_a_name_must_be_an_identifier(name):
    with pytest.raises(InvalidArgument, match="identifier"):
        Primitive(name, 1, lambda m, g: g)


def test_a_negative_arity_is_refused():
    with pytest.raises(InvalidArgument, match="arity"):
        Primitive("f", -1, lambda m: 1)


def test_even_arguments_must_exist():
    with pytest.raises(InvalidArgument, match="even"):
        Primitive("f", 1, lambda m, g: g, even=(1,))


def test_a_formula_must_be_a_function(unchecked_types):
    with pytest.raises(WrongType, match="formula"):
        Primitive("f", 1, "g**2")


def test_our_errors_are_also_the_builtin_ones():
    assert issubclass(InvalidArgument, ValueError)
    assert issubclass(WrongType, TypeError)
    assert issubclass(UnknownName, LookupError)
    assert all(issubclass(e, EqlearnError) for e in (InvalidArgument, WrongType, UnknownName))
