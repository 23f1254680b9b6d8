"""What is tried when: strategies, then networks, the simplest first, with rounds of growth between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count

from eqlearn.errors import InvalidArgument
from eqlearn.search.features import Features
from eqlearn.search.networks.fit import Fit
from eqlearn.search.networks.structures import Level
from eqlearn.search.settings import Settings
from eqlearn.search.step import Step
from eqlearn.search.strategies import EVOLUTION, Strategy, find_strategy
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

    @cached_property
    def evolves(self) -> bool:
        """Whether islands of trees are tried: for one target, and rows enough to tell."""
        asked = any(strategy is EVOLUTION for strategy in self.strategies)
        return asked and len(self.features.outputs) == 1 and self.rows >= self.settings.bank.min_rows

    @cached_property
    def scheduled(self) -> tuple[Strategy, ...]:
        """The rounds before networks or islands alone: strategies, from the first island on with one
        after each."""
        if not self.evolves:
            return tuple(s for s in self.strategies if s is not EVOLUTION)
        first = self.strategies.index(EVOLUTION)
        rest = self.strategies[first + 1 :]
        turns = [turn for strategy in rest for turn in (strategy, EVOLUTION)]
        return (*self.strategies[: first + 1], *turns)

    @property
    def patience(self) -> int:
        """How many rounds without a better score end a search in noise."""
        return self.settings.island.patience if self.evolves else self.settings.patience

    @property
    def first_pass(self) -> int:
        """How many rounds come before a search in noise may end: every strategy and every lesson once."""
        return len(self.scheduled) + (0 if self.evolves else len(self.lessons) * 3 // 2)

    @property
    def settled_pass(self) -> int:
        """The same where what the best law leaves is noise: strategies that could tell no more are done at
        once, and some islands are enough."""
        islands = [place for place, s in enumerate(self.scheduled) if s is EVOLUTION]
        some = islands[: self.settings.island.enough]
        return 1 + some[-1] if some else self.first_pass

    def generation(self, number: int) -> int | None:
        """How many rounds run in parallel from round `number` on, None for all that follow; none of them sees
        what the others find."""
        later = number - len(self.scheduled)
        if self.evolves:
            alone, abreast = self.settings.alone, self.settings.abreast
            if later >= 0:
                return None  # islands know nothing of each other
            return 1 if number < alone else min(abreast, -later)
        return 1 if later < 3 else 2 if later < 11 else 4

    def steps(self, number: int, parents: Sequence[Fit]) -> Iterator[Step]:
        """The rounds of the generation that begins with round `number`."""
        size = self.generation(number)
        return (
            self.step(n, parents) for n in (count(number) if size is None else range(number, number + size))
        )

    def step(self, number: int, parents: Sequence[Fit]) -> Step:
        """First what linear algebra can solve, with islands of trees between; then islands. Where there are
        none, the lessons in turn, every third round growing from the best so far."""
        past = number >= len(self.scheduled)
        if not past and self.scheduled[number] is not EVOLUTION:
            return Step(number, self.seed, self.scheduled[number])
        if self.evolves:
            earlier = sum(s is EVOLUTION for s in self.scheduled[:number])
            return Step(number, self.seed, island=earlier + max(0, number - len(self.scheduled)))
        drawn = number - len(self.scheduled) + 1
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
