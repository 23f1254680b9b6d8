"""`eqlearn open`, a live page about runs, and the same page beside a search (`fit --live`)."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eqlearn.cli.options import NoBrowser
from eqlearn.errors import EqlearnError, InvalidArgument

if TYPE_CHECKING:
    from eqlearn.live.server import LiveServer


def open_runs(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN ...", help="Folders of runs, finished or under way.", show_default=False),
    ] = None,
    port: Annotated[
        int,
        typer.Option(help="The port; any that is free unless told.", min=0, max=65535, show_default=False),
    ] = 0,
    no_browser: NoBrowser = False,
    with_parent: Annotated[bool, typer.Option("--with-parent", hidden=True)] = False,
) -> None:
    """Show runs on a live page of this machine: watch, stop, choose, pin, and start searches.

    Example: eqlearn open runs/pendulum runs/spring

    Example: eqlearn open   (drop a table on the page)
    """
    from eqlearn.live.server import LiveServer

    paths = runs or []
    for path in paths:
        if not with_parent and not (path / "run.json").exists():
            raise InvalidArgument(f"{str(path)!r} is no folder of a run: it has no run.json")
    server = LiveServer(paths, port=port)
    typer.echo(f"Live view: {server.address}")
    if with_parent:
        threading.Thread(target=_end_with_parent, args=(server,), daemon=True).start()
    else:
        typer.echo("Ctrl-C ends it.", err=True)
    sys.stdout.flush()
    if not no_browser:
        import webbrowser

        webbrowser.open(server.address_once)
    try:
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    finally:
        server.close()


def _end_with_parent(server: LiveServer) -> None:
    """Ends the server when the process that started it is gone, however it went."""
    sys.stdin.buffer.read()
    server.shutdown()


class LiveView:
    """The page beside a search, served by a process of its own, which ends when this one does."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def wait(self) -> None:
        """Lets the reader look at the page until Ctrl-C."""
        typer.echo("The live view stays until Ctrl-C.", err=True)
        with suppress(KeyboardInterrupt):
            self.process.wait()


@contextmanager
def live_view(folder: Path, no_browser: bool) -> Iterator[LiveView]:
    """Serves the page of a run folder while the block runs, and prints its address."""
    command = [sys.executable, "-m", "eqlearn.cli", "open", str(folder), "--with-parent"]
    command += ["--no-browser"] if no_browser else []
    # Ctrl-C is for the search, not for its page: a session of its own.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        if process.stdout is None or process.stdin is None or not (address := process.stdout.readline()):
            raise EqlearnError("the live view could not be started; leave `--live` out")
        typer.echo(address.rstrip("\n"), err=True)
        try:
            yield LiveView(process)
        finally:
            process.stdin.close()
