"""The EQL cell: one step of time as equations, and the rollout that applies it to its own output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp
import torch
from jaxtyping import Float
from torch import Tensor, nn

from eqlearn.dynamics.forms import STEPPERS, CellForm, step_once
from eqlearn.errors import InvalidArgument
from eqlearn.nn.eql import EQL, Init, member_seeds
from eqlearn.nn.primitives import PAPER, PrimitivesLike
from eqlearn.symbolic.expressions import fitted
from eqlearn.validation.options import check_least, checked_choice


@dataclass(frozen=True, kw_only=True)
class CellShape:
    """What the equations of a cell are made of, and how they step; the defaults are the paper's.

    `shared` gives all states one network with common hidden layers instead of one each; `constant_input` adds
    an input that is always 1, as the released code does; `bias` gives every layer one.
    """

    primitives: PrimitivesLike = PAPER
    hidden_layers: int = 2
    form: CellForm = "map"
    stepper: str = "rk4"
    shared: bool = False
    skip: bool = False
    bias: bool = False
    constant_input: bool = False
    gates: bool = False
    gated_readout: bool = True
    init: str | Init = "default"

    def __post_init__(self) -> None:
        checked_choice("`form`", self.form, ("map", "residual", "ode"))
        checked_choice("`stepper`", self.stepper, STEPPERS)


PAPER_CELL = CellShape()


class EQLCell(nn.Module):
    """States `(states, rows)` and latents `(latents, rows)` to the states one `dt` later.

    Feature-major as `EQL.propagate`, with an axis of members before where there are `members`. `scales`
    divides each state before the equations see it; `symbolic` is in the user's units.
    """

    scales: Tensor

    def __init__(
        self,
        states: int,
        latents: int = 1,
        *,
        shape: CellShape = PAPER_CELL,
        dt: float = 1.0,
        scales: Tensor | None = None,
        members: int | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        if states < 1 or latents < 0:
            raise InvalidArgument(
                f"a cell needs 1 state or more and 0 latents or more, got {states}, {latents}"
            )
        self.states = states
        self.latents = latents
        self.shape = shape
        self.dt = dt
        self.members = members
        self.register_buffer("scales", torch.ones(states) if scales is None else scales.clone())
        outputs = [states] if shape.shared else [1] * states
        self.networks = nn.ModuleList(
            EQL(
                states + latents + shape.constant_input, out, shape.primitives, shape.hidden_layers,
                members=members, skip=shape.skip, bias=shape.bias, gates=shape.gates, init=shape.init,
                seed=_apart(seed, number, members, len(outputs)),
            )
            for number, out in enumerate(outputs)
        )  # fmt: skip
        if not shape.gated_readout:
            for network in self.equations:
                network.readout.gate = None

    @property
    def equations(self) -> list[EQL]:
        """The networks: one for each state, or one for all."""
        return list(self.networks)  # type: ignore[arg-type]

    def law(
        self, y: Float[Tensor, "*any states rows"], z: Float[Tensor, "*any latents rows"]
    ) -> Float[Tensor, "*more states rows"]:
        """What the equations say: the next states of a map, else the rate of change."""
        scales = self.scales[:, None]
        parts = [y / scales, z]
        if self.shape.constant_input:
            parts.append(torch.ones_like(y[..., :1, :]))
        inputs = torch.cat(parts, dim=-2)
        return scales * torch.cat([network.propagate(inputs) for network in self.equations], dim=-2)

    def forward(
        self, y: Float[Tensor, "*any states rows"], z: Float[Tensor, "*any latents rows"]
    ) -> Float[Tensor, "*more states rows"]:
        shape = self.shape
        after: Tensor = step_once(
            lambda at: self.law(at, z), y, form=shape.form, stepper=shape.stepper, dt=self.dt
        )
        return after

    def law_symbolic(self, x: Sequence[sp.Expr] | sp.Matrix) -> sp.Matrix:
        """`law` on SymPy expressions, first the states, then the latents."""
        if len(x) != self.states + self.latents:
            raise InvalidArgument(f"{len(x)} variables for {self.states} states and {self.latents} latents")
        scales = [fitted(s) for s in self.scales.tolist()]
        scaled = [h / s for h, s in zip(list(x)[: self.states], scales, strict=True)]
        inputs = [*scaled, *list(x)[self.states :], *[sp.S.One] * self.shape.constant_input]
        outputs = [e for network in self.equations for e in network.symbolic(inputs)]
        return sp.Matrix([s * e for s, e in zip(scales, outputs, strict=True)])

    @property
    def right_hand_side(self) -> RightHandSide:
        """The equations without the step, as a module to read: `Equation.read_all(cell.right_hand_side, ...)`
        gives f of `dy/dt = f(y, z)`, where the cell itself reads as the next states."""
        return RightHandSide(self)

    def symbolic(self, x: Sequence[sp.Expr] | sp.Matrix) -> sp.Matrix:
        """The whole step on SymPy expressions: a column with the next states."""
        y, z, dt = sp.Matrix(list(x)[: self.states]), list(x)[self.states :], fitted(self.dt)
        form, stepper = self.shape.form, self.shape.stepper
        return step_once(lambda at: self.law_symbolic([*at, *z]), y, form=form, stepper=stepper, dt=dt)

    def member(self, index: int) -> EQLCell:
        """One cell of the population, as a cell of its own (a copy)."""
        singles = [network.member(index) for network in self.equations]
        cell = EQLCell(
            self.states, self.latents, shape=self.shape, dt=self.dt, scales=self.scales, seed=0
        ).to(self.scales)
        cell.networks = nn.ModuleList(singles)
        return cell.train(self.training)


class RightHandSide(nn.Module):
    """What the equations of a `cell` say, with its weights: rates of change, or the next states of a map."""

    def __init__(self, cell: EQLCell) -> None:
        super().__init__()
        self.cell = cell

    @property
    def members(self) -> int | None:
        return self.cell.members

    def forward(
        self, y: Float[Tensor, "*any states rows"], z: Float[Tensor, "*any latents rows"]
    ) -> Float[Tensor, "*more states rows"]:
        return self.cell.law(y, z)

    def symbolic(self, x: Sequence[sp.Expr] | sp.Matrix) -> sp.Matrix:
        """The same on SymPy expressions, first the states, then the latents."""
        return self.cell.law_symbolic(x)

    def member(self, index: int) -> RightHandSide:
        """One of the population (a copy)."""
        return RightHandSide(self.cell.member(index))


def _apart(
    seed: int | Sequence[int] | None, number: int, members: int | None, networks: int
) -> list[int] | None:
    """Seeds of one network of several, different from those of the others."""
    if seed is None:
        return None
    return [s * max(16, networks) + number for s in member_seeds(seed, members)]


def rollout(
    cell: Any,
    state: Float[Tensor, "*any states rows"],
    latent: Float[Tensor, "*any latents rows"],
    steps: int,
) -> Float[Tensor, "*more steps states rows"]:
    """The `steps` states after `state`; `cell(state, latent)` gives the next one.

    Nothing is clipped: a cell that explodes gives infinities, which the training loop treats as that
    member's failure.
    """
    check_least("steps", steps)
    states = []
    for _ in range(steps):
        state = cell(state, latent)
        states.append(state)
    return torch.stack(states, dim=-3)
