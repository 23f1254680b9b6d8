"""An encoder of one's own before a cell: read, settled, put on a line, restarted, trained."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from eqlearn.errors import Diverged, InvalidArgument
from eqlearn.latent.gauge import fit_gauge
from eqlearn.latent.motion.cells import CellShape
from eqlearn.latent.motion.find import DynamicsSettings, train_dynamics
from eqlearn.latent.motion.own import OwnEncoder, drawn_anew, fitted_in
from eqlearn.latent.motion.series import EncoderShape, SeriesEncoder
from eqlearn.latent.settings import DynamicsSearch
from eqlearn.paper.dynamics.data import KINEMATICS
from eqlearn.training.schedule import Phase
from moving import QUICK

X = torch.randn(30, 10, 2, generator=torch.Generator().manual_seed(0))
SCALES = torch.tensor([2.0, 0.5])


class Recurrent(nn.Module):
    """A network that knows nothing of the package, and computes in float32 only."""

    def __init__(self, latents=1, seed=0):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.gru = nn.GRU(2, 12, batch_first=True)
            self.readout = nn.Linear(12, latents)

    def forward(self, x):
        start = torch.zeros(1, len(x), 12)
        return self.readout(self.gru(x, start)[1][0])


def dense(inputs=20, latents=1, seed=0) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers = nn.Linear(inputs, 24), nn.BatchNorm1d(24), nn.Tanh(), nn.Linear(24, latents)
    return nn.Sequential(nn.Flatten(), *layers)


def own(latents=2) -> OwnEncoder:
    return fitted_in(dense(latents=latents), X, SCALES)


def test_its_latents_have_standard_deviation_one_half():
    z = own()(X).detach()

    torch.testing.assert_close(z.std(dim=0, correction=0), torch.full((2,), 0.5), rtol=1e-3, atol=0)
    torch.testing.assert_close(z.mean(dim=0), torch.zeros(2), rtol=0, atol=1e-5)


def test_settled_it_says_the_same_at_rest_as_in_training():
    one = own()
    trained = one.train()(X)
    one.take_statistics_(X)

    # torch's batch normalisation settles on the unbiased variance, as much as one row in thirty larger.
    torch.testing.assert_close(one.eval()(X), trained, atol=0.02, rtol=0.05)


def test_scales_divide_what_it_reads():
    torch.testing.assert_close(
        own().eval()(X * SCALES), fitted_in(dense(latents=2), X, torch.ones(2)).eval()(X)
    )


def test_it_is_a_copy_that_is_trained():
    mine = dense()
    before = [p.clone() for p in mine.parameters()]

    one = fitted_in(mine, X, SCALES)
    with torch.no_grad():
        for p in one.parameters():
            p.zero_()

    assert all(torch.equal(p, q) for p, q in zip(mine.parameters(), before, strict=True))


def test_least_squares_find_the_line_to_any_mixture_of_its_latents():
    one = own()
    one.take_statistics_(X)
    z = one.eval()(X).detach() @ torch.tensor([[1.0, -2.0], [0.5, 3.0]]) + torch.tensor([4.0, -1.0])

    one.solve_readout_(X, z)

    torch.testing.assert_close(one(X), z, atol=1e-4, rtol=1e-4)


def test_calibration_takes_out_shift_and_stretch():
    one = own().eval()
    target = -3.0 * one(X).detach() + torch.tensor([2.0, 1.0])

    one.calibrate_(X, target)

    torch.testing.assert_close(one(X), target, atol=1e-4, rtol=1e-4)


def test_members_of_an_encoder_with_members_read_as_they_would_alone():
    class Many(nn.Module):
        members = 3

        def __init__(self):
            super().__init__()
            self.each = nn.ModuleList(dense(seed=i) for i in range(3))

        def forward(self, x):
            return torch.stack([one(x) for one in self.each])

        def member(self, index):
            return self.each[index]

    many = OwnEncoder(Many(), 1, scales=SCALES)
    many.take_statistics_(X)

    together = many.eval()(X)

    for i in range(3):
        torch.testing.assert_close(together[i], many.member(i)(X))
    with pytest.raises(InvalidArgument, match="member"):
        many.solve_readout_(X, torch.zeros(30, 1))


def test_a_new_start_depends_on_its_seed_alone_and_leaves_the_users_random_state():
    one, before = own(), torch.get_rng_state()

    first, again, other = (drawn_anew(one, seed).encoder[1].weight for seed in (5, 5, 6))

    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first, one.encoder[1].weight)
    assert torch.equal(before, torch.get_rng_state())


class Bare(nn.Module):
    """A network whose weights nobody can draw anew."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 200)[:, None])

    def forward(self, x):
        return torch.tanh(x.flatten(1) @ self.weight / 20)


def test_weights_that_can_not_be_drawn_anew_are_explained():
    with pytest.raises(InvalidArgument, match=r"Bare in `encoder` has no `reset_parameters\(\)`"):
        drawn_anew(fitted_in(Bare(), torch.randn(4, 100, 2), SCALES), 0)


