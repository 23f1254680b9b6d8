"""The paper on one page: its tables and figures in turn, each beside ours, from the ledgers of a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from eqlearn.paper.ablation import ablation_table
from eqlearn.paper.benchmark import TARGETS
from eqlearn.paper.dynamics.presets import find_preset
from eqlearn.paper.ledger import read_ledger
from eqlearn.paper.pages.dynamics import dynamics_table
from eqlearn.paper.pages.headlines import PENALTIES, Ledgers, headlines
from eqlearn.paper.pages.latents import LATENTS_TELL, latents_table
from eqlearn.paper.pages.mnist import condition_page, finished
from eqlearn.paper.pages.recipes import RECIPES, dynamics_beside, mnist_beside
from eqlearn.paper.rates import by_field, rate, rates_table
from eqlearn.paper.style import counted, table
from eqlearn.paper.timing import timing_table

TITLES = {
    "modern": "ours",
    "networks": "ours, networks alone",
    "paper": "the paper's recipe, run here",
    "released": "the released code's, run here",
}
LIGHTER = "the released code's with λ = 5e-3, run here"
AUTHORS = (TITLES["paper"], TITLES["released"], LIGHTER)
# Other conditions of ours: the ledger's place, and what it is.
CONDITIONS = {
    "benchmark/modern-half": "20 seeds",
    "benchmark/long/modern-half": "200 seeds",
    "benchmark/modern-half-sin1": "sin(g) for sin(2πg)",
    "benchmark/modern-half-noise0.1": "10 % noise",
}
MNIST = {
    "modern": "The sum of two digits",
    "modern-relu": "The sum of two digits, a ReLU network for the equation",
    "modern-below-15": "Trained on sums below 15 only",
    "modern-axb": "The product of two digits",
    "modern-a-b": "The difference of two digits",
    "paper-half": "The paper's recipe",
    "released-half": "The released code's recipe",
    "modern-digits": "The sum of two digits, 8 x 8 pixels (a quick look)",
    "paper-half-digits": "The paper's recipe, 8 x 8 pixels",
}
PEERS = "peers/peers"
SYSTEMS = {"kinematics": "Kinematics", "oscillator": "Harmonic oscillator"}
# What the page needs to be whole.
WHOLE = (
    *(f"benchmark/{preset}-{penalty}" for preset in TITLES for penalty in PENALTIES),
    *CONDITIONS,
    "timing/timing",
    *(f"mnist/modern{name}" for name in ("", "-axb", "-a-b", "-below-15", "-below-15-relu")),
    *(
        f"mnist/{recipe}-half{name}"
        for recipe in ("paper", "released")
        for name in ("", "-relu", "-below-15", "-below-15-relu")
    ),
    *(f"{system}/{recipe}" for system in SYSTEMS for recipe in RECIPES),
    PEERS,
)
# What `eqlearn reproduce all` leaves out, for it takes too long or needs other software.
BY_HAND = {
    "benchmark/long/modern-half": "eqlearn reproduce benchmark --seeds 200 --out OUT/benchmark/long",
    PEERS: "make peers",
}


INTRODUCTION = """\
Kim et al., *Integration of Neural Network-Based Symbolic Regression in Deep Learning for Scientific
Discovery* (2019): every table, and every figure that shows a result, beside ours. `eqlearn reproduce all`
writes such a page from the JSON files in this folder. They hold every trial that was started, with its seed,
the command, versions and threads; the last section lists them. Seconds were in part taken while the machine
had other work to do, and are then too large.

