"""The finished rounds of a search, kept in memory so that a later search can go on from them."""

from __future__ import annotations

from dataclasses import dataclass, field

from eqlearn.discovery.explore import Outcome


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
