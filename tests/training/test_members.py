import pytest
import torch
from torch import nn

from eqlearn.errors import InvalidArgument
from eqlearn.nn.eql import EQL
from eqlearn.training.loop import train
from eqlearn.training.members import count_members, owned_parameters
from eqlearn.training.schedule import Phase

X = torch.linspace(-1, 1, 16, dtype=torch.float64)[:, None]
UNITS = "id*2 square sin mul"


def population(seeds, **options) -> EQL:
    return EQL(1, 1, UNITS, 2, members=len(seeds), seed=list(seeds), init="released", **options).double()


def fit(model, phase):
    return (model(X) - X**2).square().mean(dim=(-2, -1))


class Spoilt(nn.Module):
    """The loss of a population, NaN for one member from a given call on."""

    def __init__(self, member, call, loss=fit):
        super().__init__()
        self.member, self.call, self.loss, self.calls = member, call, loss, 0

    def forward(self, model, phase):
        values = self.loss(model, phase)
        poison = torch.ones_like(values)
        poison[self.member] = torch.nan if self.calls >= self.call else 1.0
        self.calls += 1
        return values * poison


def run(model, loss=fit, *, steps=20, optimiser=None, **phase):
    options = {} if optimiser is None else {"optimiser": optimiser}
    settings = {"name": "only", "steps": steps, "lr": 1e-2, "penalty": 1e-3} | phase
    return list(train(model, loss, [Phase(**settings)], record_every=1, **options))


def weights(model, member):
    return [layer.raw.detach()[member].clone() for layer in model.linears]


OPTIMISERS = {
    "rmsprop": None,
    "adam": torch.optim.Adam,
    "momentum": lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9),
}


@pytest.mark.parametrize("optimiser", OPTIMISERS.values(), ids=OPTIMISERS)
@pytest.mark.parametrize("clip", [None, 0.05])
def test_members_trained_together_are_as_trained_alone(optimiser, clip):
    seeds = [5, 9, 2]
    together = population(seeds)
    run(together, optimiser=optimiser, clip=clip)

    for i, seed in enumerate(seeds):
        alone = population([seed])
        run(alone, optimiser=optimiser, clip=clip)
        for mine, other in zip(weights(together, i), weights(alone, 0), strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-12)


def test_one_of_a_population_trains_as_a_network_without_members():
    one, single = population([4]), EQL(1, 1, UNITS, 2, seed=4, init="released").double()
    run(one, clip=0.05)
    run(single, lambda model, phase: (model(X) - X**2).square().mean(), clip=0.05)

    for mine, layer in zip(weights(one, 0), single.linears, strict=True):
        torch.testing.assert_close(mine, layer.raw.detach(), rtol=1e-9, atol=1e-12)