z is an encoder's latent, psi the digit and a or w2 the parameter that it stands for; the *canonical gauge* of
z is that in which the equations are simplest, chosen without the truth. *Far out* is 25 steps of the
kinematics and 500 of the oscillator; "at least" is said of the worst seed. A *ReLU twin* is a ReLU network in
the place of the equation. *Distillation*: the encoder is taught the latents that the exact law wants."""

COUNTED = """\
Counted are equations that are *identical* to the truth when their constants may move by 0.1 %, judged by a
program on a box four times as wide as the data, of all seeds started; in brackets the exact 95 % interval.
Every seed has its own data. The authors counted by eye and let small terms pass: so that the columns of the
two recipes of theirs, trained here by gradient from one random start a seed, can be compared with their
rates, these columns let small terms pass, too (terms below 2 % of the range dropped, constants within 5 %),
and beside each is one *as an eye* might count: terms below 10 % dropped, constants within 20 %, which is
our choice. As in their scripts, a trial whose loss is no longer finite begins again; none in these tables
did.
*Networks alone* is our search without its rounds of linear algebra."""

RATES_DIFFER = """\
Ours differ from the paper's because a seed is not one start: exact linear algebra comes first, then many
small networks, and what is left is refitted in double precision. The paper's recipe, followed to the letter
(2,000 steps at a rate of 0.01 before weights are frozen), mostly ends at approximations such as
`2.53*sin(0.405*x)` for `x`, which the penalty likes for their small weights; the released code trains for
12,000 steps before freezing, the first of them at a rate of 0.1, and it is this recipe whose rates resemble
those printed with L0.5. Counting as an eye might hardly changes the rows of that recipe with L0.5.

