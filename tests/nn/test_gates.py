"""Hard-concrete gates and the noise that drives them."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eqlearn.errors import InvalidArgument
from eqlearn.nn.eql import EQL
from eqlearn.nn.sparse import BETA, GAMMA, ZETA, HardConcrete, counter_noise

DRAWS = 20_000
# Five standard errors of a uniform number's mean, of a frequency and of a correlation over so many draws.
MEAN_ERROR = 5 / math.sqrt(12 * DRAWS)
FREQUENCY_ERROR = 5 * 0.5 / math.sqrt(DRAWS)
CORRELATION_ERROR = 5 / math.sqrt(DRAWS)


def noise(seed: int = 0, step: int = 0, numel: int = DRAWS) -> torch.Tensor:
    return counter_noise(torch.tensor([seed]), torch.tensor(step), numel)[0]


def correlation(u: torch.Tensor, v: torch.Tensor) -> float:
    return float(torch.corrcoef(torch.stack([u, v]))[0, 1])


def gate(log_alpha: float, seed: int = 0) -> HardConcrete:
    made = HardConcrete((100, DRAWS // 100), torch.tensor([seed]))
    torch.nn.init.constant_(made.log_alpha, log_alpha)
    return made


@pytest.mark.parametrize("log_alpha", [-4.0, -2.0, -0.5, 0.0, 0.5, 2.0, 4.0])
def test_open_probability_is_the_frequency_of_open_gates(log_alpha):
    gates = gate(log_alpha, seed=3)

    seen = (gates() > 0).double().mean()

    torch.testing.assert_close(seen, gates.open_probability().double().mean(), atol=FREQUENCY_ERROR, rtol=0)


def test_open_probability_is_the_papers_formula():
    gates = HardConcrete((1, 5), torch.tensor([0]))
    with torch.no_grad():
        gates.log_alpha.copy_(torch.linspace(-3, 3, 5))

    expected = 1 / (1 + torch.exp(-(gates.log_alpha - BETA * math.log(-GAMMA / ZETA))))

    torch.testing.assert_close(gates.open_probability(), expected)


def test_gates_are_often_exactly_closed_and_exactly_open():
    z = gate(0.0)()

    assert bool((z == 0).any())
    assert bool((z == 1).any())
    assert bool(((z > 0) & (z < 1)).any())
    assert bool(((z >= 0) & (z <= 1)).all())


def test_each_training_call_draws_anew():
    gates = gate(0.0)

    assert not torch.equal(gates(), gates())


def test_eval_is_deterministic():
    gates = gate(0.3).eval()

    assert torch.equal(gates(), gates())
    assert int(gates.step) == 0


def test_a_decided_gate_is_exactly_open_or_closed_in_eval():
    assert bool((gate(5.0).eval()() == 1).all())
    assert bool((gate(-5.0).eval()() == 0).all())


def test_the_gradient_reaches_log_alpha():
    gates = gate(0.0)

    gates().sum().backward()

    assert bool(torch.isfinite(gates.log_alpha.grad).all())
    assert bool((gates.log_alpha.grad > 0).any())


@pytest.mark.parametrize("log_alpha", [-1e4, -100.0, 100.0, 1e4])
def test_extreme_gates_have_finite_values_and_slopes(log_alpha):
    gates = gate(log_alpha)

    (gates().sum() + gates.open_probability().sum()).backward()

    assert bool(torch.isfinite(gates.log_alpha.grad).all())


def test_noise_does_not_touch_the_global_generator():
    gates = gate(0.0)
    before = torch.get_rng_state()

    gates()

    assert torch.equal(torch.get_rng_state(), before)


def test_noise_does_not_depend_on_the_global_generator():
    torch.manual_seed(1)
    first = gate(0.0)()
    torch.manual_seed(2)

    assert torch.equal(gate(0.0)(), first)


@pytest.mark.parametrize("index", range(3))
def test_a_member_has_the_same_noise_alone_and_in_a_population(index):
    population = EQL(2, primitives="id mul", members=3, gates=True, seed=[5, 1, 9])
    alone = EQL(2, primitives="id mul", gates=True, seed=[5, 1, 9][index])
    x = torch.linspace(-1, 1, 8).reshape(4, 2)

    for _ in range(3):
        together = population(x)[index]

        torch.testing.assert_close(together, alone(x))


def test_a_member_taken_out_goes_on_with_its_own_noise():
    population = EQL(2, primitives="id mul", members=3, gates=True, seed=0)
    x = torch.linspace(-1, 1, 8).reshape(4, 2)
    population(x)
    alone = population.member(1)

    torch.testing.assert_close(alone(x), population(x)[1])


def test_layers_of_one_network_have_noise_of_their_own():
    net = EQL(1, primitives="id*4", hidden_layers=3, gates=True, seed=0)
    second, third = net.linears[1:3]
    with torch.no_grad():
        second.gate.log_alpha.zero_()
        third.gate.log_alpha.zero_()

    assert not torch.equal(second.gate(), third.gate())


@given(st.integers(0, 2**62), st.integers(0, 2**40))
def test_noise_lies_strictly_between_zero_and_one(seed, step):
    u = noise(seed, step, numel=50)

    assert u.dtype == torch.float64
    assert bool(((u > 0) & (u < 1)).all())


def test_noise_is_uniform_over_places():
    u = noise().sort().values
    ideal = (torch.arange(DRAWS, dtype=torch.float64) + 0.5) / DRAWS

    # Kolmogorov's distance; 1.95 is exceeded once in a thousand.
    assert float((u - ideal).abs().max()) < 1.95 / math.sqrt(DRAWS)


@pytest.mark.parametrize("spread", ["seeds", "steps"])
def test_noise_is_uniform_over_seeds_and_steps(spread):
    numbers = torch.arange(2000)
    if spread == "seeds":
        u = counter_noise(numbers, torch.tensor(7), 10)
    else:
        u = torch.stack([noise(11, int(s), numel=10) for s in numbers])

    assert abs(float(u.mean()) - 0.5) < MEAN_ERROR
    assert abs(float(u.var()) - 1 / 12) < MEAN_ERROR
    assert torch.histc(u, 10, 0, 1).sub(DRAWS / 10).abs().max() < 5 * math.sqrt(DRAWS / 10)


@pytest.mark.parametrize("lag", [1, 2, 3, 18, 64])
def test_places_are_independent(lag):
    u = noise()

    assert abs(correlation(u[:-lag], u[lag:])) < CORRELATION_ERROR


@pytest.mark.parametrize("other", [1, 2, 64, 2**20, 2**40])
def test_seeds_are_independent(other):
    assert abs(correlation(noise(seed=0), noise(seed=other))) < CORRELATION_ERROR


@pytest.mark.parametrize("other", [1, 2, 64, 1000, 2**20])
def test_steps_are_independent(other):
    assert abs(correlation(noise(step=0), noise(step=other))) < CORRELATION_ERROR


def test_no_two_of_many_streams_coincide():
    streams = torch.stack([noise(seed, step, numel=2) for seed in range(40) for step in range(40)])

    assert len(torch.unique(streams[:, 0])) == len(streams)


@pytest.mark.parametrize("chance", [0.0, 1.0, -0.5, 2.0, math.nan])
def test_a_bad_starting_chance_is_refused(chance):
    with pytest.raises(InvalidArgument, match="open_at_start"):
        HardConcrete((2, 2), torch.tensor([0]), open_at_start=chance)
