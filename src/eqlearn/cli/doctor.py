"""`eqlearn doctor`: a table looked at before any search."""

from __future__ import annotations

import json as plain_json
import re
import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from eqlearn.cli import options
from eqlearn.cli.printing import for_screen

if TYPE_CHECKING:
    from eqlearn.io.doctor import FileCheckup

MARKS = {"stop": ("✗", "x"), "warning": ("!", "!"), "note": ("·", "-")}


def doctor(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            show_default=False,
            help="A CSV, TSV, Parquet, .npy or .npz file; - is standard input.",
        ),
    ],
    target: Annotated[
        str, typer.Option(help="The column to explain, if it is known; several: u,v.", show_default=False)
    ] = "",
    json: options.Json = False,
) -> None:
    """Look at a table before any search, and say what to mend.

    Example: eqlearn doctor measurements.csv --target period
    """
    from eqlearn.io.doctor import examine_file

    targets = options.listed_names(target)
    seen = examine_file(data, targets)
    if json:
        typer.echo(plain_json.dumps(seen.to_json(), indent=1))
        return
    typer.echo(for_screen(f"{_text(seen)}\n\nNext: {_command(seen, data, targets)}"))


def _text(seen: FileCheckup) -> str:
    from eqlearn.errors import counted
    from eqlearn.symbolic.printing import printable

    checkup = seen.checkup
    numbers = f", {len(checkup.columns)} of them of numbers" if checkup.columns != seen.columns else ""
    head = f"{seen.name}: {counted(checkup.rows, 'row')}, {counted(len(seen.columns), 'column')}{numbers}"
    marks = {weight: for_screen(*pair) for weight, pair in MARKS.items()}
    lines = [f"{marks['note']} {note}" for note in seen.notes]
    for finding in checkup.findings:
        lines.append(f"{marks[finding.weight]} {finding.what}")
        lines += [f"    {_as_option(finding.advice)}"] if finding.advice else []
    if not checkup.findings:
        lines.append("Nothing was seen that would mislead a search.")
    return "\n".join(printable(line) for line in [head, *lines])


def _as_option(advice: str) -> str:
    """Advice with the options of `eqlearn fit` in the place of arguments."""
    return re.sub(r"`(ignore|inputs|drop_missing)`", lambda m: f"--{m[1].replace('_', '-')}", advice)


def _command(seen: FileCheckup, data: str, targets: list[str]) -> str:
    """The command that searches the table without the columns that are of no use."""
    useless = [name for name in seen.checkup.useless if name not in targets]
    missing = any("drop_missing" in finding.advice for finding in seen.checkup.findings)
    chosen = ",".join(map(_quoted, targets)) or "COLUMN"
    words = ["eqlearn", "fit", data, "--target", chosen]
    words += ["--ignore", ",".join(map(_quoted, useless))] if useless else []
    words += ["--drop-missing"] if missing else []
    return shlex.join(words)


def _quoted(name: str) -> str:
    return f'"{name}"' if "," in name else name
