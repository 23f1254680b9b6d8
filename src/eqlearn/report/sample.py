"""Some rows of the data, kept with a run so that its page can be drawn again without the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eqlearn.discovery.table import some_rows
from eqlearn.errors import InvalidFile

ROWS = 400
TRAINING, HELD_OUT, OUTSIDE = range(3)
PARTS = ("training", "held out", "extrapolation")


@dataclass(frozen=True, eq=False)
class Sample:
    """Inputs `(rows, in)`, targets `(rows, out)`, the part each row belongs to (an index into `PARTS`), and
    each input's least, middle and largest training value, `(in, 3)`."""

    X: np.ndarray
    y: np.ndarray
    part: np.ndarray
    ranges: np.ndarray

    @staticmethod
    def of(
        X: np.ndarray,
        y: np.ndarray,
        held_out: np.ndarray,
        outside: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Sample:
        """At most `ROWS` rows of the data, and half as many from outside the training range; `held_out` says
        which rows the search did not see."""
        rows = some_rows(len(X), ROWS)
        blocks = [(X[rows], y[rows], np.where(held_out[rows], HELD_OUT, TRAINING))]
        if outside is not None:
            rows = some_rows(len(outside[0]), ROWS // 2)
            blocks.append((outside[0][rows], outside[1][rows], np.full(len(rows), OUTSIDE)))
        inputs, targets, parts = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
        seen = X[~held_out]
        ranges = np.stack([seen.min(axis=0), np.median(seen, axis=0), seen.max(axis=0)], axis=1)
        return Sample(inputs, targets, parts.astype(np.uint8), ranges)

    def check(self, inputs: int, targets: int) -> None:
        """Refuses arrays that do not fit a run of so many inputs and targets."""
        rows = len(self.X)
        shapes = (self.X.shape, self.y.shape, self.part.shape, self.ranges.shape)
        if shapes != ((rows, inputs), (rows, targets), (rows,), (inputs, 3)) or rows > 2 * ROWS:
            raise InvalidFile(f"the sample of the data has shapes {shapes}, which do not fit the run")
        if rows and int(self.part.max()) >= len(PARTS):
            raise InvalidFile(f"the sample of the data has a part {int(self.part.max())}")
