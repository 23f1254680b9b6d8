"""`eqlearn dynamics`: equations of motion from a table of trajectories."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from eqlearn.cli import options
from eqlearn.cli.printing import displayed, print_found, run_folder
from eqlearn.errors import InvalidArgument

if TYPE_CHECKING:
    from eqlearn.validation.trajectories import Trajectories


class Form(StrEnum):
    ode = "ode"
    map = "map"


def dynamics(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            show_default=False,
            help="A CSV, TSV, Parquet, .npy or .npz file; - is standard input.",
        ),
    ],
    states: Annotated[str, typer.Option(help="The columns that move, such as u,v.", show_default=False)] = "",
    time: Annotated[str, typer.Option(help="The column of times, at any steps.", show_default=False)] = "",
    dt: Annotated[
        float | None, typer.Option(help="The step of time, where no column tells it.", show_default=False)
    ] = None,
    run: Annotated[
        str,
        typer.Option(
            "--id", help="The column that tells series apart, by numbers or names; one series without it."
        ),
    ] = "",
    inputs: Annotated[
        str,
        typer.Option(help="Known columns that drive the motion, such as u; or the time.", show_default=False),
    ] = "",
    order: Annotated[int, typer.Option(help="2 finds accelerations from positions alone.", min=1, max=2)] = 1,
    latents: Annotated[int, typer.Option(help="How many hidden parameters each series has.", min=0)] = 0,
    form: Annotated[
        Form, typer.Option(help="Rates of change, or a map from one time to the next.")
    ] = Form.ode,
    seconds: options.Seconds = None,
    restarts: Annotated[
        int | None,
        typer.Option(help="How many networks to fit for each equation.", min=1, show_default=False),
    ] = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    out: options.Out = None,
    resume: options.Resume = False,
    primitives: options.Primitives = "",
    hidden_layers: options.Layers = 3,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but the equations.")] = False,
    json: options.Json = False,
) -> None:
    """Find equations of motion in series of a system's states.

    Example: eqlearn dynamics lorenz.csv --states x,y,z --time t --id run --seconds 120
    """
    from eqlearn.dynamics.forms import find_form
    from eqlearn.io.trajectories import read_series
    from eqlearn.runs.dynamics import parameters_text, search_dynamics
    from eqlearn.runs.session import Plan
    from eqlearn.search.settings import SCIENCE

    options.check_resume(resume, out)
    if latents and (inputs or order == 2):
        raise InvalidArgument("hidden parameters (`--latents`) go with neither `--inputs` nor `--order` 2")
    table = read_series(
        data, options.listed_names(states), time=time or None, run=run or None,
        inputs=options.listed_names(inputs) if inputs else (),
    )  # fmt: skip
    table = replace(table, trajectories=_timed(table.trajectories, time, dt, form))
    plan = Plan(
        primitives=primitives or SCIENCE, hidden_layers=hidden_layers, seed=seed, seconds=seconds,
        restarts=restarts, jobs=jobs,
    )  # fmt: skip
    folder = run_folder(out, table.stem)
    label = find_form(form.value).label if order == 1 else (lambda name: f"d²{name}/dt²")
    targets = ", ".join(map(label, table.trajectories.names))
    with displayed(seconds, targets, quiet or json) as progress:
        record = search_dynamics(
            folder, table, plan, form=form.value, latents=latents, order=order, resume=resume,
            progress=progress,
        )  # fmt: skip
    print_found(record, folder.path, quiet, json)
    if latents and not (quiet or json):
        typer.echo(f"\n{parameters_text(record)}")


def _timed(read: Trajectories, time: str, dt: float | None, form: Form) -> Trajectories:
    """The trajectories with the time step of their column of times, or else of `--dt`."""
    if time and dt is not None:
        raise InvalidArgument(
            f"`--time` {time} tells the step of time, and so does `--dt` {dt:g}; leave one out"
        )
    if form is Form.ode and not time and dt is None:
        raise InvalidArgument(
            "rates of change need a step of time: name the column of times with `--time`, give the step with "
            "`--dt`, or look for a map with `--form map`"
        )
    return read if dt is None else read.at_step(dt)
