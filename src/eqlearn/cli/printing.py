"""What a search prints: a display while it runs, and its result."""

from __future__ import annotations

import json as plain_json
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from eqlearn.report.record import RunRecord
    from eqlearn.runs.folder import RunFolder
    from eqlearn.search.search import Progress


def run_folder(out: Path | None, name: str) -> RunFolder:
    """The given folder, or a new one under `runs`."""
    from eqlearn.runs.folder import RunFolder

    return RunFolder.numbered(Path("runs"), name) if out is None else RunFolder(out)


@contextmanager
def displayed(
    seconds: float | None, target: str, silent: bool
) -> Iterator[Callable[[Progress], None] | None]:
    """Shows the progress of a search while the block runs, unless `silent`."""
    # A cluster's SIGTERM is treated like Ctrl-C: the best equation so far is kept.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if silent:
            yield None
            return
        from rich.console import Console

        from eqlearn.report.progress import show_progress

        with show_progress(seconds, target, Console(stderr=True)) as progress:
            yield progress
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def print_found(record: RunRecord, folder: Path, quiet: bool, json: bool) -> None:
    """Prints the result of a search: one JSON object, the equations alone, or a summary."""
    from eqlearn.report.summary import equations_text, summary
    from eqlearn.runs.folder import REPORT

    if json:
        typer.echo(run_json(record, folder))
    elif quiet:
        typer.echo(equations_text(record))
    else:
        typer.echo(for_screen(summary(record, screen_width())))
        print_plot(record, folder)
        if record.ended == "interrupted":
            typer.echo("\nThe search was interrupted; this is the best it had found.", err=True)
        typer.echo(f"\nReport: {folder / REPORT}", err=True)


def print_plot(record: RunRecord, folder: Path) -> None:
    """Prints the chosen equation on the data, drawn with letters; equations of motion have no such plot."""
    from eqlearn.report.summary import equations_text
    from eqlearn.report.text_plot import fit_plot
    from eqlearn.runs.folder import RunFolder

    if "form" in record.data:
        return
    sample = RunFolder(folder).read_sample(record)
    drawn, plain = (fit_plot(record, sample, width=screen_width(), unicode=way) for way in (True, False))
    if drawn:
        title = for_screen(equations_text(record).splitlines()[0][: screen_width()])
        typer.echo(f"\n{title}\n\n{for_screen(drawn, for_screen(plain))}")


def for_screen(text: str, plain: str = "") -> str:
    """The text if the output can show it, else `plain`, or the text with marks in the place of letters."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return plain or text.encode(encoding, "replace").decode(encoding)
    return text


def screen_width() -> int:
    return max(60, shutil.get_terminal_size((100, 24)).columns)


def run_json(record: RunRecord, folder: Path) -> str:
    from eqlearn.report.summary import verdict

    return plain_json.dumps({"folder": str(folder), "verdict": verdict(record), **record.to_json()}, indent=1)
