"""A live display of a search: rounds, restarts, time, the best equation and its error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from eqlearn.errors import counted
from eqlearn.search.search import Progress
from eqlearn.symbolic.printing import printable


class _Status:
    """The latest report, redrawn at each refresh so that the clock runs within a round."""

    def __init__(self, seconds: float | None, target: str) -> None:
        self.began, self.seconds, self.target = time.monotonic(), seconds, target
        self.latest: Progress | None = None
        self.spinner = Spinner("dots")

    def __rich__(self) -> Group:
        elapsed = time.monotonic() - self.began
        budget = "" if self.seconds is None else f" of {self.seconds:g} s"
        counts = "starting" if self.latest is None else counts_text(self.latest)
        self.spinner.update(text=Text(f"{counts} · {elapsed:.1f} s{budget}"))
        if self.latest is None:
            return Group(self.spinner)
        return Group(self.spinner, best_text(self.latest, self.target))


def counts_text(progress: Progress) -> str:
    """The number of rounds and restarts."""
    return f"{counted(progress.round, 'round')} · {counted(progress.restarts, 'restart')}"


def best_text(progress: Progress, target: str = "y") -> Text:
    """The best equation and its error; column names can't hold markup or control characters."""
    best = progress.best
    accuracy = "exact" if best.exact else f"error {best.training_error:.2g} of the spread"
    formula = printable(f"{target} = {best}")
    return Text.assemble((formula, "bold"), (f"   {accuracy}", "dim"), overflow="ellipsis")


@contextmanager
def show_progress(
    seconds: float | None = None, target: str = "y", console: Console | None = None
) -> Iterator[Callable[[Progress], None]]:
    """Yields the function to call after each round.

    A terminal shows a live display, and a notebook a line of HTML that changes, without widgets; anything
    else, a line whenever the best equation changes.
    """
    console = Console() if console is None else console
    if console.is_jupyter:
        yield _in_notebook(seconds, target)
        return
    if not console.is_terminal:
        yield _lines(console, target)
        return
    status = _Status(seconds, target)

    def show(progress: Progress) -> None:
        status.latest = progress

    with Live(status, console=console, refresh_per_second=8, transient=True):
        yield show


def _in_notebook(seconds: float | None, target: str) -> Callable[[Progress], None]:
    """Shows progress in the output of a notebook's cell, where each report takes the place of the last."""
    from IPython.display import HTML, display

    budget = "" if seconds is None else f" of {seconds:g} s"
    handle = display(HTML("<div>starting</div>"), display_id=True)

    def show(progress: Progress) -> None:
        counts = escape(f"{counts_text(progress)} · {progress.seconds:.1f} s{budget}")
        best = escape(best_text(progress, target).plain)
        handle.update(HTML(f"<div>{counts}<br><code>{best}</code></div>"))

    return show


def _lines(console: Console, target: str) -> Callable[[Progress], None]:
    shown = ""

    def show(progress: Progress) -> None:
        nonlocal shown
        if str(progress.best) != shown:
            shown = str(progress.best)
            line = Text(f"{progress.seconds:6.1f} s  {counts_text(progress)}  ")
            console.print(line + best_text(progress, target), soft_wrap=True)

    return show
