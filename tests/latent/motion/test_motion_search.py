"""Laws of motion behind encoders by the search: systems that were not developed on, other encoders, noise."""

import math
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from eqlearn.errors import InvalidArgument, UnknownName
from eqlearn.latent.gauge import fit_gauge
from eqlearn.latent.motion.find import train_dynamics
from eqlearn.latent.motion.own import fitted_in, with_latents
from eqlearn.latent.motion.series import EncoderShape, SeriesEncoder
from eqlearn.latent.motion.system import Pairs
from eqlearn.latent.settings import DynamicsSearch
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


@pytest.mark.slow
def test_logistic_growth_of_a_hidden_rate_behind_a_recurrent_encoder():
    pairs = hidden_pairs(growth, [(0.2, 3.0)], (0.5, 2.0), ("n",))

    found = train_dynamics(pairs, SHORT, encoder=recurrent(1))

    assert found.canonical[0].matches("n*z - 0.5*n**2*z", tolerance=1e-4)
    torch.testing.assert_close(found.refined.latent[0], pairs.observed.parameter, atol=1e-3, rtol=1e-3)
    assert found.agreement is None  # a sum of products, in which a state stands twice


@pytest.mark.slow
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

    found = train_dynamics(pairs, replace(SHORT, structures=replace(QUICK, front_seconds=60.0)), latents=0)

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
    assert found.ended == "stopped"
    assert "warm start 1" in seen
    assert seen[-1] == "refinement"  # and no training after it


# --- Ctrl-C, journal --------------------------------------------------------------------------------------

TINY = replace(
    QUICK, warm_steps=60, structures=8, kept=4, screened=60, compared=100, serving_starts=2, functions=5
)
BRIEF = replace(SHORT, form="residual", structures=TINY, candidates=1, finished=1)
FALLEN = KINEMATICS.pairs(3, series=20)


def interrupted_at(stage):
    """Ctrl-C when this stage is told for the first time."""
    seen = set()

    def told(progress):
        if progress.stage == stage and stage not in seen:
            seen.add(stage)
            raise KeyboardInterrupt

    return told


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A search that nothing disturbed, its journal, and what it told."""
    folder, seen = tmp_path_factory.mktemp("dynamics") / "journal", []
    return train_dynamics(FALLEN, BRIEF, journal=folder, progress=seen.append), folder, seen


@pytest.fixture
def started(whole, tmp_path):
    """A journal in which no more than the warm start is trained."""
    shutil.copytree(whole[1], tmp_path / "started")
    (tmp_path / "started" / "distillation.safetensors").unlink()
    return tmp_path / "started"


def test_ctrl_c_before_the_first_start_is_trained_is_raised():
    with pytest.raises(KeyboardInterrupt):
        train_dynamics(FALLEN, BRIEF, progress=interrupted_at("warm start 1"))


@pytest.mark.parametrize("stage", ["comparison", "rollout", "refinement", "distillation"])
def test_ctrl_c_later_gives_the_best_so_far(stage, started):
    found = train_dynamics(FALLEN, BRIEF, journal=started, progress=interrupted_at(stage))

    assert found.ended == "interrupted"
    assert len(found.equations) == 2
    assert math.isfinite(found.refined.loss)
    assert found.latent(FALLEN.observed.states).shape == (1, 20)


def test_ctrl_c_amid_a_first_glance_gives_the_best_of_the_comparison(started, monkeypatch):
    module = import_module("eqlearn.latent.motion.search")
    glanced, calls = module.glanced, []

    def once(*arguments, **options):
        calls.append(None)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return glanced(*arguments, **options)

    monkeypatch.setattr(module, "glanced", once)

    found = train_dynamics(FALLEN, BRIEF, journal=started)

    assert found.ended == "interrupted"
    assert math.isfinite(found.refined.loss)


def test_progress_has_the_stages_in_order_with_the_best_law_beside_the_head(whole):
    found, _, seen = whole

    assert found.ended == "complete"
    stages = list(dict.fromkeys(p.stage for p in seen))
    assert stages == ["warm start 1", "comparison", "rollout", "refinement", "distillation"]
    assert all(math.isnan(p.head_error) == (p.stage == "warm start 1") for p in seen)
    assert all(p.best for p in seen if p.stage in ("rollout", "refinement", "distillation"))
    assert [p.seconds for p in seen] == sorted(p.seconds for p in seen)


KILLED = """
import os, sys
sys.path[:0] = sys.argv[1:3]
import torch
torch.set_num_threads(1)
from test_motion_search import BRIEF, FALLEN, train_dynamics
def told(progress):
    if progress.stage == sys.argv[4]:
        os.kill(os.getpid(), 9)
found = train_dynamics(FALLEN, BRIEF, journal=sys.argv[3], progress=told)
z = found.latent(FALLEN.observed.states)
print([repr(e) for e in found.equations], found.refined.loss, z[0].tolist())
"""


@pytest.mark.slow
def test_a_search_that_was_killed_goes_on_from_its_journal_to_the_same_end(tmp_path):
    here = Path(__file__).parent

    def run(journal, kill_at="never"):
        words = [str(here), str(here.parents[1]), str(tmp_path / journal), kill_at]
        return subprocess.run([sys.executable, "-c", KILLED, *words], stdout=subprocess.PIPE, text=True)

    whole = run("whole")
    for stage in ("comparison", "distillation"):
        assert run("part", stage).returncode == -9
    again = run("part")

    assert whole.stdout.startswith("[")
    assert again.stdout == whole.stdout


def test_what_was_trained_before_a_kill_is_not_trained_again(whole):
    found, journal, _ = whole
    seen = []

    again = train_dynamics(FALLEN, BRIEF, journal=journal, progress=lambda now: seen.append(now.stage))

    assert set(seen) == {"comparison", "rollout", "refinement"}
    assert list(map(repr, again.equations)) == list(map(repr, found.equations))
    assert torch.equal(again.latent(FALLEN.observed.states), found.latent(FALLEN.observed.states))


def test_a_journal_of_another_search_is_refused(whole):
    with pytest.raises(InvalidArgument, match="belongs to another search"):
        train_dynamics(FALLEN, BRIEF, journal=whole[1], seed=1)


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
