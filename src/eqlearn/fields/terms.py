"""Terms of an equation for fields: derivatives of products, and their expansion in u, u_x, u_xx, ..."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from eqlearn.dynamics.library import monomials
from eqlearn.symbolic.expressions import real_symbol

Order = tuple[int, ...]  # how often along each axis, time last


@dataclass(frozen=True)
class Jet:
    """A derivative of one field, such as u_xx, taken at points."""

    field: int
    order: Order


@dataclass(frozen=True)
class Term:
    """The derivative of some `order` of a product of `powers` of the fields and of `factors`, times a
    coordinate to some power: `weight` is (axis, power).

    Derivatives of products of powers are integrated by parts, so that no noisy field is differentiated;
    factors are derivatives at points, which clean data have.
    """

    powers: tuple[int, ...]
    order: Order
    factors: tuple[Jet, ...] = ()
    weight: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Names:
    """The names of fields and axes, and the symbols of derivatives made of them."""

    fields: tuple[str, ...]
    axes: tuple[str, ...]

    def jet(self, field: int, order: Order) -> str:
        """The name of a derivative: u, u_x, u_xxy."""
        suffix = "".join(axis * count for axis, count in zip(self.axes, order, strict=True))
        return f"{self.fields[field]}_{suffix}" if suffix else self.fields[field]

    def read(self, name: str) -> Jet | None:
        """The derivative of that name, or nothing for an axis."""
        for field, known in enumerate(self.fields):
            if name == known:
                return Jet(field, (0,) * len(self.axes))
            if name.startswith(f"{known}_"):
                rest, order = name[len(known) + 1 :], [0] * len(self.axes)
                while rest:
                    place = max(
                        (k for k, axis in enumerate(self.axes) if rest.startswith(axis)),
                        key=lambda k: len(self.axes[k]),
                    )
                    rest = rest[len(self.axes[place]) :]
                    order[place] += 1
                return Jet(field, tuple(order))
        return None

    def expanded(self, expr: Any, order: Order) -> Any:
        """The derivative of an expression in fields, derivatives and axes, written out by the chain rule."""
        for place, count in enumerate(order):
            for _ in range(count):
                expr = self._once(expr, place)
        return sp.expand(expr) if any(order) else expr

    def _once(self, expr: Any, place: int) -> Any:
        found = sp.diff(expr, real_symbol(self.axes[place]))
        for symbol in expr.free_symbols:
            jet = self.read(symbol.name)
            if jet is not None:
                higher = tuple(n + (k == place) for k, n in enumerate(jet.order))
                found += sp.diff(expr, symbol) * real_symbol(self.jet(jet.field, higher))
        return found

    def product(self, term: Term) -> Any:
        """The product that a term is the derivative of."""
        fields = zip(self.fields, term.powers, strict=True)
        powers = [real_symbol(n) ** p for n, p in fields]
        return sp.Mul(*powers, *(real_symbol(self.jet(f.field, f.order)) for f in term.factors))

    def expression(self, term: Term) -> tuple[int, Any]:
        """A term as a whole number times a sum in which no number divides all: (2, u*u_x) for (u²)_x."""
        whole = self.expanded(self.product(term), term.order)
        content, rest = sp.factor_terms(whole).as_coeff_Mul()
        axis, power = term.weight
        return int(content), sp.expand(rest) * real_symbol(self.axes[axis]) ** power


def carried(term: Term, field: int) -> tuple[Term, Term] | None:
    """For the slope (u*w)_x of a product with a `field` w, its parts u_x and u*w_x."""
    pair = [k for k, p in enumerate(term.powers) if p == 1]
    if term.factors or term.weight[1] or sum(term.order) != 1 or sum(term.powers) != 2 or len(pair) != 2:
        return None
    if field not in pair:
        return None
    flow = tuple(p * int(k != field) for k, p in enumerate(term.powers))
    return Term(flow, term.order), Term(flow, (0,) * len(term.order), (Jet(field, term.order),))


def orders(dimensions: int, most: int) -> list[Order]:
    """The derivatives in space up to an order, the lowest first; none in time."""
    return [(*o, 0) for o in sorted(monomials(dimensions, most), key=lambda o: (sum(o), o[::-1]))]


def conserved(fields: int, dimensions: int, degree: int, highest: int, time_order: int) -> list[Term]:
    """Derivatives of products of fields; in several dimensions those of products go no further than the
    second. With `time_order` 2, fields may be damped."""
    terms = []
    for powers in monomials(fields, degree):
        most = 0 if sum(powers) == 0 else highest if dimensions == 1 or sum(powers) == 1 else min(highest, 2)
        terms += [Term(powers, order) for order in orders(dimensions, most)]
    if time_order > 1:
        slow = (*(0,) * dimensions, 1)
        terms += [Term(p, slow) for p in monomials(fields, degree) if sum(p) >= 1]
    return terms


def weighted(fields: int, axes: Sequence[tuple[int, Sequence[int]]], highest: int) -> list[Term]:
    """Low terms times powers of coordinates: x, x*u, x**2*v, u_x/x; `axes` are places and their powers."""
    none = (0,) * max(place + 1 for place, _ in axes)
    found = []
    for place, powers in axes:
        for power in powers:
            found.append(Term((0,) * fields, none, (), (place, power)))
            for powers_of in monomials(fields, 1)[1:]:
                for order in orders(len(none) - 1, min(highest, 2)):
                    found.append(Term(powers_of, order, (), (place, power)))
    return found


def pointwise(fields: int, dimensions: int, highest: int) -> list[Term]:
    """Products with derivatives that can't be integrated by parts: v*u_x, u*u_xx, u_x**2, (u*v_x)_x."""
    first, none = orders(dimensions, 1)[1:], orders(dimensions, 0)[0]
    second = [o for o in orders(dimensions, min(2, highest)) if sum(o) == 2]
    return list(dict.fromkeys(_pointwise(fields, first, second, none)))


def _pointwise(fields: int, first: Sequence[Order], second: Sequence[Order], none: Order) -> Iterator[Term]:
    nothing = (0,) * fields
    for u, v in itertools.product(range(fields), repeat=2):
        carried = tuple(int(k == v) for k in range(fields))
        if u != v:
            yield from (Term(carried, none, (Jet(u, o),)) for o in first)
            yield from (Term(carried, o, (Jet(u, o),)) for o in first)
        yield from (Term(carried, none, (Jet(u, o),)) for o in second)
        if u <= v:
            yield from (Term(nothing, none, (Jet(u, o), Jet(v, o))) for o in first)
            for w in range(fields):
                third = tuple(int(k == w) for k in range(fields))
                yield from (Term(third, none, (Jet(u, o), Jet(v, o))) for o in first)
    for u in range(fields):
        twice = tuple(2 * int(k == u) for k in range(fields))
        yield from (Term(twice, none, (Jet(u, o),)) for o in second)
