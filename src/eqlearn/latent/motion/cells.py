"""The EQL cell: one step of time as equations, and the rollout that applies it to its own output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy as sp
import torch
from jaxtyping import Float
from torch import Tensor, nn

from eqlearn.dynamics.forms import STEPPERS, CellForm, step_once
from eqlearn.errors import InvalidArgument
from eqlearn.latent.motion.given import Formula, GivenLaw, check_given, read_given
from eqlearn.nn.by_hand import Gradients, Propagation, arrays, by_hand, on_arrays, transformed
from eqlearn.nn.eql import EQL, member_seeds
from eqlearn.nn.inits import Init
from eqlearn.nn.primitives import PAPER, PrimitivesLike
from eqlearn.symbolic.expressions import fitted
from eqlearn.validation.options import check_least, check_place, checked_choice
from eqlearn.validation.trajectories import latent_names


@dataclass(frozen=True, kw_only=True)
class CellShape:
    """What the equations of a cell are made of, and how they step; the defaults are the paper's.

    `shared` gives all states one network with common hidden layers instead of one each; `constant_input` adds
    an input that is always 1, as the released code does; `bias` gives every layer one.

    `given` are laws that are known, by the names of their states: formulas in the names of states and
    latents, `{"x": "v"}`, as text or `Equation`; of `equation.torch()` the constants are trained with the
    rest. They say what `law` says, the rate of change, or the next state of a map; only the laws of the other
    states are learned.
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
    given: Mapping[str, Formula] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        check_given(self.given)
        checked_choice("`form`", self.form, ("map", "residual", "ode"))
        checked_choice("`stepper`", self.stepper, STEPPERS)


PAPER_CELL = CellShape()


class EQLCell(nn.Module):
    """States `(states, rows)` and latents `(latents, rows)` to the states one `dt` later.

    Feature-major as `EQL.propagate`, with an axis of members before where there are `members`. `scales`
    divides each state before the equations see it; `symbolic` is in the user's units. `names` are those that
    the states have in given laws, x0, x1, ... by default; latents are called z, or z1, z2, ...
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
        names: Sequence[str] | None = None,
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
        self.names = tuple(f"x{place}" for place in range(states)) if names is None else tuple(names)
        if len(self.names) != states:
            raise InvalidArgument(f"{len(self.names)} `names` for {states} states; give one for each")
        given = read_given(shape.given, self.names, latent_names(latents), members)
        self.places = tuple(given)
        self.formulas = nn.ModuleList(given.values())
        self.learned = [place for place in range(states) if place not in given]
        outputs = [len(self.learned)] if shape.shared and self.learned else [1] * len(self.learned)
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

    @property
    def given(self) -> dict[int, GivenLaw]:
        """The laws that are given, by the place of their state."""
        return dict(zip(self.places, self.formulas, strict=True))  # type: ignore[arg-type]

    @property
    def known(self) -> frozenset[str]:
        """The latents whose units a given law sets, so that an encoder can't choose them."""
        used = {symbol.name for law in self.given.values() for symbol in law.equation.expr.free_symbols}
        return frozenset(used) & set(latent_names(self.latents))

    def inputs(self, y: Tensor, z: Tensor) -> Tensor:
        """What the networks see."""
        constant = [torch.ones_like(y[..., :1, :])] * self.shape.constant_input
        return torch.cat([y / self.scales[:, None], z, *constant], dim=-2)

    def law(
        self, y: Float[Tensor, "*any states rows"], z: Float[Tensor, "*any latents rows"]
    ) -> Float[Tensor, "*more states rows"]:
        """What the equations say: the next states of a map, else the rate of change."""
        scales, inputs = self.scales[:, None], self.inputs(y, z)
        found = [network.propagate(inputs) for network in self.equations]
        if not self.places:
            return scales * torch.cat(found, dim=-2)
        variables = torch.cat([y, z], dim=-2)
        laws = {place: formula(variables) for place, formula in self.given.items()}
        if self.learned:
            rows = (scales[self.learned] * torch.cat(found, dim=-2)).split(1, dim=-2)
            laws |= dict(zip(self.learned, rows, strict=True))
        whole = torch.broadcast_shapes(*(row.shape for row in laws.values()))
        return torch.cat([laws[place].expand(whole) for place in range(self.states)], dim=-2)

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
        laws = {place: formula.symbolic(list(x)) for place, formula in self.given.items()}
        laws |= {place: scales[place] * e for place, e in zip(self.learned, outputs, strict=True)}
        return sp.Matrix([laws[place] for place in range(self.states)])

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
        check_place("member", index, self.members or 0)
        cell = deepcopy(self)
        cell.members = None
        cell.networks = nn.ModuleList(network.member(index) for network in self.equations)
        cell.formulas = nn.ModuleList(formula.member(index) for formula in self.given.values())
        return cell


class RightHandSide(nn.Module):
    """What the equations of a `cell` say, with its weights: rates of change, or the next states of a map."""

    def __init__(self, cell: Any) -> None:
        super().__init__()
        self.cell = cell

    @property
    def members(self) -> int | None:
        found: int | None = self.cell.members
        return found

    def forward(
        self, y: Float[Tensor, "*any states rows"], z: Float[Tensor, "*any latents rows"]
    ) -> Float[Tensor, "*more states rows"]:
        found: Tensor = self.cell.law(y, z)
        return found

    def symbolic(self, x: Sequence[sp.Expr] | sp.Matrix) -> sp.Matrix:
        """The same on SymPy expressions, first the states, then the latents."""
        found: sp.Matrix = self.cell.law_symbolic(x)
        return found

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


