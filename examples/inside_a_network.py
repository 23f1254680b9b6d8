"""An equation behind an encoder: the law of a spring whose stiffness is seen only in pictures."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn

from eqlearn import EQL, Equation, Phase, eliminate, polish, train

PIXELS = 24
SCHEDULE = (
    Phase(name="fit", steps=400, lr=1e-2),
    Phase(name="sparsify", steps=600, lr=5e-3, penalty=1e-3, ramp="linear", prune_below=0.02),
    Phase(name="fine-tune", steps=400, lr=3e-3, decay="cosine"),
)


class Spring(nn.Module):
    """A picture and an extension to a force: an encoder gives one number z, an equation does the rest."""

    def __init__(self) -> None:
        super().__init__()
        # The norm has no scale of its own to learn, so that z has spread 1 and can't evade the penalty.
        self.encoder = nn.Sequential(
            nn.Linear(PIXELS, 16), nn.ReLU(), nn.Linear(16, 1), nn.BatchNorm1d(1, affine=False)
        )
        self.equation = EQL(2, 1, primitives="id*2 square*2 mul*2", hidden_layers=1, seed=0)

    def latents(self, pictures: Tensor, x: Tensor) -> Tensor:
        return torch.cat([self.encoder(pictures), x], dim=1)

    def forward(self, pictures: Tensor, x: Tensor) -> Tensor:
        return self.equation(self.latents(pictures, x))


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    stiffness = 0.5 + torch.rand(400, 1, generator=generator)
    x = 2 * torch.rand(400, 1, generator=generator) - 1
    pictures = torch.exp(-(((torch.linspace(-0.2, 1.7, PIXELS) - stiffness) / 0.2) ** 2))
    force = -stiffness * x

    torch.manual_seed(0)
    model = Spring()

    def loss(model: Spring, phase: Phase) -> Tensor:
        return (model(pictures, x) - force).square().mean()

    for record in train(model, loss, SCHEDULE, optimiser=torch.optim.Adam):
        print(f"{record.phase:10} step {record.step:4}  error {float(record.loss):.1e}")

    # With the encoder frozen, what is left is least squares, and can be solved exactly.
    model.eval()
    with torch.no_grad():
        inputs = model.latents(pictures, x).double()
    small = eliminate(model.equation.double(), inputs, force.double())
    equation = Equation.read(polish(small, inputs, force.double()).network, ["z", "x"])
    print(f"F = {equation}")

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    left.plot(stiffness, inputs[:, 0], ".", color="tab:blue")
    left.set(xlabel="stiffness k (never shown)", ylabel="z", title="What the encoder learned")
    right.plot(force, equation(inputs.numpy()), ".", color="tab:orange")
    right.set(xlabel="force, measured", ylabel="force, by the equation", title=f"F = {equation}")
    figure.savefig("inside_a_network.png", dpi=150)
    print(Path("inside_a_network.png").resolve())
    plt.close(figure)


if __name__ == "__main__":
    main()
