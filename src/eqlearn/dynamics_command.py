"""`eqlearn dynamics`: equations of motion from a table of trajectories."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from eqlearn.errors import InvalidArgument
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
)

if TYPE_CHECKING:
    from eqlearn.systems.recording import Recording


class Form(str, Enum):
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
    time: Annotated[
        str, typer.Option(help="The column of times; steps must be equal.", show_default=False)
    ] = "",
    dt: Annotated[
        float | None, typer.Option(help="The step of time, where no column tells it.", show_default=False)
    ] = None,
    run: Annotated[
        str,
        typer.Option("--id", help="The column of numbers that tells series apart; one series without it."),
    ] = "",
    latents: Annotated[int, typer.Option(help="How many hidden parameters each series has.", min=0)] = 0,
    form: Annotated[
        Form, typer.Option(help="Rates of change, or a map from one time to the next.")
    ] = Form.ode,
    seconds: SecondsOption = None,
    restarts: Annotated[
        int | None,
        typer.Option(help="How many networks to start for each equation.", min=1, show_default=False),
    ] = None,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    out: OutOption = None,
    resume: ResumeOption = False,
    primitives: PrimitivesOption = "",
    hidden_layers: LayersOption = 3,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but the equations.")] = False,
    json: JsonOption = False,
) -> None:
    """Find the equations of motion of a system from series of its states.

    Example: eqlearn dynamics lorenz.csv --states x,y,z --time t --id run --seconds 120
    """
    from eqlearn.data.series import read_series
    from eqlearn.discovery.run import SCIENCE
    from eqlearn.report.dynamics import MotionPlan, parameters_text, search_dynamics
    from eqlearn.systems.flow import target_names

    if resume and out is None:
        raise InvalidArgument("`--resume` needs `--out` with the folder of the run to go on with")
    table = read_series(data, listed_names(states), time=time or None, run=run or None)
    table = replace(table, recording=_timed(table.recording, time, dt, form))
    plan = MotionPlan(
        form=form.value, latents=latents, primitives=primitives or SCIENCE, hidden_layers=hidden_layers,
        seed=seed, seconds=seconds, restarts=restarts, jobs=jobs,
    )  # fmt: skip
    folder = run_folder(out, table.stem)
    targets = ", ".join(target_names(table.recording.names, plan.form))
    with displayed(seconds, targets, quiet or json) as progress:
        record = search_dynamics(folder, table, plan, resume=resume, progress=progress)
    print_found(record, folder.path, quiet, json)
    if latents and not (quiet or json):
        typer.echo(f"\n{parameters_text(record)}")


def _timed(recording: Recording, time: str, dt: float | None, form: Form) -> Recording:
    """The recording at the step of time that its column of times says, or else `--dt`."""
    from eqlearn.systems.recording import Recording

    if time and dt is not None:
        raise InvalidArgument(
            f"`--time` {time} tells the step of time, and so does `--dt` {dt:g}; leave one out"
        )
    if form is Form.ode and not time and dt is None:
        raise InvalidArgument(
            "rates of change need a step of time: name the column of times with `--time`, give the step with "
            "`--dt`, or look for a map with `--form map`"
        )
    return recording if dt is None else Recording.of(recording.series, dt, recording.names)
