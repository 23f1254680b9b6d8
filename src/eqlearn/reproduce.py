"""`eqlearn reproduce`: the paper's experiments from the command line, resumable, into JSON and Markdown."""

from __future__ import annotations

import io
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from eqlearn.report.ledger import Ledger

app = typer.Typer(help="Repeats the paper's experiments.", no_args_is_help=True, rich_markup_mode=None)


class Preset(str, Enum):
    modern = "modern"
    paper = "paper"
    released = "released"


class Penalty(str, Enum):
    half = "half"
    l0 = "l0"


class Sine(str, Enum):
    two_pi = "2pi"
    one = "1"


SeedsOption = Annotated[int, typer.Option(help="How many seeds, counted from 0.", min=1)]
OnlyOption = Annotated[str | None, typer.Option(help="Names, separated by ';': only these.")]


@app.command(epilog="Example: eqlearn reproduce benchmark --penalty l0 --seeds 20 --out results/benchmark")
def benchmark(
    preset: Annotated[Preset, typer.Option(help="How equations are looked for.")] = Preset.modern,
    penalty: Annotated[Penalty, typer.Option(help="L0.5 or L0.")] = Penalty.half,
    seeds: SeedsOption = 20,
    noise: Annotated[float, typer.Option(help="Noise, as a fraction of the target's spread.", min=0)] = 0.0,
    sine: Annotated[
        Sine, typer.Option(help="The sine unit: sin(2πg) as in the paper, or sin(g).")
    ] = Sine.two_pi,
    only: OnlyOption = None,
    quick: Annotated[bool, typer.Option("--quick", help="Two seeds of the ten functions.")] = False,
    out: Annotated[Path, typer.Option(help="The folder for the results.")] = Path("runs/benchmark"),
) -> None:
    """The table of ten functions, and three more; every seed has its own data and counts."""
    from eqlearn.core.sealed import atomic_write
    from eqlearn.experiments.benchmark import TARGETS, Condition, trials
    from eqlearn.experiments.rates import benchmark_table, draw_rates
    from eqlearn.report.ledger import Ledger

    condition = Condition(preset.value, penalty.value, noise, sine.value)
    targets = TARGETS[:10] if quick else TARGETS
    wanted = _wanted(only, [t.name for t in targets])
    ledger = Ledger(out / f"{condition.name}.json", {"condition": condition.name})
    for target in (t for t in targets if t.name in wanted):
        missing = [s for s in range(2 if quick else seeds) if f"{target.name} {s}" not in ledger.trials]
        for trial in trials(target, condition, missing):
            ledger.add(f"{target.name} {trial['seed']}", {"function": target.name, **trial})
            _say(target.name, trial)
    column = 0 if condition.penalty == "half" else 1
    paper = {t.name: t.paper[column] if t.paper else None for t in targets}
    picture = io.BytesIO()
    draw_rates(ledger.plain, paper).savefig(picture, format="png", dpi=120)
    atomic_write(ledger.path.with_suffix(".png"), picture.getvalue())
    _conclude(ledger, benchmark_table(ledger.plain, paper))


@app.command(epilog="Example: eqlearn reproduce suite nguyen --seconds 10 --seeds 3 --out results/suites")
def suite(
    name: Annotated[str, typer.Argument(help="The suite's name, such as nguyen, jin or feynman.")],
    seconds: Annotated[float, typer.Option(help="The budget of a trial.", min=0.1)] = 10.0,
    seeds: SeedsOption = 3,
    only: OnlyOption = None,
    out: Annotated[Path, typer.Option(help="The folder for the results.")] = Path("runs/suites"),
) -> None:
    """A set of formulas from the literature, with default settings and a budget in seconds."""
    from eqlearn.experiments.rates import suite_table
    from eqlearn.experiments.suites import find_suite, trials
    from eqlearn.report.ledger import Ledger

    problems = find_suite(name)
    wanted = _wanted(only, [p.name for p in problems])
    ledger = Ledger(out / f"{name}-{seconds:g}s.json", {"suite": name, "seconds": seconds})
    for problem in (p for p in problems if p.name in wanted):
        missing = [s for s in range(seeds) if f"{problem.name} {s}" not in ledger.trials]
        for trial in trials(problem, missing, seconds):
            ledger.add(f"{problem.name} {trial['seed']}", trial)
            _say(problem.name, trial)
    _conclude(ledger, suite_table(ledger.plain))


def _wanted(only: str | None, names: list[str]) -> list[str]:
    from eqlearn.core.expressions import did_you_mean
    from eqlearn.errors import UnknownName

    if only is None:
        return names
    asked = [part.strip() for part in only.split(";")]
    for name in asked:
        if name not in names:
            raise UnknownName(f"`--only` names {name!r}, which is not here; {did_you_mean(name, names)}")
    return asked


def _conclude(ledger: Ledger, table: str) -> None:
    """Writes the table beside the ledger, with the command that made it, and prints it."""
    from eqlearn.core.sealed import atomic_write

    made = ledger.plain["environment"]
    text = f"# {ledger.path.stem}\n\n{table}\n\n`{ledger.plain['command']}`, eqlearn {made['eqlearn']}, "
    text += f"torch {made['packages']['torch']}, {made['threads']} thread(s), {made['started']}.\n"
    atomic_write(ledger.path.with_suffix(".md"), text.encode())
    typer.echo(f"\n{table}\n\n{ledger.path}")


def _say(name: str, trial: dict[str, Any]) -> None:
    typer.echo(
        f"{trial['tier']:8} {trial['seconds']:7.2f} s  {name} seed {trial['seed']}: {trial['equation'][:100]}"
    )
