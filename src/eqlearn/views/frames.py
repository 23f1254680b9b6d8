"""Candidates and their constants as data frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eqlearn.discovery.select import Candidate


def front_frame(front: Sequence[Candidate], best: Candidate) -> Any:
    """One row for each candidate, simplest first; `pick` marks the chosen one.

    Errors are root-mean-square errors divided by the target's spread, NaN where there were no such data.
    """
    import pandas as pd

    return pd.DataFrame(
        {
            "complexity": [c.complexity for c in front],
            "training_error": [c.training_error for c in front],
            "validation_error": [c.validation_error for c in front],
            "extrapolation_error": [c.extrapolation_error for c in front],
            "description_length": [c.description_length for c in front],
            "prediction_length": [c.prediction_length for c in front],
            "exact": [c.exact for c in front],
            "equation": [str(c) for c in front],
            "pick": [c is best for c in front],
        }
    )


def constants_frame(candidate: Candidate, outputs: Sequence[str]) -> Any:
    """One row for each fitted constant, in the order they are read: value, standard error, 95 % interval."""
    import pandas as pd

    rows = [
        (output, constant.value, constant.standard_error, *constant.interval())
        for output, constants in zip(outputs, candidate.constants, strict=False)
        for constant in constants
    ]
    frame = pd.DataFrame(rows, columns=["output", "value", "standard_error", "low", "high"])
    return frame.astype(dict.fromkeys(frame.columns[1:], "float64"))  # also when there is no row
