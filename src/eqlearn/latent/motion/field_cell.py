"""The EQL cell of fields: one step of time of a partial differential equation, the same at every point."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy

import numpy as np
import sympy as sp
import torch
from jaxtyping import Float
from torch import Tensor, nn

from eqlearn.dynamics.forms import step_once
from eqlearn.errors import InvalidArgument
from eqlearn.fields.terms import Names, Order, orders
from eqlearn.latent.motion.cells import CellShape, RightHandSide
from eqlearn.nn.eql import EQL
from eqlearn.numerics.grids import local_polynomials, polynomial_weights, spectral
from eqlearn.symbolic.expressions import fitted
from eqlearn.validation.options import check_place, check_whole, checked_choice
from eqlearn.validation.trajectories import latent_names

FIELD_CELL = CellShape(form="ode")


class Kernel(nn.Module):
    """A stencil for the derivative of some `order` on a grid with equal steps, whose weights are learned.

    Its moments up to `order + 1` stay those of the derivative, so that polynomials of this degree are
    differentiated exactly, whatever is learned (PDE-Net: Long et al. 2018).
    """

    plain: Tensor
    free: Tensor

    def __init__(self, half: int, order: int, step: float, members: int | None = None) -> None:
        super().__init__()
        if 2 * half < order + 2:
            raise InvalidArgument(f"a stencil of {half} points to each side has no free weight for {order}")
        places = np.arange(-half, half + 1.0)
        plain = polynomial_weights(places, np.zeros(1), 2 * half, order)[0] / step**order
        moments = places ** np.arange(order + 2)[:, None]
        free = np.linalg.svd(moments)[2][order + 2 :] / step**order
        self.members = members
        self.register_buffer("plain", torch.from_numpy(plain).float())
        self.register_buffer("free", torch.from_numpy(free).float())
        lead = () if members is None else (members, 1)
        self.moved = nn.Parameter(torch.zeros(*lead, len(free)))

    @property
    def weights(self) -> Float[Tensor, "*members places"]:
        """What each place of the stencil counts."""
        found: Tensor = self.plain + self.moved @ self.free
        return found


class FieldCell(nn.Module):
    """Fields `(fields * points, rows)` and latents `(latents, rows)` to the fields one `dt` later.

    Feature-major as `EQLCell`, so that it unrolls and trains as that does; the points of a field are those of
    its grid, the last axis fastest. One `EQL`, the same at every point, sees `variables`: the fields, their
    derivatives in space up to an order, and the latents, each divided by its `scales`. Derivatives are
    spectral along `periodic` axes, of local polynomials along others, at whose ends the fields stay as they
    are; with `kernels`, a stencil of so many points to each side is learned for each derivative.
    """

    scales: Tensor
    inside: Tensor

    def __init__(
        self,
        fields: Sequence[str],
        axes: Mapping[str, np.ndarray],
        latents: int = 0,
        *,
        derivatives: int = 2,
        periodic: Iterable[str] = (),
        kernels: int = 0,
        shape: CellShape = FIELD_CELL,
        dt: float = 1.0,
        substeps: int = 1,
        members: int | None = None,
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        check_whole("derivatives", derivatives)
        check_whole("substeps", substeps)
        around = {checked_choice("axis of space", a, axes) for a in periodic}
        self.names = Names(tuple(fields), (*axes, "t"))
        self.grid = tuple(len(values) for values in axes.values())
        self.latents, self.dt, self.substeps, self.members = latents, dt, substeps, members
        self.shape, self.kernels = shape, nn.ModuleDict()
        self.orders = [order[:-1] for order in orders(len(axes), derivatives)]
        self.variables = (
            *(self.names.jet(k, (*o, 0)) for k in range(len(fields)) for o in self.orders),
            *latent_names(latents),
        )
        inside = torch.ones(self.grid, dtype=torch.bool)
        for place, (axis, values) in enumerate(axes.items()):
            if axis not in around:
                inside.index_fill_(place, torch.tensor([0, len(values) - 1]), False)
            for count in range(1, derivatives + 1):
                self._add_derivative(
                    place, axis, np.asarray(values, dtype=np.float64), count, around, kernels
                )
        self.register_buffer("inside", inside.flatten().float())
        self.register_buffer("scales", torch.ones(len(self.variables)))
        self.network = EQL(
            len(self.variables), len(fields), shape.primitives, shape.hidden_layers, members=members,
            skip=shape.skip, bias=shape.bias, gates=shape.gates, init=shape.init, seed=seed,
        )  # fmt: skip

    def _add_derivative(
        self, place: int, axis: str, points: np.ndarray, count: int, around: set[str], half: int
    ) -> None:
        size = len(points)
        step = float(points[-1] - points[0]) / (size - 1)
        if axis in around:
            matrix = spectral(np.eye(size), 0, step * size, count)
        else:
            width = max(2, (count + 3) // 2)
            matrix = local_polynomials(points, count, width, degree=2 * width).toarray()
        if half:
            # Where a stencil would reach over an end, the derivative is that of local polynomials.
            self.kernels[f"{place}_{count}"] = Kernel(half, count, step, self.members)
            if axis in around:
                matrix = np.zeros_like(matrix)
            else:
                matrix[half : size - half] = 0.0
            shifts = np.stack([np.roll(np.eye(size), k, axis=1) for k in range(-half, half + 1)])
            shifts[:, np.abs(matrix).sum(axis=1) > 0] = 0.0
            self.register_buffer(f"shifts_{place}_{count}", torch.from_numpy(shifts).float())
        self.register_buffer(f"matrix_{place}_{count}", torch.from_numpy(matrix).float())

    def _derivative(self, values: Tensor, place: int, count: int) -> Tensor:
        """Along one axis of `(*any, fields, *grid, rows)`."""
        matrix: Tensor = self.get_buffer(f"matrix_{place}_{count}")
        key = f"{place}_{count}"
        if key in self.kernels:
            weights: Tensor = self.kernels[key].weights  # type: ignore[assignment]
            shifts = self.get_buffer(f"shifts_{key}")
            matrix = matrix + (weights @ shifts.flatten(1)).unflatten(-1, shifts.shape[1:])
        axis = place - len(self.grid) - 1
        moved = values.movedim(axis, -2)
        while self.members is not None and 2 < matrix.dim() < moved.dim():
            matrix = matrix.unsqueeze(1)
        return (matrix @ moved).movedim(-2, axis)

    def features(self, y: Float[Tensor, "*any states rows"]) -> Float[Tensor, "*any derivatives points_rows"]:
        """The fields and their derivatives at every point."""
        values = y.unflatten(-2, (len(self.names.fields), *self.grid))
        known: dict[Order, Tensor] = {(0,) * len(self.grid): values}
        for order in self.orders[1:]:
            place = next(k for k, count in enumerate(order) if count)
            rest = tuple(0 if k == place else count for k, count in enumerate(order))
            known[order] = self._derivative(known[rest], place, order[place])
        every = torch.stack([known[o].flatten(-len(self.grid) - 1) for o in self.orders], dim=-2)
        return every.flatten(-3, -2)

    def law(
        self, y: Float[Tensor, "*any states rows"], z: Float[Tensor, "*any latents rows"]
    ) -> Float[Tensor, "*more states rows"]:
        """What the equations say: the rates of change."""
        points = math.prod(self.grid)
        everywhere = z.unsqueeze(-2).expand(*z.shape[:-1], points, z.shape[-1]).flatten(-2)
        inputs = torch.cat([self.features(y), everywhere], dim=-2) / self.scales[:, None]
        found = self.network.propagate(inputs).unflatten(-1, (points, y.shape[-1]))
        rates: Tensor = (found * self.inside[:, None]).flatten(-3, -2)
        return rates

    def forward(
        self, y: Float[Tensor, "*any states rows"], z: Float[Tensor, "*any latents rows"]
    ) -> Float[Tensor, "*more states rows"]:
        for _ in range(self.substeps):
            y = step_once(
                lambda at: self.law(at, z), y, form=self.shape.form, stepper=self.shape.stepper,
                dt=self.dt / self.substeps,
            )  # fmt: skip
        return y

    def law_symbolic(self, x: Sequence[sp.Expr] | sp.Matrix) -> sp.Matrix:
        """`law` on SymPy expressions for `variables`; its boundaries are not part of it."""
        if len(x) != len(self.variables):
            raise InvalidArgument(f"{len(x)} values for the variables {list(self.variables)}")
        scaled = [value / fitted(s) for value, s in zip(list(x), self.scales.tolist(), strict=True)]
        return sp.Matrix(list(self.network.symbolic(scaled)))

    @property
    def right_hand_side(self) -> RightHandSide:
        """The equations, as a module to read: `Equation.read_all(cell.right_hand_side, cell.variables)`."""
        return RightHandSide(self)

    def member(self, index: int) -> FieldCell:
        """One cell of the population, as a cell of its own (a copy)."""
        check_place("member", index, self.members or 0)
        cell = deepcopy(self)
        cell.members, cell.network = None, self.network.member(index)
        for kernel in cell.kernels.values():
            assert isinstance(kernel, Kernel)
            kernel.members, kernel.moved = None, nn.Parameter(kernel.moved.detach()[index, 0])
        return cell
