"""`eqlearn reproduce timing`: the paper's run times beside this machine's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eqlearn.paper.commands.options import ResultsOption, leave_table


def timing(
    quick: Annotated[bool, typer.Option("--quick", help="A twentieth of the steps, scaled up.")] = False,
    out: ResultsOption = Path("runs/timing"),
) -> None:
    """Seconds for 20,000 steps of the paper's network. One trial alone, and twenty together."""
    from eqlearn.paper.ledger import Ledger
    from eqlearn.paper.timing import STEPS, TIMINGS, timing_table

    ledger = Ledger(
        out / f"timing{'-quick' if quick else ''}.json", {"steps": STEPS // 20 if quick else STEPS}
    )
    for case in TIMINGS:
        if case.name not in ledger.trials:
            ledger.add(case.name, case.measure(ledger.plain["settings"]["steps"]))
            typer.echo(f"{ledger.trials[case.name]['seconds']:7.1f} s  {case.name}")
    leave_table(ledger, timing_table(ledger.plain))