class Unrolled:
    """The rollout of a cell as one step of autograd, on arrays; its networks go through as members of one."""

    def __init__(self, cell: EQLCell, steps: int) -> None:
        self.cell, self.steps = cell, steps
        self.parts = [Propagation(network) for network in cell.equations]
        self.raw = [raw for part in self.parts for raw in part.inputs]
        self.maps = len(self.parts[0].inputs)
        self.keeps = cell.shape.form == "residual"
        self.gain = cell.scales[:, None] * (cell.dt if self.keeps else 1.0)

    @classmethod
    def of(cls, cell: EQLCell, y: Tensor, z: Tensor, steps: int) -> Unrolled | None:
        """The rule, where there is no more to it: no given law, gate or hook."""
        looked_at = cell._forward_hooks or cell._forward_pre_hooks or cell._backward_hooks
        if looked_at or cell.places or cell.shape.form == "ode" or not (cell.training and cell.networks):
            return None
        gated = any(linear.gate is not None for network in cell.equations for linear in network.linears)
        lead = () if cell.members is None else (cell.members,)
        alike = y.shape[:-2] == z.shape[:-2] == lead and y.dtype == z.dtype == cell.scales.dtype
        hooked = any(network.hooked for network in cell.equations)
        if gated or hooked or not alike or not torch.is_grad_enabled() or transformed(y):
            return None
        rule = cls(cell, steps)
        return rule if on_arrays(cell.equations[0], y, rule.raw) else None

    def plain(self, y: Tensor, z: Tensor, *raw: Tensor) -> Tensor:
        states = []
        for _ in range(self.steps):
            x = self.cell.inputs(y, z)
            pieces = (raw[i : i + self.maps] for i in range(0, len(raw), self.maps))
            found = [part.plain(x, *own) for part, own in zip(self.parts, pieces, strict=True)]
            change = self.gain * torch.cat(found, dim=-2)
            y = y + change if self.keeps else change
            states.append(y)
        return torch.stack(states, dim=-3)

    def forward(self, y: Tensor, z: Tensor, *raw: Tensor) -> tuple[Tensor, Any]:
        network, nets, lead = self.cell.equations[0], len(self.parts), self.cell.members or 1
        masks, own = self._stacked([m for part in self.parts for m in part.masks]), self._stacked(raw)
        weights = [np.where(mask, w, 0.0) for mask, w in zip(masks, own, strict=True)]
        now, latents, gain, scales = arrays(y, z, self.gain, self.cell.scales[:, None])
        n, rows = now.shape[-2:]
        x = np.ones((self.steps, nets * lead, network.in_features + network.bias, rows), now.dtype)
        apart = x.reshape(self.steps, nets, lead, -1, rows)
        apart[..., n : n + latents.shape[-2], :] = latents
        shown, shaped = torch.from_numpy(x[0, :, : network.in_features]), [torch.from_numpy(w) for w in own]
        plans = [self.parts[0].plan(shown, shaped) for _ in range(self.steps)]
        states = np.empty((*now.shape[:-2], self.steps, n, rows), now.dtype)
        found = np.empty((nets * lead, network.out_features, rows), now.dtype)
        with np.errstate(all="ignore"):
            for t, plan in enumerate(plans):
                apart[t, ..., :n, :] = now / scales
                plan.forward(weights, (x[t], x[t, :, : network.in_features]), found)
                change = gain * found.reshape(nets, lead, -1, rows).swapaxes(0, 1).reshape(now.shape)
                now = now + change if self.keeps else change
                states[..., t, :, :] = now
        return torch.from_numpy(states), (plans, weights, masks, x, gain, scales)

    def backward(self, dy: Tensor, kept: Any, inputs: Sequence[Tensor], wanted: Sequence[bool]) -> Gradients:
        (y, z, *raw), (plans, weights, masks, x, gain, scales) = inputs, kept
        network, nets, (n, rows) = self.cell.equations[0], len(self.parts), y.shape[-2:]
        sums, found = [np.zeros_like(w) for w in weights], [np.empty_like(w) for w in weights]
        told, d, dz = dy.numpy(), *arrays(torch.zeros_like(y), torch.zeros_like(z))
        dx = np.empty((x.shape[1], network.in_features, rows), d.dtype)
        with np.errstate(all="ignore"):
            for t in reversed(range(self.steps)):
                d = d + told[..., t, :, :]
                of_nets = (gain * d).reshape(x.shape[1] // nets, nets, -1, rows).swapaxes(0, 1)
                given = x[t], x[t, :, : network.in_features]
                plans[t].backward(weights, given, of_nets.reshape(x.shape[1], -1, rows), found, dx)
                for total, each in zip(sums, found, strict=True):
                    total += each
                of_inputs = dx.reshape(nets, *y.shape[:-2], -1, rows).sum(axis=0)
                dz += of_inputs[..., n : n + z.shape[-2], :]
                d = of_inputs[..., :n, :] / scales + (d if self.keeps else 0.0)
        network.scratch.extend(plans)
        sums = [np.where(mask, total, 0.0) for mask, total in zip(masks, sums, strict=True)]
        pieces = (sums[k].reshape(nets, *raw[k].shape)[i] for i in range(nets) for k in range(self.maps))
        return torch.from_numpy(d), torch.from_numpy(dz), *map(torch.from_numpy, pieces)

    def _stacked(self, of: Sequence[Tensor]) -> list[Any]:
        """Each map of all networks, one network's members after the other's."""
        flat = [one.reshape(-1, *one.shape[-2:]) for one in arrays(*of)]
        return [np.concatenate(flat[k :: self.maps]) for k in range(self.maps)]


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
    if isinstance(cell, EQLCell) and (rule := Unrolled.of(cell, state, latent, steps)) is not None:
        return by_hand(rule, state, latent, *rule.raw)
    states = []
    for _ in range(steps):
        state = cell(state, latent)
        states.append(state)
    return torch.stack(states, dim=-3)
