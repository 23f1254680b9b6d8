"""A structure becomes an equation: which of its constants vary, where they stand, which are plain numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
import torch

from eqlearn.errors import NotFinite
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_ERROR, description_length
from eqlearn.search.candidate import formula_costs
from eqlearn.search.groups.group_fit import GroupFit, fit_from_many, fit_shared
from eqlearn.search.groups.group_settings import GroupSettings
from eqlearn.search.groups.rows import GroupedRows
from eqlearn.search.groups.sharing import shared, snapped
from eqlearn.search.groups.structure import FITTED, WRITTEN, Structure, independent, parametrisations
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import fitted, parts, reading_order, real_symbol
from eqlearn.symbolic.parametric import Constant, Formula, constant_symbol
from eqlearn.symbolic.varying import varying_name


@dataclass(frozen=True, eq=False)
class Draft:
    """An equation in the columns and in the names of its varying constants, and its fit to groups; the first
    parameters of the fit's structure are the equation's constants, the others the varying ones."""

    equation: Equation
    names: tuple[str, ...]
    fit: GroupFit

    @property
    def constants(self) -> tuple[Constant, ...]:
        """The common constants with their standard errors, in reading order."""
        count = len(self.equation.constants)
        pairs = zip(self.fit.values[0, :count].tolist(), self.fit.errors[0, :count].tolist(), strict=True)
        return tuple(Constant(value, error) for value, error in pairs)

    @property
    def length(self) -> float:
        """Nats for data, constants and equation together."""
        fit = self.fit
        if not math.isfinite(fit.error):
            return math.inf
        numbers, nodes, symbols = formula_costs([self.equation], [self.constants], fit.rows.rows)
        return description_length(fit.rows.rows, fit.error, numbers + fit.varying_cost, nodes, symbols)


def drafts_of(
    structure: Structure, own: GroupFit, group: str, settings: GroupSettings, stop: Callable[[], bool] = never
) -> list[Draft]:
    """The equations that a structure becomes, over the places where its constants may stand, the shortest
    description first; `own` is its first fit, with every constant each group's own."""
    found: list[Draft] = []
    for form in parametrisations(structure, own.rows.columns[:, :200], settings.max_parametrisations):
        if found and stop():
            break
        fit = own
        if form.key != own.structure.key:
            fit = fit_from_many(form, own.rows, form.start, settings.factors, steps=settings.steps, stop=stop)
        if fit.error <= max(own.error * 1.001, EXACT_ERROR):
            found += told(fit, group, settings, stop)
    return sorted(found, key=lambda d: d.length)


