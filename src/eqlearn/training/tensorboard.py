"""Training curves for TensorBoard, as a callback for `train`; needs the extra `tensorboard`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from eqlearn.errors import MissingExtra
from eqlearn.training.loop import Record


class TensorBoardWriter:
    """Writes the loss, penalty, number of weights and, optionally, equation of each record.

    ```python
    with TensorBoardWriter("runs/first", equation=lambda model: Equation.read(model, ["x"])) as writer:
        for record in train(model, loss, schedule, on_record=writer): ...
    ```

    Of several members, the best and the median are shown.
    """

    def __init__(self, folder: str | Path, equation: Callable[[nn.Module], object] | None = None) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtra(
                "TensorBoard is not installed; run `pip install 'eqlearn[tensorboard]'`"
            ) from error
        self._writer: Any = SummaryWriter(str(folder))
        self._equation = equation

    def __call__(self, record: Record) -> None:
        for name in ("loss", "penalty", "weights_left"):
            for curve, value in _curves(getattr(record, name), record.alive).items():
                self._writer.add_scalar(f"{name}{curve}", value, record.total_step)
        self._writer.add_scalar("alive", float(record.alive.sum()), record.total_step)
        self._writer.add_scalar("lr", record.lr, record.total_step)
        if self._equation is not None:
            self._writer.add_text("equation", str(self._equation(record.model)), record.total_step)

    def close(self) -> None:
        self._writer.close()

    def __enter__(self) -> TensorBoardWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _curves(values: Tensor, alive: Tensor) -> dict[str, float]:
    if values.dim() == 0:
        return {"": float(values)}
    return {"/best": float(values[alive].min()), "/median": float(values[alive].double().median())}
