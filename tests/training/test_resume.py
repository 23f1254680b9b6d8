import json

import pytest
import safetensors.torch
import torch
from torch import nn

from eqlearn.errors import InvalidArgument, InvalidFile, WrongType
from eqlearn.nn.eql import EQL
from eqlearn.training.loop import train
from eqlearn.training.optimisers import RMSPropTF1
from eqlearn.training.schedule import Phase
from eqlearn.training.state import TrainingState

X = torch.linspace(-1, 1, 32)[:, None]
SCHEDULE = (
    Phase(name="sparsify", steps=10, lr=1e-2, penalty=1e-2, ramp="linear", prune_below=0.1, clip=1.0),
    Phase(name="fine-tune", steps=7, lr=1e-3, decay="cosine"),
)
OPTIMISERS = {
    "rmsprop": lambda params: RMSPropTF1(params, momentum=0.5),
    "adam": torch.optim.Adam,
    "sgd": torch.optim.SGD,
}


class Model(nn.Module):
    """An encoder shared by a gated population."""

    def __init__(self, seed=0):
        super().__init__()
        self.encoder = nn.Linear(1, 1)
        nn.init.constant_(self.encoder.weight, 0.7)
        nn.init.constant_(self.encoder.bias, 0.1)
        self.eql = EQL(1, 1, "id*2 square mul", 1, members=3, gates=True, seed=seed)

    def forward(self, x):
        return self.eql(self.encoder(x))


class Batches(nn.Module):
    """A loss that walks through its data and makes member 1 fail on the way."""

    def __init__(self, fails_at):
        super().__init__()
        self.fails_at = fails_at
        self.register_buffer("position", torch.zeros((), dtype=torch.int64))

    def forward(self, model, phase):
        start = int(self.position) % 4 * 8
        batch = X[start : start + 8]
        failing = torch.nan if int(self.position) >= self.fails_at else 1.0
        self.position += 1
        return (model(batch) - batch**2).square().mean(dim=(-2, -1)) * torch.tensor([1.0, failing, 1.0])


def saved_and_loaded(state):
    tensors = safetensors.torch.load(safetensors.torch.save(dict(state.tensors)))
    return TrainingState.of(tensors, json.loads(json.dumps(state.plain())))


def end_of(run):
    *_, last = run
    return last, run.state()


@pytest.mark.parametrize("optimiser", OPTIMISERS.values(), ids=OPTIMISERS)
@pytest.mark.parametrize("stop", [1, 6, 7, 10, 14])
def test_a_run_taken_up_again_ends_bit_for_bit_the_same(optimiser, stop):
    options = {"optimiser": optimiser, "penalty": "l0", "record_every": 1}
    whole, expected = end_of(train(Model(), Batches(7), SCHEDULE, **options))

    run = train(Model(), Batches(7), SCHEDULE, **options)
    for record in run:
        if record.total_step == stop:
            state = saved_and_loaded(run.state())
            break
    last, ended = end_of(train(Model(seed=99), Batches(7), SCHEDULE, resume=state, **options))

    assert ended.tensors.keys() == expected.tensors.keys()
    assert all(torch.equal(ended.tensors[k], expected.tensors[k]) for k in expected.tensors)
    assert last.failures == whole.failures
    assert [f.member for f in last.failures] == [1]
    assert torch.equal(last.loss, whole.loss) or torch.allclose(last.loss, whole.loss, 0, 0, equal_nan=True)
    assert last.total_step == whole.total_step


def test_a_state_is_a_copy_that_training_does_not_move():
    run = train(Model(), Batches(99), SCHEDULE, penalty="l0", record_every=5)
    next(run)
    state = run.state()
    before = {name: tensor.clone() for name, tensor in state.tensors.items()}
    list(run)
    list(train(Model(), Batches(99), SCHEDULE, penalty="l0", resume=state))

    assert all(torch.equal(before[name], state.tensors[name]) for name in before)


def test_a_finished_run_has_nothing_left_to_do():
    run = train(Model(), Batches(99), SCHEDULE, penalty="l0")
    list(run)

    assert list(train(Model(), Batches(99), SCHEDULE, penalty="l0", resume=run.state())) == []


def test_seconds_add_up_over_interruptions():
    run = train(Model(), Batches(99), SCHEDULE, penalty="l0", record_every=5)
    first = next(run)
    second = next(train(Model(), Batches(99), SCHEDULE, penalty="l0", record_every=5, resume=run.state()))

    assert second.seconds > first.seconds > 0


def test_a_state_of_another_model_is_refused():
    run = train(Model(), Batches(99), SCHEDULE, penalty="l0")
    next(run)
    other = EQL(1, 1, "id", 1, members=3)

    with pytest.raises(InvalidArgument, match="`resume` belongs to another model"):
        train(other, Batches(99), SCHEDULE, resume=run.state())


def test_a_state_beyond_the_schedule_is_refused():
    run = train(Model(), Batches(99), SCHEDULE, penalty="l0")
    list(run)

    with pytest.raises(InvalidArgument, match="step 7 of phase 1, which `schedule` does not have"):
        train(Model(), Batches(99), SCHEDULE[:1], penalty="l0", resume=run.state())


@pytest.mark.parametrize(
    "plain",
    [{}, {"phase": "x", "step": 0, "seconds": 0, "failures": []}, {"phase": 0, "step": 0, "seconds": 0}],
)
def test_what_is_not_a_state_is_refused(plain):
    with pytest.raises(InvalidFile, match="not a training state"):
        TrainingState.of({}, plain)


def test_an_optimiser_whose_memory_is_no_tensor_is_refused():
    class Odd(torch.optim.SGD):
        def step(self):
            self.state[self.param_groups[0]["params"][0]]["log"] = [1, 2]

    run = train(Model(), Batches(99), SCHEDULE, penalty="l0", optimiser=Odd)
    next(run)

    with pytest.raises(WrongType, match="Odd keeps 'log' as list"):
        run.state()
