import numpy as np
import pytest
import torch

from eqlearn.errors import InvalidArgument
from eqlearn.training.optimisers import RMSPropTF1, adamw


def reference(p, grads, lr, decay=0.9, eps=1e-10, momentum=0.0):
    """RMSProp as TensorFlow 1 documents it."""
    mean_square, speed = np.ones_like(p), np.zeros_like(p)
    for g in grads:
        mean_square = decay * mean_square + (1 - decay) * g**2
        speed = momentum * speed + lr * g / np.sqrt(mean_square + eps)
        p = p - speed
    return p


def run(optimiser_type, start, grads, **options):
    p = torch.nn.Parameter(torch.tensor(start))
    optimiser = optimiser_type([p], **options)
    for g in grads:
        p.grad = torch.tensor(g)
        optimiser.step()
    return p.detach().numpy()


@pytest.fixture
def start():
    return np.random.default_rng(0).normal(size=(3, 4))


@pytest.fixture
def grads():
    return np.random.default_rng(1).normal(size=(20, 3, 4)) * np.logspace(-6, 3, 4)


@pytest.mark.parametrize("momentum", [0.0, 0.7])
def test_it_follows_tensorflow_1(start, grads, momentum):
    moved = run(RMSPropTF1, start, grads, lr=0.1, momentum=momentum)

    np.testing.assert_allclose(moved, reference(start, grads, 0.1, momentum=momentum), rtol=1e-12)


def test_several_tensors_move_as_each_would_alone(start, grads):
    first, second = torch.nn.Parameter(torch.tensor(start)), torch.nn.Parameter(torch.tensor(2 * start))
    optimiser = RMSPropTF1([first, second], lr=0.1)
    for g in grads:
        first.grad, second.grad = torch.tensor(g), torch.tensor(3 * g)
        optimiser.step()

    np.testing.assert_allclose(first.detach().numpy(), reference(start, grads, 0.1), rtol=1e-12)
    np.testing.assert_allclose(second.detach().numpy(), reference(2 * start, 3 * grads, 0.1), rtol=1e-12)


def test_first_step_is_small_where_the_gradient_is_small():
    moved = run(RMSPropTF1, np.zeros(1), np.full((1, 1), 1e-3), lr=0.1)

    assert abs(moved[0]) < 0.1 * 1e-3 * 1.1


def test_pytorchs_own_takes_a_first_step_of_three_times_the_rate():
    """The difference for which this class exists."""
    moved = run(torch.optim.RMSprop, np.zeros(1), np.full((1, 1), 1e-3), lr=0.1, alpha=0.9, eps=1e-10)

    assert abs(moved[0]) == pytest.approx(0.1 / np.sqrt(0.1), rel=1e-3)


def test_a_parameter_without_gradient_stays():
    p, q = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    optimiser = RMSPropTF1([p, q], lr=0.1)
    p.grad = torch.ones(2)
    optimiser.step()

    assert torch.equal(q, torch.ones(2))
    assert not torch.equal(p, torch.ones(2))


def test_a_closure_is_called_with_gradients_on():
    p = torch.nn.Parameter(torch.ones(1))
    optimiser = RMSPropTF1([p], lr=0.1)

    def closure():
        optimiser.zero_grad()
        loss = p.square().sum()
        loss.backward()
        return loss

    assert optimiser.step(closure).item() == 1
    assert p.item() < 1


def test_groups_have_their_own_rates():
    p, q = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))
    optimiser = RMSPropTF1([{"params": [p]}, {"params": [q], "lr": 0.2}], lr=0.1)
    p.grad, q.grad = torch.ones(1), torch.ones(1)
    optimiser.step()

    assert (1 - q.item()) == pytest.approx(2 * (1 - p.item()), rel=1e-5)


def test_all_wrong_settings_are_told_at_once():
    with pytest.raises(InvalidArgument, match=r"`lr`.*`decay`.*`eps`.*`momentum`"):
        RMSPropTF1([torch.nn.Parameter(torch.ones(1))], lr=-1.0, decay=1.0, eps=-1.0, momentum=1.5)


@pytest.mark.parametrize("kind", [torch.float32, torch.complex64])
def test_adamw_in_one_kernel_is_adamw(kind):
    torch.manual_seed(0)
    first = torch.randn(5, dtype=kind)
    ours, theirs = torch.nn.Parameter(first.clone()), torch.nn.Parameter(first.clone())
    optimisers = adamw([ours], weight_decay=0.1), torch.optim.AdamW([theirs], weight_decay=0.1)
    for _ in range(5):
        gradient = torch.randn(5, dtype=kind)
        for parameter, optimiser in zip((ours, theirs), optimisers, strict=True):
            parameter.grad = gradient.clone()
            optimiser.step()

    assert not torch.equal(ours.detach(), first)
    torch.testing.assert_close(ours, theirs)
