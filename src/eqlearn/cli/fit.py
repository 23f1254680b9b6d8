"""`eqlearn fit`: an equation for a column of a table."""

from __future__ import annotations

from contextlib import nullcontext
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from eqlearn.cli import options
from eqlearn.cli.live import live_view
from eqlearn.cli.printing import displayed, print_found, run_folder
from eqlearn.errors import InvalidArgument
from eqlearn.validation.options import SearchPenalty, check_alone

if TYPE_CHECKING:
    from eqlearn.io.tables import Measurements

# How long the data set that ships with the package is searched, by default.
DEMO_SECONDS = 12.0


class Loss(StrEnum):
    squares = "squares"
    auto = "auto"
    huber = "huber"


class Select(StrEnum):
    description = "description"
    accuracy = "accuracy"
    simplest = "simplest"
    extrapolation = "extrapolation"


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
    group: Annotated[
        str,
        typer.Option(
            help="The column that tells groups of rows apart; constants are shared by all of them or vary."
        ),
    ] = "",
    varies: Annotated[
        str, typer.Option(help="The column of numbers, such as a time, that constants may be functions of.")
    ] = "",
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")
    ] = False,
    impute: Annotated[bool, typer.Option("--impute", hidden=True)] = False,
    y_error: Annotated[
        str,
        typer.Option(
            help="The target's standard deviation: a column, or a number; one for each target.",
            show_default=False,
        ),
    ] = "",
    x_error: Annotated[
        str,
        typer.Option(
            help="Standard deviations of inputs, columns or numbers: a=a_err,b=0.1.", show_default=False
        ),
    ] = "",
    extrapolation: Annotated[
        str, typer.Option(metavar="DATA", help="Rows outside the training range: measured, never fitted.")
    ] = "",
    seconds: options.Seconds = None,
    restarts: Annotated[
        int | None,
        typer.Option(
            help="How many networks to fit, those of the first, linear rounds among them.",
            min=1,
            show_default=False,
        ),
    ] = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    out: options.Out = None,
    resume: options.Resume = False,
    primitives: options.Primitives = "",
    hidden_layers: options.Layers = 3,
    penalty: Annotated[
        SearchPenalty, typer.Option(help="How networks are made sparse: by L0.5, or by L0.")
    ] = SearchPenalty.half,
    select: Annotated[
        Select,
        typer.Option(help="Which equation of the front is chosen: by description length, accuracy, ..."),
    ] = Select.description,
    loss: Annotated[
        Loss,
        typer.Option(help="Least squares; gross outliers left out (auto); or bounded in what they count."),
    ] = Loss.squares,
    units: Annotated[
        str,
        typer.Option(
            help='A TOML file of units by column (g = "m/s**2"), or the word table: those in the line below '
            "the names.",
            show_default=False,
        ),
    ] = "",
    free_constants: Annotated[
        bool, typer.Option("--free-constants", help="Let constants have units, too.")
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Show the search on a page of this machine, and stop it there.")
    ] = False,
    no_browser: options.NoBrowser = False,
    even: options.Even = "",
    odd: options.Odd = "",
    periodic: options.Periodic = "",
    positive: options.Positive = False,
    increasing: options.Increasing = "",
    decreasing: options.Decreasing = "",
    through: options.Through = None,
    limits: options.Limits = None,
    template: options.Template = "",
    start: options.Start = "",
    prefer: options.Prefer = "",
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but the equation.")] = False,
    json: options.Json = False,
) -> None:
    """Find an equation for a column of a table.

    Example: eqlearn fit pendulum.csv --target period --seconds 60

    Example: eqlearn fit springs.csv --target force --group sample

    Example: eqlearn fit pendulum.csv --target period --live

    Example: eqlearn fit decay.csv --target n --positive --limits t=inf,n=0
    """
    from eqlearn.io.datasets import load_dataset
    from eqlearn.io.tables import read_measurements

    options.check_resume(resume, out)
    check_alone(
        {"--group": group or None, "--varies": varies or None},
        {"--y-error": y_error or None, "--x-error": x_error or None, "--units": units or None,
         "--loss": None if loss is Loss.squares else loss},
    )  # fmt: skip
    if impute:
        raise InvalidArgument(
            "`--impute` is not offered: a law found in values that a formula made up is that formula; leave "
            "those rows out with `--drop-missing`"
        )
    if data is None:
        shipped = load_dataset("kepler")
        data, target = str(shipped.path), target or shipped.target
        about = f"{shipped.about}\nSource: {shipped.source}.\n"
        if seconds is None and restarts is None:
            seconds = DEMO_SECONDS
            about += f"Searched for {seconds:.0f} s; --seconds says how long.\n"
        if not quiet and not json:
            typer.echo(about, err=True)
    table = read_measurements(
        data,
        options.listed_names(target),
        inputs=options.listed_names(inputs),
        ignore=options.listed_names(ignore),
        group=group or None,
        y_error=options.listed_names(y_error),
        x_error=options.named_values("x_error", x_error),
        drop_missing=drop_missing,
        seed=seed,
    )
    if not quiet and not json:
        for note in table.notes:
            typer.echo(f"Note: {note}.", err=True)
    told = _units(units, table)
    # These import torch, which takes seconds, so a bad table is refused first.
    from eqlearn.runs.session import Plan, search
    from eqlearn.search.settings import SCIENCE

    knows = options.knowledge(
        even=options.listed_names(even), odd=options.listed_names(odd), periodic=periodic, positive=positive,
        increasing=options.listed_names(increasing), decreasing=options.listed_names(decreasing),
        through=through, limits=limits, template=template, start=start, prefer=prefer,
    )  # fmt: skip
    plan = Plan(
        primitives=primitives or SCIENCE, penalty=penalty.value, hidden_layers=hidden_layers, seed=seed,
        seconds=seconds, restarts=restarts, jobs=jobs,
    )  # fmt: skip
    outside = None
    if extrapolation:
        far = read_measurements(
            extrapolation, table.targets, inputs=table.inputs, drop_missing=drop_missing, fewest_rows=1
        )
        outside = (far.X, far.y)
    folder = run_folder(out, table.stem)
    with live_view(folder.path, no_browser) if live else nullcontext() as view:
        with displayed(seconds, ", ".join(table.targets), quiet or json) as progress:
            record = search(
                folder, table, plan, select=select.value, extrapolation=outside, resume=resume,
                progress=progress, varies=varies or None, loss=loss.value, units=told,
                free_constants=free_constants, knows=knows,
            )  # fmt: skip
        print_found(record, folder.path, quiet, json)
        if view is not None:
            view.wait()


def _units(units: str, table: Measurements) -> dict[str, str] | None:
    """The units of inputs and target, from a TOML file or from the table itself."""
    import tomllib
    from pathlib import Path

    names = [*table.inputs, *table.targets]
    if not units:
        return None
    if units == "table":
        if not table.units:
            raise InvalidArgument(
                f"{table.name} has no line of units below its names; give `--units` FILE.toml"
            )
        return {name: table.units.get(name, "1") for name in names}
    try:
        told = tomllib.loads(Path(units).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidArgument(f"`--units` {units!r} is no TOML file that can be read: {error}") from error
    told = told.get("units", told)
    return {name: unit for name, unit in told.items() if name in names} if isinstance(told, dict) else {}
