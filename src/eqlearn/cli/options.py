"""Options that the commands share, those for what is known of a law, and lists of names in them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eqlearn.errors import InvalidArgument

if TYPE_CHECKING:
    from eqlearn.search.knowledge.knowledge import Knowledge

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
Seconds = Annotated[
    float | None,
    typer.Option(
        help="How long to search; until a law is exact or nothing improves, unless told.",
        min=0.1,
        show_default=False,
    ),
]
Seed = Annotated[
    int, typer.Option(help="The same seed gives the same equations, unless --seconds cuts them short.", min=0)
]
Jobs = Annotated[
    int | None,
    typer.Option(help="How many processes; -1 is one per processor; 1 unless told.", show_default=False),
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="The folder for the run; runs/ and the file's name unless told, numbered if taken.",
        show_default=False,
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in --out, if there is one.")]
Primitives = Annotated[
    str,
    typer.Option(
        help="The functions an equation may hold, such as 'id square sin1 mul' (sin1 is sin(g), sin the "
        "paper's sin(2πg)); what a scientist expects unless told.",
        show_default=False,
    ),
]
NoBrowser = Annotated[
    bool, typer.Option("--no-browser", help="Print the address of the live page, and open no browser.")
]
Layers = Annotated[int, typer.Option(help="How deep functions may be nested.", min=1)]

PANEL = "What you know of the law"


def _known(text: str, *names: str) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=PANEL, show_default=False)


Even = Annotated[str, _known("Columns in which the law is symmetric: x,y.")]
Odd = Annotated[str, _known("Columns with whose sign the law changes its own.")]
Periodic = Annotated[str, _known("Periods by column: t=24.")]
Positive = Annotated[bool, _known("The law is nowhere negative.", "--positive")]
Increasing = Annotated[str, _known("Columns with which the law goes up.")]
Decreasing = Annotated[str, _known("Columns with which the law goes down.")]
Through = Annotated[
    list[str] | None, _known("A point it passes through, with the target's value: x=0,y=1; may be repeated.")
]
Limits = Annotated[list[str] | None, _known("What it tends to: x=inf,y=0; may be repeated.")]
Template = Annotated[str, _known("Its form, but for unknown parts: 'f(a, b) * exp(-g(c))'.")]
Start = Annotated[str, _known("A first guess to improve: 'k*x**1.5'.")]
Prefer = Annotated[str, _known("How many nodes an operator counts for: sin=3,exp=0.5; 1 is usual.")]


def check_resume(resume: bool, out: Path | None) -> None:
    """Refuses to resume a run without its folder."""
    if resume and out is None:
        raise InvalidArgument("`--resume` needs `--out` with the folder of the run to go on with")


def listed_names(text: str) -> list[str]:
    """Column names separated by commas; a name that holds a comma is in double quotes."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


def named_values(option: str, text: str) -> dict[str, str]:
    """Pairs of a name and a value, as in a=1,b=c."""
    pairs = [name.rpartition("=") for name in listed_names(text)]
    for name, sign, value in pairs:
        if not (name and sign and value):
            raise InvalidArgument(f"`{option}` must be pairs such as a=0.1,b=b_err; got {text!r}")
    return {name.strip(): value.strip() for name, _, value in pairs}


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