PAIRS = KINEMATICS.pairs(3, series=60)
FRESH = KINEMATICS.pairs(77, series=60)
CELL = CellShape(primitives="id mul", hidden_layers=1, form="residual", skip=True, bias=True)
SHORT = DynamicsSearch(
    form="residual", primitives="id mul", structures=QUICK,
    distil=(Phase(name="distil", steps=200, lr=3e-3, decay="cosine"),),
)  # fmt: skip
BRIEF = DynamicsSettings(
    encoder=EncoderShape(), cell=CELL, optimiser=torch.optim.Adam, scaling="time",
    schedule=(Phase(name="brief", steps=2, lr=1e-3, horizon=2),),
)  # fmt: skip


def error(found) -> float:
    """Of the motion on series that were not trained on, in units of its spread."""
    truth = FRESH.propagated.states
    after = found.predict(FRESH.observed.states, truth[:, 0], truth.shape[1] - 1)
    return float((after - truth).square().mean().sqrt() / truth.std())


@pytest.mark.parametrize(
    "encoder",
    [
        pytest.param(Recurrent(), marks=pytest.mark.slow),
        dense(200),
        pytest.param(Bare(), marks=pytest.mark.slow),
    ],
)
def test_a_short_run_with_any_encoder_finds_a_linear_map_and_its_hidden_parameter(encoder):
    found = train_dynamics(PAIRS, SHORT, encoder=encoder, seed=3)

    assert found.canonical[0].matches("u + v + z/2", tolerance=1e-6)
    assert found.canonical[1].matches("v + z", tolerance=1e-6)
    z = found.latent(FRESH.observed.states)
    assert z.shape == (1, 60)
    assert abs(fit_gauge(z[0], FRESH.observed.parameter).correlation) > 0.97
    assert error(found) < 0.2


@pytest.mark.slow
def test_the_printed_equations_are_in_the_encoders_own_z():
    found = train_dynamics(PAIRS, replace(SHORT, distil=()), encoder=Recurrent(), seed=3)

    z, now = found.latent(FRESH.observed.states), FRESH.propagated.states[:, 0].mT
    table = {"u": now[0].numpy(), "v": now[1].numpy(), "z": z[0].numpy()}
    for printed, stepped in zip(found.equations, found.step(now, z), strict=True):
        torch.testing.assert_close(torch.from_numpy(printed(table)), stepped)
    assert error(found) < 0.2


def test_as_trained_the_network_is_the_equation_and_the_encoder_stays_in_its_precision():
    found = train_dynamics(PAIRS, BRIEF, encoder=Recurrent(2), seed=0)

    z, now = found.latent(PAIRS.observed.states), PAIRS.propagated.states[:, 0].mT
    assert found.equations[0].variables == ("u", "v", "z1", "z2")
    table = dict(zip(found.equations[0].variables, torch.cat([now, z]).numpy(), strict=True))
    for printed, stepped in zip(found.equations, found.step(now, z), strict=True):
        torch.testing.assert_close(torch.from_numpy(printed(table)), stepped.detach())


def test_members_of_an_encoder_without_any_are_starts_one_after_the_other():
    seen = []

    def follow(name, start):
        seen.append(name)
        return iter(start(None))

    train_dynamics(PAIRS, replace(BRIEF, members=3), encoder=Recurrent(), follow=follow)

    assert seen == ["training", "training-2", "training-3"]


class Fragile(nn.Linear):
    """Breaks when it is trained from its first weights."""

    draws = 0

    def reset_parameters(self):
        super().reset_parameters()
        self.draws += 1

    def forward(self, x):
        z = super().forward(x.flatten(1))
        return z * torch.nan if self.training and self.draws < 2 else z


def test_a_start_that_diverges_is_counted_and_the_next_is_tried():
    found = train_dynamics(PAIRS, replace(BRIEF, members=2), encoder=Fragile(200, 1))

    assert found.failures == 1
    with pytest.raises(Diverged):
        train_dynamics(PAIRS, BRIEF, encoder=Fragile(200, 1))


def test_an_encoder_with_members_is_trained_as_a_population():
    many = SeriesEncoder(2, 100, 1, shape=EncoderShape(filters=2, stride=5), members=2)

    found = train_dynamics(PAIRS, replace(BRIEF, members=2), encoder=many)

    assert isinstance(found.encoder, SeriesEncoder)
    assert found.encoder.members is None


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("encoder", "options", "words"),
    [
        (Recurrent(2), {"latents": 1}, "gives 2 latents, but `latents` is 1"),
        (nn.Flatten(), {}, "without a gradient"),
        (nn.GRU(2, 3), {}, "gives a tuple"),
        (dense(30), {}, "can't read"),
        ("series", {}, "must be an nn.Module"),
        (SeriesEncoder(2, 100, members=2), {}, "has 2 members, but the settings 3"),
    ],
)
def test_an_encoder_that_does_not_fit_is_refused_before_training(encoder, options, words):
    with pytest.raises((InvalidArgument, TypeError), match=words):
        train_dynamics(PAIRS, replace(BRIEF, members=3), encoder=encoder, **options)
