"""Steps that are written out, against those of the loop on the same network."""

import pytest
import torch

from eqlearn import EQL, InvalidArgument, MeanSquaredError, Phase, RMSPropTF1, train
from eqlearn.nn.penalties import Lq, SmoothHalf
from eqlearn.nn.sparse import weights_left
from eqlearn.training.direct import DirectStep

PHASES = (
    Phase(name="sparsify", steps=40, lr=1e-2, penalty=5e-3, ramp="linear", prune_below=0.05),
    Phase(name="fine-tune", steps=20, lr=1e-3, decay="cosine"),
)
SHAPES = [
    ({}, ()),
    ({"members": 3}, ()),
    ({"members": 3}, (3,)),
    ({"members": 2, "skip": True, "bias": True}, ()),
    ({"hidden_layers": 1, "out_features": 2}, ()),
]


def data(lead=(), rows=30, outputs=1):
    x = torch.rand(*lead, rows, 2) * 2 - 1
    return x, x.prod(dim=-1, keepdim=True).expand(*lead, rows, outputs)


def run_of(loss, options, phases=PHASES, dtype=torch.float32, **more):
    network = EQL(2, seed=4, **options).to(dtype)
    return train(network, loss, phases, optimiser=RMSPropTF1, record_every=7, **more)


def both(options, lead, dtype=torch.float32):
    torch.manual_seed(0)
    x, y = (t.to(dtype) for t in data(lead, outputs=options.get("out_features", 1)))
    direct = MeanSquaredError(x, y)
    return run_of(direct, options, dtype=dtype), run_of(lambda m, p: direct(m), options, dtype=dtype)


@pytest.mark.parametrize(("options", "lead"), SHAPES)
def test_every_step_is_that_of_the_loop(options, lead):
    fast, slow = both(options, lead, torch.float64)

    assert DirectStep.of(fast) is not None
    assert DirectStep.of(slow) is None
    for ours, theirs in zip(fast, slow, strict=True):
        assert (ours.step, ours.lr, ours.penalty_weight) == (theirs.step, theirs.lr, theirs.penalty_weight)
        torch.testing.assert_close(ours.loss, theirs.loss)
        torch.testing.assert_close(ours.penalty, theirs.penalty)
        assert torch.equal(ours.weights_left, theirs.weights_left)
        torch.testing.assert_close(fast.state().tensors, slow.state().tensors)
    assert int(weights_left(fast.model).sum()) < sum(s.mask.numel() for s in fast.model.linears)


@pytest.mark.parametrize(("options", "lead"), SHAPES)
def test_a_step_in_single_precision_is_equal_to_a_millionth(options, lead):
    fast, slow = both(options, lead)
    for run in (fast, slow):
        run.record_every = 1

    next(fast), next(slow)

    for ours, theirs in zip(fast.model.parameters(), slow.model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)


def test_a_member_that_fails_is_stopped_and_the_others_go_on_as_without_it():
    x, y = data()
    loss = MeanSquaredError(x, y)
    fast, slow = run_of(loss, {"members": 3}), run_of(lambda m, p: loss(m), {"members": 3})
    for run in (fast, slow):
        next(run)
        with torch.no_grad():
            run.model.readout.raw[1] = 1e30

    *_, ours = fast
    *_, theirs = slow

    assert ours.failures == theirs.failures
    assert [f.member for f in ours.failures] == [1]
    torch.testing.assert_close(ours.loss, theirs.loss, equal_nan=True, rtol=1e-3, atol=1e-5)


def test_it_goes_on_from_a_state_to_the_same_end():
    x, y = data()
    loss = MeanSquaredError(x, y)
    whole, half = run_of(loss, {}), run_of(loss, {})
    *_, last = whole
    next(half), next(half)

    *_, again = run_of(loss, {}, resume=half.state())

    assert torch.equal(last.loss, again.loss)
    for a, b in zip(last.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_what_is_changed_between_two_records_is_seen():
    x, y = data()
    run = run_of(MeanSquaredError(x, y), {})
    next(run)
    seen = []
    run.model.layers[0].register_forward_hook(lambda *call: seen.append(call))

    next(run)

    assert seen


@pytest.mark.parametrize(
    "changed",
    [
        {"penalty": Lq(1.0)},
        {"optimiser": torch.optim.Adam},
        {"optimiser": lambda parameters: RMSPropTF1(parameters, momentum=0.5)},
        {"network": EQL(2, seed=0, gates=True)},
        {"network": EQL(2, 1, "div id", seed=0)},
        {"network": EQL(2, seed=0).to("meta")},
    ],
)
def test_another_kind_of_run_is_left_to_the_loop(changed):
    network = changed.pop("network", None) or EQL(2, seed=0)
    settings = {"penalty": SmoothHalf(), "optimiser": RMSPropTF1, **changed}
    x, y = (t.to(network.readout.raw.device) for t in data())

    assert DirectStep.of(train(network, MeanSquaredError(x, y), PHASES, **settings)) is None


def test_a_hook_on_a_weight_still_sees_its_gradient():
    run, seen = run_of(MeanSquaredError(*data()), {}), []
    run.model.readout.raw.register_hook(seen.append)

    next(run)

    assert len(seen) == 7


def test_data_of_other_shapes_are_refused():
    with pytest.raises(InvalidArgument, match=r"`X` must be \(rows, in\)"):
        MeanSquaredError(torch.ones(5, 2), torch.ones(5))
    with pytest.raises(InvalidArgument, match=r"`X` must be \(rows, in\)"):
        MeanSquaredError(torch.ones(5, 2), torch.ones(4, 1))
