"""Finished rounds, remembered: what a search asks of a journal, and one that is kept in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from eqlearn.discovery.explore import Outcome


@runtime_checkable
class Journal(Protocol):
    """Remembers finished rounds, so that a search that was killed goes on where it was."""

    def recall(self, number: int) -> Outcome | None: ...

    def record(self, outcome: Outcome) -> None: ...


@dataclass
class Memory:
    """A journal for `discover`; `fingerprint` says of which data and settings, `seed` from which start."""

    fingerprint: str
    seed: int
    outcomes: dict[int, Outcome] = field(default_factory=dict)

    def recall(self, number: int) -> Outcome | None:
        return self.outcomes.get(number)

    def record(self, outcome: Outcome) -> None:
        self.outcomes[outcome.number] = outcome
