"""`eqlearn reproduce`: the paper's experiments from the command line, resumable, into JSON and Markdown."""

import typer

from eqlearn.paper.commands.ablation import ablation
from eqlearn.paper.commands.benchmark import benchmark, suite
from eqlearn.paper.commands.dynamics import kinematics, oscillator
from eqlearn.paper.commands.everything import everything
from eqlearn.paper.commands.mnist import mnist
from eqlearn.paper.commands.timing import timing

app = typer.Typer(help="Repeats the paper's experiments.", no_args_is_help=True, rich_markup_mode=None)
app.command(epilog="Example: eqlearn reproduce benchmark --penalty l0 --seeds 20 --out results/benchmark")(
    benchmark
)
app.command(epilog="Example: eqlearn reproduce suite nguyen --seconds 10 --seeds 3 --out results/suites")(
    suite
)
app.command(epilog="Example: eqlearn reproduce timing --quick")(timing)
app.command(epilog="Example: eqlearn reproduce ablation --quick")(ablation)
app.command(epilog="Example: eqlearn reproduce mnist --seeds 5 --out results/mnist")(mnist)
app.command(epilog="Example: eqlearn reproduce kinematics --out results/kinematics")(kinematics)
app.command(epilog="Example: eqlearn reproduce oscillator --out results/oscillator")(oscillator)
app.command("all", epilog="Example: eqlearn reproduce all --quick --out runs/paper")(everything)
