"""What is linear in a bank of inputs, by one solution of least squares for each bank and inversion."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from eqlearn.discovery.inversion import inversions
from eqlearn.discovery.least_squares import linear_fit, never
from eqlearn.discovery.scene import Scene
from eqlearn.discovery.sketch import Sketch, Sum, Unit

BANKS = ("plain", "log", "quadratic", "products", "powers")
# Of these pairs one undoes the other, or the second makes a factor of what the first did.
UNDONE = {
    ("exp", "log"), ("log", "exp"), ("sqrt", "square"), ("square", "sqrt"), ("inv", "inv"),
    ("inv", "exp"), ("sqrt", "exp"), ("square", "exp"),
}  # fmt: skip
# A squared error below this fraction of the target's variance is rounding; polynomials come to 1e-22 of
# smooth functions.
EXACT_SHARE = 1e-24
# The square of what sums of numbers about 1 are rounded to.
ROUNDING = 1e-29


def linear_sketches(scene: Scene, stop: Callable[[], bool] = never) -> Iterator[Sketch]:
    """Every exact sum of inputs, for the target, its inversions and inversions of those; and, exact or not,
    the best sum of plain columns."""
    if scene.problem.y.shape[0] != 1:
        return
    columns = len(scene.features.scales)
    found = False
    for inversion in scene.targets:
        y, _ = scene.seen(inversion)
        for bank in allowed_banks(scene, int(inversion is not None)):
            if stop():
                return
            exact, readout = solved(scene, bank, y)
            if readout is not None and (exact or (inversion is None and len(bank) == columns)):
                found = found or exact
                yield Sketch(inversion, readout)
    if not found:
        yield from _twice_inverted(scene, stop)


def _twice_inverted(scene: Scene, stop: Callable[[], bool]) -> Iterator[Sketch]:
    """Exact sums inside two functions, such as 1/√g or exp(√g), or to the third power."""
    banks = allowed_banks(scene, 2)
    square, times = scene.vocabulary.named("square"), scene.vocabulary.named("mul")
    if square is not None and times is not None:
        y = scene.problem.y[0]
        for bank in banks:
            if stop():
                return
            exact, g = solved(scene, bank, y.sign() * y.abs() ** (1 / 3))
            if exact and g is not None:
                squared = Sum.of(Unit(square, (g,)))
                yield Sketch(None, Sum.of(Unit(times, (g, squared))))
    for first in scene.inversions:
        for second in inversions(scene.vocabulary.unary, first.target):
            if (first.unit.name, second.unit.name) in UNDONE:
                continue
            for bank in banks:
                if stop():
                    return
                exact, g = solved(scene, bank, second.target[0])
                if exact and g is not None:
                    inner = Sum(units=((Unit(second.unit, (g,)), second.amplitude / first.scale),))
                    yield Sketch(first, inner)


def allowed_banks(scene: Scene, above: int) -> list[list[int]]:
    """The banks that the depth allows below so many layers, each once."""
    features, depth = scene.features, scene.hidden_layers - above
    banks = [features.bank(name) for name in BANKS if features.layers(name) <= depth]
    banks += [features.polynomials(2**depth)] if depth >= 0 else []
    return [list(bank) for bank in sorted(set(map(tuple, banks)))]


def solved(
    scene: Scene, bank: list[int], y: Tensor, relevance: Tensor | None = None
) -> tuple[bool, Sum | None]:
    """Whether a bank explains a target to rounding, and how; nothing if the rows are too few to tell. Rows
    count by their weight, and by their `relevance`."""
    x, weight = scene.problem.x, scene.problem.weight
    if relevance is not None:
        weight = relevance if weight is None else weight * relevance
    if len(bank) + 1 > 0.75 * len(y) or not bool(torch.isfinite(y).all()):
        return False, None
    columns = torch.cat([x[bank], torch.ones(1, len(y), dtype=x.dtype)])
    mean = y.mean() if weight is None else (weight @ y) / weight.sum()
    spread = float((y - mean).square().sum() if weight is None else weight @ (y - mean).square())
    if weight is not None:
        columns, y = columns * weight.sqrt(), y * weight.sqrt()
    sizes = columns.norm(dim=1).clamp(min=1e-300)
    solution = linear_fit(columns / sizes[:, None], y)
    left = float((y - solution @ (columns / sizes[:, None])).square().sum())
    # About a large mean, the rounding of the values themselves is more than that.
    exact = left < max(EXACT_SHARE * spread, ROUNDING * float(y.square().sum()))
    if exact:  # rounding is no coefficient
        size = solution.abs()
        small = torch.maximum(
            1e-7 * size[: len(bank)].sum(), 1e-14 * size.max()
        )  # however large the constant
        solution = torch.where(size > torch.minimum(small, 1e-7 * size.max()), solution, 0.0)
    *linear, constant = (solution / sizes).tolist()
    return exact, Sum(tuple((i, c) for i, c in zip(bank, linear, strict=True) if c != 0), (), constant)
