"""The command line: parse, call the library, print; what is slow is imported by the command that needs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from eqlearn.cli.dynamics import dynamics
from eqlearn.cli.fit import fit
from eqlearn.cli.runs import predict, report, show
from eqlearn.errors import EqlearnError
from eqlearn.reproduce import app as reproduce

app = typer.Typer(
    help="Finds equations in data.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.add_typer(reproduce, name="reproduce")
for command in (fit, dynamics, predict, show, report):
    app.command()(command)


@app.callback(invoke_without_command=True)
def entrance(
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    if version:
        import eqlearn

        typer.echo(eqlearn.__version__)
        raise typer.Exit


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
    except OSError as error:  # a folder that can't be written, a full disk
        return _refuse(str(error))
    except Exception as error:
        # What typer raises for wrong use has this method; its class has moved between typer's versions.
        if not hasattr(error, "format_message"):
            raise
        return _refuse(error.format_message())
    return result if isinstance(result, int) else 0


def _refuse(message: str) -> int:
    typer.echo("eqlearn: " + " ".join(message.split()), err=True)
    return 2
