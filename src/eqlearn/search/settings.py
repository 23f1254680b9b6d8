"""How hard and how wide a search looks."""

from __future__ import annotations

from dataclasses import dataclass, field

from eqlearn.errors import InvalidArgument
from eqlearn.search.ansatz.stepwise import LADDER
from eqlearn.search.networks.sparsify import Half, HardConcreteL0
from eqlearn.search.networks.structures import LEVELS, Level
from eqlearn.search.strategies import SKETCHES
from eqlearn.validation.options import check_least

# What a scientist expects; `pow` adds products of powers of the columns that are positive throughout.
SCIENCE = "id square sin1 cos exp log sqrt inv tanh mul div pow"


@dataclass(frozen=True)
class Settings:
    """How hard and how wide the search looks; the defaults serve all problems.

    `members` is the most networks solved together in a round. `rows` is how many rows the search itself
    sees (all rows serve the last fit). `validation` is the fraction held out when there are at least
    `enough_rows`. `patience` is how many rounds without a better score end a search in noisy data.
    `sketches` are the rounds of linear algebra before networks are drawn; with none, networks find it all.
    """

    members: int = 24
    rows: int = 256
    validation: float = 0.2
    enough_rows: int = 60
    patience: int = 10
    finalists: int = 4
    sketches: tuple[str, ...] = SKETCHES
    levels: tuple[Level, ...] = LEVELS
    half: Half = field(default_factory=Half)
    l0: HardConcreteL0 = field(default_factory=HardConcreteL0)

    def __post_init__(self) -> None:
        for name in ("members", "rows", "enough_rows", "patience", "finalists"):
            check_least(name, getattr(self, name))
        if not 0 <= self.validation < 1:
            raise InvalidArgument(f"`validation` must be at least 0 and below 1, got {self.validation}")

    def way(self, number: int) -> str:
        """How the round with that number looks: a ansatz's name, or "networks"; the mean, and the sums of
        columns that are added at the end, are of no round."""
        if number < 0:
            return "ladder" if number == LADDER else "mean"
        return self.sketches[number] if number < len(self.sketches) else "networks"


DEFAULTS = Settings()
