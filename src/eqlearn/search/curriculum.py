"""Which round comes when: simplest structures first, then deeper and wider, with rounds of growth between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eqlearn.errors import InvalidArgument
from eqlearn.search.features import Features
from eqlearn.search.networks.fit import Fit
from eqlearn.search.networks.structures import Level
from eqlearn.search.step import Step
from eqlearn.search.strategies import EXACT_FIRST, SKETCHES
from eqlearn.validation.options import check_least, checked_choice

# Multiplications that one step of a round may take.
STEP = 2e8


@dataclass(frozen=True)
class Curriculum:
    """The order of rounds, a function of their number and of what earlier generations found."""

    levels: tuple[Level, ...]
    hidden_layers: int
    features: Features
    rows: int
    most: int
    seed: int
    sketches: tuple[str, ...] = SKETCHES

    def __post_init__(self) -> None:
        check_least("hidden_layers", self.hidden_layers)
        for kind in self.sketches:
            checked_choice("ansatz", kind, SKETCHES)
        if not self.lessons:
            raise InvalidArgument(f"no level of `levels` fits into `hidden_layers`={self.hidden_layers}")

    @property
    def lessons(self) -> list[Level]:
        """The levels whose depth is allowed and whose bank adds something to a smaller one's."""
        columns = self.features.bank("plain")
        return [
            level
            for level in self.levels
            if level.depth + self.features.layers(level.bank) <= self.hidden_layers
            and (level.bank == "plain" or len(self.features.bank(level.bank)) > len(columns))
        ]

    @property
    def first_pass(self) -> int:
        """How many rounds see every lesson once: a search in noise does not end before."""
        return len(self.sketches) + len(self.lessons) * 3 // 2

    def generation(self, number: int) -> int:
        """How many rounds run side by side from round `number` on; they can't learn from each other."""
        later = number - len(self.sketches)
        return 1 if later < 3 else 2 if later < 11 else 4

    def round(self, number: int, parents: Sequence[Fit]) -> Step:
        """First what can be solved without luck; then the lessons in turn, every third round growing from
        the best so far."""
        if number < len(self.sketches):
            kind = self.sketches[number]
            return Step(number, kind, self.seed, quick=kind in EXACT_FIRST)
        drawn = number - len(self.sketches) + 1
        lessons = self.lessons
        if parents and drawn % 3 == 0:
            bank = ("plain", "quadratic", "log")[drawn // 3 % 3]
            level = Level(1, 2, 1, bank)
            return Step(number, "networks", self.seed, level, self.members(level), parents=tuple(parents))
        fresh = drawn - 1 - drawn // 3
        level = lessons[fresh % len(lessons)]
        return Step(number, "networks", self.seed, level, self.members(level))

    def members(self, level: Level) -> int:
        """As many networks as keep a step of least squares affordable."""
        inputs = len(self.features.bank(level.bank)) + 1
        rows_of_map = level.units + 1 + 2 * level.binaries
        weights = rows_of_map * (inputs + (level.depth - 1) * (rows_of_map + inputs * level.skip))
        return int(min(self.most, max(8, STEP / (self.rows * weights**2))))
