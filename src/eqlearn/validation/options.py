"""Checks of names and options from users, with the same messages and hints everywhere."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from numbers import Integral
from typing import Any, TypeVar, dataclass_transform

from eqlearn.errors import InvalidArgument, UnknownName, WrongType

T = TypeVar("T")

# The squares of values beyond this, or all below its inverse, overflow or underflow in float64.
LARGEST = 1e140
# Fewer choices than this are all listed, in addition to the suggestion.
FEW = 10


def check_least(name: str, value: Any, least: int = 1) -> None:
    """Refuses a number below `least`, and NaN."""
    if not value >= least:
        raise InvalidArgument(f"`{name}` must be at least {least}, got {value}")


@dataclass_transform(frozen_default=True)
def tuned(kind: type[T]) -> type[T]:
    """Class decorator: a frozen dataclass of tuned numbers, printed as what differs from its defaults."""
    made = dataclass(frozen=True, repr=False)(kind)
    made.__repr__ = _changes  # type: ignore[method-assign]
    return made


def _changes(self: Any) -> str:
    changed = []
    for field in fields(self):
        value = getattr(self, field.name)
        usual = field.default if field.default_factory is MISSING else field.default_factory()
        if value != usual:
            changed.append(f"{field.name}={value!r}")
    return f"{type(self).__name__}({', '.join(changed)})"


def check_fields(settings: Any, names: Iterable[str], least: int = 1) -> None:
    """Refuses settings in which one of these numbers is below `least`; where that is 0, it must be above."""
    for name in names:
        value = getattr(settings, name)
        check_least(name, value, least) if least else check_positive(name, value)


def check_whole(name: str, value: Any, least: int = 1) -> None:
    """Refuses what is not a whole number, of Python or NumPy, of at least `least`."""
    if not isinstance(value, Integral) or int(value) < least:
        raise InvalidArgument(f"`{name}` must be a whole number of at least {least}, got {value!r}")


def check_number(name: str, value: Any, kind: type) -> None:
    """Refuses anything but None or a number of that kind (`Integral`, `Real`)."""
    if not (value is None or isinstance(value, kind)):
        raise WrongType(f"`{name}` must be a number or None, got {value!r}")


def check_positive(name: str, value: Any) -> None:
    if not value > 0:
        raise InvalidArgument(f"`{name}` must be positive, got {value}")


def check_single(what: str, members: int | None) -> None:
    """Refuses a population where one network is needed."""
    if members is not None:
        raise InvalidArgument(f"a population has no single {what}; take one with `member(i)` first")


def check_place(what: str, index: int, count: int) -> None:
    """Refuses an index, counted from either end, that is out of range."""
    if not -count <= index < count:
        raise InvalidArgument(f"there is no {what} {index} among {count}")


def check_together(X: Any, y: Any) -> None:
    """Refuses inputs without targets, and targets without inputs."""
    if (X is None) != (y is None):
        raise InvalidArgument("`X` and `y` must be given together")


def checked_range(edges: Any, name: str) -> tuple[float, float]:
    """The checked range of the variable `name` in a `box`."""
    try:
        low, high = (float(edge) for edge in edges)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"`box` must be (low, high), or such a pair by name; got {edges!r}") from error
    if not -math.inf < low < high < math.inf:
        raise InvalidArgument(f"`box` must have low < high, both finite; got {edges!r} for {name!r}")
    return low, high


def check_budget(seconds: float | None, restarts: int | None) -> None:
    """Refuses a budget that is not positive; None is no limit."""
    for name, value in (("seconds", seconds), ("restarts", restarts)):
        if value is not None:
            check_positive(name, value)


def check_alone(some: Mapping[str, Any], others: Mapping[str, Any]) -> None:
    """Refuses any of `some` together with any of `others`, by the names that the user knows them by; None is
    what was not given."""
    given = [[name for name, value in each.items() if value is not None] for each in (some, others)]
    if all(given):
        raise InvalidArgument(f"`{given[0][0]}` can't be used with `{given[1][0]}`; leave one out")


def check_jobs(n_jobs: int | None) -> None:
    if n_jobs == 0:
        raise InvalidArgument("`n_jobs` must be a number of workers, or -1 for one per processor, got 0")


def checked_seed(seed: Any, name: str = "seed") -> int:
    """The seed, if it is a whole number that is not negative."""
    if not isinstance(seed, Integral):
        raise WrongType(f"`{name}` must be a whole number, got {seed!r}")
    if seed < 0:
        raise InvalidArgument(f"`{name}` must not be negative, got {seed}")
    return int(seed)


def seed_of(random_state: Any) -> int:
    """The seed for a `random_state` of scikit-learn: itself, drawn from a generator, or any."""
    import numpy as np  # here, so that the command line checks its options without it

    if random_state is None:
        return int(np.random.default_rng().integers(2**31 - 1))
    if isinstance(random_state, Integral):
        return checked_seed(random_state, "random_state")
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    raise WrongType(f"`random_state` must be None, a number or a numpy generator, got {random_state!r}")


def check_settings(settings: Any, kind: type) -> None:
    """Refuses what is not a settings object of that kind."""
    if not isinstance(settings, kind):
        raise WrongType(f"`settings` must be a {kind.__name__} object, got {settings!r}")


def enter(what: str, name: str, thing: T, registry: dict[str, T]) -> T:
    """Adds a thing to a registry under its name, and returns it; refuses a name that is taken."""
    if not isinstance(name, str) or not name:
        raise InvalidArgument(f"{what} needs a `name`, got {name!r}")
    if registry.get(name, thing) is not thing:
        raise InvalidArgument(f"{what} named {name!r} exists already; choose another `name`")
    registry[name] = thing
    return thing


def checked_choice(what: str, value: Any, known: Collection[str]) -> str:
    """The value, if it is a known one; otherwise an error with a suggestion."""
    if not isinstance(value, str) or value not in known:
        hint = did_you_mean(str(value), known)
        menu = f" The known ones are {', '.join(known)}" if hint.endswith("?") and len(known) < FEW else ""
        raise UnknownName(f"no {what} named {value!r}; {hint}{menu}")
    return value


# A message lists at most this many known names: all primitives, but not all columns.
MOST = 40


class SearchPenalty(StrEnum):
    """How a search makes networks sparse: by L0.5, or by L0."""

    half = "half"
    l0 = "l0"


def checked_names(names: Sequence[str], argument: str = "variables") -> tuple[str, ...]:
    """The names as a tuple, checked to be distinct and not empty."""
    sequence = isinstance(names, Iterable) and not isinstance(names, str)
    if not sequence or not all(isinstance(name, str) for name in names):
        raise WrongType(f"`{argument}` must be a sequence of names such as ['x', 'y'], got {names!r}")
    if len(set(names)) < len(names) or "" in names:
        raise InvalidArgument(f"`{argument}` must be distinct and not empty, got {list(names)!r}")
    return tuple(names)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for a name that was not found."""
    known = list(dict.fromkeys(known))
    folded = {k.casefold(): k for k in reversed(known)}
    nearest = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    if nearest:
        return f"did you mean {folded[nearest[0]]!r}?"
    return f"the known ones are {', '.join(known[:MOST])}{', ...' if len(known) > MOST else ''}"
