"""What a trained arithmetic system is worth: accuracies, latent against digit, the equation's form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from eqlearn import EQL, Equation, Gauge, ImageArithmetic, encode, fit_gauge, rewritten, without_small
from eqlearn.paper.mnist.digits import Digits, LabelledImages
from eqlearn.paper.mnist.pairs import LATENTS, Operation, random_pairs

LABELS = ("psi_1", "psi_2")
PAIRS = 200_000
RIGHT = 0.01  # of the results' spread: by how much a right law may miss them
BOUND = 15.0  # the paper's border between sums seen and sums to extrapolate to
FIVE = 5


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Latents of one set of images, and predictions for random pairs of them."""

    latents: Float[Tensor, " rows"]
    labels: Int64[Tensor, " rows"]
    predicted: Float[Tensor, " pairs"]
    true: Float[Tensor, " pairs"]

    @property
    def gauge(self) -> Gauge:
        """The straight line through the digit against the latent, with its correlation."""
        return fit_gauge(self.latents, self.labels.float())

    def accuracy(self, kept: Bool[Tensor, " pairs"] | None = None) -> float | None:
        """The share of predictions that are right after rounding, among those kept; None if there is none."""
        right = (self.predicted.round() == self.true).double()
        right = right if kept is None else right[kept]
        return float(right.mean()) if len(right) > 0 else None

    def by_result(self) -> list[list[float]]:
        """For each true result: it, the share that is right, and the predictions' 5, 50 and 95 % points."""
        rows = []
        for value in self.true.unique().tolist():
            mine = self.true == value
            points = torch.quantile(self.predicted[mine].double(), torch.tensor([0.05, 0.5, 0.95]).double())
            rows.append([value, self.accuracy(mine) or 0.0, *(round(p, 3) for p in points.tolist())])
        return rows

    def plain(self, bound: float) -> dict[str, Any]:
        """The figures of the paper, ready for JSON."""
        gauge, large = self.gauge, self.true >= bound
        return {
            "accuracy": self.accuracy(),
            "mean_absolute_error": float((self.predicted - self.true).abs().double().mean()),
            "correlation": gauge.correlation,
            "slope": gauge.scale,
            "intercept": gauge.shift,
            "accuracy_below_bound": self.accuracy(~large),
            "accuracy_from_bound": self.accuracy(large),
            "pairs": len(self.true),
            "by_result": self.by_result(),
        }


@torch.no_grad()
def evaluate(
    model: ImageArithmetic, data: LabelledImages, operation: Operation, seed: int, pairs: int = PAIRS
) -> Evaluation:
    """Predictions for random pairs of images, drawn from `seed`."""
    latents = encode(model.encoder, data.images)
    first, second = random_pairs(data.labels, pairs, seed)
    predicted = model.eval().combine(latents[first], latents[second])
    true = operation.table()[data.labels[first], data.labels[second]]
    return Evaluation(latents[:, 0], data.labels, predicted, true)


def _symbols(names: Sequence[str]) -> list[Any]:
    return [sp.Symbol(name, real=True) for name in names]


def expected(operation: Operation, gauge: Gauge) -> Equation:
    """The equation that the encoder's straight line makes one expect: the operation on `scale·z + shift`."""
    digits = [gauge.parameter(z) for z in _symbols(LATENTS)]
    known = operation.equation
    replaced = known.expr.subs(dict(zip(_symbols(known.variables), digits, strict=True)), simultaneous=True)
    return Equation(sp.expand(replaced), LATENTS)


def in_digits(equation: Equation, gauge: Gauge) -> Equation:
    """The equation in units of the digit, without what is below a hundredth of its largest term, two digits
    of each constant kept: a perfect run says `psi_1 + psi_2`."""
    for z, psi in zip(LATENTS, LABELS, strict=True):
        equation = rewritten(equation, gauge, z, psi)
    rng = np.random.default_rng(0)
    sample = {psi: rng.integers(0, 10, size=1_000).astype(float) for psi in LABELS}
    return without_small(equation, sample, 1e-2).rounded(2).snapped(tolerance=1e-9)


