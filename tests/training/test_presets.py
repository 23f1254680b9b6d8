from dataclasses import replace

import numpy as np
import pytest
import torch

from eqlearn.errors import InvalidArgument, NotFinite, UnknownName
from eqlearn.nn.penalties import L0, SmoothHalf, sparsity
from eqlearn.nn.sparse import weights_left
from eqlearn.training.optimisers import RMSPropTF1
from eqlearn.training.presets import PRESETS, VARYING_PRESETS, GatedL0, train_population, train_varying
from eqlearn.training.schedule import check_schedule
from eqlearn.training.state import restart_seed

X = np.random.default_rng(0).uniform(-1, 1, (64, 2)).astype(np.float32)
Y = X[:, 0] * X[:, 1]


def short(name, steps=10):
    """The preset with few steps in each of its phases."""
    preset = PRESETS[name]
    return replace(preset, schedule=tuple(replace(phase, steps=steps) for phase in preset.schedule))


def facts(name):
    """(steps, rate, λ, threshold) of each phase."""
    return [(p.steps, p.lr, p.penalty, p.prune_below) for p in PRESETS[name].schedule]


def test_the_papers_phases_are_those_of_its_appendix():
    assert facts("paper") == [(2000, 1e-2, 5e-3, 0.01), (10_000, 1e-3, 0.0, None)]


def test_the_released_phases_are_those_of_the_code():
    assert facts("released") == [
        (2000, 1e-1, 5e-3, None),
        (10_001, 1e-2, 5e-3, 0.01),
        (10_001, 1e-3, 0.0, None),
    ]


@pytest.mark.parametrize(("name", "penalty"), [("paper-l0", 5e-3), ("released-l0", 1e-2)])
def test_l0_is_one_phase_without_pruning(name, penalty):
    assert facts(name) == [(20_001, 1e-2, penalty, None)]


@pytest.mark.parametrize(("name", "keeps"), [("paper-l0", True), ("released-l0", False)])
def test_which_weight_of_l0_leaves_the_product_in_xy_2_plus_z_2(name, keeps):
    penalty = PRESETS[name].schedule[0].penalty
    whole, without_product = 5 * penalty, 2 * penalty + 1 / 36  # the mean square of xy/2 on [-1, 1]

    assert (whole < without_product) is keeps


def test_members_that_fail_begin_again_and_are_counted():
    data, targets = np.stack([X, X]), np.stack([Y, 1e30 * Y])

    once = train_population(short("paper"), data, targets, [0, 1])
    again = train_population(short("paper"), data, targets, [0, 1], max_restarts=2)

    assert [f.member for f in once.failures] == [f.member for f in again.failures] == [1]
    assert (once.restarts, again.restarts) == ((0, 0), (0, 2))
    torch.testing.assert_close(once.loss[0], again.loss[0])


def test_a_restart_starts_where_its_seed_says():
    preset = short("paper")
    wild = replace(preset, schedule=(replace(preset.schedule[0], lr=1e30),))

    again = train_population(wild, X, Y, [5], max_restarts=1)
    alone = train_population(wild, X, Y, [restart_seed(5, 1)])

    assert again.restarts == (1,)
    torch.testing.assert_close(again.network.readout.raw, alone.network.readout.raw, equal_nan=True)


def test_the_smoothing_is_the_papers_or_the_codes():
    assert PRESETS["paper"].penalty == SmoothHalf(a=0.01)
    assert PRESETS["released"].penalty == SmoothHalf(a=0.05)


def test_the_units_are_the_papers_or_the_codes():
    assert PRESETS["paper"].primitives == "one*2 id*4 square*4 sin*2 exp*2 sigmoid*2 mul*2"
    assert PRESETS["released"].primitives == "one*2 id*4 square*4 sin4*2 expm1e*2 sigmoid*2 mul10*2"


@pytest.mark.parametrize("name", PRESETS)
def test_every_schedule_is_valid(name):
    assert check_schedule(list(PRESETS[name].schedule)) == PRESETS[name].schedule


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_uses_tensorflows_rmsprop_and_two_hidden_layers(name):
    network = PRESETS[name].build(2, 1, [0])
    (settings,) = PRESETS[name].optimiser(network.parameters()).param_groups

    assert PRESETS[name].optimiser is RMSPropTF1
    assert (settings["decay"], settings["eps"], settings["momentum"]) == (0.9, 1e-10, 0.0)
    assert len(network.layers) == 2


@pytest.mark.parametrize(
    ("name", "spreads"), [("released", (0.1, 0.5, 1.0)), ("released-l0", (0.5, 0.5, 0.5))]
)
def test_weights_start_truncated_at_two_standard_deviations(name, spreads):
    network = PRESETS[name].build(2, 1, range(200))

    for layer, spread in zip(network.linears, spreads, strict=True):
        assert layer.raw.abs().max() <= 2 * spread
        assert layer.raw.abs().max() > 1.9 * spread
        assert layer.raw.std().item() == pytest.approx(0.88 * spread, rel=0.05)  # of a normal cut at 2σ


def test_the_released_l0_gates_hidden_layers_only():
    network = PRESETS["released-l0"].build(2, 1, [0, 1])

    assert [layer.gate is not None for layer in network.linears] == [True, True, False]


def test_the_papers_l0_gates_and_penalises_every_layer():
    network = PRESETS["paper-l0"].build(2, 1, [0, 1])

    assert all(layer.gate is not None for layer in network.linears)
    assert PRESETS["paper-l0"].penalty == L0()


