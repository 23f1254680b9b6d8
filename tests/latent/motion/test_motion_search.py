"""Laws of motion behind encoders by the search: systems that were not developed on, other encoders, noise."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from eqlearn.errors import InvalidArgument, UnknownName
from eqlearn.latent.gauge import fit_gauge
from eqlearn.latent.motion.find import train_dynamics
from eqlearn.latent.motion.own import fitted_in, with_latents
from eqlearn.latent.motion.search import DynamicsSearch
from eqlearn.latent.motion.series import EncoderShape, SeriesEncoder
from eqlearn.latent.motion.system import Pairs
from eqlearn.paper.dynamics.data import KINEMATICS
from eqlearn.training.schedule import Phase
from eqlearn.validation.trajectories import Trajectories
from moving import QUICK, hidden_pairs

DISTIL = (Phase(name="distil", steps=100, lr=3e-3, decay="cosine"),)
SHORT = DynamicsSearch(primitives="id mul", structures=QUICK, distil=DISTIL)
FALLING = KINEMATICS.pairs(3, series=60)


def growth(t, s, p):
    return [p * s[0] * (1 - s[0] / 2)]


def pendulum(t, s, p):
    return [s[1], -p * np.sin(s[0])]


def damped(t, s, p):
    return [s[1], -2 * s[0] - p * s[1]]


class Recurrent(nn.Module):
    def __init__(self, states, latents=1):
        super().__init__()
        self.gru = nn.GRU(states, 12, batch_first=True)
        self.readout = nn.Linear(12, latents)

    def forward(self, series):
        return self.readout(self.gru(series)[1][0])


def recurrent(states, latents=1):
    torch.manual_seed(0)
    return Recurrent(states, latents)


def correlation(found, pairs) -> float:
    """Of the encoder's latent with the true parameter."""
    z = found.latent(pairs.observed.states)[0]
    return abs(fit_gauge(z, pairs.observed.parameter).correlation)


def test_logistic_growth_of_a_hidden_rate_behind_a_recurrent_encoder():
    pairs = hidden_pairs(growth, [(0.2, 3.0)], (0.5, 2.0), ("n",))

    found = train_dynamics(pairs, SHORT, encoder=recurrent(1))

    assert found.canonical[0].matches("n*z - 0.5*n**2*z", tolerance=1e-4)
    torch.testing.assert_close(found.refined.latent[0], pairs.observed.parameter, atol=1e-3, rtol=1e-3)
    assert found.agreement is None  # a sum of products, in which a state stands twice


def test_a_pendulum_of_a_hidden_length():
    pairs = hidden_pairs(pendulum, [(-2, 2), (-1, 1)], (0.5, 2.0), ("x", "w"))

    longer = replace(QUICK, warm_steps=500, structures=120, kept=36)
    found = train_dynamics(pairs, replace(SHORT, primitives="id sin1 mul", structures=longer))

    assert found.canonical[0].matches("w", tolerance=1e-3)
    assert found.canonical[1].matches("-z*sin(x)", tolerance=1e-3)
    assert correlation(found, pairs) > 0.9
    assert found.agreement == (1, 1)


@pytest.mark.slow
def test_a_damping_that_is_hidden_under_noise():
    pairs = hidden_pairs(damped, [(-1, 1), (-1, 1)], (0.1, 1.0), ("x", "v"), noise=0.01, series=100)

    found = train_dynamics(pairs, SHORT)

    assert found.canonical[0].matches("v", tolerance=0.02)
    assert found.canonical[1].rounded(1).matches("-2.0*x - v*z", tolerance=0.02)
    own = fit_gauge(found.refined.latent[0], pairs.observed.parameter)
    assert abs(own.correlation) > 0.97


@pytest.mark.slow
def test_a_map_says_the_next_state():
    found = train_dynamics(FALLING, replace(SHORT, form="map"), seed=3)

    assert found.canonical[0].matches("u + v + z/2", tolerance=1e-6)
    assert found.canonical[1].matches("v + z", tolerance=1e-6)


def test_without_latents_the_law_is_searched_for_in_the_states():
    pairs = hidden_pairs(growth, [(0.2, 3.0)], (1.0, 1.0001), ("n",))

    found = train_dynamics(pairs, replace(SHORT, structures=replace(QUICK, front_seconds=2.0)), latents=0)

    assert found.encoder is None
    assert found.equations[0].matches("n - 0.5*n**2", tolerance=1e-3)
    assert found.predict(pairs.observed.states, pairs.propagated.states[:, 0], 3).shape == (60, 4, 1)


@pytest.mark.slow
def test_of_two_outputs_of_an_encoder_a_law_uses_the_one_it_needs():
    found = train_dynamics(FALLING, replace(SHORT, form="residual"), encoder=recurrent(2, 2), seed=3)

    assert found.canonical[1].variables == ("u", "v", "z")
    assert found.canonical[1].matches("v + z", tolerance=1e-6)
    assert found.latent(FALLING.observed.states).shape == (1, 60)


@pytest.mark.parametrize("encoder", [recurrent(2, 3), SeriesEncoder(2, 100, 3, shape=EncoderShape(stride=5))])
def test_an_encoder_with_fewer_latents_can_be_solved_for_them(encoder):
    x, z = FALLING.observed.states.float(), FALLING.observed.parameter[:, None]

    fewer = with_latents(fitted_in(encoder, x, torch.ones(2)), 1)
    fewer.eval().solve_readout_(x, z)

    assert fewer(x).shape == (60, 1)
    assert abs(fit_gauge(fewer(x)[:, 0].detach().double(), z[:, 0]).correlation) > 0.5


def test_weights_drawn_anew_are_others_of_the_same_size():
    encoder = SeriesEncoder(2, 100)
    before = [p.detach().clone() for p in encoder.weights]

    torch.manual_seed(1)
    encoder.reset_parameters()

    assert all(not torch.equal(old, new) for old, new in zip(before, encoder.weights, strict=True))
    assert 0.9 < float(encoder.weights[0].detach().std() / before[0].std()) < 1.1


def test_a_stop_ends_the_search_with_what_there_is():
    seen = []

    def stop():
        return any(stage == "comparison" for stage in seen)

    found = train_dynamics(
        FALLING, replace(SHORT, form="residual"), progress=lambda now: seen.append(now.stage), stop=stop
    )

    assert len(found.equations) == 2
    assert "warm start 1" in seen
    assert seen[-1] == "rollout"


FEW = Pairs(
    *(Trajectories(one.states[:3], 1.0, ("u", "v")) for one in (FALLING.observed, FALLING.propagated))
)
NAMED = Pairs(*(Trajectories(one.states, 1.0, ("z", "v")) for one in (FALLING.observed, FALLING.propagated)))


@pytest.mark.parametrize(
    ("pairs", "options", "words"),
    [
        (FEW, {}, "give at least 5 series"),
        (NAMED, {}, "a state is named z"),
        (FALLING, {"encoder": SeriesEncoder(2, 100, members=2)}, "has members"),
        (FALLING, {"encoder": Recurrent(2), "latents": 2}, "gives 1 latent, but `latents` is 2"),
    ],
)
def test_what_can_not_be_searched_is_explained(pairs, options, words):
    with pytest.raises(InvalidArgument, match=words):
        train_dynamics(pairs, SHORT, **options)


@pytest.mark.usefixtures("unchecked_types")
def test_unknown_words_are_explained():
    with pytest.raises(UnknownName, match="`form`"):
        DynamicsSearch(form="odd")
