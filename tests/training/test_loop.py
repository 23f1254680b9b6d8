import pickle

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from eqlearn.errors import Diverged, InvalidArgument, UnknownName, WrongType
from eqlearn.nn.eql import EQL
from eqlearn.nn.sparse import sparse_layers, weights_left
from eqlearn.training.loop import train
from eqlearn.training.optimisers import RMSPropTF1
from eqlearn.training.schedule import Phase

X = torch.linspace(-1, 1, 32)[:, None]


def network(**options) -> EQL:
    return EQL(1, 1, "id*2 square mul", 1, **({"seed": 0} | options))


def fit(model, phase):
    error = (model(X) - 2 * X).square()
    return error.mean(dim=(-2, -1))


def phases(steps=20, **changes):
    return [Phase(**({"name": "only", "steps": steps, "lr": 1e-2} | changes))]


def snapshot(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(a, b):
    return all(torch.equal(a[name], b[name]) for name in a)


def test_a_linear_toy_is_learnt():
    model = network(members=5)
    *_, last = train(model, fit, phases(200, lr=3e-2, decay="cosine"))

    assert (last.loss < 1e-3).all()


def test_an_encoder_before_the_equation_is_learnt_with_it():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1), network())
    encoder = snapshot(model[0])
    first, *_, last = train(
        model, fit, phases(150, lr=3e-2, penalty=1e-4), optimiser=torch.optim.Adam, record_every=1
    )

    assert last.loss < 0.1 * first.loss
    assert not same(encoder, model[0].state_dict())


def test_the_penalty_leaves_the_encoder_alone():
    model = nn.Sequential(nn.Linear(1, 1), network())
    encoder, equation = snapshot(model[0]), snapshot(model[1])
    list(train(model, lambda model, phase: 0 * fit(model, phase), phases(penalty=1.0)))

    assert same(encoder, model[0].state_dict())
    assert not same(equation, model[1].state_dict())


def test_a_model_without_equation_trains_too():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 1))
    first, *_, last = train(model, fit, phases(100), record_every=1)

    assert last.loss < first.loss
    assert last.weights_left.item() == 0


@pytest.mark.parametrize("changes", [{"penalty": 1e-3}, {"prune_below": 0.1}])
def test_sparsity_without_sparse_layer_is_refused_at_once(changes):
    with pytest.raises(InvalidArgument, match=r"phase 'only'.*no sparse layer"):
        train(nn.Linear(1, 1), fit, phases(**changes))


def test_weights_left_drop_where_a_phase_prunes():
    model = network(members=3)
    schedule = (*phases(5, prune_below=0.3), Phase(name="after", steps=5, lr=1e-3))
    before = weights_left(model)
    records = list(train(model, fit, schedule, record_every=1))

    assert torch.equal(records[3].weights_left, before)
    assert (records[4].weights_left < before).all()
    assert torch.equal(records[-1].weights_left, records[4].weights_left)


@pytest.mark.parametrize(
    "optimiser",
    [
        lambda params: RMSPropTF1(params, momentum=0.9),
        lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9, weight_decay=0.1),
        torch.optim.Adam,
    ],
    ids=["rmsprop", "sgd", "adam"],
)
def test_what_is_pruned_stays_zero_through_momentum(optimiser):
    model = network(members=3)
    schedule = (*phases(20, prune_below=0.3, penalty=1e-2), Phase(name="after", steps=20, lr=1e-2))
    run = train(model, fit, schedule, optimiser=optimiser)
    next(run)
    pruned = [~layer.mask.clone() for layer in sparse_layers(model)]
    moved = [layer.weight.detach().clone() for layer in sparse_layers(model)]
    list(run)

    assert any(gone.any() for gone in pruned)
    for layer, gone, before in zip(sparse_layers(model), pruned, moved, strict=True):
        assert (layer.weight[gone] == 0).all()
        assert not torch.equal(layer.weight[~gone], before[~gone])


def test_records_come_at_their_steps_and_at_each_phases_end():
    schedule = (*phases(7), Phase(name="after", steps=4, lr=1e-3))
    records = [(r.phase, r.step, r.total_step) for r in train(network(), fit, schedule, record_every=3)]

    assert records == [("only", 3, 3), ("only", 6, 6), ("only", 7, 7), ("after", 3, 10), ("after", 4, 11)]


def test_records_do_not_change_as_training_goes_on():
    run = train(network(members=2), fit, phases(), record_every=5)
    first = next(run)
    loss, left = first.loss.clone(), first.weights_left.clone()
    list(run)

    assert torch.equal(first.loss, loss)
    assert torch.equal(first.weights_left, left)


@pytest.mark.parametrize("penalty", ["half", "l0"])
def test_looking_changes_nothing(penalty):
    often, seldom = network(members=2, gates=True), network(members=2, gates=True)
    schedule = (*phases(10, penalty=1e-3), Phase(name="after", steps=10, lr=1e-2))
    list(train(often, fit, schedule, penalty=penalty, record_every=1))
    list(train(seldom, fit, schedule, penalty=penalty, record_every=100))

    assert same(often.state_dict(), seldom.state_dict())


def test_evaluating_between_records_does_not_switch_training_off():
    model = network()
    run = train(model, fit, phases(), record_every=10)
    next(run)
    model.eval()
    next(run)

    assert model.training


def test_the_callback_sees_every_record():
    seen = []
    records = list(train(network(), fit, phases(), record_every=5, on_record=seen.append))

    assert seen == records
    assert len(seen) == 4