def test_gates_start_half_open_with_a_small_spread():
    network = PRESETS["released-l0"].build(2, 1, range(20))
    log_alpha = torch.cat([layer.linear.gate.log_alpha.flatten() for layer in network.layers])

    assert log_alpha.mean().item() == pytest.approx(0, abs=1e-3)
    assert log_alpha.std().item() == pytest.approx(0.01, rel=0.1)


def test_an_ungated_layer_costs_nothing_under_gated_l0():
    network = PRESETS["released-l0"].build(2, 1, [0, 1])
    hidden = sum(L0()(layer.linear) for layer in network.layers)

    torch.testing.assert_close(sparsity(network, GatedL0()), hidden)


@pytest.mark.parametrize("name", PRESETS)
def test_a_seed_leads_to_the_same_network_whatever_its_companions(name):
    many = train_population(short(name), X, Y, seeds=[7, 3, 5])
    one = train_population(short(name), X, Y, seeds=[3])

    for mine, other in zip(many.network.linears, one.network.linears, strict=True):
        torch.testing.assert_close(mine.raw[1], other.raw[0], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", PRESETS)
def test_a_member_taken_out_is_the_network_it_was(name):
    population = train_population(short(name), X, Y, seeds=[7, 3])
    x = torch.as_tensor(X)

    for i in range(2):
        torch.testing.assert_close(population.network.member(i)(x), population.network(x)[i])


def test_closed_gates_prune_their_weights():
    preset = short("paper-l0", steps=60)
    strong = replace(preset, schedule=(replace(preset.schedule[0], lr=0.3, penalty=1.0),))
    population = train_population(strong, X, Y, seeds=[0, 1])

    assert (population.network.linears[0].gate, population.network.readout.gate) == (None, None)
    assert (weights_left(population.network) < weights_left(preset.build(2, 1, [0, 1]))).all()


def test_the_final_loss_is_the_networks_own():
    population = train_population(short("paper"), X, Y, seeds=[0, 1])
    error = population.network(torch.as_tensor(X))[..., 0] - torch.as_tensor(Y)

    torch.testing.assert_close(population.loss, error.square().mean(dim=-1))


def test_each_member_may_have_data_of_its_own():
    other = np.stack([X, -(X**2)])
    together = train_population(short("paper"), other, np.stack([Y, Y]), seeds=[1, 2])
    alone = train_population(short("paper"), other[1], Y, seeds=[2])

    torch.testing.assert_close(together.loss[1], alone.loss[0], rtol=1e-3, atol=1e-5)


def test_a_member_with_hopeless_data_fails_alone():
    hopeless = np.stack([X, X * 1e20])
    population = train_population(short("paper"), hopeless, np.stack([Y, Y]), seeds=[1, 2])

    assert [f.member for f in population.failures] == [1]
    assert population.loss[0].isfinite()


def test_a_population_that_fails_whole_is_a_value():
    population = train_population(short("paper"), X * 1e20, Y, seeds=[1, 2])

    assert sorted(f.member for f in population.failures) == [0, 1]
    assert all(torch.isfinite(p).all() for p in population.network.parameters())


def test_bad_input_is_refused_by_name():
    with pytest.raises(UnknownName, match="no preset named 'papre'"):
        train_population("papre", X, Y, seeds=[0])
    with pytest.raises(InvalidArgument, match=r"got \(64, 2\) and \(63, 1\)"):
        train_population("paper", X, Y[1:], seeds=[0])
    with pytest.raises(InvalidArgument, match="`seeds` is empty"):
        train_population("paper", X, Y, seeds=[])
    with pytest.raises(NotFinite, match="`y` holds NaN"):
        train_population("paper", X, np.full_like(Y, np.nan), seeds=[0])


TIMES = np.linspace(-1, 1, 3)


def brief(name, steps=20):
    """The varying preset with few steps in each of its phases."""
    preset = VARYING_PRESETS[name]
    return replace(preset, schedule=tuple(replace(p, steps=steps, warm_up=0) for p in preset.schedule))


@pytest.mark.parametrize("name", VARYING_PRESETS)
def test_one_equation_whose_constants_differ_is_trained(name):
    data, target = np.stack([X] * 3), TIMES[:, None] * X[:, 0]

    network = train_varying(brief(name), data, target, TIMES, seed=1)
    again = train_varying(brief(name), data, target, TIMES, seed=1)

    one, other = (
        [n.member(i) if name == "seql" else n.at(torch.tensor(TIMES[i])) for i in range(3)]
        for n in (network, again)
    )
    x = torch.as_tensor(X)
    structures = [[layer.mask for layer in member.linears] for member in one]
    assert all(torch.equal(a, b) for a, b in zip(structures[0], structures[2], strict=True))
    assert not torch.allclose(one[0](x), one[2](x))
    torch.testing.assert_close(one[1](x), other[1](x))


def test_bad_contexts_are_refused():
    with pytest.raises(UnknownName, match="no preset named 'sequel'; did you mean 'seql'"):
        train_varying("sequel", X[None], Y[None], [0.0])
    with pytest.raises(InvalidArgument, match=r"`X` must be \(contexts, rows, in\)"):
        train_varying("seql", X, Y, [0.0])
    with pytest.raises(InvalidArgument, match="an axis of 2 members"):
        train_varying("heql", np.stack([X] * 3), np.stack([Y] * 3), [0.0, 1.0])


@pytest.mark.slow
def test_the_papers_preset_learns_the_identity_from_most_starts():
    """The paper reports all 20 of 20 for f(x) = x; a binomial bound leaves room for luck."""
    x = np.random.default_rng(1).uniform(-1, 1, (256, 1))
    population = train_population("paper", x, x, seeds=range(20))

    assert (population.loss < 1e-4).sum() >= 14
