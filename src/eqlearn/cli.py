"""The command line: parse, call the library, print; what is slow is imported by the command that needs it."""

from __future__ import annotations

import csv
import json as plain_json
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eqlearn.errors import EqlearnError, InvalidArgument
from eqlearn.reproduce import app as reproduce
from eqlearn.reproduce.options import Penalty

if TYPE_CHECKING:
    from eqlearn.data.tables import Measurements
    from eqlearn.report.record import Record
    from eqlearn.report.session import Plan

# The data set that ships with the package is searched for so long, unless told.
DEMO_SECONDS = 12.0

app = typer.Typer(
    help="Finds equations in data.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


app.add_typer(reproduce, name="reproduce")


class Select(str, Enum):
    description = "description"
    accuracy = "accuracy"
    simplest = "simplest"
    extrapolation = "extrapolation"


class Language(str, Enum):
    text = "text"
    latex = "latex"
    python = "python"
    torch = "torch"
    c = "c"
    json = "json"


RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)]
IndexOption = Annotated[
    int | None,
    typer.Option("--index", help="Which equation of the front, counted from 0; the chosen one unless told."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]


@app.callback(invoke_without_command=True)
def entrance(
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    if version:
        import eqlearn

        typer.echo(eqlearn.__version__)
        raise typer.Exit


@app.command()
def fit(
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            show_default=False,
            help="A CSV, TSV, Parquet, .npy or .npz file; - is standard input. Without one, the planets' "
            "periods and distances, which ship with the package.",
        ),
    ] = None,
    target: Annotated[
        str, typer.Option(help="The column to explain; several: u,v.", show_default=False)
    ] = "",
    inputs: Annotated[str, typer.Option(help="The columns to explain it with; all others unless told.")] = "",
    ignore: Annotated[str, typer.Option(help="Columns to leave out.")] = "",
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")
    ] = False,
    extrapolation: Annotated[
        str, typer.Option(metavar="DATA", help="Rows outside the training range: measured, never fitted.")
    ] = "",
    seconds: Annotated[
        float | None, typer.Option(help="How long to search.", min=0.1, show_default=False)
    ] = None,
    restarts: Annotated[
        int | None, typer.Option(help="How many networks to start.", min=1, show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same equations.", min=0)] = 0,
    jobs: Annotated[
        int | None, typer.Option(help="How many processes; -1 is one per processor.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The folder for the run; runs/NAME unless told.", show_default=False)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --out, if there is one.")
    ] = False,
    primitives: Annotated[
        str,
        typer.Option(
            help="The functions an equation may hold, such as 'id square sin1 mul'.", show_default=False
        ),
    ] = "",
    hidden_layers: Annotated[int, typer.Option(help="How deep functions may be nested.", min=1)] = 3,
    penalty: Annotated[Penalty, typer.Option(help="How networks are made sparse.")] = Penalty.half,
    select: Annotated[
        Select,
        typer.Option(help="Which equation of the front is chosen: by description length, accuracy, ..."),
    ] = Select.description,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but the equation.")] = False,
    json: JsonOption = False,
) -> None:
    """Find an equation for a column of a table.

    Example: eqlearn fit pendulum.csv --target period --seconds 60
    """
    from eqlearn.data.sets import load
    from eqlearn.data.tables import read_measurements
    from eqlearn.discovery.run import SCIENCE
    from eqlearn.report.session import Plan

    if resume and out is None:
        raise InvalidArgument("`--resume` needs `--out` with the folder of the run to go on with")
    if data is None:
        shipped = load("kepler")
        data, target = str(shipped.path), target or shipped.target
        if not quiet and not json:
            typer.echo(f"{shipped.about}\nSource: {shipped.source}.\n", err=True)
        if seconds is None and restarts is None:
            seconds = DEMO_SECONDS
    table = read_measurements(
        data,
        _names(target),
        inputs=_names(inputs),
        ignore=_names(ignore),
        drop_missing=drop_missing,
        seed=seed,
    )
    plan = Plan(
        primitives=primitives or SCIENCE, penalty=penalty.value, hidden_layers=hidden_layers, seed=seed,
        seconds=seconds, restarts=restarts, jobs=jobs, select=select.value,
    )  # fmt: skip
    outside = None
    if extrapolation:
        far = read_measurements(extrapolation, table.targets, inputs=table.inputs, drop_missing=drop_missing)
        outside = (far.X, far.y)
    record, folder = _search(
        table, plan, outside, out or Path("runs"), out is None, resume, silent=quiet or json
    )
    _print_found(record, folder, quiet, json)


def _search(
    table: Measurements, plan: Plan, outside: Any, out: Path, number: bool, resume: bool, silent: bool
) -> tuple[Record, Path]:
    from contextlib import nullcontext

    from rich.console import Console

    from eqlearn.progress import show_progress
    from eqlearn.report.folder import RunFolder, printable
    from eqlearn.report.session import search

    # A cluster asks a job to end as a person does; either way the best found is kept.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = RunFolder.numbered(out, table.stem) if number else RunFolder(out)
    display: Any = nullcontext()
    if not silent:
        display = show_progress(plan.seconds, printable(", ".join(table.targets)), Console(stderr=True))
    with display as progress:
        record = search(folder, table, plan, extrapolation=outside, resume=resume, progress=progress)
    return record, folder.path


def _print_found(record: Record, folder: Path, quiet: bool, json: bool) -> None:
    from eqlearn.report.folder import REPORT
    from eqlearn.report.summary import equations_text, summary

    if json:
        typer.echo(_json(record, folder))
    elif quiet:
        typer.echo(equations_text(record))
    else:
        typer.echo(summary(record, _width()))
        if record.ended == "interrupted":
            typer.echo("\nThe search was interrupted; this is the best it had found.", err=True)
        typer.echo(f"\nReport: {folder / REPORT}", err=True)


@app.command()
def predict(
    run: RunArgument,
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="A file with the run's input columns; - is standard input.")
    ],
    index: IndexOption = None,
    out: Annotated[
        Path | None, typer.Option(help="The CSV file to write; standard output unless told.")
    ] = None,
) -> None:
    """Apply a found equation to new data; prints CSV.

    Example: eqlearn predict runs/pendulum new.csv --out predicted.csv
    """
    from eqlearn.report.folder import RunFolder
    from eqlearn.report.predictions import write_predictions

    rows, undefined = write_predictions(RunFolder(run).read(), data, out, index=index)
    if undefined:
        typer.echo(
            f"eqlearn: the equation is not defined in {undefined} of {rows} rows; they are NaN", err=True
        )


