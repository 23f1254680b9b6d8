"""Penalties, against their formulas, their derivatives and what they stand for."""

import math

import pytest
import sympy as sp
import torch
from torch import nn

from eqlearn.errors import InvalidArgument, UnknownName
from eqlearn.nn.eql import EQL
from eqlearn.nn.penalties import L0, PENALTIES, Group, Lq, SmoothHalf, find_penalty, smooth_half, sparsity
from eqlearn.nn.sparse import SparseLinear, prune_, sparse_layers

A = 0.01


def papers_formula(w: float, a: float) -> float:
    return math.sqrt(abs(w) if abs(w) >= a else -(w**4) / (8 * a**3) + 3 * w**2 / (4 * a) + 3 * a / 8)


def slope(penalty, w: torch.Tensor) -> torch.Tensor:
    w = w.clone().requires_grad_()
    return torch.autograd.grad(penalty(w).sum(), w)[0]


def layer(values: torch.Tensor, gates: bool = False) -> SparseLinear:
    members = len(values) if values.dim() == 3 else None
    made = SparseLinear(values.shape[-1], values.shape[-2], members=members, gates=gates)
    with torch.no_grad():
        made.raw.copy_(values)
    return made


@pytest.mark.parametrize("a", [0.01, 0.05, 0.5])
def test_smooth_half_is_the_papers_formula(a):
    w = torch.linspace(-3 * a, 3 * a, 101, dtype=torch.float64)

    expected = torch.tensor([papers_formula(v, a) for v in w.tolist()], dtype=torch.float64)

    torch.testing.assert_close(smooth_half(w, a), expected)


@pytest.mark.parametrize("sign", [-1, 1])
def test_smooth_half_is_continuous_at_the_threshold(sign):
    edge = sign * torch.tensor([A - 1e-12, A + 1e-12], dtype=torch.float64)

    below, above = smooth_half(edge, A)

    assert float(below) == pytest.approx(float(above), abs=1e-9)


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_slope_of_smooth_half_is_continuous_at_the_threshold(sign):
    edge = sign * torch.tensor([A - 1e-12, A + 1e-12], dtype=torch.float64)

    below, above = slope(lambda w: smooth_half(w, A), edge)

    assert float(below) == pytest.approx(float(above), rel=1e-9)


def test_the_slope_of_smooth_half_is_the_derivative_of_the_formula():
    w = sp.Symbol("w", positive=True)
    derivative = sp.lambdify(w, sp.diff(sp.sqrt(-(w**4) / (8 * A**3) + 3 * w**2 / (4 * A) + 3 * A / 8), w))
    points = torch.linspace(1e-4, 0.99 * A, 30, dtype=torch.float64)

    actual = slope(lambda v: smooth_half(v, A), points)

    torch.testing.assert_close(
        actual, torch.tensor([derivative(v) for v in points.tolist()], dtype=torch.float64)
    )


def test_smooth_half_is_the_root_above_the_threshold():
    w = torch.linspace(A, 5, 200, dtype=torch.float64)

    assert torch.equal(smooth_half(w, A), w.sqrt())
    assert torch.equal(smooth_half(-w, A), w.sqrt())


def test_smooth_half_has_no_slope_at_zero():
    assert float(slope(lambda w: smooth_half(w, A), torch.zeros(1))) == 0.0


@pytest.mark.parametrize("size", [0.0, 1e-45, 1e-20, 1e-3, 1e4, 1e20, 1e38])
@pytest.mark.parametrize("penalty", [SmoothHalf(), Lq(1.0)], ids=str)
def test_values_and_slopes_are_finite_for_any_weight(penalty, size):
    w = torch.tensor([size, -size])

    assert bool(torch.isfinite(penalty.of(w)).all())
    assert bool(torch.isfinite(slope(penalty.of, w)).all())


@pytest.mark.parametrize("q", [0.3, 0.5, 0.7, 1.0, 2.0])
def test_lq_is_the_sum_of_powers(q):
    values = torch.tensor([[0.5, -2.0], [1.5, 0.25]])

    expected = sum(abs(v) ** q for v in values.flatten().tolist())

    assert float(Lq(q)(layer(values)).detach()) == pytest.approx(expected)


@pytest.mark.parametrize("q", [0.3, 0.5, 1.0, 2.0])
def test_the_slope_of_lq_at_zero_is_zero(q):
    assert float(slope(Lq(q).of, torch.zeros(1))) == 0.0


def test_the_slope_of_lq_is_that_of_a_power():
    w = torch.tensor([0.4, -0.9], dtype=torch.float64)

    expected = 0.5 * w.abs() ** -0.5 * w.sign()

    torch.testing.assert_close(slope(Lq(0.5).of, w), expected)


