"""`eqlearn reproduce benchmark` and `suite`: formulas looked for in tables, every seed counted."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from eqlearn import InvalidArgument
from eqlearn.paper.commands.options import (
    FirstSeedOption,
    OnlyOption,
    PenaltyName,
    PenaltyOption,
    ResultsOption,
    SeedsOption,
    leave_picture,
    leave_table,
    wanted,
)


class Search(StrEnum):
    modern = "modern"
    networks = "networks"
    paper = "paper"
    released = "released"


class Sine(StrEnum):
    two_pi = "2pi"
    one = "1"


def benchmark(
    preset: Annotated[
        Search,
        typer.Option(help="How equations are looked for; 'networks' is 'modern' with nothing but networks."),
    ] = Search.modern,
    penalty: PenaltyOption = PenaltyName.half,
    seeds: SeedsOption = 20,
    first_seed: FirstSeedOption = 0,
    noise: Annotated[float, typer.Option(help="Noise, as a fraction of the target's spread.", min=0)] = 0.0,
    sine: Annotated[
        Sine, typer.Option(help="The sine unit: sin(2πg) as in the paper, or sin(g).")
    ] = Sine.two_pi,
    one_set: Annotated[
        int | None,
        typer.Option(help="One data set for all trials, as in the authors' scripts: its seed.", min=0),
    ] = None,
    weight: Annotated[
        float | None, typer.Option(help="The λ of the recipe's penalty, in place of its own.", min=0)
    ] = None,
    only: OnlyOption = None,
    quick: Annotated[bool, typer.Option("--quick", help="Two seeds of the ten functions.")] = False,
    out: ResultsOption = Path("runs/benchmark"),
) -> None:
    """The paper's ten functions, and three more. Every seed counts, and has its own data."""
    from eqlearn.paper.benchmark import TARGETS, Condition, seen, trials
    from eqlearn.paper.ledger import Ledger
    from eqlearn.paper.rates import benchmark_table, draw_rates

    if sine is not Sine.two_pi and preset.value in ("paper", "released"):
        raise InvalidArgument(f"`--preset` {preset.value} has a sine of its own; leave out `--sine`")
    if weight is not None and preset.value not in ("paper", "released"):
        raise InvalidArgument(f"`--preset` {preset.value} has no λ of its own; leave out `--weight`")
    condition = Condition(preset.value, penalty.value, noise, sine.value, one_set, weight)
    targets = TARGETS[:10] if quick else TARGETS
    names = wanted(only, [t.name for t in targets])
    ledger = Ledger(out / f"{condition.name}.json", {"condition": condition.name})
    for target in (t for t in targets if t.name in names):
        # Ledgers from before there was a column for the eye are counted again.
        old = preset.value in ("paper", "released")
        for key, trial in list(ledger.trials.items()) if old else ():
            if trial["function"] == target.name and "eye" not in trial:
                ledger.add(key, {**trial, "eye": seen(target, trial)})
        asked = range(first_seed, first_seed + (2 if quick else seeds))
        missing = [s for s in asked if f"{target.name} {s}" not in ledger.trials]
        for trial in trials(target, condition, missing):
            ledger.add(f"{target.name} {trial['seed']}", {"function": target.name, **trial})
            _say(target.name, trial)
    column = 0 if condition.penalty == "half" else 1
    # The paper's rates are for data without noise.
    paper = {} if noise else {t.name: t.paper[column] for t in targets if t.paper}
    leave_picture(ledger.path.with_suffix(".png"), draw_rates(ledger.plain, paper))
    leave_table(ledger, benchmark_table(ledger.plain, paper))


def suite(
    name: Annotated[str, typer.Argument(help="The suite's name, such as nguyen, jin or feynman.")],
    seconds: Annotated[float, typer.Option(help="The budget of a trial.", min=0.1)] = 10.0,
    seeds: SeedsOption = 3,
    first_seed: FirstSeedOption = 0,
    noise: Annotated[
        float, typer.Option(help="Noise, as a fraction of the target's root mean square.", min=0)
    ] = 0.0,
    only: OnlyOption = None,
    out: ResultsOption = Path("runs/suites"),
) -> None:
    """Formulas of the literature. Default settings, and a budget in seconds."""
    from eqlearn.paper.ledger import Ledger
    from eqlearn.paper.rates import suite_table
    from eqlearn.paper.suites import find_suite, trials

    problems = find_suite(name)
    names = wanted(only, [p.name for p in problems])
    noisy = {"noise": noise} if noise else {}
    stem = f"{name}-{seconds:g}s" + (f"-noise{noise:g}" if noise else "")
    ledger = Ledger(out / f"{stem}.json", {"suite": name, "seconds": seconds, **noisy})
    for problem in (p for p in problems if p.name in names):
        asked = range(first_seed, first_seed + seeds)
        missing = [s for s in asked if f"{problem.name} {s}" not in ledger.trials]
        for trial in trials(problem, missing, seconds, noise):
            ledger.add(f"{problem.name} {trial['seed']}", trial)
            _say(problem.name, trial)
    leave_table(ledger, suite_table(ledger.plain))


def _say(name: str, trial: dict[str, Any]) -> None:
    typer.echo(
        f"{trial['tier']:8} {trial['seconds']:7.2f} s  {name} seed {trial['seed']}: {trial['equation'][:100]}"
    )
