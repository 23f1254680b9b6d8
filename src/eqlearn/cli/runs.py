"""`eqlearn predict`, `show` and `report`, for finished runs."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from eqlearn.cli.printing import for_screen, print_plot, run_json, screen_width

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)]
IndexOption = Annotated[
    int | None,
    typer.Option("--index", help="Which equation of the front, counted from 0; the chosen one unless told."),
]


class Language(StrEnum):
    text = "text"
    latex = "latex"
    python = "python"
    torch = "torch"
    c = "c"
    json = "json"


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
    from eqlearn.runs.blocks import write_predictions
    from eqlearn.runs.folder import RunFolder

    rows, undefined = write_predictions(RunFolder(run).read(), data, out, index=index)
    if undefined:
        typer.echo(
            f"eqlearn: the equation is not defined in {undefined} of {rows} rows; they are NaN", err=True
        )


def show(
    run: RunArgument,
    language: Annotated[
        Language,
        typer.Option(
            "--as", help="In which form; json is the whole run, or the equation that --index names."
        ),
    ] = Language.text,
    index: IndexOption = None,
) -> None:
    """Print the equation of a run, as text, source code or data.

    Example: eqlearn show runs/pendulum --as latex
    """
    from eqlearn.report.summary import equations_text, summary
    from eqlearn.runs.folder import RunFolder
    from eqlearn.symbolic.languages import function_names, source
    from eqlearn.symbolic.printing import printable

    record = RunFolder(run).read()
    equations = record.candidate(index).equations
    if language is Language.json:
        typer.echo(run_json(record, run) if index is None else json.dumps([e.to_json() for e in equations]))
    elif language is Language.text:
        text = summary(record, screen_width()) if index is None else equations_text(record, index)
        typer.echo(for_screen(text))
        if index is None:
            print_plot(record, run)
    else:
        text = source(equations, function_names(record.targets, record.inputs), language.value)
        typer.echo("\n".join(map(printable, text.rstrip("\n").split("\n"))))


def report(
    run: RunArgument,
    show_it: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Make the report page of a run anew.

    Example: eqlearn report runs/pendulum --open
    """
    from eqlearn.runs.folder import REPORT, RunFolder
    from eqlearn.runs.session import rebuild_page

    rebuild_page(RunFolder(run))
    page = run / REPORT
    typer.echo(str(page))
    if show_it:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