def test_l0_is_the_observed_number_of_open_gates():
    gated = layer(torch.ones(100, 100), gates=True)
    with torch.no_grad():
        gated.gate.log_alpha.copy_(torch.linspace(-4, 4, 10_000).reshape(100, 100))

    expected = float(L0()(gated).detach())
    seen = sum(int((gated.gate() > 0).sum()) for _ in range(10)) / 10

    # Five standard errors of a sum of 100,000 independent gates, divided by ten.
    assert seen == pytest.approx(expected, abs=5 * math.sqrt(0.25 * 100_000) / 10)


def test_l0_does_not_count_pruned_gates():
    gated = layer(torch.ones(2, 2), gates=True)
    whole = float(L0()(gated).detach())

    gated.keep_(torch.tensor([[True, False], [False, False]]))

    assert float(L0()(gated).detach()) == pytest.approx(whole / 4)


def test_l0_needs_gates():
    with pytest.raises(InvalidArgument, match="gates=True"):
        sparsity(EQL(1, seed=0), "l0")


@pytest.mark.parametrize("name", ["half", "plain-half", "l1"])
def test_pruned_weights_cost_nothing(name):
    net = EQL(2, seed=0)

    prune_(net, below=1e9)

    assert float(sparsity(net, name).detach()) == 0.0


@pytest.mark.parametrize("name", PENALTIES)
def test_each_member_has_a_penalty_of_its_own(name):
    population = EQL(2, members=3, gates=True, seed=0).eval()

    together = sparsity(population, name)

    torch.testing.assert_close(
        together, torch.stack([sparsity(population.member(i), name) for i in range(3)])
    )


def test_sparsity_leaves_encoders_alone():
    encoder, net = nn.Linear(3, 2), EQL(2, seed=0)
    model = nn.Sequential(encoder, net)

    sparsity(model).backward()

    torch.testing.assert_close(sparsity(model), sparsity(net))
    assert encoder.weight.grad is None


def test_sparsity_is_the_sum_over_layers():
    net = EQL(2, seed=0)

    expected = sum(smooth_half(linear.raw, A).sum() for linear in sparse_layers(net))

    torch.testing.assert_close(sparsity(net), expected)


@pytest.mark.parametrize(("over", "groups"), [("members", 12), ("outputs", 3), ("inputs", 4)])
def test_a_group_is_penalised_as_one_weight_of_its_typical_size(over, groups):
    equal = layer(torch.full((2, 4, 3), 0.81))

    value = Group(Lq(0.5), over)(equal)

    torch.testing.assert_close(value, torch.full(value.shape, groups * 0.9))


def test_a_group_over_members_gives_one_number():
    assert Group(over="members")(layer(torch.ones(2, 4, 3))).shape == ()


@pytest.mark.parametrize("over", ["outputs", "inputs"])
def test_a_group_over_outputs_or_inputs_gives_one_number_per_member(over):
    assert Group(over=over)(layer(torch.ones(2, 4, 3))).shape == (2,)
    assert Group(over=over)(layer(torch.ones(4, 3))).shape == ()


@pytest.mark.parametrize("over", ["members", "outputs", "inputs"])
@pytest.mark.parametrize("penalty", [SmoothHalf(), Lq(0.5)], ids=str)
def test_an_all_zero_group_has_a_finite_slope(penalty, over):
    zero = layer(torch.zeros(2, 4, 3))

    Group(penalty, over)(zero).sum().backward()

    assert bool((zero.raw.grad == 0).all())


def test_a_pruned_group_costs_nothing():
    made = layer(torch.ones(2, 4, 3))

    made.keep_(torch.zeros(2, 4, 3, dtype=torch.bool))

    assert float(Group()(made).detach()) == 0.0


def test_a_group_over_members_needs_members():
    with pytest.raises(InvalidArgument, match="members"):
        Group(over="members")(layer(torch.ones(4, 3)))


def test_an_unknown_group_is_refused(unchecked_types):
    with pytest.raises(UnknownName, match="members, time, outputs, inputs"):
        Group(over="rows")


def test_any_function_of_a_layer_is_a_penalty():
    net = EQL(2, seed=0)

    assert float(sparsity(net, lambda made: made.weight.detach().sum() * 0 + 1)) == 3.0


def test_an_unknown_penalty_is_refused():
    with pytest.raises(UnknownName, match="plain-half"):
        find_penalty("l7")


@pytest.mark.parametrize("a", [0.0, -1.0, math.nan])
def test_a_bad_threshold_is_refused(a):
    with pytest.raises(InvalidArgument, match="`a`"):
        SmoothHalf(a)


@pytest.mark.parametrize("q", [0.0, -1.0, math.nan])
def test_a_bad_exponent_is_refused(q):
    with pytest.raises(InvalidArgument, match="`q`"):
        Lq(q)


def test_a_model_without_sparse_layers_is_refused():
    with pytest.raises(InvalidArgument, match="no sparse layer"):
        sparsity(nn.Linear(1, 1))


def test_populations_of_different_sizes_are_not_mixed():
    with pytest.raises(InvalidArgument, match="members"):
        sparsity(nn.ModuleList([EQL(1, members=2, seed=0), EQL(1, seed=0)]))
