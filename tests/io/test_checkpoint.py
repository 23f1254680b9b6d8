"""Training that goes on after a kill."""

import pytest
import torch

from eqlearn import EQL, Phase, train
from eqlearn.errors import InvalidFile
from eqlearn.io.storage import followed

SCHEDULE = (
    Phase(name="sparsify", steps=40, lr=1e-2, penalty=1e-3, prune_below=0.01),
    Phase(name="fine-tune", steps=40, lr=1e-3),
)
X = torch.linspace(-1, 1, 20)[:, None]


def start(network, state=None):
    return train(
        network,
        lambda model, phase: (model(X) - X.square()).square().mean(),
        SCHEDULE,
        record_every=10,
        resume=state,
    )


def test_a_run_stopped_anywhere_ends_like_one_that_was_not(tmp_path):
    whole = EQL(1, 1, "id square", 1, seed=0)
    for _ in start(whole):
        pass

    for stop in (1, 4, 7):
        path = tmp_path / f"{stop}.safetensors"
        first, second = (EQL(1, 1, "id square", 1, seed=0) for _ in range(2))
        records = followed(path, lambda state, network=first: start(network, state), every=0.0)
        for _ in range(stop + 1):  # the state is written when the next record is asked for
            next(records)
        remaining = list(followed(path, lambda state, network=second: start(network, state), every=0.0))

        assert len(remaining) == 8 - stop
        for name, tensor in whole.state_dict().items():
            assert torch.equal(second.state_dict()[name], tensor)


def test_a_finished_run_is_loaded_and_not_trained_again(tmp_path):
    path = tmp_path / "training.safetensors"
    trained, loaded = (EQL(1, 1, "id square", 1, seed=0) for _ in range(2))
    list(followed(path, lambda state: start(trained, state)))

    assert list(followed(path, lambda state: start(loaded, state))) == []
    assert torch.equal(loaded(X), trained(X))


def test_a_damaged_checkpoint_is_refused(tmp_path):
    path = tmp_path / "training.safetensors"
    path.write_bytes(b"half a file")

    with pytest.raises(InvalidFile, match=r"training\.safetensors"):
        next(followed(path, lambda state: start(EQL(1, 1, "id", 1, seed=0), state)))