With L0 the script's λ of 1e-2 can't give what is printed for `x*y/2+z/2`: with all gates open that are
needed, the right equation costs 5 λ = .050 and the one without its product 2 λ + 1/36 = .0478, so that the
objective prefers the wrong one; the two are equal at λ = 1/108. The authors' other script, for PyTorch, has
λ = 5e-3, and with it the released recipe comes near the printed rates, counted as an eye might. Preset
`paper` has this λ, too; it has the paper's units, not the script's, and gates in the read-out, and stays
below."""

ONE_SET_TELLS = """\
The authors' scripts draw one data set for all trials of a function. These are the three functions whose
rates differ most from those printed, with such sets: what the set makes of a rate is the spread along a
row. It does not explain the printed rates of the sigmoid and of `x*y/2+z/2`; nor do trials that began
again, of which there is none, nor an eye. What does is not known: another state of the scripts, or another
way to count."""

CONDITIONS_TELL = """\
The paper says that 10 % of noise still let it find the right equations, and that `(x+y*z)**3` was found
with three hidden layers. Its sine unit sin(2πg) holds the frequency of the answer; sin(g) does not. In
noise, constants may be off by three of their own standard errors. A first run of these same noisy
seeds led us to mend how an equation is chosen, so they say a little less than fresh ones would."""

MNIST_DIFFERS = """\
Ours differ from the paper's because the law is searched for, not trained: encoders are trained with a smooth
network in the equation's place, all small structures of the paper's functions are compared with the latent
free to bend, and the best is trained on with the encoder, large errors counting by their size, not their
square, so that the few digits nobody can read do not pull at the rest. Each batch makes many pairs of few
images, which are turned, stretched and moved a little whenever they are drawn. There is no penalty. The
equation is in the canonical gauge of the latent, in which it is shortest. A ReLU network has the same
encoder, batches and number of steps."""

KINEMATICS_DIFFERS = """\
All three find a latent that is the acceleration to five digits. What keeps the paper's and the released
recipe from the right equations are small terms that outlive the pruning of weights, such as a sigmoid that
hardly moves. Five steps on, where training ends, most of these equations are as near as the ReLU networks;
far out their small terms grow, and some explode. By an eye as forgiving as the equations that the paper
prints need it (their coefficients are off by 7 %), some seeds are right. Ours compares small structures, so
that there are no such terms, and refits what is left in double precision."""

OSCILLATOR_DIFFERS = """\
Of the authors' two recipes not all five seeds have been run, so that these columns say little yet: what ended
did not come to the law. With the paper's recipe an encoder came to give the same latent for all series; with
the released one the equations are sums of exponentials, which follow the motion for a while. Ours compares
small structures through the whole rollout, so that no term is there that the motion does not need."""

MNIST_NOT_RUN = """\
The authors' recipes have been run on the 8 x 8 digits only (below): on MNIST a seed is half an hour of a core
and more. `eqlearn reproduce mnist --preset paper --seeds 3` may be stopped at any time, also by a kill, and
goes on in the middle of a training."""

DYNAMICS_DIFFER = {"kinematics": KINEMATICS_DIFFERS, "oscillator": OSCILLATOR_DIFFERS}

TIMES_TELL = """\
20,000 steps of the paper's network by its own gradient training, on one core. A step is written out on
arrays; of so small a network it is still mostly overhead, which twenty trials in one program share."""

PEERS_TELL = """\
Same data, same machine, same run, equal CPU seconds on one thread, every trial counted; each system is told
the same functions. The formulas of physics were written down for this comparison; the search was developed
while looking at the other two sets. The budget is short for pykan, which is not made for speed: mostly it had
no formula yet. gplearn and pyoperon take less memory. Rules and settings: `benchmarks/peers/README.md`; all
figures, also where a peer wins: [peers/peers.md](peers/peers.md)."""

SUITES_TELL = """\
Default settings, one setting for all, every seed counted; a trial counts if its equation is identical to
the formula, as above. All are tables of exact values drawn from boxes; also of the differential equations of
Strogatz (7 systems) and ODEBench (39), of each of which one right-hand side was taken, not trajectories. Of
Feynman's formulas there are 50. The search was developed while looking at these, so they say less about
formulas that nobody has tried yet."""

ABLATION_TELL = """\
The search with each strategy off, one at a time, and without its networks. A formula is lost if it is found
by the whole search alone, and gained if it is found without the strategy alone; fits that are wrong both
times are compared by their error on fresh rows. The budget is counted in networks, so results do not depend
on the machine; a strategy that the whole search never came to is not switched off again. CPU seconds of the
whole search, which comes first, include what it leaves in caches for the others. Formulas drawn at random
have the seeds of {seeds} (`eqlearn.paper.random_formulas`)."""


# Results with pages of their own.
OTHERS = ("fields", "film", "groups", "dynamics", "units", "noise", "scale")


def read_ledgers(folder: Path) -> dict[str, dict[str, Any]]:
    """All ledgers of a folder of results, by their place in it, without the journals of trials under way."""
    left_out = {"models", "journal.json", *OTHERS}
    paths = sorted(p for p in folder.rglob("*.json") if not left_out & set(p.relative_to(folder).parts))
    return {path.relative_to(folder).with_suffix("").as_posix(): read_ledger(path) for path in paths}


def paper_page(folder: Path) -> str:
    """The page in Markdown; pictures are named by their place in the folder."""
    ledgers = read_ledgers(folder)
    shown = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.png")}
    parts = [
        "# The paper on one page",
        INTRODUCTION,
        "## In short",
        headlines(ledgers),
        *_missing(ledgers),
        *_regulariser(shown),
        *_benchmark(ledgers, shown),
        *_times(ledgers),
        *_mnist(ledgers, shown),
        *(part for name in SYSTEMS for part in _dynamics(name, ledgers, shown)),
        *_latents(ledgers),
        *_suites(ledgers),
        *_ablation(ledgers),
        *_peers(ledgers, shown),
        "## The files",
        _files(ledgers),
    ]
    return "\n\n".join(parts) + "\n"


def _missing(ledgers: Ledgers) -> list[str]:
    absent = [
        f"`{name}`" + (f" (`{BY_HAND[name]}`)" if name in BY_HAND else "")
        for name in dict.fromkeys(WHOLE)
        if name not in ledgers
    ]
    return [f"**Not run yet**, and so not on this page: {', '.join(absent)}."] if absent else []


def _picture(name: str, says: str, shown: set[str]) -> list[str]:
    return [f"![{says}]({name}.png)"] if name in shown else []


def _regulariser(shown: set[str]) -> list[str]:
    if "regulariser" not in shown:
        return []
    text = (
        "The paper's figure of its regulariser, drawn from the code that trains; a = 0.1, as there (it "
        "trains with 0.01)."
    )
    return ["## The regulariser", text, *_picture("regulariser", "L0.5, smoothed L0.5, their slopes", shown)]


def _benchmark(ledgers: Ledgers, shown: set[str]) -> Iterator[str]:
    """The paper's table of success rates, for both penalties, then what it says in its text."""
    yield "## Benchmark: success rates"
    yield COUNTED
    for column, (penalty, label) in enumerate(PENALTIES.items()):
        paper = {t.name: t.paper[column] if t.paper else None for t in TARGETS}
        columns = {
            title: ledgers[f"benchmark/{preset}-{penalty}"]
            for preset, title in TITLES.items()
            if f"benchmark/{preset}-{penalty}" in ledgers
        }
        if (lighter := f"benchmark/released-{penalty}-lambda0.005") in ledgers:
            columns[LIGHTER] = ledgers[lighter]
        if columns:
            yield f"### {label}"
            yield rates_table(columns, paper, as_the_authors=AUTHORS)
            yield from _picture(f"benchmark/modern-{penalty}", f"Success rates with {label}", shown)
    yield RATES_DIFFER
    shared = {n: ledger for n, ledger in ledgers.items() if n.startswith("benchmark/one-set/")}
    if shared:
        yield "### One data set for all trials (L0.5, the released code's recipe)"
        sets = {"set " + n.rpartition("set")[2]: ledger for n, ledger in shared.items()}
        paper = {t.name: t.paper[0] for t in TARGETS if t.paper}
        yield rates_table(sets, paper, as_the_authors=tuple(sets), eye=False)
        yield ONE_SET_TELLS
    others = {title: ledgers[name] for name, title in CONDITIONS.items() if name in ledgers}
    if len(others) > 1:
        yield "### More seeds, another sine, noise (L0.5, ours)"
        yield rates_table(others)
        yield CONDITIONS_TELL


