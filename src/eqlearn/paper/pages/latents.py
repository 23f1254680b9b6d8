"""Laws behind encoders: the table of a ledger that `benchmarks/latent/run.py` wrote."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from eqlearn.paper.rates import by_field
from eqlearn.paper.style import table

LATENTS_TELL = """\
`discover_latent` as it comes: the same settings for all tasks, none of which offers a form; every seed that
was started is counted. A law is right if an affine map of its latents turns it into the true one (of the
signal and the spots: the law with the simplest bend of what is hidden). The error is the part of the target's
variance that is left, beside what a smooth network in the place of the equation left."""


def latents_table(ledger: Mapping[str, Any]) -> str:
    """One row for each task."""
    heads = ("task", "right", "laws", "CPU seconds, median", "most", "error, median", "the network's")
    rows = []
    for task, trials in by_field(ledger, "task").items():
        laws = ", ".join(f"`{law}`" for law in dict.fromkeys(t["law"] for t in trials))
        seconds = [t["cpu_seconds"] for t in trials]
        errors = [f"{median(t[name] for t in trials):.1e}" for name in ("error", "head_error")]
        right = f"{sum(t['right'] for t in trials)} of {len(trials)}"
        rows.append((task, right, laws, f"{median(seconds):.0f}", f"{max(seconds):.0f}", *errors))
    return table(heads, rows)