def told(fit: GroupFit, group: str, settings: GroupSettings, stop: Callable[[], bool]) -> list[Draft]:
    """The fit with constants shared, and the same with plain numbers."""
    few = shared(fit, settings.steps // 2, stop)
    plain, numbers = snapped(few, settings.steps // 4, stop)
    values = {i: float(v) for i, v in zip(numbers, few.values[0, few.common], strict=True)}
    both = [(few, values), (plain, numbers)] if numbers != values else [(few, values)]
    made = []
    for version, constants in both:
        try:
            made.append(written(version, constants, group, settings, stop))
        except NotFinite:
            continue
    return made


def written(
    fit: GroupFit,
    numbers: dict[int, sp.Expr | float],
    group: str,
    settings: GroupSettings,
    stop: Callable[[], bool] = never,
) -> Draft:
    """The fit as an equation, its common constants given by their places; what others can make up for is
    taken out, and the rest fitted once more."""
    structure, own = fit.structure, np.flatnonzero(~fit.common.numpy())
    values: dict[sp.Symbol, Any] = {
        structure.parameters[i]: v if isinstance(v, sp.Basic) else fitted(float(v))
        for i, v in numbers.items()
    }
    stand_in = [varying_name(k, group) for k in range(len(own))]
    values |= {structure.parameters[i]: real_symbol(stand_in[k]) for k, i in enumerate(own)}
    equation = Equation(structure.expr.xreplace(values), (*structure.variables, *stand_in)).simplified()
    start = dict(zip(stand_in, fit.values[:, own].T, strict=True))
    return refitted(equation, structure.variables, group, start, fit.rows, settings, stop)


def refitted(
    equation: Equation,
    columns: Sequence[str],
    group: str,
    start: dict[str, torch.Tensor],
    rows: GroupedRows,
    settings: GroupSettings,
    stop: Callable[[], bool] = never,
) -> Draft:
    """An equation in the columns and in varying constants, fitted from the values that these have in each
    group; they are named anew, in the order they are read."""
    while True:
        equation, start = _with_factors_inside(equation, start)
        equation, start = _renamed(equation, columns, group, start)
        structure = structure_of(equation, len(columns))
        count, names = len(equation.constants), equation.variables[len(columns) :]
        values = torch.empty(rows.count, count + len(names), dtype=torch.float64)
        values[:, :count] = torch.tensor(equation.constants, dtype=torch.float64)
        for k, name in enumerate(names):
            values[:, count + k] = start[name]
        some = rows.of_groups(torch.arange(min(settings.compared, rows.count)))
        loose = _made_up_for(structure, some, values)
        if loose is None:
            break
        simple = int(math.copysign(1, structure.start[loose]))
        numbers: list[Any] = list(map(fitted, equation.constants))
        if loose < len(numbers):
            numbers[loose] = sp.Integer(simple)
            equation = Formula.of(equation).with_constants(numbers).simplified()
        else:
            one = {real_symbol(names[loose - count]): sp.Integer(simple)}
            equation = Equation(equation.expr.xreplace(one), equation.variables).simplified()
    common = torch.arange(len(structure.parameters)) < count
    fit = fit_shared(structure, rows, common, values, steps=settings.steps, stop=stop)
    final = equation.with_constants(fit.values[0, :count].tolist()) if count else equation
    if len(final.constants) < count:  # a constant that became 0 or 1 exactly has gone
        final = equation
    return Draft(final, names, fit)


def structure_of(equation: Equation, columns: int) -> Structure:
    """An equation as the structure of its constants, common ones first, then the varying ones."""
    formula = Formula.of(equation)
    count, names = len(formula.constants), equation.variables[columns:]
    symbols = [constant_symbol(i) for i in range(count + len(names))]
    varying = {real_symbol(name): symbols[count + k] for k, name in enumerate(names)}
    expr = formula.filled(symbols[:count]).xreplace(varying)
    return Structure(
        expr, equation.variables[:columns], tuple(symbols),
        np.array([*formula.constants, *[1.0] * len(names)]), (WRITTEN,) * count + (FITTED,) * len(names),
    )  # fmt: skip


def _made_up_for(structure: Structure, some: GroupedRows, values: torch.Tensor) -> int | None:
    """A parameter that others can make up for, a common one before a varying one; none if there is none. The
    varying ones may differ between groups: in 20 - c1 + c1*exp(-x), nothing makes up for 20."""
    aside = 1 + 0.03 * torch.sin(
        1.0 + torch.arange(values.shape[1]) + 1.7 * torch.arange(some.count)[:, None]
    )
    slopes = structure(some.columns, (values[: some.count] * aside)[some.codes].T)[1]().numpy()
    usable = np.isfinite(slopes).all(axis=1)
    slopes, mine = slopes[usable], some.codes.numpy()[usable, None] == np.arange(some.count)
    own = [i for i, kind in enumerate(structure.kinds) if kind == FITTED]
    others = [i for i in range(len(structure.kinds)) if i not in own]
    columns = [np.ones((len(slopes), 0)), *(slopes[:, [i]] * mine for i in own), slopes[:, others]]
    chosen = independent(np.concatenate(columns, axis=1), range(len(own) * some.count + len(others)))
    kept = {
        own[k // some.count] if k < len(own) * some.count else others[k - len(own) * some.count]
        for k in chosen
    }
    left = [i for i in [*others, *own] if i not in kept]
    return left[0] if left and len(slopes) else None


def _with_factors_inside(
    equation: Equation, start: dict[str, torch.Tensor]
) -> tuple[Equation, dict[str, torch.Tensor]]:
    """The same with every number that multiplies nothing but a varying constant put into it, and without
    minus signs that cancel."""
    start, expr = dict(start), equation.expr.replace(lambda node: node.is_Mul, _upright)
    for name in start:
        symbol = real_symbol(name)
        holders = [node for node in parts(expr) if symbol in node.args]
        if len(holders) == 1 and isinstance(holders[0], sp.Mul):
            factor = sp.Mul(*(a for a in holders[0].args if a.is_number))
            if factor != 1 and not isinstance(factor, sp.Float):
                expr = expr.xreplace({holders[0]: holders[0] / factor})
                start[name] = start[name] * float(factor)
    return Equation(expr, equation.variables), start


def _upright(product: sp.Expr) -> Any:
    """a*(b + c) for -a*(-b - c)."""
    sums = [factor for factor in product.args if isinstance(factor, sp.Add)]
    negative = [s for s in sums if all(term.as_coeff_Mul()[0] < 0 for term in s.args)]
    if not negative or product.as_coeff_Mul()[0] > 0:
        return product
    others = [a for a in product.args if a is not negative[0]]
    return sp.Mul(-1, *others, sp.Add(*(-term for term in negative[0].args)))


def _renamed(
    equation: Equation, columns: Sequence[str], group: str, start: dict[str, torch.Tensor]
) -> tuple[Equation, dict[str, torch.Tensor]]:
    """The varying constants that the equation holds, named in the order they are read."""
    read = [s.name for s in _read_symbols(equation.expr) if s.name in start]
    new = {name: varying_name(k, group) for k, name in enumerate(read)}
    symbols = {real_symbol(old): real_symbol(name) for old, name in new.items()}
    renamed = Equation(equation.expr.xreplace(symbols), (*columns, *new.values()))
    return renamed, {new[name]: start[name] for name in read}


def _read_symbols(expr: sp.Expr) -> list[sp.Symbol]:
    """The symbols of an expression in the order in which they are first read."""
    order, found, stack = reading_order(expr), dict[sp.Symbol, None](), [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, sp.Symbol):
            found[node] = None
        stack.extend(reversed(order[node]))
    return list(found)
