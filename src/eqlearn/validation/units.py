"""Units of columns, read by pint, as powers of base dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from eqlearn.errors import InvalidArgument, MissingExtra, WrongType
from eqlearn.validation.options import did_you_mean

# What a number without a unit may be called.
NO_UNIT = ("", "1", "-", "--", "none", "dimensionless")


@dataclass(frozen=True)
class Dimension:
    """Powers of base dimensions, such as length and time, without those that are zero, in order."""

    powers: tuple[tuple[str, Fraction], ...] = ()

    @staticmethod
    def of(powers: Mapping[str, Any]) -> Dimension:
        exact = {name: Fraction(power).limit_denominator(1000) for name, power in powers.items()}
        return Dimension(tuple(sorted((name, power) for name, power in exact.items() if power)))

    def __mul__(self, other: Dimension) -> Dimension:
        names = {name for name, _ in (*self.powers, *other.powers)}
        mine, others = dict(self.powers), dict(other.powers)
        return Dimension.of({name: mine.get(name, 0) + others.get(name, 0) for name in names})

    def __pow__(self, power: Fraction | int) -> Dimension:
        return Dimension.of({name: exponent * power for name, exponent in self.powers})

    def __bool__(self) -> bool:
        """Whether there is a unit at all."""
        return bool(self.powers)

    def __str__(self) -> str:
        """In units of the SI, such as "m/s**2"; "1" without any."""
        usual = sorted(self.powers, key=lambda pair: list(_SI).index(pair[0]) if pair[0] in _SI else len(_SI))
        above = [_power(_SI.get(n, n), p) for n, p in usual if p > 0]
        below = [_power(_SI.get(n, n), -p) for n, p in usual if p < 0]
        if not below:
            return "*".join(above) or "1"
        under = below[0] if len(below) == 1 else f"({'*'.join(below)})"
        return f"{'*'.join(above) or '1'}/{under}"


_SI = {
    "[mass]": "kg", "[length]": "m", "[time]": "s", "[current]": "A", "[temperature]": "K",
    "[substance]": "mol", "[luminosity]": "cd",
}  # fmt: skip


def _power(name: str, power: Fraction) -> str:
    if power == 1:
        return name
    return f"{name}**{power}" if power.denominator == 1 else f"{name}**({power})"


def read_units(units: Any, columns: Sequence[str], targets: Sequence[str]) -> dict[str, Dimension]:
    """The dimension of every column and target; each must be told, also that it has none ("1")."""
    if not isinstance(units, Mapping):
        raise WrongType(f"`units` must be a dictionary by column, such as {{'g': 'm/s**2'}}, got {units!r}")
    known = [*columns, *targets]
    for name in units:
        if name not in known:
            raise InvalidArgument(f"`units` names no column: {name!r}; {did_you_mean(str(name), known)}")
    missing = [name for name in known if name not in units]
    if missing:
        raise InvalidArgument(
            f"`units` lacks {', '.join(map(repr, missing[:5]))}; give '1' for a number without a unit"
        )
    return {name: dimension_of(units[name], name) for name in known}


def dimension_of(unit: Any, name: str) -> Dimension:
    """The dimension of a unit such as "m/s**2" or "kg m^2"; `name` is whose it is, for messages."""
    if not isinstance(unit, str):
        raise WrongType(f"`units` must hold text, such as 'm/s**2'; got {unit!r} for {name!r}")
    if unit.strip() in NO_UNIT:
        return Dimension()
    registry = _registry()
    import pint

    try:
        quantity = registry.Quantity(1, registry.parse_units(unit.strip().replace("·", "*")))
    except (pint.errors.PintError, AttributeError, ValueError, TypeError, AssertionError) as error:
        raise InvalidArgument(f"the unit {unit!r} of {name!r} is not understood: {error}") from error
    if not quantity._is_multiplicative:
        raise InvalidArgument(
            f"{name!r} is in {unit!r}, which counts from an offset, so no power of it means anything; give "
            "it in kelvin, or as a difference ('delta_degC')"
        )
    return Dimension.of(dict(quantity.dimensionality))


@cache
def _registry() -> Any:
    try:
        import pint
    except ImportError as error:
        raise MissingExtra("units need pint; run `pip install 'eqlearn[units]'`") from error
    return pint.UnitRegistry()
