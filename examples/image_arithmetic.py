"""An encoder of your own and an equation, trained together on the sum of two digits they never see named."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from eqlearn import EQL, Equation, ImageArithmetic, Phase, encode, take_statistics_, train


class SumOfPairs(nn.Module):
    """The mean squared error over random pairs of images, each labelled with the sum of its digits."""

    def __init__(self, images: Tensor, labels: Tensor, pairs: int = 500) -> None:
        super().__init__()
        self.images, self.labels, self.pairs = images, labels, pairs

    def forward(self, model: ImageArithmetic, phase: Phase) -> Tensor:
        a, b = torch.randint(len(self.labels), (2, self.pairs))
        return (model(self.images[a], self.images[b]) - self.labels[a] - self.labels[b]).square().mean()


def main(quick: bool = False) -> None:
    torch.manual_seed(0)
    digits = load_digits()
    images, labels = torch.tensor(digits.images / 16).float(), torch.tensor(digits.target)
    encoder = nn.Sequential(  # any module from images to (rows, 1)
        nn.Flatten(), nn.Linear(64, 100), nn.ReLU(), nn.Linear(100, 1), nn.BatchNorm1d(1, affine=False)
    )
    model = ImageArithmetic(encoder, EQL(2, 1, "one id*2", hidden_layers=1, seed=0))
    loss = SumOfPairs(images, labels)
    schedule = (
        Phase(name="sparsify", steps=300 if quick else 1_500, lr=3e-3, penalty=0.05, prune_below=0.01),
        Phase(name="fine-tune", steps=300 if quick else 1_500, lr=3e-3, decay="cosine"),
    )
    for record in train(model, loss, schedule, optimiser=torch.optim.Adam):
        print(f"{record.phase} {record.step}: loss {float(record.loss):.3f}")
    take_statistics_(encoder, images)
    print("y =", Equation.read(model.eval(), ["z_1", "z_2"]))

    z = encode(encoder, images)[:, 0]
    figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
    axes.plot(labels + 0.5 * torch.rand(len(z)) - 0.25, z, ".", ms=2, alpha=0.5)
    axes.set(xlabel="digit", ylabel="latent z", title="What the encoder found by itself", xticks=range(10))
    figure.savefig("image_arithmetic.png", dpi=150)
    print(Path("image_arithmetic.png").resolve())
    plt.close(figure)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
