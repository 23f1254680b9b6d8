"""What is known of a law beforehand, as a user says it; refused where it contradicts itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Any, TypeAlias

from eqlearn.errors import InvalidArgument, WrongType
from eqlearn.search.knowledge.demands import check_prices
from eqlearn.validation.options import did_you_mean

# What is checked here, and may be anything before: a name or several; numbers by name; one such or several.
Names: TypeAlias = Any
Numbers: TypeAlias = Any
Places: TypeAlias = Any


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """What is known of a law before any search: `discover(X, y, knows=Knowledge(even="x", positive=True))`.

    - `even`, `odd`: columns in which the law is symmetric, or changes its sign with theirs.
    - `periodic`: the period in a column, {"t": 24}.
    - `positive`: whether the law is nowhere negative within the range of the data.
    - `increasing`, `decreasing`: columns in which it is monotone there.
    - `through`: points it passes through, {"x": 0, "y": 1}: the name that is no column's is the target's.
      Columns that are not named may have any value.
    - `limits`: values it tends to, {"x": inf, "y": 0}, in one column each.
    - `template`: its form, "y = f(a, b) * exp(-g(c))"; parts that are no known functions are searched for,
      names that are no columns are constants.
    - `start`: a first guess that is to be improved, "k*x**1.5".
    - `prefer`: how many nodes each use of an operator counts for, {"exp": 0.5, "sin": 3}; 1 is usual.
    - `holds`: a function of an `Equation` that says whether anything else that is known holds.
    """

    even: Names = ()
    odd: Names = ()
    periodic: Numbers = field(default_factory=dict)
    positive: bool = False
    increasing: Names = ()
    decreasing: Names = ()
    through: Places = ()
    limits: Places = ()
    template: Any = ""
    start: Any = ""
    prefer: Numbers = field(default_factory=dict)
    holds: Any = None

    def __post_init__(self) -> None:
        for name in ("even", "odd", "increasing", "decreasing"):
            object.__setattr__(self, name, _names(name, getattr(self, name)))
        for name in ("periodic", "prefer"):
            object.__setattr__(self, name, _numbers(name, getattr(self, name)))
        for name in ("through", "limits"):
            given = getattr(self, name)
            listed = [given] if isinstance(given, Mapping) or not isinstance(given, Iterable) else given
            object.__setattr__(self, name, tuple(_numbers(name, place) for place in listed))
        for name in ("template", "start"):
            if not isinstance(getattr(self, name), str):
                raise WrongType(f"`{name}` must be a formula as text, got {getattr(self, name)!r}")
        if self.holds is not None and not callable(self.holds):
            raise WrongType(f"`holds` must be a function of an equation, got {self.holds!r}")
        for name, period in self.periodic.items():
            if not 0 < period < math.inf:
                raise InvalidArgument(f"`periodic` needs a positive period of {name!r}, got {period}")
        check_prices(self.prefer)
        _check_consistent(self)

    @property
    def columns(self) -> set[str]:
        """Every name that must be a column's."""
        return {*self.even, *self.odd, *self.periodic, *self.increasing, *self.decreasing}

    def to_json(self) -> dict[str, Any]:
        """What was said, without what was left out, as plain data; infinity as text, which JSON lacks."""

        def plain(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {key: plain(each) for key, each in value.items()}
            if isinstance(value, tuple):
                return [plain(each) for each in value]
            return str(value) if isinstance(value, float) and math.isinf(value) else value

        said = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "holds"}
        return {name: plain(value) for name, value in said.items() if value}


@dataclass(frozen=True)
class Condition:
    """A value of the law where some columns have these values, by place, whatever the others."""

    where: tuple[tuple[int, float], ...]
    value: float


def read_knowledge(knows: Any, columns: Sequence[str]) -> Knowledge:
    """What is known, from the object or a dictionary of its arguments, about these columns."""
    if isinstance(knows, Mapping):
        known = [f.name for f in fields(Knowledge)]
        for name in knows:
            if name not in known:
                raise InvalidArgument(f"`knows` has no {name!r}; {did_you_mean(str(name), known)}")
        knows = Knowledge(**knows)
    if not isinstance(knows, Knowledge):
        raise WrongType(f"`knows` must be a Knowledge, or a dictionary of its arguments; got {knows!r}")
    for name in sorted(knows.columns):
        if name not in columns:
            raise InvalidArgument(f"`knows` names no column: {name!r}; {did_you_mean(name, columns)}")
    return knows


def conditions_of(
    argument: str, places: Iterable[Mapping[str, float]], columns: Sequence[str]
) -> tuple[Condition, ...]:
    """The points or limits by the places of their columns."""
    conditions = []
    for place in places:
        others = [name for name in place if name not in columns]
        if len(others) != 1 or len(place) < 2:
            raise InvalidArgument(
                f"`{argument}` must name columns and, by one other name, the target, such as "
                f"{{{columns[0]!r}: 0, 'target': 1}}; got {dict(place)!r}, and the columns are "
                f"{', '.join(columns)}"
            )
        where = tuple((columns.index(name), v) for name, v in place.items() if name in columns)
        conditions.append(Condition(where, place[others[0]]))
    if argument == "limits" and any(len(c.where) > 1 for c in conditions):
        raise InvalidArgument("`limits` are in one column each, whatever the others")
    there = [v for c in conditions for _, v in c.where] if argument == "through" else []
    if any(map(math.isinf, [*there, *(c.value for c in conditions)])):
        raise InvalidArgument(f"`{argument}` must be finite, but for the column of a limit")
    values = {c.where: c.value for c in conditions}
    for c in conditions:
        if values[c.where] != c.value:
            raise InvalidArgument(f"`{argument}` says {c.value:g} and {values[c.where]:g} at the same place")
    return tuple(conditions)


def _names(argument: str, given: Any) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    if not all(isinstance(name, str) and name for name in names):
        raise WrongType(f"`{argument}` must hold names of columns, got {given!r}")
    return names


def _numbers(argument: str, given: Any) -> dict[str, float]:
    if not isinstance(given, Mapping):
        raise WrongType(f"`{argument}` must be a dictionary of numbers by name, got {given!r}")
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, Real) or math.isnan(value):
            raise WrongType(f"`{argument}` must hold numbers, got {value!r} for {name!r}")
    return {str(name): float(value) for name, value in given.items()}


def _check_consistent(knows: Knowledge) -> None:
    """Refuses what no law but a constant can have."""
    monotone = {*knows.increasing, *knows.decreasing}
    pairs = (
        ("even", knows.even, "odd", knows.odd),
        ("increasing", knows.increasing, "decreasing", knows.decreasing),
        ("even", knows.even, "monotone", monotone),
        ("periodic", knows.periodic, "monotone", monotone),
    )
    for one, these, other, those in pairs:
        both = sorted({*these} & {*those})
        if both:
            raise InvalidArgument(f"a law that is {one} and {other} in {both[0]!r} does not depend on it")
    if knows.positive and knows.odd:
        raise InvalidArgument(
            f"a law that is odd in {knows.odd[0]!r} has both signs, so it is not `positive`"
        )
    if knows.template and knows.start:
        raise InvalidArgument(
            "a `template` and a `start` can't be used together; write the guess as a template"
        )