def is_right(equation: Equation, operation: Operation, gauge: Gauge) -> bool:
    """Whether the equation is the operation, up to unit and zero of the latent, which are the encoder's own:
    whether a straight line from digits to latents, the same for both, makes it the operation to a hundredth
    of the results' spread, and without any function that the operation does not have."""
    from scipy.optimize import least_squares

    if {type(part) for part in sp.preorder_traversal(equation.expr) if isinstance(part, sp.Function)} - {
        type(part) for part in sp.preorder_traversal(operation.equation.expr) if isinstance(part, sp.Function)
    }:
        return False
    digits = np.random.default_rng(0).uniform(0, operation.labels - 1, (300, 2))
    results = operation.equation(digits)

    def missed(line: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            left = (equation(line[0] * digits + line[1]) - results) / results.std()
        bounded: np.ndarray = np.nan_to_num(left, nan=1e3, posinf=1e3, neginf=-1e3)
        return bounded

    start = gauge.inverse
    fit = least_squares(missed, [start.scale, start.shift])
    return bool(np.sqrt(np.mean(fit.fun**2)) < RIGHT)


def asymmetry(equation: Equation) -> float | None:
    """How far the sizes of the two latents' coefficients are apart, by their mean; None without both."""
    expr, (first, second) = sp.expand(equation.expr), _symbols(equation.variables)
    a, b = (abs(float(expr.coeff(z, 1).subs({first: 0, second: 0}))) for z in (first, second))
    return None if a * b == 0 else abs(a - b) / ((a + b) / 2)


def described(equation: Equation, operation: Operation, gauge: Gauge) -> dict[str, Any]:
    """The equation, the one expected, the one in units of the digit, and whether it is right."""
    right = is_right(equation, operation, gauge)
    return {
        "equation": str(equation.rounded(6)),
        "expected": str(expected(operation, gauge).rounded(4)),
        "in_digits": str(in_digits(equation, gauge)) if right else None,
        "right_form": right,
        "asymmetry": asymmetry(equation) if right else None,
        "complexity": equation.complexity,
    }


@torch.no_grad()
def composed(
    model: ImageArithmetic, evaluation: Evaluation, operation: Operation
) -> Float[Tensor, "labels 3"]:
    """Latent map and equation put together: for each digit, the median latent of its images, what the
    equation makes of it beside the median latent of a five, and what it should make.

    However crooked the first column, a latent map that the equation undoes makes the other two equal.
    """
    digits = torch.arange(operation.labels)
    medians = torch.stack([evaluation.latents[evaluation.labels == d].median() for d in digits])[:, None]
    values = model.combine(medians, medians[FIVE].expand_as(medians))
    return torch.stack([medians[:, 0], values, operation.table()[:, FIVE].to(values)], dim=1)


def measures(
    model: ImageArithmetic,
    digits: Digits,
    operation: Operation,
    seed: int,
    bound: float = BOUND,
    *,
    equation: Equation | None = None,
) -> tuple[dict[str, Any], dict[str, Evaluation]]:
    """Everything to be told of a system, and what figures are drawn from; `equation` is its law, read from an
    `EQL` unless given.

    Results below `bound` and from it on are also counted apart.
    """
    evaluations = {
        "train": evaluate(model, digits.train, operation, seed),
        "test": evaluate(model, digits.test, operation, seed + 1),
    }
    told = {name: evaluation.plain(bound) for name, evaluation in evaluations.items()}
    map_of = composed(model, evaluations["train"], operation)
    if equation is None and isinstance(model.equation, EQL):
        equation = Equation.read(model, LATENTS)
    gauge = evaluations["train"].gauge
    return {
        **({"equation": None} if equation is None else described(equation, operation, gauge)),
        **told,
        "bound": bound,
        "latent_map": [[round(v, 4) for v in row] for row in map_of.tolist()],
        "composed_error": float((map_of[:, 1] - map_of[:, 2]).abs().mean()),
    }, evaluations
