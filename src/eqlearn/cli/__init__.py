"""The command line: parse, call the library, print; each command imports what is slow by itself."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from eqlearn.cli.doctor import doctor
from eqlearn.cli.dynamics import dynamics
from eqlearn.cli.film import film
from eqlearn.cli.fit import fit
from eqlearn.cli.live import open_runs
from eqlearn.cli.pde import pde
from eqlearn.cli.reproduce import reproduce
from eqlearn.cli.runs import predict, report, show
from eqlearn.errors import EqlearnError

app = typer.Typer(
    help="Finds equations in data.",
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.add_typer(reproduce, name="reproduce")
for command in (doctor, fit, dynamics, pde, film, predict, show, report):
    app.command()(command)
app.command("open")(open_runs)


@app.callback(invoke_without_command=True)
def entrance(
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    if version:
        import eqlearn

        typer.echo(eqlearn.__version__)
        raise typer.Exit


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns 0, or 2 for wrong use or bad data, after a message of one sentence."""
    command = typer.main.get_command(app)
    words = (sys.argv[1:] if argv is None else list(argv)) or ["--help"]
    try:
        result = command.main(args=words, prog_name="eqlearn", standalone_mode=False)
    except EqlearnError as error:
        return _refuse(_as_options(str(error), command, words))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader closed our output
        return 0
    except OSError as error:  # a folder that can't be written, a full disk
        return _refuse(str(error))
    except Exception as error:
        # What typer raises for wrong use has this method; its class differs between versions of typer.
        if not hasattr(error, "format_message"):
            raise
        # Newer versions check values with pydantic, which begins every message like this.
        return _refuse(error.format_message().replace("Value error, ", ""))
    return result if isinstance(result, int) else 0


def _as_options(message: str, command: Any, argv: Sequence[str]) -> str:
    """A message of the library, with arguments renamed to the options of the command."""
    for word in argv:
        command = getattr(command, "commands", {}).get(word, command)
    options = {p.name: p.opts[0] for p in command.params if p.opts[0].startswith("--")}
    options["n_jobs"] = options.get("jobs", "n_jobs")
    return re.sub(r"`(\w+)`", lambda name: f"`{options.get(name[1], name[1])}`", message)


def _refuse(message: str) -> int:
    typer.echo("eqlearn: " + " ".join(message.split()), err=True)
    return 2
