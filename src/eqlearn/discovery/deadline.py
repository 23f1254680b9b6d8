"""The time by which a search must be done."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Deadline:
    """A stop condition by the clock that can be sent to another process."""

    at: float

    def __call__(self) -> bool:
        return time.time() > self.at

    def leaves(self, seconds: float) -> bool:
        """Whether something that takes so many seconds would be done in time."""
        return time.time() + seconds <= self.at
