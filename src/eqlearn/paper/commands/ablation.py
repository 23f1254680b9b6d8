"""`eqlearn reproduce ablation`: each strategy of the search off, one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eqlearn.paper.commands.options import OnlyOption, ResultsOption, leave_table, wanted

if TYPE_CHECKING:
    from eqlearn.paper.ablation import Trial
    from eqlearn.paper.ledger import Ledger


def ablation(
    suites: Annotated[int, typer.Option(help="How many formulas of the literature.", min=0)] = 40,
    random: Annotated[int, typer.Option(help="How many formulas drawn at random.", min=0)] = 40,
    noisy: Annotated[int, typer.Option(help="How many of these once more, with noise.", min=0)] = 10,
    noise: Annotated[float, typer.Option(help="Noise, as a fraction of the target's spread.", min=0)] = 0.05,
    networks: Annotated[int, typer.Option(help="Networks started after the last strategy.", min=1)] = 48,
    report: Annotated[
        bool, typer.Option("--report", help="Random formulas of the report's seeds, not of development's.")
    ] = False,
    only: OnlyOption = None,
    quick: Annotated[bool, typer.Option("--quick", help="Five short formulas: a look.")] = False,
    out: ResultsOption = Path("runs/ablation"),
) -> None:
    """The search with each strategy off. What it finds without it, and what that costs."""
    from eqlearn import InvalidArgument
    from eqlearn.paper.ablation import ALL, VARIANTS, Trial, ablation_table, spaced
    from eqlearn.paper.ledger import Ledger
    from eqlearn.paper.random_formulas import DEVELOPMENT, REPORT, Drawing, random_formula

    if quick:
        suites, random, noisy, networks = 2, 3, 0, 8
    drawing = Drawing(operations=(2, 2)) if quick else Drawing()
    seeds = REPORT if report else DEVELOPMENT
    for option, count in (("--random", random), ("--noisy", noisy)):
        if count > len(seeds):
            raise InvalidArgument(f"`{option}` is at most {len(seeds)}, the number of seeds; got {count}")
    if noisy and not noise:
        raise InvalidArgument("`--noisy` formulas need `--noise` above 0")
    drawn = [random_formula(seed, drawing) for seed in seeds[: max(random, noisy)]]
    asked = [Trial(p, networks=networks) for p in (*spaced(suites), *drawn[:random])]
    asked += [Trial(p, noise=noise, networks=networks) for p in drawn[:noisy]]
    if not asked:
        raise InvalidArgument("nothing to run: give `--suites`, `--random` or `--noisy` above 0")
    names = wanted(only, [t.name for t in asked])
    settings = {"seeds": "report" if report else "development", "networks": networks}
    ledger = Ledger(out / f"{settings['seeds']}{'-quick' if quick else ''}.json", settings)
    asked = [t for t in asked if t.name in names]
    for trial in asked:
        _enter(ledger, trial, (ALL,))
    # The cheapest first, so that a run which is cut short has most of the table.
    for trial in sorted(asked, key=lambda t: ledger.trials[t.key(ALL)]["cpu_seconds"]):
        _enter(ledger, trial, VARIANTS)
    leave_table(ledger, ablation_table(ledger.plain))


def _enter(ledger: Ledger, trial: Trial, variants: Sequence[str]) -> None:
    """Runs what is missing of a trial's variants, and tells."""
    from eqlearn.paper.ablation import ALL, VARIANTS, trials

    known = {v: ledger.trials[trial.key(v)] for v in VARIANTS if trial.key(v) in ledger.trials}
    for variant, record in trials(trial, known, variants):
        ledger.add(trial.key(variant), record)
        if not record["same"]:
            off = "all" if variant == ALL else f"no {variant}"
            typer.echo(
                f"{record['tier']:8} {record['cpu_seconds']:7.2f} s  {trial.name}, {off}: "
                f"{record['equation'][:90]}"
            )
