"""The law of a state that is given, not found: a formula in the states and latents of a cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import sympy as sp
import torch
from jaxtyping import Float
from torch import Tensor, nn

from eqlearn.errors import EqlearnError, InvalidArgument, NotFinite, WrongType
from eqlearn.functions import TORCH
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.export import TrainableEquation
from eqlearn.symbolic.expressions import real_symbol, replace_constants
from eqlearn.symbolic.tape import lower
from eqlearn.validation.options import check_place, checked_choice, checked_names, did_you_mean

Formula: TypeAlias = str | Equation | TrainableEquation


class GivenLaw(nn.Module):
    """`(*any, variables, rows)` to `(*any, 1, rows)`: a formula in states and latents, in the user's units.

    Its constants stay as they are, or, if `trained`, are `constants` to begin with, for every member its own.
    """

    def __init__(self, equation: Equation, *, trained: bool, members: int | None = None) -> None:
        super().__init__()
        self.equation = equation
        self.tape = lower(equation.expr, [real_symbol(name) for name in equation.variables])
        self.trained = trained and len(equation.constants) > 0
        self.members = members if self.trained else None
        values = torch.tensor(equation.constants, dtype=torch.float64)
        values = values if self.members is None else values.repeat(self.members, 1)
        self.constants = nn.Parameter(values) if self.trained else None

    def forward(self, x: Float[Tensor, "*any variables rows"]) -> Float[Tensor, "*more 1 rows"]:
        if self.constants is None:
            numbers = x.new_tensor(self.equation.constants)
        else:
            numbers = self.constants.to(x.dtype)[..., None]
        value = self.tape.run(TORCH, x.unbind(-2), numbers.unbind(-1 if self.constants is None else -2))
        value = torch.as_tensor(value, dtype=x.dtype, device=x.device)
        whole = torch.broadcast_shapes(value.shape, (*x.shape[:-2], x.shape[-1]))
        return value.expand(whole).unsqueeze(-2)

    def present(self) -> Equation:
        """The formula with its present constants."""
        if self.constants is None:
            return self.equation
        values = self.constants.detach().double()
        if not bool(torch.isfinite(values).all()):
            raise NotFinite("a constant of a given law is NaN or infinite, so there is no equation")
        return self.equation.with_constants(values.tolist())

    def symbolic(self, x: Sequence[sp.Expr] | sp.Matrix) -> Any:
        """The formula on SymPy expressions, states and latents."""
        symbols = dict(zip(map(real_symbol, self.equation.variables), x, strict=True))
        return replace_constants(self.present().expr, {}, symbols)

    def member(self, index: int) -> GivenLaw:
        """That of one member, as a law of its own (a copy)."""
        single = GivenLaw(self.equation, trained=self.trained)
        if self.constants is not None and single.constants is not None and self.members is not None:
            check_place("member", index, self.members)
            single.constants.data.copy_(self.constants.detach()[index])
        return single


def check_given(given: Mapping[str, Formula]) -> None:
    """Refuses what is not a formula for each name."""
    if not isinstance(given, Mapping):
        raise WrongType(
            f"`given` must hold a formula for the name of each state, such as {{'x': 'v'}}, got {given!r}"
        )
    for state, formula in given.items():
        if not isinstance(formula, Formula):
            raise WrongType(
                f"`given[{state!r}]` must be a text such as '-9.81*x', an `Equation`, or its `torch()` if "
                f"its constants are to be trained, got {formula!r}"
            )


def read_given(
    given: Mapping[str, Formula], states: Sequence[str], latents: Sequence[str], members: int | None
) -> dict[int, GivenLaw]:
    """The laws that are given, by the place of their state."""
    if not given:
        return {}
    names, laws = checked_names([*states, *latents], "names of states and latents"), {}
    for state, formula in given.items():
        place = list(states).index(checked_choice("state", state, states))
        trained = isinstance(formula, TrainableEquation)
        laws[place] = GivenLaw(_in_names(state, formula, names), trained=trained, members=members)
    return laws


def _in_names(state: str, formula: Formula, names: Sequence[str]) -> Equation:
    """The formula as an equation in all states and latents."""
    try:
        if isinstance(formula, str):
            return Equation.parse(formula, names)
        if isinstance(formula, TrainableEquation):
            formula = Equation.read(formula, formula.variables, simplify=False)
    except EqlearnError as error:
        raise type(error)(f"`given[{state!r}]`: {error}") from error
    for symbol in formula.expr.free_symbols:
        if symbol.name not in names:
            raise InvalidArgument(
                f"`given[{state!r}]` has a variable {symbol.name!r}; {did_you_mean(symbol.name, names)}"
            )
    return Equation(formula.expr, names)
