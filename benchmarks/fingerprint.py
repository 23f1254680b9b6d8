"""Fifty-odd seeds over tables, dynamics and images, bit for bit: what a change of the house must not change.

`python benchmarks/fingerprint.py --out before.json` runs them; `--compare before.json` runs them again and
names every case that says something else (formula, rounds, restarts), or in which a digit differs (constants,
standard errors, errors, the whole front); with `--bits` a digit is enough to fail. Budgets are counted in
restarts and steps, never in seconds, and only public names are used, so that the same file serves two
versions of the package: `PYTHONPATH=/path/to/other/src python benchmarks/fingerprint.py ...`.

`fingerprint-0.1.0.json` is of version 0.1.0. When the house was moved (commit 863d0c1), and when criteria and
settings came (81489d3), no bit had changed. Since then one solver has replaced four, and networks are drawn
by their own count: last digits differ, and networks alone start elsewhere.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import eqlearn
from eqlearn import (
    EQL,
    Equation,
    ImageArithmetic,
    Phase,
    Settings,
    discover,
    discover_dynamics,
    discover_hidden,
    polish,
    train,
)

Case = tuple[str, Callable[[], list[Any]]]


def bits(value: Any) -> Any:
    """Floats as hexadecimal, so that nothing is rounded on the way to a file."""
    if isinstance(value, (float, np.floating)):
        return float(value).hex()
    if isinstance(value, np.ndarray):
        return [bits(v) for v in value.tolist()]
    if isinstance(value, (list, tuple)):
        return [bits(v) for v in value]
    return value


def of_search(found: Any) -> list[Any]:
    """Everything a search says that does not depend on the clock."""
    return [
        [found.restarts, found.rounds, found.exact_restarts, found.ended, str(found.best)],
        *(
            [
                [str(e.expr) for e in c.equations],
                bits([e.constants for e in c.equations]),
                bits([[(k.value, k.standard_error) for k in each] for each in c.constants]),
                bits([c.training_error, c.description_length, c.validation_error, c.prediction_length]),
            ]
            for c in found.front
        ),
    ]


TABLES: dict[str, tuple[int, Callable[..., np.ndarray], float]] = {
    "linear": (2, lambda a, b: 2 * a + 3 * b - 1, 0.0),
    "product": (3, lambda a, b, c: a * b / c + 0.5, 0.0),
    "wave": (2, lambda a, b: a**2 + np.sin(2 * np.pi * b), 0.0),
    "gauss": (1, lambda a: np.exp(-((a - 1) ** 2)), 0.0),
    "root": (2, lambda a, b: np.sqrt(a**2 + 2 * b), 0.0),
    "rational": (2, lambda a, b: (a - b) / (1 + a * b), 0.0),
    "deep": (2, lambda a, b: np.exp(np.sin(a * b) + 0.3 * b), 0.0),
    "noisy sum": (2, lambda a, b: 1.5 * a**2 - 0.7 * b, 0.05),
    "noisy wave": (2, lambda a, b: np.cos(3 * a) * b, 0.05),
    "noise alone": (2, lambda a, b: 0 * a * b, 1.0),
}


def table(name: str, seed: int) -> list[Any]:
    columns, formula, noise = TABLES[name]
    rng = np.random.default_rng([seed, 11])
    X = rng.uniform(0.5, 2.0, (120, columns))
    y = formula(*X.T)
    y = y + noise * (y.std() or 1.0) * rng.normal(size=len(y))
    return of_search(discover(X, y, restarts=40, seed=seed))


def networks_alone(seed: int) -> list[Any]:
    """No strategy: what is found is drawn, made sparse and grown."""
    rng = np.random.default_rng([seed, 15])
    X = rng.uniform(-1, 1, (80, 2))
    y = X[:, 0] ** 2 + np.sin(2 * X[:, 1]) + 0.02 * rng.normal(size=len(X))
    return of_search(discover(X, y, restarts=60, seed=seed, settings=Settings(sketches=())))


def two_targets(seed: int) -> list[Any]:
    rng = np.random.default_rng([seed, 12])
    X = rng.uniform(-1, 1, (80, 2))
    y = np.column_stack([X[:, 0] * X[:, 1], X[:, 0] ** 2 - X[:, 1]])
    return of_search(discover(X, y, restarts=20, seed=seed, penalty="l0"))


def moved(rate: Callable[[np.ndarray], np.ndarray], start: list[float], steps: int, dt: float) -> np.ndarray:
    """The motion by the classical Runge-Kutta method, ten steps for each that is kept."""
    at, out, h = np.array(start), [np.array(start)], dt / 10
    for _ in range(steps):
        for _ in range(10):
            a = rate(at)
            b = rate(at + h / 2 * a)
            c = rate(at + h / 2 * b)
            at = at + h / 6 * (a + 2 * b + 2 * c + rate(at + h * c))
        out.append(at)
    return np.array(out)


def ode(seed: int, noise: float) -> list[Any]:
    rng = np.random.default_rng([seed, 13])
    series = [
        moved(
            lambda s: np.array([1.1 * s[0] - 0.4 * s[0] * s[1], 0.1 * s[0] * s[1] - 0.4 * s[1]]),
            start,
            60,
            0.1,
        )
        for start in rng.uniform(1, 4, (2, 2)).tolist()
    ]
    series = [one + noise * one.std(axis=0) * rng.normal(size=one.shape) for one in series]
    found = discover_dynamics(series, dt=0.1, names=["u", "v"], restarts=10, seed=seed)
    return [*of_search(found.found), bits(found.noise), found.horizon]


def iterated(seed: int) -> list[Any]:
    x = [0.2 + 0.1 * seed]
    for _ in range(60):
        x.append(3.7 * x[-1] * (1 - x[-1]))
    found = discover_dynamics(np.array(x)[:, None], "map", names=["x"], restarts=10, seed=seed)
    return [*of_search(found.found), bits(found.noise)]


def hidden(seed: int) -> list[Any]:
    rng = np.random.default_rng([seed, 14])
    series = [
        moved(lambda s, k=k: np.array([s[1], -k * s[0] - 0.2 * s[1]]), [1.0, 0.0], 40, 0.1)
        for k in rng.uniform(1, 3, 6)
    ]
    found = discover_hidden(series, latents=1, dt=0.1, names=["x", "v"], restarts=6, seed=seed)
    return [*of_search(found.found), bits(found.latents), bits(found.latent_errors)]


class SumOfPairs(nn.Module):
    """Random pairs of images and the sum of what they show."""

    def __init__(self, images: Tensor, labels: Tensor, seed: int) -> None:
        super().__init__()
        self.images, self.labels = images, labels
        self.generator = torch.Generator().manual_seed(seed)

    def forward(self, model: ImageArithmetic, phase: Phase) -> Tensor:
        rows = torch.randint(len(self.labels), (2, 64), generator=self.generator)
        target = self.labels[rows].sum(dim=0)
        return (model(self.images[rows[0]], self.images[rows[1]]) - target).square().mean()


def images(seed: int, units: str) -> list[Any]:
    from sklearn.datasets import load_digits

    digits = load_digits()
    pictures = torch.tensor(digits.images, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target, dtype=torch.float32)
    torch.manual_seed(seed)
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, 20), nn.Tanh(), nn.Linear(20, 1))
    model = ImageArithmetic(encoder, EQL(2, 1, units, hidden_layers=1, seed=seed))
    schedule = (
        Phase(name="sparsify", steps=80, lr=3e-3, penalty=0.05, prune_below=0.01),
        Phase(name="fine-tune", steps=40, lr=3e-3),
    )
    losses = [
        float(r.loss) for r in train(model, SumOfPairs(pictures, labels, seed), schedule, record_every=20)
    ]
    with torch.no_grad():
        z = encoder(pictures[:200]).double().numpy().reshape(100, 2)
        total = labels[:200].reshape(100, 2).sum(dim=1).double().numpy()
    equation = Equation.read(model.eval(), ["z_1", "z_2"])
    polished = polish(model.equation.double(), z, (total - 9) / 9, steps=20)
    exact = Equation.read(polished.network, ["z_1", "z_2"])
    errors = [bits(e.numpy()) for e in polished.standard_errors]
    return [bits(losses), *([str(e.expr), bits(e.constants)] for e in (equation, exact)), errors]


def cases() -> Iterator[Case]:
    """Fifty-three of them: thirty-five of tables, ten of dynamics, eight of images."""
    for name in TABLES:
        for seed in range(3):
            yield f"table: {name}, seed {seed}", lambda n=name, s=seed: table(n, s)  # type: ignore[misc]
    for seed in range(3):
        yield f"table: networks alone, seed {seed}", lambda s=seed: networks_alone(s)  # type: ignore[misc]
    for seed in range(2):
        yield f"table: two targets, seed {seed}", lambda s=seed: two_targets(s)  # type: ignore[misc]
    for seed in range(3):
        yield f"dynamics: ODE, seed {seed}", lambda s=seed: ode(s, 0.0)  # type: ignore[misc]
        yield f"dynamics: noisy ODE, seed {seed}", lambda s=seed: ode(s, 0.01)  # type: ignore[misc]
    for seed in range(2):
        yield f"dynamics: map, seed {seed}", lambda s=seed: iterated(s)  # type: ignore[misc]
        yield f"dynamics: hidden parameter, seed {seed}", lambda s=seed: hidden(s)  # type: ignore[misc]
    for seed in range(4):
        for units in ("one id*2", "id*2 square mul"):
            yield f"images: {units}, seed {seed}", lambda s=seed, u=units: images(s, u)  # type: ignore[misc]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the fingerprints here")
    parser.add_argument("--compare", type=Path, help="fingerprints of another version")
    parser.add_argument("--bits", action="store_true", help="fail if a digit differs, as after a mere move")
    options = parser.parse_args()
    torch.set_num_threads(1)
    known = json.loads(options.compare.read_text()) if options.compare else {}
    prints: dict[str, dict[str, str]] = {}
    digits, said = [], []
    for name, run in cases():
        began = time.perf_counter()
        result = run()
        prints[name] = {
            "sha256": hashlib.sha256(json.dumps(result).encode()).hexdigest(),
            "says": str(result[0])[:200],
        }
        before = known.get(name, prints[name])
        digits += [name] if before["sha256"] != prints[name]["sha256"] else []
        said += [name] if before["says"] != prints[name]["says"] else []
        mark = "SAYS ANOTHER " if name in said else "digits differ " if name in digits else ""
        print(f"{mark}{name}: {prints[name]['says']} {time.perf_counter() - began:.1f} s", flush=True)
    if options.out:
        options.out.write_text(json.dumps(prints, indent=1) + "\n")
    print(
        f"{len(prints)} cases of eqlearn in {Path(eqlearn.__file__).parent}: {len(digits)} differ in some "
        f"digit, {len(said)} in what they say"
    )
    return 1 if said or (digits and options.bits) else 0


if __name__ == "__main__":
    sys.exit(main())