def _times(ledgers: Ledgers) -> Iterator[str]:
    name = next((n for n in ("timing/timing", "timing/timing-quick") if n in ledgers), None)
    if name is not None:
        yield "## Run times"
        yield timing_table(ledgers[name])
        yield TIMES_TELL


def _mnist(ledgers: Ledgers, shown: set[str]) -> Iterator[str]:
    names = {f"mnist/{name}": title for name, title in MNIST.items() if f"mnist/{name}" in ledgers}
    if names:
        yield "## MNIST arithmetic"
        yield mnist_beside(ledgers)
        if "mnist/paper-half" not in ledgers:
            yield MNIST_NOT_RUN
        yield MNIST_DIFFERS
    for name, title in names.items():
        condition, trials = ledgers[name]["settings"], list(ledgers[name]["trials"].values())
        both = {
            network: list(ledgers[other]["trials"].values())
            for network, other in (("eql", name), ("relu", f"{name}-relu"))
            if condition["below"] is not None and other in ledgers
        }
        yield f"### {title}"
        yield condition_page(condition, trials, both)
        yield from _picture(f"{name}-generalisation", "Sums never seen in training", shown)
        for trial in finished(trials)[:1]:
            yield from _picture(f"{name}-seed-{trial['seed']}", f"{title}: latents and predictions", shown)
        yield from _picture(f"{name}-latents", f"{title}: all seeds together", shown)


