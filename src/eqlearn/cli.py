"""The command line: parse, call the library, print; what is slow is imported by the command that needs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from eqlearn.dynamics_command import dynamics
from eqlearn.errors import EqlearnError, InvalidArgument
from eqlearn.printing import (
    JobsOption,
    JsonOption,
    LayersOption,
    OutOption,
    PrimitivesOption,
    ResumeOption,
    SecondsOption,
    SeedOption,
    displayed,
    listed_names,
    print_found,
    run_folder,
    run_json,
    screen_width,
)
from eqlearn.reproduce import app as reproduce
from eqlearn.reproduce.options import Penalty

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
    seconds: SecondsOption = None,
    restarts: Annotated[
        int | None, typer.Option(help="How many networks to start.", min=1, show_default=False)
    ] = None,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    out: OutOption = None,
    resume: ResumeOption = False,
    primitives: PrimitivesOption = "",
    hidden_layers: LayersOption = 3,
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
    from eqlearn.report.session import Plan, search

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
        listed_names(target),
        inputs=listed_names(inputs),
        ignore=listed_names(ignore),
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
    folder = run_folder(out, table.stem)
    with displayed(seconds, ", ".join(table.targets), quiet or json) as progress:
        record = search(folder, table, plan, extrapolation=outside, resume=resume, progress=progress)
    print_found(record, folder.path, quiet, json)


app.command()(dynamics)


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
    from eqlearn.core.text import printable
    from eqlearn.report.folder import RunFolder
    from eqlearn.report.payload import torch_source
    from eqlearn.report.summary import equations_text, summary

    record = RunFolder(run).read()
    if language is Language.json:
        typer.echo(run_json(record, run))
        return
    if language is Language.text:
        typer.echo(summary(record, screen_width()) if index is None else equations_text(record, index))
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
