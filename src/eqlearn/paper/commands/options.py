"""What the commands of `eqlearn reproduce` share: their options, and how a table is left."""

from __future__ import annotations

import difflib
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eqlearn import InvalidArgument, UnknownName
from eqlearn.paper.style import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from eqlearn.paper.ledger import Ledger


class PresetName(StrEnum):
    modern = "modern"
    paper = "paper"
    released = "released"


class PenaltyName(StrEnum):
    half = "half"
    l0 = "l0"


PresetOption = Annotated[PresetName, typer.Option(help="How equations are looked for.")]
PenaltyOption = Annotated[PenaltyName, typer.Option(help="L0.5 or L0.")]
# A search has no penalty, so that there is a default for the others only.
GradientPenaltyOption = Annotated[
    PenaltyName | None, typer.Option(help="L0.5 or L0, for `paper` and `released`.", show_default="half")
]
SeedsOption = Annotated[int, typer.Option(help="How many seeds, counted from the first.", min=1)]
FirstSeedOption = Annotated[int, typer.Option(help="The seed to count from.", min=0)]
OnlyOption = Annotated[str | None, typer.Option(help="Names, separated by ';': only these.")]
ResultsOption = Annotated[Path, typer.Option(help="The folder for the results.")]


def recipe_of(preset: PresetName, penalty: PenaltyName | None) -> str:
    """The name of a preset with its penalty, if it has one: `modern`, `paper-half`."""
    if preset is not PresetName.modern:
        return f"{preset.value}-{(penalty or PenaltyName.half).value}"
    if penalty is not None:
        raise InvalidArgument("`--penalty` is for `--preset paper` and `released`; the search has no penalty")
    return preset.value


def wanted(only: str | None, names: list[str]) -> list[str]:
    """The names asked for with `--only`, or all of them."""
    if only is None:
        return names
    asked = [part.strip() for part in only.split(";")]
    for name in asked:
        if name not in names:
            folded = {known.casefold(): known for known in reversed(names)}
            near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
            known = ", ".join([*names[:30], *["..."] * (len(names) > 30)])
            hint = f"did you mean {folded[near[0]]!r}?" if near else f"the known ones are {known}"
            raise UnknownName(f"`--only` names {name!r}, which is not here; {hint}")
    return asked


def leave_picture(path: Path, figure: Figure) -> None:
    """Writes a figure as a PNG, whole or not at all."""
    import io

    from eqlearn import atomic_write

    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, picture.getvalue())


def leave_table(ledger: Ledger, table: str) -> None:
    """Writes the table beside the ledger, with the command that made it, and prints it."""
    from eqlearn import atomic_write

    made = ledger.plain["environment"]
    text = f"# {ledger.path.stem}\n\n{table}\n\n`{ledger.plain['command']}`, eqlearn {made['eqlearn']}, "
    text += f"torch {made['packages']['torch']}, {counted(made['threads'], 'thread')}, {made['started']}.\n"
    atomic_write(ledger.path.with_suffix(".md"), text.encode())
    typer.echo(f"\n{table}\n\n{ledger.path}")
