"""The paper's run times: 20,000 steps of its network with two and with three hidden layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from eqlearn import PRESETS, Phase, train_population
from eqlearn.paper.benchmark import TARGETS
from eqlearn.paper.style import counted, table

STEPS = 20_000
# Seconds of one trial on a GTX 1080 Ti, by hidden layers, as the paper gives them.
PAPER_SECONDS = {2: 37.0, 3: 51.0}


@dataclass(frozen=True)
class Timing:
    """Several trials trained as one tensor program."""

    hidden_layers: int
    trials: int

    @property
    def name(self) -> str:
        return f"{self.hidden_layers} hidden layers, {counted(self.trials, 'trial')}"

    def measure(self, steps: int = STEPS) -> dict[str, Any]:
        """Trains on the last of the paper's ten functions that has two variables; the seconds are those of
        all trials."""
        target = next(t for t in TARGETS if t.name == "x**2+sin(2*pi*y)")
        X, y = target.data(seed=0, noise=0.0)
        schedule = (Phase(name="sparsify", steps=steps, lr=1e-2, penalty=5e-3),)
        preset = replace(PRESETS["paper"], schedule=schedule, hidden_layers=self.hidden_layers)
        trained = train_population(preset, X, y, seeds=range(self.trials))
        what = {"hidden_layers": self.hidden_layers, "together": self.trials, "steps": steps}
        return {**what, "seconds": trained.seconds, "failures": len(trained.failures)}


TIMINGS = tuple(Timing(layers, trials) for layers in PAPER_SECONDS for trials in (1, 20))


def timing_table(ledger: Mapping[str, Any]) -> str:
    """Seconds for 20,000 steps beside the paper's."""
    rows = []
    for trial in ledger["trials"].values():
        layers, together = trial["hidden_layers"], trial["together"]
        scaled = trial["seconds"] * STEPS / trial["steps"]
        ours = (f"{scaled:.1f}", f"{scaled / together:.1f}")
        rows.append((layers, together, *ours, f"{PAPER_SECONDS[layers]:.0f}"))
    heads = ("hidden layers", "trials together", "seconds", "per trial", "paper, one trial on a GTX 1080 Ti")
    return table(heads, rows)
