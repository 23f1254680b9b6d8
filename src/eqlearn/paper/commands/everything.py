"""`eqlearn reproduce all`: the four experiments one after the other, and the paper's page about them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from eqlearn.paper.commands.benchmark import Search, Sine, benchmark
from eqlearn.paper.commands.dynamics import kinematics, oscillator
from eqlearn.paper.commands.mnist import Network, mnist
from eqlearn.paper.commands.options import PenaltyName, PresetName, ResultsOption, leave_picture
from eqlearn.paper.commands.timing import timing


def everything(
    quick: Annotated[
        bool, typer.Option("--quick", help="A look at each, without any download: some minutes, not hours.")
    ] = False,
    page: Annotated[
        bool, typer.Option("--page", help="Run nothing: write the page anew from what is there.")
    ] = False,
    data_dir: Annotated[
        Path | None, typer.Option(help="A folder with the four files of MNIST; else EQLEARN_DATA.")
    ] = None,
    out: ResultsOption = Path("runs/paper"),
) -> None:
    """All experiments, and the paper on one page. Benchmark, MNIST arithmetic, kinematics and oscillator.

    What is there already is not run again, so a killed run goes on.
    """
    if quick and not page:
        _look(out)
    elif not page:
        _whole(out, data_dir)
    _leave_page(out)


def _look(out: Path) -> None:
    benchmark(quick=True, out=out / "benchmark")
    timing(quick=True, out=out / "timing")
    mnist(quick=True, out=out / "mnist")
    kinematics(quick=True, out=out / "kinematics")
    oscillator(quick=True, out=out / "oscillator")


def _whole(out: Path, data_dir: Path | None) -> None:
    from eqlearn.paper.mnist.digits import load_digits

    load_digits("mnist", data_dir)  # if there is no MNIST, better to know before hours of work
    for preset in Search:
        for penalty in PenaltyName:
            benchmark(preset=preset, penalty=penalty, out=out / "benchmark")
    benchmark(sine=Sine.one, out=out / "benchmark")
    benchmark(noise=0.1, out=out / "benchmark")
    timing(out=out / "timing")
    for recipe in PresetName:
        kinematics(preset=recipe, out=out / "kinematics")
        oscillator(preset=recipe, out=out / "oscillator")
    mnist(seeds=5, data_dir=data_dir, out=out / "mnist")
    for operation in ("a*b", "a-b"):
        mnist(operation=operation, seeds=5, data_dir=data_dir, out=out / "mnist")
    for network in Network:
        mnist(below=15, network=network, seeds=3, data_dir=data_dir, out=out / "mnist")
    for recipe in (PresetName.paper, PresetName.released):
        for network in Network:
            for bound in (None, 15):
                asked: dict[str, Any] = {"preset": recipe, "below": bound, "network": network}
                mnist(**asked, seeds=3, data_dir=data_dir, out=out / "mnist")


def _leave_page(out: Path) -> None:
    """The page as Markdown and as one HTML file."""
    from eqlearn import InvalidArgument, atomic_write
    from eqlearn.paper.pages.standalone import standalone_page
    from eqlearn.paper.pages.whole import paper_page, read_ledgers
    from eqlearn.paper.regulariser import draw_regulariser

    if not read_ledgers(out):
        raise InvalidArgument(f"{out} holds no results yet; leave out `--page` to run the experiments")
    leave_picture(out / "regulariser.png", draw_regulariser())
    text = paper_page(out)
    atomic_write(out / "README.md", text.encode())
    atomic_write(out / "index.html", standalone_page(text, out).encode())
    typer.echo(f"\n{out / 'README.md'}\n{out / 'index.html'}")
