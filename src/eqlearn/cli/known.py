"""Options for what is known of a law before it is searched for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eqlearn.cli.options import named_values
from eqlearn.errors import InvalidArgument

if TYPE_CHECKING:
    from eqlearn.search.knowledge.knowledge import Knowledge

PANEL = "What you know of the law"


def _option(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=PANEL, show_default=False)


Even = Annotated[str, _option("Columns in which the law is symmetric: x,y.")]
Odd = Annotated[str, _option("Columns with whose sign the law changes its own.")]
Periodic = Annotated[str, _option("Periods by column: t=24.")]
Positive = Annotated[bool, _option("The law is nowhere negative.", "--positive")]
Increasing = Annotated[str, _option("Columns with which the law goes up.")]
Decreasing = Annotated[str, _option("Columns with which the law goes down.")]
Through = Annotated[
    list[str] | None, _option("A point it passes through, with the target's value: x=0,y=1; may be repeated.")
]
Limits = Annotated[list[str] | None, _option("What it tends to: x=inf,y=0; may be repeated.")]
Template = Annotated[str, _option("Its form, but for unknown parts: 'f(a, b) * exp(-g(c))'.")]
Start = Annotated[str, _option("A first guess to improve: 'k*x**1.5'.")]
Prefer = Annotated[str, _option("How many nodes an operator counts for: sin=3,exp=0.5; 1 is usual.")]


def knowledge(
    *, periodic: str, through: Sequence[str] | None, limits: Sequence[str] | None, prefer: str, **others: Any
) -> Knowledge | None:
    """What the options say, or nothing if none was given."""
    from eqlearn.search.knowledge.knowledge import Knowledge

    said = Knowledge(
        periodic=_numbers("periodic", periodic), prefer=_numbers("prefer", prefer),
        through=[_numbers("through", place) for place in through or ()],
        limits=[_numbers("limits", place) for place in limits or ()], **others,
    )  # fmt: skip
    return said if said != Knowledge() else None


def _numbers(option: str, text: str) -> dict[str, float]:
    values = {}
    for name, value in named_values(option, text).items():
        try:
            values[name] = float(value)
        except ValueError as error:
            raise InvalidArgument(f"`{option}` must hold numbers, got {value!r} for {name!r}") from error
    return values
