"""What the commands of `eqlearn reproduce` share: their options, and how a table is left."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eqlearn.validation.names import SearchPenalty

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from eqlearn.runs.ledger import Ledger


class PresetName(StrEnum):
    modern = "modern"
    paper = "paper"
    released = "released"


PresetOption = Annotated[PresetName, typer.Option(help="How equations are looked for.")]
PenaltyOption = Annotated[SearchPenalty, typer.Option(help="L0.5 or L0.")]
SeedsOption = Annotated[int, typer.Option(help="How many seeds, counted from 0.", min=1)]
OnlyOption = Annotated[str | None, typer.Option(help="Names, separated by ';': only these.")]
ResultsOption = Annotated[Path, typer.Option(help="The folder for the results.")]


def wanted(only: str | None, names: list[str]) -> list[str]:
    """The names asked for with `--only`, or all of them."""
    from eqlearn.errors import UnknownName
    from eqlearn.validation.names import did_you_mean

    if only is None:
        return names
    asked = [part.strip() for part in only.split(";")]
    for name in asked:
        if name not in names:
            raise UnknownName(f"`--only` names {name!r}, which is not here; {did_you_mean(name, names)}")
    return asked


def leave_picture(path: Path, figure: Figure) -> None:
    """Writes a figure as a PNG, whole or not at all."""
    import io

    from eqlearn.io.checksummed import atomic_write

    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, picture.getvalue())


def leave_table(ledger: Ledger, table: str) -> None:
    """Writes the table beside the ledger, with the command that made it, and prints it."""
    from eqlearn.errors import counted
    from eqlearn.io.checksummed import atomic_write

    made = ledger.plain["environment"]
    text = f"# {ledger.path.stem}\n\n{table}\n\n`{ledger.plain['command']}`, eqlearn {made['eqlearn']}, "
    text += f"torch {made['packages']['torch']}, {counted(made['threads'], 'thread')}, {made['started']}.\n"
    atomic_write(ledger.path.with_suffix(".md"), text.encode())
    typer.echo(f"\n{table}\n\n{ledger.path}")