def test_gated_members_trained_together_are_as_trained_alone():
    together, alone = population([5, 9], gates=True), population([9], gates=True)
    for model in (together, alone):
        list(train(model, fit, [Phase(name="p", steps=30, lr=1e-2, penalty=1e-2)], penalty="l0"))

    for mine, other in zip(weights(together, 1), weights(alone, 0), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("optimiser", OPTIMISERS.values(), ids=OPTIMISERS)
def test_one_members_nan_leaves_the_others_untouched(optimiser):
    clean, spoilt = population(range(3)), population(range(3))
    run(clean, optimiser=optimiser)
    run(spoilt, Spoilt(member=1, call=9), optimiser=optimiser)

    for member in (0, 2):
        for mine, other in zip(weights(spoilt, member), weights(clean, member), strict=True):
            assert torch.equal(mine, other)


@pytest.mark.parametrize("optimiser", OPTIMISERS.values(), ids=OPTIMISERS)
def test_a_failed_member_stays_where_its_loss_was_last_finite(optimiser):
    model, loss, seen = population(range(3)), Spoilt(member=1, call=9), {}
    options = {} if optimiser is None else {"optimiser": optimiser}
    for record in train(model, loss, [Phase(name="p", steps=20, lr=1e-2)], record_every=1, **options):
        seen[record.step] = weights(model, 1)

    # Call 9 (from 0) saw what 9 steps had made; the one before it was the last to be finite.
    for kept, expected in zip(weights(model, 1), seen[8], strict=True):
        assert torch.equal(kept, expected)


def test_a_failed_member_leaves_no_nan_in_the_optimiser():
    training = train(
        population(range(3)),
        Spoilt(member=1, call=3),
        [Phase(name="p", steps=6, lr=1e-2)],
        optimiser=torch.optim.Adam,
    )
    list(training)

    assert all(tensor.isfinite().all() for tensor in training.state().tensors.values())


def test_a_member_that_fails_right_after_pruning_stays_pruned():
    model = population(range(3))
    schedule = [
        Phase(name="first", steps=5, lr=1e-2, prune_below=0.3),
        Phase(name="second", steps=5, lr=1e-2),
    ]
    list(train(model, Spoilt(member=1, call=5), schedule))

    assert all((layer.raw[~layer.mask] == 0).all() for layer in model.linears)
    assert any((~layer.mask[1]).any() for layer in model.linears)


def test_a_failure_is_recorded_with_its_place():
    records = run(population(range(3)), Spoilt(member=1, call=9))

    assert [(f.member, f.phase, f.step) for f in records[-1].failures] == [(1, "only", 9)]
    assert records[-1].alive.tolist() == [True, False, True]
    assert records[8].failures == ()
    assert records[-1].loss.isnan().tolist() == [False, True, False]


def test_a_member_that_overflows_fails_alone():
    model = population(range(3))
    with torch.no_grad():
        model.linears[0].raw[2] = 1e200
    records = run(model)

    assert [f.member for f in records[-1].failures] == [2]
    assert records[-1].loss[:2].isfinite().all()


def test_a_gradient_too_large_for_its_norm_fails_though_the_loss_is_finite():
    def steep(model, phase):
        return fit(model, phase) + model.readout.raw[:, 0, 0] * torch.tensor([0.0, 1e200, 0.0])

    records = run(population(range(3)), steep, steps=2)

    assert [f.member for f in records[-1].failures] == [1]


def test_a_second_failure_does_not_revive_the_first():
    model = population(range(3))
    loss = Spoilt(member=0, call=5, loss=Spoilt(member=2, call=11))
    records = run(model, loss)

    assert [(f.member, f.step) for f in records[-1].failures] == [(0, 5), (2, 11)]
    assert records[-1].alive.tolist() == [False, True, False]


def test_clipping_bounds_each_member_by_its_own_norm():
    model = population(range(2))
    scale = torch.tensor([1e4, 1e-4], dtype=torch.float64)
    before = [weights(model, m) for m in range(2)]
    run(
        model,
        lambda model, phase: fit(model, phase) * scale,
        steps=1,
        optimiser=torch.optim.SGD,
        lr=1.0,
        clip=0.5,
        penalty=0.0,
    )
    moved = [
        torch.cat([(a - b).flatten() for a, b in zip(before[m], weights(model, m), strict=True)]).norm()
        for m in range(2)
    ]

    assert moved[0].item() == pytest.approx(0.5)
    assert 0 < moved[1].item() < 0.01


def test_clipping_a_single_model_bounds_the_whole_gradient():
    model = nn.Sequential(nn.Linear(1, 3), nn.Linear(3, 1)).double()
    before = [p.detach().clone() for p in model.parameters()]
    phase = Phase(name="p", steps=1, lr=1.0, clip=0.5)
    list(
        train(
            model,
            lambda model, phase: 1e4 * (model(X) - X).square().mean(),
            [phase],
            optimiser=torch.optim.SGD,
        )
    )
    moved = torch.cat([(a - b).flatten() for a, b in zip(before, model.parameters(), strict=True)])

    assert moved.norm().item() == pytest.approx(0.5)


class Shared(nn.Module):
    """One encoder before all members."""

    def __init__(self, members):
        super().__init__()
        self.encoder = nn.Linear(1, 1).double()
        self.eql = population(range(members))

    def forward(self, x):
        return self.eql(self.encoder(x))


def test_only_the_members_own_parameters_are_split():
    model = Shared(3)

    assert {id(p) for p in owned_parameters(model)} == {id(p) for p in model.eql.parameters()}
    assert count_members(model) == 3


def test_gates_belong_to_their_members():
    model = population(range(3), gates=True)

    assert {id(p) for p in owned_parameters(model)} == {id(p) for p in model.parameters()}


def test_a_shared_encoder_survives_a_members_failure_and_goes_on_learning():
    model, seen = Shared(3), {}
    with torch.no_grad():
        model.eql.linears[0].raw[1] = 1e200
    for record in train(model, fit, [Phase(name="p", steps=30, lr=1e-2)], record_every=1):
        seen[record.step] = model.encoder.weight.item()

    assert [f.member for f in record.failures] == [1]
    assert (model.eql.linears[0].raw[1] == 1e200).all()
    assert len(set(seen.values())) > 25


def test_a_failed_member_no_longer_pulls_at_a_shared_encoder():
    model = Shared(2)
    with torch.no_grad():
        model.eql.linears[0].raw[1] = 1e200
    run = train(model, fit, [Phase(name="p", steps=2, lr=1e-2)], record_every=1, optimiser=torch.optim.SGD)
    next(run)
    healthy = model.eql.member(0)(model.encoder(X))
    (slope,) = torch.autograd.grad((healthy - X**2).square().mean(), model.encoder.weight)
    expected = model.encoder.weight.detach() - 1e-2 * slope
    next(run)

    torch.testing.assert_close(model.encoder.weight.detach(), expected)


def test_parts_of_different_populations_are_refused():
    mixed = nn.ModuleList([population(range(2)), population(range(3))])

    with pytest.raises(InvalidArgument, match=r"mixes parts of \[2, 3\] `members`"):
        count_members(mixed)


def test_a_model_without_parameters_is_refused():
    with pytest.raises(InvalidArgument, match="no parameters"):
        train(
            nn.Identity(), fit, [Phase(name="p", steps=1, lr=0.1)], optimiser=lambda p: torch.optim.SGD([X])
        )
