"""A law of motion: for each state, a sum of terms with coefficients to be refined."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import sympy as sp
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from eqlearn.dynamics.forms import CellForm, step_once
from eqlearn.errors import InvalidArgument
from eqlearn.functions import TORCH
from eqlearn.latent.gauge import Gauge
from eqlearn.numerics.least_squares import linear_fit
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import fitted, real_symbol
from eqlearn.symbolic.tape import Tape, lower


@dataclass(frozen=True, eq=False)
class Law:
    """`coefficients @ basis(states, latents)`: next states (`form` "map") or rates of change.

    `active` says which terms are in the law; the others are exactly zero. The numbers inside basis terms,
    such as the 2 of `sin(2.0*u)`, are `inner`, in the order of the tapes.

    Laws of states that are given, by their place, neither gain nor lose terms: `held` are formulas that stay
    as they are; those of `tied` states are one term each, whose `inner` constants alone are refined. A latent
    in either has the units that it has there.

    It is no list of `Formula`s: all states share one basis, computed once for all of them, and a term is
    switched off without a new tape.
    """

    states: tuple[str, ...]
    latents: tuple[str, ...]
    basis: tuple[Any, ...]
    coefficients: Float[Tensor, "states terms"]
    active: Bool[Tensor, "states terms"]
    tapes: tuple[Tape, ...]
    inner: Float[Tensor, " constants"]
    form: CellForm = "residual"
    stepper: str = "rk4"
    dt: float = 1.0
    held: Mapping[int, Any] = field(default_factory=dict)
    tied: frozenset[int] = frozenset()

    @classmethod
    def of(
        cls,
        laws: Sequence[Any],
        states: Sequence[str],
        latents: Sequence[str],
        *,
        form: CellForm = "residual",
        stepper: str = "rk4",
        dt: float = 1.0,
        held: Collection[int] = (),
        tied: Collection[int] = (),
    ) -> Law:
        """From one SymPy expression per state, multiplied out into terms, unless it is given."""
        if len(laws) != len(states):
            raise InvalidArgument(f"{len(laws)} `laws` for {len(states)} states; give one for each")
        rows: list[dict[Any, float]] = []
        for place, law in enumerate(laws):
            row: dict[Any, float] = {}
            if place in tied:
                rows.append({law: 1.0})
                continue
            for term in sp.Add.make_args(sp.expand(_exactly(law) if place in held else law)):
                number, rest = term.as_coeff_Mul()
                row[rest] = row.get(rest, 0.0) + float(number)
            rows.append({m: c for m, c in row.items() if c != 0})
        basis = tuple(dict.fromkeys(m for row in rows for m in row))
        symbols = [real_symbol(name) for name in (*states, *latents)]
        tapes = tuple(lower(m, symbols) for m in basis)
        inner = torch.tensor([float(c) for tape in tapes for c in tape.constants], dtype=torch.float64)
        table = torch.tensor([[row.get(m, 0.0) for m in basis] for row in rows], dtype=torch.float64)
        table = table.reshape(len(rows), len(basis))
        # What is in a row is not zero.
        return cls(
            tuple(states), tuple(latents), basis, table, table != 0, tapes, inner, form, stepper, dt,
            {place: laws[place] for place in held}, frozenset(tied),
        )  # fmt: skip

    @staticmethod
    def products(
        states: Sequence[str],
        y: Float[Tensor, "rows states"],
        latents: Sequence[str],
        z: Float[Tensor, "latents rows"],
        targets: Float[Tensor, "rows outputs"],
    ) -> list[Any]:
        """For each target the sum of all products of two states, also times a latent, that is nearest."""
        symbols, hidden = ([sp.S.One, *map(real_symbol, names)] for names in (states, latents))
        seen, given = (torch.cat([torch.ones_like(x[:1]), x]) for x in (y.mT, z))
        places = [(i, j, k) for i in range(len(seen)) for j in range(i, len(seen)) for k in range(len(given))]
        columns = torch.stack([seen[i] * seen[j] * given[k] for i, j, k in places])
        terms = [symbols[i] * symbols[j] * hidden[k] for i, j, k in places]
        numbers = [linear_fit(columns, target).tolist() for target in targets.mT]
        return [sp.Add(*(fitted(c) * m for c, m in zip(row, terms, strict=True))) for row in numbers]

    @cached_property
    def exponents(self) -> Tensor | None:
        """The powers of each variable in each term, where all terms are monomials: these run much faster."""
        symbols = [real_symbol(name) for name in (*self.states, *self.latents)]
        rows = []
        for term in self.basis:
            powers = term.as_powers_dict()
            if not all(s in symbols and p.is_Integer and p > 0 for s, p in powers.items() if s != 1):
                return None
            rows.append([int(powers.get(s, 0)) for s in symbols])
        return torch.tensor(rows)

    @cached_property
    def free(self) -> Bool[Tensor, "states terms"]:
        """The terms whose coefficients a fit may change: those in the law that are not given."""
        given = torch.tensor([p in self.held or p in self.tied for p in range(len(self.states))])
        return self.active & ~given[:, None]

    @property
    def known(self) -> frozenset[str]:
        """The latents whose units a given law sets."""
        given = [law for p, law in enumerate(self._laws()) if p in self.held or p in self.tied]
        return frozenset(s.name for law in given for s in law.free_symbols) & set(self.latents)

    @property
    def terms(self) -> int:
        """How many terms the law has, over all states."""
        return int(self.active.sum())

    def rate(
        self,
        y: Float[Tensor, "states rows"],
        z: Float[Tensor, "latents rows"],
        coefficients: Tensor | None = None,
        inner: Tensor | None = None,
    ) -> Float[Tensor, "states rows"]:
        """What the law says at states and latents, with these numbers or its own."""
        coefficients = self.coefficients if coefficients is None else coefficients
        inner = self.inner if inner is None else inner
        if self.exponents is not None:
            return coefficients @ _monomials(torch.cat([y, z]), self.exponents)
        columns, tapes = [*y.unbind(), *z.unbind()], zip(self.tapes, self._by_tape(inner), strict=True)
        values = (tape.run(TORCH, columns, own.unbind()) for tape, own in tapes)
        rows = [torch.as_tensor(value, dtype=y.dtype).expand(y.shape[1:]) for value in values]
        return coefficients @ torch.stack(rows)

    def _by_tape(self, inner: Tensor) -> tuple[Tensor, ...]:
        return tuple(inner.split([len(tape.constants) for tape in self.tapes]))

    def __call__(
        self,
        y: Float[Tensor, "states rows"],
        z: Float[Tensor, "latents rows"],
        coefficients: Tensor | None = None,
        inner: Tensor | None = None,
        dt: Tensor | float | None = None,
    ) -> Float[Tensor, "states rows"]:
        """The states one `dt` later, with these numbers or the law's own."""
        dt = self.dt if dt is None else dt
        after: Tensor = step_once(
            lambda at: self.rate(at, z, coefficients, inner), y, form=self.form, stepper=self.stepper, dt=dt
        )
        return after

    def keeping(self, active: Bool[Tensor, "states terms"]) -> Law:
        """The law with only these of its terms, and those that are given."""
        kept = self.active & (active | ~self.free)
        return replace(self, active=kept, coefficients=torch.where(kept, self.coefficients, 0.0))

    def compact(self) -> Law:
        """The same law without the basis terms that no state uses."""
        return self._with(self._laws())

    def regauged(self, gauges: Sequence[Gauge]) -> Law:
        """The same law with each latent replaced by the parameter of its gauge, under the latent's name; one
        that is `known` keeps its own."""
        known, names = self.known, zip(self.latents, gauges, strict=True)
        back = {real_symbol(z): gauge.latent(real_symbol(z)) for z, gauge in names if z not in known}
        return self._with([law.subs(back, simultaneous=True) for law in self._laws()])

    def next_order(self, start: float = 1e-9, most: int = 12) -> Law:
        """The law with its terms also multiplied by each latent: the next order of an expansion in them. A
        residual, which is the change in a step of time, also gets the next order of its expansion in time:
        the terms of the law's change along itself, if there are at most so many.

        New terms start all but absent, for a fit to raise or leave.
        """
        laws, before = [], self._laws()
        for place, law in enumerate(before):
            if place in self.held or place in self.tied:
                laws.append(law)
                continue
            row, kept = self.coefficients[place].tolist(), self.active[place].tolist()
            mine = {m: c for c, m, on in zip(row, self.basis, kept, strict=True) if on}
            wider = [m * real_symbol(z) for m in mine for z in self.latents]
            if self.form == "residual":
                slopes = (sp.diff(law, real_symbol(name)) for name in self.states)
                along = sp.expand(sp.Add(*(s * f for s, f in zip(slopes, before, strict=True))))
                later = [term.as_coeff_Mul()[1] for term in sp.Add.make_args(along) if along != 0]
                wider += later if len(later) <= most else []
            new = {m: start for m in wider if m not in mine}
            laws.append(sp.Add(*(fitted(c) * m for m, c in (mine | new).items())))
        return self._with(laws)

    def equations(self) -> tuple[Equation, ...]:
        """The next state of each variable for a map or residual; its rate of change for an ODE."""
        laws = self._laws()
        if self.form == "residual":
            steps = zip(self.states, laws, strict=True)
            laws = [sp.expand(real_symbol(name) + fitted(self.dt) * law) for name, law in steps]
        return tuple(Equation(law, (*self.states, *self.latents)) for law in laws)

    def _with(self, laws: Sequence[Any]) -> Law:
        return Law.of(
            laws, self.states, self.latents, form=self.form, stepper=self.stepper, dt=self.dt,
            held=self.held, tied=self.tied,
        )  # fmt: skip

    def _laws(self) -> list[Any]:
        basis = self.basis
        if len(self.inner):
            terms = (Equation(m, (*self.states, *self.latents)) for m in basis)
            numbers = self._by_tape(self.inner)
            basis = tuple(e.with_constants(c.tolist()).expr for e, c in zip(terms, numbers, strict=True))
        laws = []
        for place, (row, kept) in enumerate(
            zip(self.coefficients.tolist(), self.active.tolist(), strict=True)
        ):
            mine = [(c, m) for c, m, on in zip(row, basis, kept, strict=True) if on]
            one = sp.Add(*(m if place in self.tied else fitted(c) * m for c, m in mine))
            laws.append(self.held.get(place, one))
        return laws


def _exactly(law: Any) -> Any:
    """The same law without constants that could be refined: every number as the fraction that it is."""
    return law.xreplace({number: sp.Rational(number) for number in law.atoms(sp.Float)})


def _monomials(x: Tensor, exponents: Tensor) -> Tensor:
    """`(terms, rows)`: products of powers of the variables `(variables, rows)`."""
    powers = [torch.ones_like(x), x]
    for _ in range(1, int(exponents.max())):
        powers.append(powers[-1] * x)
    table = torch.stack(powers, dim=1)
    value = table[0].index_select(0, exponents[:, 0])
    for variable in range(1, len(x)):
        value = value * table[variable].index_select(0, exponents[:, variable])
    return value
