"""Units of measurement: data are scaled by factors, never centred, and equations are given back unscaled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp
import torch
from torch import Tensor


@dataclass(frozen=True)
class Scaling:
    """Factors that bring every column near [-1, 1], and the columns whose logarithm is an input as well.

    A shift would turn a sparse truth into a dense one, so there is none. With a logarithm among the inputs,
    an `exp` unit of the first layer is a product of powers.
    """

    inputs: tuple[float, ...]
    output: float
    logarithms: tuple[int, ...] = ()

    @staticmethod
    def of(X: np.ndarray, y: np.ndarray, *, logarithms: bool = False) -> Scaling:
        """From `(rows, in)` and `(rows, out)`; logarithms only of columns that are positive throughout."""
        sizes = np.abs(X).max(axis=0)
        inputs = tuple(float(s) if s > 0 else 1.0 for s in sizes)
        spread = float(y.std())
        largest = float(np.abs(y).max())
        # A target that varies little about a large mean would be all mean in units of its spread.
        output = spread if spread > 1e-3 * largest else largest or 1.0
        positive = tuple(int(i) for i in np.flatnonzero(X.min(axis=0) > 0)) if logarithms else ()
        return Scaling(inputs, output, positive)

    @property
    def in_features(self) -> int:
        return len(self.inputs) + len(self.logarithms)

    def features(self, X: np.ndarray) -> Tensor:
        """What a network sees, feature-major: the scaled columns, then the logarithms."""
        scaled = X / np.array(self.inputs)
        columns = [*scaled.T, *(np.log(scaled[:, i]) for i in self.logarithms)]
        return torch.as_tensor(np.stack(columns))

    def symbolic(self, symbols: Sequence[sp.Symbol]) -> list[sp.Expr]:
        """The same inputs as expressions in the user's variables."""
        scaled = [s / sp.Float(f, 17) for s, f in zip(symbols, self.inputs, strict=True)]
        return [*scaled, *(sp.log(scaled[i]) for i in self.logarithms)]
