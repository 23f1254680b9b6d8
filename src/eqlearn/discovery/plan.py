"""Which round comes when: simplest structures first, then deeper and wider, with rounds of growth between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eqlearn.discovery.explore import Round
from eqlearn.discovery.inversion import Inversion
from eqlearn.discovery.least_squares import Fit
from eqlearn.discovery.structures import Level
from eqlearn.errors import InvalidArgument


@dataclass(frozen=True)
class Menu:
    """The order of rounds, a function of their number and of what earlier generations found."""

    levels: tuple[Level, ...]
    hidden_layers: int
    inversions: Sequence[Inversion]
    members: int
    seed: int

    def __post_init__(self) -> None:
        if self.hidden_layers < 1:
            raise InvalidArgument(f"`hidden_layers` must be at least 1, got {self.hidden_layers}")

    @property
    def courses(self) -> list[tuple[Level, Inversion | None]]:
        """Levels with and without an inverted last unit, by rising size."""
        priced: list[tuple[float, Level, Inversion | None]] = []
        for place, level in enumerate(self.levels):
            if level.depth <= self.hidden_layers:
                priced.append((place, level, None))
            for i, inversion in enumerate(self.inversions):
                if level.depth < self.hidden_layers:
                    priced.append((place + 0.4 + 0.2 * i, level, inversion))
        priced.sort(key=lambda item: item[0])
        return [(level, inversion) for _, level, inversion in priced]

    @property
    def first_pass(self) -> int:
        """How many rounds see the simple courses once: a search in noise does not end before."""
        return 6

    def generation(self, number: int) -> int:
        """How many rounds run side by side from round `number` on; they can't learn from each other."""
        return 1 if number < 6 else 2 if number < 16 else 4

    def round(self, number: int, parents: Sequence[Fit]) -> Round:
        """Round `number`; every third grows from the best found so far."""
        courses = self.courses
        grown = parents and number % 3 == 2
        fresh_before = number - (number + 1) // 3 if parents else number
        level, inversion = courses[fresh_before % len(courses)]
        members = self.members * (1 + fresh_before // len(courses))
        if grown:
            return Round(number, Level(1, 2, 1), self.members, self.seed, parents=tuple(parents))
        return Round(number, level, min(members, 64), self.seed, inversion)
