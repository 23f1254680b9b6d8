"""A law behind an encoder: that of a spring whose stiffness is seen only in pictures."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from torch import nn

from eqlearn import LatentSettings, discover_latent

PIXELS = 24


def main(quick: bool = False) -> None:
    generator = torch.Generator().manual_seed(0)
    stiffness = 0.5 + torch.rand(400, generator=generator)
    x = 2 * torch.rand(400, generator=generator) - 1
    pictures = torch.exp(-(((torch.linspace(-0.2, 1.7, PIXELS) - stiffness[:, None]) / 0.2) ** 2))
    force = -stiffness * x

    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(PIXELS, 16), nn.ReLU(), nn.Linear(16, 1))
    few = LatentSettings(warm_steps=300, joint_steps=100, refine_steps=300, max_starts=1)
    found = discover_latent(
        encoders={"k": encoder},
        inputs={"k": pictures},
        columns={"x": x},
        y=force,
        settings=few if quick else LatentSettings(),
    )
    print(found)
    print("starts that came to this law: {} of {}".format(*found.agreement))
    print(f"variance left: {found.error:.1e}, by a network in its place {found.head_error:.1e}")
    print("laws that can't be told apart:", *(str(law[0]) for law in found.equivalent))
    print(found.report("inside_a_network"))

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    left.plot(stiffness, found.latent("k", pictures), ".", color="tab:blue")
    left.set(xlabel="stiffness (never shown)", ylabel="k in the law", title="What the encoder learned")
    with torch.no_grad():
        right.plot(force, found.model({"k": pictures}, {"x": x}), ".", color="tab:orange")
    right.set(xlabel="force, measured", ylabel="force, by the law", title=str(found))
    figure.savefig("inside_a_network.png", dpi=150)
    print(Path("inside_a_network.png").resolve())
    plt.close(figure)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
