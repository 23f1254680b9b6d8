"""`eqlearn film`: a law of motion from a film."""

from __future__ import annotations

import json as plain_json
from pathlib import Path
from typing import Annotated

import typer

from eqlearn.cli import options
from eqlearn.cli.printing import displayed, for_screen, run_folder
from eqlearn.errors import InvalidArgument


def film(
    frames: Annotated[
        str,
        typer.Argument(
            metavar="FILM",
            show_default=False,
            help="An .npy or .npz file of frames, a folder of PNG pictures or of such folders, or a video.",
        ),
    ],
    fps: Annotated[
        float | None, typer.Option(help="The frames a second; a video's own unless told.", show_default=False)
    ] = None,
    latents: Annotated[
        str, typer.Option(help="How many coordinates the pictures have: 1, 2 or auto.")
    ] = "auto",
    order: Annotated[str, typer.Option(help="The order of the law: 1, 2 or auto.")] = "auto",
    seconds: options.Seconds = 600.0,
    out: options.Out = None,
    resume: options.Resume = False,
    primitives: options.Primitives = "",
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but the law.")] = False,
    json: options.Json = False,
) -> None:
    """Find the law of motion of what moves in a film.

    Example: eqlearn film pendulum.npy --fps 30
    """
    from eqlearn.io.films import read_film_file
    from eqlearn.runs.film import FilmPlan, search_film
    from eqlearn.search.settings import SCIENCE

    options.check_resume(resume, out)
    plan = FilmPlan(_number("latents", latents), _number("order", order), primitives or SCIENCE, seconds)
    films = read_film_file(frames, fps)
    folder = run_folder(out, Path(frames).stem)
    with displayed(seconds, "the law of motion", quiet or json) as progress:
        found = search_film(folder, films, plan, name=Path(frames).name, resume=resume, progress=progress)
    if json:
        typer.echo(plain_json.dumps({"folder": str(folder.path), **found.to_json()}, indent=1))
        return
    typer.echo(for_screen(str(found)))
    if quiet:
        return
    for name, constant in zip("abcdefgh", found.constants, strict=False):
        typer.echo(f"  constant {name} = {constant.value:.6g} ± {constant.standard_error:.2g}")
    typer.echo(f"missed: {found.error:.2%} of the spread; of what it foretold: {found.ahead:.2%}")
    if found.unexplained:
        typer.echo("The law leaves too much: there is more in this film than it says.", err=True)
    if found.ended == "interrupted":
        typer.echo("The search was interrupted; this is the best it had found.", err=True)
    typer.echo(f"\nReport: {folder.path / 'report.html'}", err=True)


def _number(name: str, text: str) -> int | str:
    if text not in ("1", "2", "auto"):
        raise InvalidArgument(f"`{name}` must be 1, 2 or auto, got {text!r}")
    return text if text == "auto" else int(text)
