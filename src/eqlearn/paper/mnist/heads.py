"""Several equations behind one encoder, made sparse on its latents; the simplest that fits is kept.

One equation and its encoder can agree on a crooked latent: z = arcsin(digit) and sin(z) fit as well as a
straight line. Many equations that start differently and share one encoder can't, for they bend differently;
and one of them that is held straight keeps them from a latent folded in two, behind which all are squares.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from eqlearn import (
    EQL,
    Equation,
    InvalidArgument,
    Penalty,
    Phase,
    Primitive,
    Record,
    eliminate,
    polish,
    settle_,
    train,
    weights_left,
)

STRAIGHT = "one id"  # the kinds of units of the head that is held straight
# Beside what training leaves of them, the first head is also tried with these kinds of units only.
KINDS = (STRAIGHT, "one id mul")
BENDS = (2, 3, 4, 5)  # powers of the latent that an encoder is trusted to add if an equation asks for it
# How much larger than the smallest an error may be for the sake of a shorter equation.
SLACK = 0.5
EQUAL = 1.01  # errors this close are the same: two fits of one form agree better


@dataclass(frozen=True, eq=False)
class Head:
    """One of the equations after elimination: its length, its mean squared error, and where it comes from.

    The error is the one that is left when the latent may bend, the same way for all (`served_error`).
    `origin` is "trained", or the kinds of units that it was held to, such as "one id".
    """

    network: EQL
    complexity: int
    error: float
    origin: str = "trained"


@torch.no_grad()
def hold_straight_(heads: EQL) -> None:
    """Leaves the last of several equations no unit that bends, before they are trained."""
    if heads.members is None or heads.members < 2:
        raise InvalidArgument(f"`heads` must be an EQL with at least two `members`, got {heads.members}")
    for layer, above in zip(heads.layers, heads.linears[1:], strict=True):
        keep = torch.ones_like(above.mask)
        keep[-1] = _of_kinds(layer.units, STRAIGHT.split())
        above.keep_(keep)


def _of_kinds(units: Sequence[Primitive], kinds: Sequence[str]) -> Tensor:
    return torch.tensor([unit.name in kinds for unit in units])


def simplest_head(heads: Sequence[Head], slack: float = SLACK) -> Head:
    """The shortest equation whose error is at most `1 + slack` times the smallest.

    Among equally short ones the smaller error decides, and where errors are equal, one that training found by
    itself goes before one that was held to some kinds of units.

    Why errors need not be smallest: a longer formula always gains a little by bending towards images that
    are misread; trained on with the encoder, which can bend too, the shorter one loses nothing.
    """
    if not heads:
        raise InvalidArgument("every equation came to nothing; lower the penalty, or train more `members`")
    bound = (1 + slack) * min(head.error for head in heads)
    shortest = min(head.complexity for head in heads if head.error <= bound)
    close = [head for head in heads if head.complexity == shortest and head.error <= bound]
    least = EQUAL * min(head.error for head in close)
    return min(close, key=lambda head: (head.error > least, head.origin != "trained", head.error))


def eliminated_heads(
    heads: EQL,
    z: Float[Tensor, "rows latents"],
    y: Float[Tensor, " rows"],
    schedule: Sequence[Phase],
    *,
    penalty: str | Penalty = "half",
    optimiser: Callable[..., torch.optim.Optimizer] = torch.optim.Adam,
    on_record: Callable[[Record], object] | None = None,
) -> list[Head]:
    """Makes every member of `heads` sparse on latents that are held, eliminates and refits each.

    `schedule` trains the equations alone, in place, so a step costs little. `y` is what they are to give,
    near [-1, 1]. Members that came to nothing are left out. Two more heads are the first member before this
    training, without units of other kinds than `KINDS`: elimination alone decides what is left of them.
    """
    if heads.members is None:
        raise InvalidArgument("`heads` must be an EQL with `members`; a single one needs no choice")

    def loss(model: EQL, phase: Phase) -> Tensor:
        # In the units of the digits' sum, as in `PairLoss`, so that a penalty weighs the same in both.
        residual: Tensor = 9 * (model(z)[..., 0] - y)
        return residual.square().mean(dim=-1)

    options = {kinds: _only(heads.member(0), kinds.split()) for kinds in KINDS}
    origins = [_origin(heads.member(i)) for i in range(heads.members)]
    deque(train(heads, loss, schedule, penalty=penalty, optimiser=optimiser, on_record=on_record), maxlen=0)
    settle_(heads.eval())
    found = [_eliminated(heads.member(i), z, y, origin) for i, origin in enumerate(origins)]
    found += [_eliminated(network, z, y, kinds) for kinds, network in options.items()]
    return [head for head in found if head is not None]


def _only(network: EQL, kinds: Sequence[str]) -> EQL:
    """The network without units of other kinds."""
    settle_(network.eval())
    for layer, above in zip(network.layers, network.linears[1:], strict=True):
        above.keep_(_of_kinds(layer.units, kinds).expand_as(above.mask))
    network.remove_dead_()
    return network


def _origin(network: EQL) -> str:
    """Whether a head was free in training, or held straight."""
    straight = all(
        bool((_of_kinds(layer.units, STRAIGHT.split()) | ~above.mask.any(dim=-2)).all())
        for layer, above in zip(network.layers, network.linears[1:], strict=True)
    )
    return STRAIGHT if straight else "trained"


def _eliminated(network: EQL, z: Tensor, y: Tensor, origin: str) -> Head | None:
    free_constant_(network)
    network.remove_dead_()
    if int(weights_left(network)) == 0 or not bool(torch.isfinite(network(z)).all()):
        return None
    smaller = eliminate(network, z, y)
    if int(weights_left(smaller)) == 0:  # a constant that is worth nothing goes too
        return None
    polished = polish(smaller, z, y)
    if not math.isfinite(polished.error):
        return None
    length = Equation.read(polished.network, [f"z_{i + 1}" for i in range(z.shape[1])]).complexity
    return Head(polished.network.to(z.dtype), length, served_error(polished.network, z, y), origin)


def served_error(network: EQL, z: Float[Tensor, "rows latents"], y: Float[Tensor, " rows"]) -> float:
    """The mean squared error of an equation whose encoder may still bend the latent, the same way for all.

    What a latent means is the encoder's choice: behind z + z³ a straight line is as good an equation as a
    cubic behind z. So equations are compared after a common polynomial change of the latents, fitted together
    with the equation's own weights.
    """
    served, inputs, target = deepcopy(network).double().eval(), z.double(), y.double()
    bends = torch.zeros(len(BENDS), dtype=torch.float64, requires_grad=True)
    powers = torch.stack([inputs**power for power in BENDS], dim=-1)
    weights = [layer.raw for layer in served.linears]
    optimiser = torch.optim.LBFGS([bends, *weights], max_iter=100, line_search_fn="strong_wolfe")
    errors: list[float] = []

    def error() -> Tensor:
        optimiser.zero_grad()
        value: Tensor = (served(inputs + powers @ bends)[..., 0] - target).square().mean()
        value.backward()
        errors.append(value.item())
        return value

    optimiser.step(error)
    return min(e for e in errors if math.isfinite(e))


@torch.no_grad()
def free_constant_(network: EQL) -> None:
    """Lets the read-out use a constant again, starting from zero where pruning had taken it.

    A threshold judges a weight by its size; a constant of a hundredth is small and yet an offset of every
    prediction. Elimination judges it by what it is worth.
    """
    readout = network.readout
    places = [place for place, unit in enumerate(network.layers[-1].units) if unit.arity == 0]
    for place in places[:1]:
        # What is masked is zero already, but momentum may have stirred it.
        readout.raw[:, place] = readout.weight[:, place]
        readout.mask[:, place] = True
