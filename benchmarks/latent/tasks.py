"""Tasks for `discover_latent`: what is hidden, what is measured, the law, and who reads it.

Each task is a function of a seed: data, fresh encoders, and the true law. No task sets anything of the
search.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from eqlearn import Gathered


@dataclass(frozen=True, eq=False)
class Task:
    """Encoders and data as `discover_latent` takes them; the `hidden` quantities; the law as a formula in the
    latents' and the columns' names, with the simplest bend of the hidden quantities."""

    encoders: Mapping[str, nn.Module]
    inputs: Mapping[str, Tensor | Gathered]
    columns: Mapping[str, Tensor]
    y: Tensor
    hidden: Mapping[str, Tensor]
    laws: tuple[str, ...]


def _digits(law: str, names: str, compute: Callable[..., Tensor], seed: int, rows: int = 4_000) -> Task:
    """Pictures of 8 x 8 pixels from scikit-learn, one encoder for all."""
    loaded = load_digits()
    images = torch.tensor(loaded.images, dtype=torch.float32) / 16
    labels = torch.tensor(loaded.target)
    generator = torch.Generator().manual_seed(seed)
    index = torch.randint(len(images), (len(names), rows), generator=generator)
    torch.manual_seed(seed)
    encoder = nn.Sequential(
        nn.Unflatten(1, (1, 8)),
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1),
    )  # fmt: skip
    hidden = {name: labels[i].double() for name, i in zip(names, index, strict=True)}
    inputs = {name: Gathered(images, i) for name, i in zip(names, index, strict=True)}
    return Task(dict.fromkeys(names, encoder), inputs, {}, compute(*hidden.values()), hidden, (law,))


def _line(k: Tensor, generator: torch.Generator) -> Tensor:
    """A picture of 24 pixels with a bright spot at `k`."""
    return torch.exp(-(((torch.linspace(-0.2, 1.7, 24) - k[:, None]) / 0.2) ** 2))


def _uniform(generator: torch.Generator, rows: int, low: float, high: float) -> Tensor:
    return low + (high - low) * torch.rand(rows, generator=generator)


def _dense(*widths: int) -> nn.Sequential:
    parts: list[nn.Module] = [nn.Flatten()]
    for a, b in itertools.pairwise(widths):
        parts += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*parts[:-1])


def spring(seed: int) -> Task:
    generator = torch.Generator().manual_seed(seed)
    k, x = _uniform(generator, 400, 0.5, 1.5), _uniform(generator, 400, -1, 1)
    torch.manual_seed(seed)
    return Task({"k": _dense(24, 16, 1)}, {"k": _line(k, generator)}, {"x": x}, -k * x, {"k": k}, ("-k*x",))


def beer_lambert(seed: int) -> Task:
    generator = torch.Generator().manual_seed(seed)
    k, x = _uniform(generator, 1_000, 0.2, 1.4), _uniform(generator, 1_000, 0, 3)
    start = _uniform(generator, 1_000, 0.5, 2)
    torch.manual_seed(seed)
    encoder = nn.Sequential(nn.Linear(24, 32), nn.Tanh(), nn.Linear(32, 1))
    y = start * torch.exp(-k * x)
    return Task(
        {"k": encoder}, {"k": _line(k, generator)}, {"I0": start, "x": x}, y, {"k": k}, ("I0*exp(-k*x)",)
    )


def signal(seed: int) -> Task:
    """A noisy sine of unknown phase tells its frequency; 1 % noise on the target, too."""
    generator = torch.Generator().manual_seed(seed)
    rows = 1_500
    f, length = _uniform(generator, rows, 1, 3), _uniform(generator, rows, 0.5, 2)
    phase, t = _uniform(generator, rows, 0, 6.28), torch.linspace(0, 1, 64)
    waves = torch.sin(6.2832 * f[:, None] * t + phase[:, None])
    waves = waves + 0.1 * torch.randn(rows, 64, generator=generator)
    y = length * f**2
    y = y + 0.01 * y.std() * torch.randn(rows, generator=generator)
    torch.manual_seed(seed)
    encoder = nn.Sequential(
        nn.Unflatten(1, (1, 64)), nn.Conv1d(1, 16, 9, stride=2), nn.ReLU(),
        nn.Conv1d(16, 16, 5, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(192, 32), nn.ReLU(),
        nn.Linear(32, 1),
    )  # fmt: skip
    return Task({"f": encoder}, {"f": waves}, {"L": length}, y, {"f": f}, ("L*f",))


def _spot(seed: int, law: str, compute: Callable[..., Tensor]) -> Task:
    """A picture of a spot at (px, py); two columns are measured."""
    generator = torch.Generator().manual_seed(seed)
    px, py, q, r = (_uniform(generator, 2_000, -1, 1) for _ in range(4))
    at = torch.linspace(-1.3, 1.3, 14)
    pictures = torch.exp(-((at - px[:, None, None]) ** 2 + (at[:, None] - py[:, None, None]) ** 2) / 0.15)
    torch.manual_seed(seed)
    y = compute(q, r, px, py)
    return Task(
        {"p": _dense(196, 64, 32, 2)}, {"p": pictures}, {"q": q, "r": r}, y, {"px": px, "py": py}, (law,)
    )


TASKS: dict[str, Callable[[int], Task]] = {
    "spring": spring,
    "beer-lambert": beer_lambert,
    "signal": signal,
    "spot-two": lambda seed: _spot(seed, "p_1*q + p_2*r", lambda q, r, x, y: q * x + r * y**2),
    "spot-one": lambda seed: _spot(seed, "p*q", lambda q, r, x, y: q * (x**2 + y**2)),
    "digits-sum": lambda seed: _digits("a + b", "ab", lambda a, b: a + b, seed),
    "digits-difference": lambda seed: _digits("a - b", "ab", lambda a, b: a - b, seed),
    "digits-product": lambda seed: _digits("a*b", "ab", lambda a, b: a * b, seed),
    "digits-square": lambda seed: _digits("(a - b)**2", "ab", lambda a, b: (a - b) ** 2, seed),
    "digits-parabola": lambda seed: _digits("a**2 + b", "ab", lambda a, b: a**2 + b, seed),
    "digits-three": lambda seed: _digits("a*b + c", "abc", lambda a, b, c: a * b + c, seed),
}
