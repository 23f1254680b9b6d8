"""`eqlearn reproduce mnist`: an equation learned through an encoder of images, with the paper's figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
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
    from eqlearn import ImageArithmetic, LatentProgress, Record
    from eqlearn.paper.ledger import Ledger
    from eqlearn.paper.mnist.digits import Digits
    from eqlearn.paper.mnist.recipes import Condition


STATE = "state"  # the folder, in that of a trial, from which a killed one goes on


class DigitSet(StrEnum):
    mnist = "mnist"
    digits = "digits"


class Network(StrEnum):
    eql = "eql"
    relu = "relu"


def mnist(
    preset: PresetOption = PresetName.modern,
    penalty: GradientPenaltyOption = None,
    seeds: SeedsOption = 1,
    first_seed: FirstSeedOption = 0,
    operation: Annotated[
        str, typer.Option(help="What is done with the labels: a+b, a-b, a*b, (a+b)^2, ...")
    ] = "a+b",
    below: Annotated[
        float | None, typer.Option(help="Train only on pairs whose result is below this; the paper: 15.")
    ] = None,
    network: Annotated[Network, typer.Option(help="What follows the encoder.")] = Network.eql,
    dataset: Annotated[
        DigitSet, typer.Option(help="MNIST, or the small digits of scikit-learn.")
    ] = DigitSet.mnist,
    data_dir: Annotated[
        Path | None, typer.Option(help="A folder with the four files of MNIST; else EQLEARN_DATA.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One seed on the small digits.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume/--restart", help="Go on where a killed run stopped, or begin anew.")
    ] = True,
    out: ResultsOption = Path("runs/mnist"),
) -> None:
    """Arithmetic with images of digits. One encoder, one equation; the only label is the result."""
    from eqlearn.paper.ledger import Ledger
    from eqlearn.paper.mnist.digits import load_digits
    from eqlearn.paper.mnist.recipes import Condition

    recipe, images = recipe_of(preset, penalty), "digits" if quick else dataset.value
    condition = Condition(
        recipe=recipe, dataset=images, formula=operation, below=below, network=network.value
    )
    condition.check()  # what can't be used is told before anything is loaded
    ledger = Ledger(out / f"{condition.name}.json", asdict(condition))
    digits = load_digits(condition.dataset, data_dir)
    for seed in range(first_seed, first_seed + (1 if quick else seeds)):
        if not resume or f"seed {seed}" not in ledger.trials:
            folder = out / "models" / f"{condition.name}-seed-{seed}"
            if not resume:
                _forget(folder)
            try:
                trial = _trial(condition, digits, seed, folder)
            except KeyboardInterrupt:
                typer.echo(f"Stopped; the same command goes on. What stands so far is in {folder}.")
                raise typer.Exit(130) from None
            ledger.add(f"seed {seed}", {"seed": seed, **trial})
    _conclude(condition, ledger)


def _trial(condition: Condition, digits: Digits, seed: int, folder: Path) -> dict[str, Any]:
    """One seed: its figures, or why it came to nothing."""
    from eqlearn import EqlearnError
    from eqlearn.paper.mnist.measures import BOUND, measures
    from eqlearn.paper.pages.mnist_figures import draw_trial

    run = _searched if condition.searched else _trained
    try:
        model, about = run(condition, digits, seed, folder)
    except EqlearnError as error:
        _forget(folder)  # from where it stands it would fail again
        typer.echo(f"seed {seed} came to nothing: {error}")
        return {"failure": str(error)}
    bound = BOUND if condition.below is None else condition.below
    told, evaluations = measures(model, digits, condition.operation, seed, bound, equation=about.pop("law"))
    _forget(folder)
    leave_picture(folder.parent.parent / f"{folder.name}.png", draw_trial(evaluations, told["equation"]))
    typer.echo(
        f"{about['seconds']:7.0f} s  seed {seed}: {(told['equation'] or 'ReLU network')[:100]}  "
        f"test: {told['test']['accuracy']:.1%} right, mean error {told['test']['mean_absolute_error']:.3f}"
    )
    return {**told, **about}


def _searched(
    condition: Condition, digits: Digits, seed: int, folder: Path
) -> tuple[ImageArithmetic, dict[str, Any]]:
    """A trial by search, kept in its folder; and what is told of it beside its figures."""
    from time import process_time

    from eqlearn.paper.mnist.search import as_system, searched, told

    state = folder / STATE
    began, resumed = process_time(), state.exists()
    with _stages(f"{condition.name}, seed {seed}") as show:
        found = searched(condition, digits, seed, journal=state, progress=show)
    cpu_seconds = round(process_time() - began, 1)
    found.save(folder)
    if found.ended == "interrupted":
        raise KeyboardInterrupt
    about = {"search": {**told(found), "cpu_seconds": cpu_seconds}, "seconds": round(found.seconds, 1)}
    return as_system(found), {"law": found.equation, **about, "resumed": resumed}


def _trained(
    condition: Condition, digits: Digits, seed: int, folder: Path
) -> tuple[ImageArithmetic, dict[str, Any]]:
    """A trial by gradient, kept in its folder; and what is told of it beside its figures."""
    from eqlearn import settle_
    from eqlearn.paper.mnist.trials import save_system, trained

    latest: list[Record] = []
    steps = sum(phase.steps for phase in condition.full_recipe().learn)
    with _steps(f"{condition.name}, seed {seed}", steps) as show:

        def on_record(record: Record) -> None:
            latest[:] = [record]
            show(record)

        try:
            state = folder / STATE / "training.safetensors"
            result = trained(condition, digits, seed, state=state, on_record=on_record)
        except KeyboardInterrupt:
            for record in latest:
                settle_(record.model)
                save_system(folder, record.model.eval(), condition, digits.side)  # type: ignore[arg-type]
            raise
    save_system(folder, result.model, condition, digits.side)
    told = {"seconds": round(result.seconds, 1), "resumed": result.resumed, "restarts": result.restarts}
    return result.model, {"law": None, **told}


def _forget(folder: Path) -> None:
    """Removes the state of a trial that is over."""
    import shutil

    shutil.rmtree(folder / STATE, ignore_errors=True)


def _conclude(condition: Condition, ledger: Ledger) -> None:
    """The page and the figures of all trials; with a bound, both networks together once both are there."""
    from dataclasses import replace

    from eqlearn.paper.ledger import read_ledger
    from eqlearn.paper.pages.mnist import condition_page, finished
    from eqlearn.paper.pages.mnist_figures import draw_generalisation, draw_maps

    path, trials = ledger.path, list(ledger.trials.values())
    if finished(trials):
        leave_picture(path.with_name(f"{condition.name}-latents.png"), draw_maps(finished(trials)))
    both: dict[str, list[dict[str, Any]]] = {}
    for network in Network:
        other = path.with_name(f"{replace(condition, network=network.value).name}.json")
        if condition.below is not None and other.exists():
            both[network.value] = list(read_ledger(other)["trials"].values())
    first = {network: finished(group)[0] for network, group in both.items() if finished(group)}
    if first:
        picture = replace(condition, network="eql").name
        leave_picture(path.with_name(f"{picture}-generalisation.png"), draw_generalisation(first))
    leave_table(ledger, condition_page(asdict(condition), trials, both))


@contextmanager
def _stages(title: str) -> Iterator[Callable[[LatentProgress], None]]:
    """A line about a search as it goes; without a terminal, one for each of its stages."""
    from rich.console import Console

    console, stages = Console(), [""]

    def glance(now: LatentProgress) -> str:
        law = f", y = {now.best}" if now.best else ""
        return f"{title}: {now.stage}, {now.seconds:.0f} s, variance left {now.error:.2g}{law}"

    if not console.is_terminal:

        def line(now: LatentProgress) -> None:
            if stages[0] != now.stage:
                stages[0] = now.stage
                console.print(glance(now), soft_wrap=True)

        yield line
        return
    with console.status(title) as status:
        yield lambda now: status.update(glance(now))


@contextmanager
def _steps(title: str, steps: int) -> Iterator[Callable[[Record], None]]:
    """A bar with the loss and the equation as it stands; a line now and then where there is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console()
    done: dict[str, int] = {}

    def count(record: Record) -> int:
        done[record.phase] = record.step
        return sum(done.values())

    if not console.is_terminal:

        def line(record: Record) -> None:
            if sum(done.values()) // 1_000 < count(record) // 1_000:
                console.print(f"{title}: {record.phase} {record.step}, {_glance(record)}", soft_wrap=True)

        yield line
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=steps)

        def bar(record: Record) -> None:
            progress.update(task, completed=count(record), description=f"{record.phase}: {_glance(record)}")

        yield bar


def _glance(record: Record) -> str:
    """The loss, and the equation where it is short enough to be read."""
    from eqlearn import Equation, NotFinite
    from eqlearn.paper.mnist.pairs import LATENTS

    loss = f"loss {float(record.loss.min()):.3f}"
    if record.weights_left.dim() == 0 and 0 < int(record.weights_left) <= 12:
        with suppress(NotFinite):  # a look at a network that is still moving
            return f"{loss}, y = {Equation.read(record.model, LATENTS).rounded(3)}"
    left = int(record.weights_left.min())
    return f"{loss}, {left} weights left" if left > 0 else loss
