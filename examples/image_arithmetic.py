"""An encoder of your own and a law behind it: the product of two digits that are never named."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from torch import nn

from eqlearn import Gathered, LatentProgress, LatentSettings, discover_latent


def show(now: LatentProgress) -> None:
    print(f"{now.seconds:4.0f} s  {now.stage:14} error {now.error:.1e}  {now.best}")


def main(quick: bool = False) -> None:
    digits = load_digits()
    images, labels = torch.tensor(digits.images / 16).float(), torch.tensor(digits.target)
    a, b = torch.randint(len(labels), (2, 6_000), generator=torch.Generator().manual_seed(0))

    torch.manual_seed(0)
    encoder = nn.Sequential(  # any module from images to (rows, 1)
        nn.Flatten(), nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 1)
    )
    found = discover_latent(
        encoders={"a": encoder, "b": encoder},  # the same one twice: shared weights
        inputs={"a": Gathered(images, a), "b": Gathered(images, b)},
        y=labels[a] * labels[b],
        seconds=20 if quick else 60,
        settings=LatentSettings(max_starts=1) if quick else LatentSettings(),
        progress=show,
    )
    print(found)
    print("starts that came to this law: {} of {}".format(*found.agreement))
    print(f"variance left: {found.error:.1e}, on pairs held back {found.held_error:.1e}")

    figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
    z = found.latent("a", images)
    axes.plot(labels + 0.5 * torch.rand(len(z)) - 0.25, z, ".", ms=2, alpha=0.5)
    axes.set(xlabel="digit", ylabel="latent a", title=f"What the encoder found: {found}", xticks=range(10))
    figure.savefig("image_arithmetic.png", dpi=150)
    print(Path("image_arithmetic.png").resolve())
    plt.close(figure)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
