"""Writes the page of results on constants that vary, from the JSON files beside it.

    python benchmarks/groups/page.py results/groups

What was not measured is not on the page.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from eqlearn import atomic_write

Trials = list[dict[str, Any]]
RIGHT = ("right", "structure", "sharing")
# The mean squared error of coefficients that SGTR reaches (Rudy et al. 2019), by field, clean and in noise;
# that of KS in noise is at 0.01 %. For our own fields and for advection-diffusion there is none.
SGTR = {
    ("burgers", 0.0): "4e-7",
    ("burgers", 0.01): "3e-5",
    ("ks", 0.0): "7e-6",
    ("ks", 0.01): "6e-3 (in .01 %)",
}
HEAD = """# Constants that vary: what was measured

Every trial that was started is in the JSON files of this folder, with its seed. This page is made from
them by `python benchmarks/groups/page.py results/groups`; the commands stand at the head of each
benchmark, and ran under `benchmarks/processor_clock.py`: seconds are those of the processor, on a
machine with other work to do. Trials that a file has are kept when it is continued, so that some may be
of an earlier version.
"""


def main() -> None:
    folder = Path(sys.argv[1])
    atomic_write(folder / "README.md", page(folder).encode())


def page(folder: Path) -> str:
    """The page of the files that the folder has."""
    parts = {
        "class_regression": class_regression, "varying": varying, "parametric": parametric,
        "pictures": pictures, "many": many,
    }  # fmt: skip
    files = [(folder / f"{name}.json", part) for name, part in parts.items()]
    sections = [part(json.loads(path.read_text())["trials"]) for path, part in files if path.exists()]
    return "\n".join([HEAD, *sections])


def section(title: str, words: str, heads: list[str], rows: list[list[Any]]) -> str:
    """A heading, what the figures are, and a table."""
    lines = [heads, ["---"] * len(heads), *rows]
    table = "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
    return f"## {title}\n\n{words}\n\n{table}\n"


def counted_right(trials: Trials, key: str = "right") -> str:
    """How many of so many."""
    return f"{sum(t[key] for t in trials)} of {len(trials)}"


def by(trials: Trials, *keys: str) -> dict[Any, Trials]:
    """The trials in groups, in the order in which they were first seen."""
    found: dict[Any, Trials] = {}
    for trial in trials:
        found.setdefault(tuple(trial[k] for k in keys), []).append(trial)
    return found


def seconds(trials: Trials) -> str:
    """The median time."""
    times = sorted(t["cpu_seconds"] for t in trials)
    return f"{times[len(times) // 2]:.3g}"


def class_regression(trials: Trials) -> str:
    rows = [
        [f"`{one[0]['formula']}`", *(counted_right(one, key) for key in RIGHT),
         f"`{one[0]['equation']}`", seconds(one)]
        for one in by(trials, "law").values()
    ]  # fmt: skip
    rows.append(["all", *(counted_right(trials, key) for key in RIGHT), "", seconds(trials)])
    words = (
        "Laws with 20 groups of 30 rows and 1 % noise; which constants are shared is not told. Right is "
        "a law whose structure and sharing both are, with the constants of the first, the middle and "
        "the last group within 5 %, and values off by less than the noise of a row."
    )
    heads = ["law", "right", "structure", "sharing", "found, first draw", "median seconds"]
    return section("Ten laws of physics", words, heads, rows)


def varying(trials: Trials) -> str:
    rows = [
        [f"`{law}`", *(counted_right(noisy.get((noise,), [])) for noise in (0.0, 0.05)),
         *(max((t["varying"] for t in noisy.get((noise,), [])), default="") for noise in (0.0, 0.05)),
         f"`{one[0]['equation']}`", seconds(one)]
        for (law,), one in by(trials, "law").items()
        for noisy in [by(one, "noise")]
    ]  # fmt: skip
    words = (
        "The laws of Zhang, Kim et al. (2022), 24 values of t with 40 rows each, trained on x in [-3, "
        "3] and tested on [-5, 5]; theirs are the best of 40 trials, these are all seeds. Right is a "
        "law whose values on the test range are off by no more than the noise (1e-6 in clean data), and "
        "that is one formula in t and x for the first two."
    )
    heads = [
        "law",
        "clean",
        "5 % noise",
        "left as tables, clean",
        "in noise",
        "found, first seed",
        "median seconds",
    ]
    return section("Laws whose constants vary with t", words, heads, rows)


def parametric(trials: Trials) -> str:
    rows = [
        [field, one[0]["varies"], f"{100 * noise:g} %", counted_right(one, "terms_right"),
         f"{max(t['error'] for t in one):.1e}", SGTR.get((field, noise), ""), f"`{one[0]['equation']}`",
         seconds(one)]
        for (field, noise), one in by(trials, "field", "noise").items()
    ]  # fmt: skip
    words = (
        "The mean squared error is of all coefficients along the axis, that of the worst seed; beside "
        "it that of SGTR (Rudy et al. 2019), whose data are of the same equations. `c1[x]` is a spline."
    )
    heads = ["field", "along", "noise", "terms right", "error", "SGTR", "found, first seed", "median seconds"]
    return section("Equations of fields whose coefficients vary", words, heads, rows)


def pictures(trials: Trials) -> str:
    rows = [
        [law, counted_right(one), f"`{one[0]['equation']}`", seconds(one)]
        for (law,), one in by(trials, "law").items()
    ]
    words = (
        "Two points in pictures of 64 pixels, one encoder for both, and the time; HEQL's is the best of "
        "20 trials. Right is the law up to the unit and the zero of x."
    )
    return section(
        "A spring that is only seen", words, ["law", "right", "found, first seed", "median seconds"], rows
    )


def many(trials: Trials) -> str:
    rows = [
        [f"{t['groups']:,}", f"{t['rows']:,}", f"`{t['equation']}`", t["cpu_seconds"], t["peak_megabytes"]]
        for t in trials
    ]
    words = "One law, 100 rows a group, 1 % noise; each number of groups in a process of its own."
    return section("Many groups", words, ["groups", "rows", "found", "seconds", "peak megabytes"], rows)


if __name__ == "__main__":
    main()