def _dynamics(system: str, ledgers: Ledgers, shown: set[str]) -> Iterator[str]:
    recipes = {"modern": TITLES["modern"]} | {
        f"{preset}-{penalty}": f"{label}, {title}"
        for preset, title in TITLES.items()
        for penalty, label in PENALTIES.items()
        if preset != "modern"
    }
    shown_ones = [
        (recipe, short)
        for recipe in recipes
        for short in ("", "-quick")
        if f"{system}/{recipe}{short}" in ledgers
    ]
    if shown_ones:
        yield f"## {SYSTEMS[system]}"
        yield dynamics_beside(system, ledgers)
        yield DYNAMICS_DIFFER[system]
    for recipe, short in shown_ones:
        name, heading = f"{system}/{recipe}{short}", recipes[recipe]
        yield f"### {heading[0].upper()}{heading[1:]}{', a quick look' if short else ''}"
        yield dynamics_table(ledgers[name], find_preset(system, recipe).system)
        yield from _picture(name, f"{SYSTEMS[system]}: latent, errors, one series", shown)


def _latents(ledgers: Ledgers) -> Iterator[str]:
    """Not in the paper: laws behind encoders of other kinds, found by one call."""
    names = [name for name in ("latent/default", "latent/paper") if name in ledgers]
    if names:
        yield "## Beyond the paper: a law behind any encoder"
        yield LATENTS_TELL
    for name in names:
        yield f"### {ledgers[name]['settings']['primitives'].capitalize()} primitives"
        yield latents_table(ledgers[name])


def _suites(ledgers: Ledgers) -> Iterator[str]:
    """Not in the paper: formulas of the literature, default settings."""
    budgets: dict[float, dict[str, Mapping[str, Any]]] = {}
    for name, ledger in ledgers.items():
        if name.startswith("suites/"):
            budgets.setdefault(ledger["settings"]["seconds"], {})[ledger["settings"]["suite"]] = ledger
    if not budgets:
        return
    yield "## Beyond the paper: formulas of the literature"
    yield SUITES_TELL
    seconds = sorted(budgets)
    rows = []
    for suite in sorted({suite for group in budgets.values() for suite in group}):
        ran = [budgets[s].get(suite) for s in seconds]
        rows.append(
            [suite, *("" if ledger is None else rate(list(ledger["trials"].values())) for ledger in ran)]
        )
    yield table(["suite", *(f"{s:g} s" for s in seconds)], rows)


def _ablation(ledgers: Ledgers) -> Iterator[str]:
    """Not in the paper: what each strategy of the search is for."""
    for name, ledger in ledgers.items():
        if name.startswith("ablation/"):
            seeds = ledger["settings"]["seeds"]
            yield f"## Beyond the paper: each strategy off, formulas of {seeds}"
            yield ABLATION_TELL.format(seeds=seeds)
            yield ablation_table(ledger)


def _peers(ledgers: Ledgers, shown: set[str]) -> Iterator[str]:
    """Not in the paper: what users might pick instead."""
    if PEERS not in ledgers:
        return
    yield f"## Beyond the paper: eqlearn and its peers, {ledgers[PEERS]['settings']['seconds']:g} CPU seconds"
    yield PEERS_TELL
    systems = by_field(ledgers[PEERS], "system")
    suites = list(by_field(ledgers[PEERS], "suite"))
    rows = [
        [system, *(rate([t for t in trials if t["suite"] == suite]) for suite in suites), rate(trials)]
        for system, trials in systems.items()
    ]
    yield table(["system", *suites, "all"], rows)
    yield from _picture(PEERS, "Recovery against CPU seconds", shown)


def _files(ledgers: Ledgers) -> str:
    rows = []
    for name, ledger in ledgers.items():
        made = ledger["environment"]
        versions = f"eqlearn {made['eqlearn']}, torch {made['packages']['torch']}"
        versions += f", {counted(made['threads'], 'thread')}, {made['started'][:10]}"
        link = f"[{name}.json]({name}.json)"
        rows.append((link, len(ledger["trials"]), f"`{ledger['command']}`", versions))
    return table(("file", "trials", "command", "made with"), rows)
