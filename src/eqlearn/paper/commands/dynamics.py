"""`eqlearn reproduce kinematics` and `oscillator`: a hidden parameter and the equations, found together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eqlearn.paper.commands.options import (
    FirstSeedOption,
    GradientPenaltyOption,
    PresetName,
    PresetOption,
    ResultsOption,
    SeedsOption,
    leave_picture,
    leave_table,
    recipe_of,
)

if TYPE_CHECKING:
    from eqlearn import LatentProgress, Record


QuickOption = Annotated[bool, typer.Option("--quick", help="One seed, a tenth of the steps: a look.")]
TwinsOption = Annotated[bool, typer.Option(help="Train the ReLU networks for comparison, too.")]


def kinematics(
    preset: PresetOption = PresetName.modern,
    penalty: GradientPenaltyOption = None,
    seeds: SeedsOption = 5,
    first_seed: FirstSeedOption = 0,
    twins: TwinsOption = True,
    quick: QuickOption = False,
    out: ResultsOption = Path("runs/kinematics"),
) -> None:
    """Uniform acceleration, hidden: u' = u + v + a/2, v' = v + a."""
    _reproduce(
        "kinematics", recipe_of(preset, penalty), range(first_seed, first_seed + seeds), twins, quick, out
    )


def oscillator(
    preset: PresetOption = PresetName.modern,
    penalty: GradientPenaltyOption = None,
    seeds: SeedsOption = 5,
    first_seed: FirstSeedOption = 0,
    twins: TwinsOption = True,
    quick: QuickOption = False,
    out: ResultsOption = Path("runs/oscillator"),
) -> None:
    """An oscillator with a hidden frequency. To second order in the step of time, and beyond."""
    _reproduce(
        "oscillator", recipe_of(preset, penalty), range(first_seed, first_seed + seeds), twins, quick, out
    )


def _reproduce(name: str, recipe: str, seeds: Sequence[int], twins: bool, short: bool, out: Path) -> None:
    from eqlearn.paper.dynamics.presets import find_preset, quick
    from eqlearn.paper.dynamics.trials import equation_trial, euler, exact_series, twin_trial
    from eqlearn.paper.ledger import Ledger
    from eqlearn.paper.pages.dynamics import draw_dynamics, dynamics_table

    chosen = find_preset(name, recipe)
    chosen = quick(chosen) if short else chosen
    condition = recipe + ("-quick" if short else "")
    ledger = Ledger(out / f"{condition}.json", {"system": name, "condition": condition})
    for seed in seeds[:1] if short else seeds:
        if f"eql {seed}" not in ledger.trials:
            keep = _Kept(out / f"{condition}-{seed}")
            say = partial(_say_record, chosen.system.states)
            trial = equation_trial(chosen, seed, journal=keep.folder, on_record=say, progress=_Stages())
            ledger.add(f"eql {seed}", trial)
            keep.clear()
            _say_trial(ledger.trials[f"eql {seed}"])
        if twins and f"relu {seed}" not in ledger.trials:
            keep = _Kept(out / f"{condition}-{seed}")
            ledger.add(f"relu {seed}", twin_trial(chosen, seed, share=0.2 if short else 1.0, follow=keep))
            keep.clear()
        if f"euler {seed}" not in ledger.trials:
            ledger.add(f"euler {seed}", euler(chosen.system, seed))
    worked = [t["seed"] for t in ledger.trials.values() if t.get("equations")]
    shown = exact_series(chosen.system, min(worked, default=0))
    leave_picture(ledger.path.with_suffix(".png"), draw_dynamics(ledger.plain, chosen.system, shown))
    leave_table(ledger, dynamics_table(ledger.plain, chosen.system))


class _Stages:
    """Says a line for each stage of a search, and for each law that was followed through the rollout, with
    what is left beside what the warm start left."""

    def __init__(self) -> None:
        self.stage = ""

    def __call__(self, now: LatentProgress) -> None:
        if now.stage != self.stage or now.stage in ("rollout", "refinement"):
            head = "" if math.isnan(now.head_error) else f" (the head {now.head_error:.2g})"
            typer.echo(f"{now.seconds:7.1f} s  {now.stage}: left {now.error:.2g}{head}  {now.best[:100]}")
        self.stage = now.stage


class _Kept:
    """Trainings whose state is kept in a folder beside the ledger until their trial is entered."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, name: str, start: Any) -> Iterator[Record]:
        from eqlearn import followed

        return followed(self.folder / f"{name}.safetensors", start)

    def clear(self) -> None:
        rmtree(self.folder, ignore_errors=True)


def _say_record(states: Sequence[str], record: Record) -> None:
    from eqlearn.paper.dynamics.trials import present_equations

    loss = ", ".join(f"{v:.2e}" for v in record.loss.flatten().tolist())
    typer.echo(f"{record.seconds:7.1f} s  {record.phase}, step {record.step}: loss {loss}")
    for text in present_equations(record, states):
        typer.echo(f"           {text}")


def _say_trial(trial: dict[str, Any]) -> None:
    if trial["failure"]:
        typer.echo(f"seed {trial['seed']} failed: {trial['failure']}")
        return
    right = "right" if trial["right"] else "not right"
    typer.echo(
        f"seed {trial['seed']}: {right}, correlation {trial['correlation']:.6f}, {trial['seconds']:.0f} s"
    )
    for state, text in (trial["readable"] or trial["equations"]).items():
        typer.echo(f"  {state}' = {text[:100]}")
