"""`eqlearn pde`: partial differential equations from fields on a grid."""

from __future__ import annotations

import json as plain_json
from pathlib import Path
from typing import Annotated

import typer

from eqlearn.cli import options
from eqlearn.cli.printing import displayed, run_folder


def pde(
    data: Annotated[
        str,
        typer.Argument(
            metavar="FIELD",
            show_default=False,
            help="An .npz, .mat or .nc file with an array for each field and axis, or a table with a row for "
            "each point.",
        ),
    ],
    fields: Annotated[str, typer.Option(help="The fields, such as u,v.")] = "u",
    time: Annotated[str, typer.Option(help="The axis of time.")] = "t",
    space: Annotated[str, typer.Option(help="The axes of space, such as x,y.")] = "x",
    order: Annotated[int, typer.Option(help="The order in time: 1, or 2 for waves.", min=1, max=2)] = 1,
    form: Annotated[str, typer.Option(help="auto, weak (for noisy data) or strong.")] = "auto",
    varies: Annotated[
        str | None, typer.Option(help="An axis that coefficients may be functions of.", show_default=False)
    ] = None,
    masked: Annotated[bool, typer.Option("--masked", help="Leave out NaN.")] = False,
    seconds: options.Seconds = None,
    seed: options.Seed = 0,
    out: options.Out = None,
    primitives: options.Primitives = "",
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but the equations.")] = False,
    json: options.Json = False,
) -> None:
    """Find partial differential equations in fields over space and time.

    Example: eqlearn pde burgers.npz --fields u --space x --time t
    """
    from eqlearn.fields.discover import discover_pde
    from eqlearn.io.checksummed import atomic_write, write_json
    from eqlearn.io.fields import read_field
    from eqlearn.report.fields import field_page
    from eqlearn.search.settings import SCIENCE

    names = options.listed_names(fields)
    field = read_field(data, names, time, options.listed_names(space), masked=masked)
    targets = ", ".join(f"{n}_{time * order}" for n in names)
    with displayed(seconds, targets, quiet or json) as progress:
        found = discover_pde(
            field, time=time, order=order, form=form, primitives=primitives or SCIENCE, seconds=seconds,
            seed=seed, progress=progress, varies=varies,
        )  # fmt: skip
    folder = run_folder(out, Path(data).stem).path
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "equations.json", found.to_json())
    atomic_write(folder / "report.html", field_page(found).encode())
    if json:
        typer.echo(plain_json.dumps({"folder": str(folder), **found.to_json()}, indent=1))
        return
    typer.echo(str(found))
    if not quiet:
        for name in found.unexplained:
            typer.echo(f"{name}: the data hold more than this equation", err=True)
        typer.echo(f"\nReport: {folder / 'report.html'}", err=True)
