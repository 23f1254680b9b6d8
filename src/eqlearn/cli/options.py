"""Options that the commands share, and lists of names in them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

import typer

from eqlearn.errors import InvalidArgument

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