@app.command()
def show(
    run: RunArgument,
    language: Annotated[Language, typer.Option("--as", help="In which form.")] = Language.text,
    index: IndexOption = None,
) -> None:
    """Print the equation of a run, as text, source code or data.

    Example: eqlearn show runs/pendulum --as latex
    """
    from eqlearn.report.folder import RunFolder, printable
    from eqlearn.report.payload import torch_source
    from eqlearn.report.summary import equations_text, summary

    record = RunFolder(run).read()
    if language is Language.json:
        typer.echo(_json(record, run))
        return
    if language is Language.text:
        typer.echo(summary(record, _width()) if index is None else equations_text(record, index))
        return
    for equation in record.candidate(index).equations:
        text = torch_source(equation) if language is Language.torch else getattr(equation, language.value)()
        typer.echo("\n".join(map(printable, text.rstrip("\n").split("\n"))))


@app.command()
def report(
    run: RunArgument,
    show_it: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Make the report page of a run anew.

    Example: eqlearn report runs/pendulum --open
    """
    from eqlearn.report.folder import REPORT, RunFolder
    from eqlearn.report.session import rebuild_page

    rebuild_page(RunFolder(run))
    page = run / REPORT
    typer.echo(str(page))
    if show_it:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


def _width() -> int:
    return max(60, shutil.get_terminal_size((100, 24)).columns)


def _names(text: str) -> list[str]:
    """Column names separated by commas; one that holds a comma stands in double quotes."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


def _json(record: Record, folder: Path) -> str:
    from eqlearn.report.verdict import verdict

    return plain_json.dumps({"folder": str(folder), "verdict": verdict(record), **record.to_json()}, indent=1)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; 0 if it went well, 2 for wrong use or bad data, said in one sentence."""
    command = typer.main.get_command(app)
    try:
        result = command.main(args=argv, prog_name="eqlearn", standalone_mode=False)
    except EqlearnError as error:
        return _refuse(str(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read our output had enough
        return 0
    except Exception as error:
        # What typer raises for wrong use has this method; its class has moved between typer's versions.
        if not hasattr(error, "format_message"):
            raise
        return _refuse(error.format_message())
    return result if isinstance(result, int) else 0


def _refuse(message: str) -> int:
    typer.echo("eqlearn: " + " ".join(message.split()), err=True)
    return 2


if __name__ == "__main__":
    sys.exit(main())
