"""Arithmetic on images: one encoder reads both, an equation in the two latents gives the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64, Shaped
from torch import Tensor, nn

from eqlearn.errors import InvalidArgument, InvalidExpression
from eqlearn.latent.images import Augmentation
from eqlearn.nn.eql import EQL
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import fitted
from eqlearn.training.schedule import Phase
from eqlearn.training.state import step_generator


@dataclass(frozen=True)
class Operation:
    """What is computed from two labels: a formula in `a` and `b`, such as "a+b", "a*b" or "(a+b)^2".

    It is read by the library's own parser. An `EQL` gives values near [-1, 1], so its output is multiplied by
    half the range of the results and moved to the range's middle: 9 and 9 for the sum of two digits, 40.5 and
    40.5 for their product, 9 and 0 for their difference.
    """

    formula: str = "a+b"
    labels: int = 10

    @property
    def equation(self) -> Equation:
        try:
            return Equation.parse(self.formula.replace("^", "**"), ["a", "b"])
        except InvalidExpression as error:
            raise InvalidExpression(f"`formula` {self.formula!r} can't be read: {error}") from error

    def table(self) -> Float[Tensor, "labels labels"]:
        """The result for every pair of labels."""
        a, b = np.meshgrid(np.arange(self.labels), np.arange(self.labels), indexing="ij")
        values = self.equation(np.column_stack([a.ravel(), b.ravel()]).astype(float))
        if not np.isfinite(values).all() or np.ptp(values) == 0:
            raise InvalidArgument(
                f"`formula` {self.formula!r} must vary with its labels, 0 to {self.labels - 1}, and be "
                "finite for all of them"
            )
        return torch.tensor(values, dtype=torch.float32).reshape(self.labels, self.labels)

    @property
    def scale(self) -> float:
        """Half the range of the results."""
        return float(np.ptp(self.table().numpy())) / 2

    @property
    def offset(self) -> float:
        """The middle of the range of the results."""
        table = self.table()
        return float(table.max() + table.min()) / 2


class ImageArithmetic(nn.Module):
    """`scale · equation(z₁, z₂) + offset`, where `encoder` gives z of each image.

    Any encoder that maps images to `(rows, 1)` will do, and any module that maps `(*batch, 2)` to
    `(*batch, 1)`. With an `EQL` inside, `Equation.read(model, ["z_1", "z_2"])` gives the whole formula; with
    an `EQL` of several members, results are `(members, rows)`.
    """

    def __init__(
        self, encoder: nn.Module, equation: nn.Module, scale: float = 9.0, offset: float = 9.0
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.equation = equation
        self.scale = scale
        self.offset = offset

    def forward(
        self, first: Shaped[Tensor, "rows height width"], second: Shaped[Tensor, "rows height width"]
    ) -> Float[Tensor, "*members rows"]:
        return self.combine(self.encoder(first), self.encoder(second))

    def combine(
        self, first: Float[Tensor, "rows 1"], second: Float[Tensor, "rows 1"]
    ) -> Float[Tensor, "*members rows"]:
        """The result for latents that were computed before."""
        output: Tensor = self.equation(torch.cat([first, second], dim=-1))
        return self.scale * output[..., 0] + self.offset

    def symbolic(self, z: Sequence[sp.Expr] | sp.Matrix) -> sp.Matrix:
        """The formula in the two latents, in the units of the result."""
        if not isinstance(self.equation, EQL):
            raise InvalidArgument(f"a {type(self.equation).__name__} has no equation to read; use an EQL")
        inner = self.equation.symbolic(z)
        return sp.Matrix([fitted(self.scale) * inner[0] + fitted(self.offset)])


class PairLoss(nn.Module):
    """The mean squared error over random pairs of training images; what is drawn depends on seed and step.

    With `huber`, errors larger than that count by their size, not their square, so that a few digits nobody
    can read do not pull at all the others.

    Each step encodes `batch` images once and makes `pairs` pairs among them, which costs no more than one
    pair per image would; with `disjoint`, each image is in one pair only, as in the paper. Pairs whose result
    is not `below` the bound are thrown away, so that training never sees them. With `augmentation`, each
    image is augmented anew whenever it is drawn. Errors are in units of a ninth of the half range, those of
    the sum, so that one weight of the penalty serves all operations.
    """

    step: Tensor
    table: Tensor
    images: Tensor
    labels: Tensor

    def __init__(
        self,
        images: Shaped[Tensor, "rows height width"],
        labels: Int64[Tensor, " rows"],
        operation: Operation,
        *,
        seed: int = 0,
        batch: int = 200,
        pairs: int = 2_000,
        disjoint: bool = False,
        augmentation: Augmentation | None = None,
        below: float | None = None,
        huber: float | None = None,
    ) -> None:
        super().__init__()
        if huber is not None and not huber > 0:
            raise InvalidArgument(f"`huber` must be positive, or None for squares alone; got {huber}")
        if len(images) != len(labels) or len(labels) == 0 or batch < 2 or pairs < 1:
            raise InvalidArgument(
                f"needs images with a label each, `batch` >= 2 and `pairs` >= 1; got {len(images)} images, "
                f"{len(labels)} labels, `batch`={batch}, `pairs`={pairs}"
            )
        for name, values in (("table", operation.table()), ("images", images), ("labels", labels)):
            self.register_buffer(
                name, values, persistent=False
            )  # moves with the loss, is no part of its state
        self.seed, self.batch, self.pairs = seed, batch, pairs
        self.disjoint, self.augmentation, self.below, self.huber = disjoint, augmentation, below, huber
        self.unit = operation.scale / 9
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))

    def forward(self, model: ImageArithmetic, phase: Phase) -> Float[Tensor, "*members"]:
        generator = step_generator(self.seed, self.step)
        self.step += 1
        rows = torch.randint(len(self.labels), (self.batch,), generator=generator)
        labels = self.labels[rows]
        images = (
            self.images[rows]
            if self.augmentation is None
            else self.augmentation(self.images[rows], generator)
        )
        latents = model.encoder(images)
        first, second = self._pairs(generator)
        target = self.table[labels[first], labels[second]]
        if self.below is not None:
            kept = target < self.below
            first, second, target = first[kept], second[kept], target[kept]
        residual = (model.combine(latents[first], latents[second]) - target) / self.unit
        # A low bound may leave none of a step's pairs: such a step has nothing to teach, and is no failure.
        return self._cost(residual).sum(dim=-1) / max(len(target), 1)

    def _cost(self, residual: Tensor) -> Tensor:
        if self.huber is None:
            return residual.square()
        # Twice torch's, so that small errors count by their square in both cases.
        return 2 * F.huber_loss(residual, torch.zeros_like(residual), reduction="none", delta=self.huber)

    def _pairs(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        if self.disjoint:
            first, second = torch.arange(self.batch // 2 * 2).view(2, -1)
        else:
            first, second = torch.randint(self.batch, (2, self.pairs), generator=generator)
        return first, second


def random_pairs(
    labels: Int64[Tensor, " rows"],
    count: int,
    seed: int,
    allowed: Bool[Tensor, "labels labels"] | None = None,
) -> tuple[Int64[Tensor, " pairs"], Int64[Tensor, " pairs"]]:
    """Indices of `count` pairs drawn at random, without those whose labels are not `allowed`."""
    generator = torch.Generator().manual_seed(seed)
    first, second = torch.randint(len(labels), (2, count), generator=generator)
    if allowed is None:
        return first, second
    kept = allowed[labels[first], labels[second]]
    return first[kept], second[kept]
