import sys

import pytest
import torch

from eqlearn.errors import MissingExtra
from eqlearn.nn.eql import EQL
from eqlearn.training.loop import train
from eqlearn.training.schedule import Phase
from eqlearn.training.tensorboard import TensorBoardWriter

X = torch.linspace(-1, 1, 16)[:, None]


def written(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return events


def records_into(folder, members=None, **options):
    model = EQL(1, 1, "id mul", 1, members=members, seed=0)
    with TensorBoardWriter(folder, **options) as writer:
        return list(
            train(
                model,
                lambda model, phase: (model(X) - X).square().mean(dim=(-2, -1)),
                [Phase(name="p", steps=6, lr=1e-2, penalty=1e-3)],
                record_every=2,
                on_record=writer,
            )
        )


def test_the_loss_of_every_record_is_drawn(tmp_path):
    records = records_into(tmp_path)
    curve = written(tmp_path).Scalars("loss")

    assert [point.step for point in curve] == [2, 4, 6]
    assert [point.value for point in curve] == pytest.approx([r.loss.item() for r in records])


def test_of_a_population_the_best_is_drawn(tmp_path):
    records = records_into(tmp_path, members=3)
    curve = written(tmp_path).Scalars("loss/best")

    assert [point.value for point in curve] == pytest.approx([r.loss.min().item() for r in records])


def test_the_equation_is_written_when_asked_for(tmp_path):
    records_into(tmp_path, equation=lambda model: "x + 1")

    assert written(tmp_path).Tags()["tensors"] == ["equation/text_summary"]


def test_without_tensorboard_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)

    with pytest.raises(MissingExtra, match=r"eqlearn\[tensorboard\]"):
        TensorBoardWriter(tmp_path)
