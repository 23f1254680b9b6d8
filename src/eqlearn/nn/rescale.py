"""Balancing the scale of a network's weights along every path, without changing what it computes."""

from __future__ import annotations

import math
from functools import cache

import sympy as sp
import torch
from torch import Tensor

from eqlearn.nn.eql import EQL, argument_rows
from eqlearn.nn.primitives import Primitive


@cache
def degrees(unit: Primitive) -> tuple[int, ...] | None:
    """The unit's degree in each argument: (1,) for the identity, (2,) for a square, (1, 1) for a product;
    None if it is not homogeneous, like a sine."""
    arguments = sp.symbols(f"g:{unit.arity}", positive=True)
    value = unit.symbolic(*arguments)
    found = []
    for g in arguments:
        growth = sp.simplify(value.subs(g, 2 * g) / value)
        power = math.log2(float(growth)) if growth.is_number and growth.is_positive else math.nan
        if not (power >= 1 and power.is_integer()):
            return None
        found.append(int(power))
    return tuple(found)


@torch.no_grad()
def balance_(network: EQL, sweeps: int = 20) -> EQL:
    """Moves factors between the weights into a unit and those out of it until both are of the same size.

    `w₂·(w₁ z)` is the same for 100·0.01 and for 1·1, but a step of gradient descent is not: it may flip the
    sign of a tiny weight. Factors are powers of two, so the output stays the same to the bit. Only
    homogeneous units (identities, squares, products) let a factor through.
    """
    linears = network.linears
    for _ in range(sweeps):
        still = True
        for layer, below, above in zip(network.layers, linears, linears[1:], strict=False):
            for place, (unit, rows) in enumerate(zip(layer.units, argument_rows(layer.units), strict=True)):
                powers = degrees(unit) if unit.arity else None
                if powers is None:
                    continue
                into = [below.settled()[..., row, :].norm(dim=-1) for row in rows]
                out = above.settled()[..., place].norm(dim=-1)
                live = (out > 0) & torch.stack(into).gt(0).all(dim=0)
                size = out.log2() + sum(p * norm.log2() for p, norm in zip(powers, into, strict=True))
                even = size / (1 + sum(powers))
                moved = torch.zeros_like(out)
                for row, power, norm in zip(rows, powers, into, strict=True):
                    shift = torch.where(live, (even - norm.log2()).round(), 0.0)
                    below.raw[..., row, :] *= _power_of_two(shift)
                    moved += power * shift
                above.raw[..., place] *= _power_of_two(-moved)
                still &= not bool(moved.any())
        if still:
            break
    return network


def _power_of_two(exponent: Tensor) -> Tensor:
    """2**exponent, `(*members, 1)`, exact as `exp2` need not be."""
    return torch.ldexp(torch.ones_like(exponent), exponent.to(torch.int32))[..., None]