def test_the_rate_and_the_penalty_follow_the_phase():
    schedule = phases(10, warm_up=5, penalty=1.0, ramp="linear")
    records = list(train(network(), fit, schedule, record_every=1))

    assert [r.lr for r in records] == [schedule[0].lr_at(i) for i in range(10)]
    assert [r.penalty_weight for r in records] == [schedule[0].penalty_at(i) for i in range(10)]


def test_the_loss_is_given_the_phase():
    seen = []

    def rollout(model, phase):
        seen.append(phase.horizon)
        return fit(model, phase)

    schedule = (*phases(2, horizon=1), Phase(name="after", steps=1, lr=1e-3, horizon=5))
    list(train(network(), rollout, schedule))

    assert seen == [1, 1, 5]


def test_nothing_happens_before_the_first_record_is_asked_for():
    model = network()
    before = snapshot(model)
    train(model, fit, phases())

    assert same(before, model.state_dict())


def test_a_single_model_that_diverges_says_where_and_stays_usable():
    model, calls = network(), iter(range(100))

    def spoilt(model, phase):
        return fit(model, phase) * (torch.nan if next(calls) == 7 else 1.0)

    with pytest.raises(Diverged) as caught:
        list(train(model, spoilt, phases()))

    assert (caught.value.phase, caught.value.step) == ("only", 7)
    assert fit(model, None).isfinite()
    assert pickle.loads(pickle.dumps(caught.value)).step == 7


def test_a_population_diverges_only_with_its_last_member():
    calls = iter(range(100))

    def spoilt(model, phase):
        step = next(calls)
        return fit(model, phase) * torch.tensor(
            [torch.nan if step >= 3 else 1.0, torch.nan if step >= 6 else 1.0]
        )

    run = train(network(members=2), spoilt, phases(), record_every=1)
    with pytest.raises(Diverged):
        list(run)

    assert [(f.member, f.step) for f in run.failures] == [(0, 3), (1, 6)]


def test_ctrl_c_inside_a_step_leaves_no_half_step():
    class Interrupted(torch.optim.SGD):
        def step(self):
            next(p for p in self.param_groups[0]["params"]).data.fill_(torch.nan)
            raise KeyboardInterrupt

    model = network()
    before = snapshot(model)
    with pytest.raises(KeyboardInterrupt):
        list(train(model, fit, phases(), optimiser=Interrupted))

    assert same(before, model.state_dict())


def test_ctrl_c_inside_the_loss_leaves_the_last_whole_step():
    model, seen, calls = network(), {}, iter(range(100))

    def interrupted(model, phase):
        if next(calls) == 5:
            raise KeyboardInterrupt
        return fit(model, phase)

    run = train(
        model,
        interrupted,
        phases(),
        record_every=1,
        on_record=lambda record: seen.update({record.step: snapshot(model)}),
    )
    with pytest.raises(KeyboardInterrupt):
        list(run)

    assert same(seen[5], model.state_dict())


def test_leaving_early_leaves_the_model_as_it_was_at_the_record():
    model = network()
    for _ in train(model, fit, phases(), record_every=5):
        before = snapshot(model)
        break

    assert same(before, model.state_dict())


def test_a_loss_of_the_wrong_shape_is_explained():
    with pytest.raises(InvalidArgument, match=r"one number per member, shape \(3,\), got \(\)"):
        next(train(network(members=3), lambda model, phase: fit(model, phase).mean(), phases()))
    with pytest.raises(InvalidArgument, match=r"must give one number, got shape \(32, 1\)"):
        next(train(network(), lambda model, phase: (model(X) - X).square(), phases()))


def test_bad_settings_are_refused_before_training():
    with pytest.raises(InvalidArgument, match=r"`record_every`.*got 0"):
        train(network(), fit, phases(), record_every=0)
    with pytest.raises(UnknownName, match="no penalty named 'l3'"):
        train(network(), fit, phases(), penalty="l3")
    with pytest.raises(InvalidArgument, match="empty"):
        train(network(), fit, [])


def test_no_global_generator_is_touched():
    before = torch.get_rng_state()
    list(train(network(members=2, gates=True), fit, phases(penalty=1e-3), penalty="l0"))

    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("schedule", "optimiser", "message"),
    [
        (Phase(name="a", steps=1, lr=0.1), torch.optim.Adam, r"put the one in parentheses, `\(phase,\)`"),
        ((Phase(name="a", steps=1, lr=0.1),), "adam", "must make an optimiser from parameters, .* got str"),
    ],
)
def test_natural_mistakes_are_explained(schedule, optimiser, message):
    with pytest.raises(WrongType, match=message):
        train(EQL(1, 1, seed=0), lambda model, phase: model(X).sum(), schedule, optimiser=optimiser)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("loss", [lambda m, p: fit(m, p).item(), lambda m, p: fit(m, p).detach()])
def test_a_loss_that_leads_nowhere_is_explained(loss):
    with pytest.raises(WrongType, match="`loss` must give a tensor that depends on the model's weights"):
        list(train(network(), loss, phases()))


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("model", "loss", "message"),
    [
        (network(), DataLoader(TensorDataset(X, X)), r"got DataLoader; draw the batches inside"),
        (network(), X, "got Tensor; draw the batches"),
        (network(), nn.MSELoss(), r"compares two tensors; write `lambda model, phase: MSELoss\(\)"),
        (network(), lambda model: fit(model, None), "does not take these two arguments"),
        ([network()], fit, "`model` must be an nn.Module, .* got list"),
    ],
)  # fmt: skip
def test_data_in_the_place_of_a_loss_are_explained(model, loss, message):
    with pytest.raises(WrongType, match=message):
        train(model, loss, phases())
