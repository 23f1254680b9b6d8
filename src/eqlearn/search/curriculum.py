"""What is tried when: strategies, then networks, the simplest first, with rounds of growth between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from eqlearn.errors import InvalidArgument
from eqlearn.search.features import Features
from eqlearn.search.networks.fit import Fit
from eqlearn.search.networks.structures import Level
from eqlearn.search.settings import Settings
from eqlearn.search.step import Step
from eqlearn.search.strategies import Strategy, find_strategy
from eqlearn.validation.options import check_least


@dataclass(frozen=True)
class Curriculum:
    """The order of rounds, a function of their number and of what earlier generations found."""

    settings: Settings
    hidden_layers: int
    features: Features
    rows: int
    seed: int

    def __post_init__(self) -> None:
        _ = self.strategies  # an unknown name is refused at once
        check_least("hidden_layers", self.hidden_layers)
        if not self.lessons:
            raise InvalidArgument(f"no level of `levels` fits into `hidden_layers`={self.hidden_layers}")

    @cached_property
    def strategies(self) -> tuple[Strategy, ...]:
        """What is tried before networks are drawn."""
        return tuple(find_strategy(name) for name in self.settings.strategies)

    @cached_property
    def lessons(self) -> list[Level]:
        """The levels whose depth is allowed and whose bank adds something to a smaller one's."""
        columns = self.features.bank("plain")
        return [
            level
            for level in self.settings.levels
            if level.depth + self.features.layers(level.bank) <= self.hidden_layers
            and (level.bank == "plain" or len(self.features.bank(level.bank)) > len(columns))
        ]

    @property
    def first_pass(self) -> int:
        """How many rounds see every lesson once: a search in noise does not end before."""
        return len(self.strategies) + len(self.lessons) * 3 // 2

    def generation(self, number: int) -> int:
        """How many rounds run in parallel from round `number` on; none of them sees what the others find."""
        later = number - len(self.strategies)
        return 1 if later < 3 else 2 if later < 11 else 4

    def step(self, number: int, parents: Sequence[Fit]) -> Step:
        """First what linear algebra can solve; then the lessons in turn, every third round growing from
        the best so far."""
        if number < len(self.strategies):
            return Step(number, self.seed, self.strategies[number])
        drawn = number - len(self.strategies) + 1
        if parents and drawn % 3 == 0:
            level = Level(1, 2, 1, ("plain", "quadratic", "log")[drawn // 3 % 3])
        else:
            level, parents = self.lessons[(drawn - 1 - drawn // 3) % len(self.lessons)], ()
        return Step(number, self.seed, None, level, self.members(level), tuple(parents), drawn)

    def members(self, level: Level) -> int:
        """As many networks as keep a step of least squares affordable."""
        inputs = len(self.features.bank(level.bank)) + 1
        rows_of_map = level.units + 1 + 2 * level.binaries
        weights = rows_of_map * (inputs + (level.depth - 1) * (rows_of_map + inputs * level.skip))
        affordable = self.settings.max_multiplications / (self.rows * weights**2)
        return int(min(self.settings.members, max(8, affordable)))
