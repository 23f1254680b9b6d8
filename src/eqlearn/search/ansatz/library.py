"""A library of elementary functions of simple arguments, evaluated on the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, product, takewhile

import torch
from torch import Tensor

from eqlearn.nn.primitives import Plain, Primitive
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_MATCH
from eqlearn.numerics.least_squares import linear_fit
from eqlearn.search.ansatz.layout import Ansatz, Sum, Unit
from eqlearn.search.ansatz.matching_pursuit import match
from eqlearn.search.networks.starts import angular_frequency
from eqlearn.search.problem import Problem


@dataclass(frozen=True)
class Atom:
    """A simple expression in the user's units: its values, how a network computes it, what it is made of.

    The depth includes the layers of squares and products that its inputs stand for; the cost says how complex
    it is.
    """

    value: Tensor
    term: Sum
    key: str
    depth: int = 0
    cost: int = 1

    def inside(self, primitive: Primitive, value: Tensor, factor: float = 1.0, cost: int = 1) -> Atom:
        """The function of this atom times a factor that has these values."""
        term = Sum.of(Unit(primitive, (self.term * factor,)))
        return Atom(value, term, f"{primitive.name}({self.key})", self.depth + 1, self.cost + cost)

    def plus(self, step: float) -> Atom:
        """The atom with a number added."""
        key = f"{self.key}{step:+.0f}"
        return Atom(self.value + step, self.term + Sum((), (), step), key, self.depth, self.cost + 1)


_MOVES = [moves for moves in product((0.0, 1.0, -1.0), repeat=2) if any(moves)]


class Atoms:
    """The atoms of a problem, in groups; fewer of them if `stop()` holds."""

    def __init__(self, problem: Problem, stop: Callable[[], bool] = never) -> None:
        self.problem, self.stop = problem, stop
        self.features, self.library = problem.features, problem.settings.library
        self.named, self.unary = problem.vocabulary.named, problem.vocabulary.unary

    @cached_property
    def columns(self) -> list[Atom]:
        """The columns themselves."""
        return [self._input(i, f"x{i}", 0) for i in range(len(self.features.scales))]

    @cached_property
    def quadratics(self) -> list[Atom]:
        """Squares and products of two columns."""
        places = self.features.polynomials(2)[len(self.columns) :]
        return [self._input(p, "".join(f"x{i}" for i in self.features.factors(p)), 1) for p in places]

    @cached_property
    def powers(self) -> list[Atom]:
        """Third and fourth powers of columns."""
        places = self.features.polynomials(4)[len(self.columns) :]
        factors = ((place, self.features.factors(place)) for place in places)
        return [self._input(p, f"x{f[0]}^{len(f)}", 2) for p, f in factors if len(f) > 2 and len(set(f)) == 1]

    def _input(self, place: int, key: str, depth: int) -> Atom:
        size = self.features.size(place)
        return Atom(self.problem.samples.x[place] * size, Sum(((place, size),)), key, depth, depth + 1)

    def monomials(self) -> list[Atom]:
        """Products and quotients of columns that are positive: the exponential of a sum of their
        logarithms."""
        logs, exponential = self.features.logarithms, self.named("exp")
        if exponential is None or not logs:
            return []
        out: list[Atom] = []
        for count in range(1, len(logs) + 1):
            group = list(combinations(range(len(logs)), count))
            if len(out) + len(group) * 2**count > self.library.max_monomials:
                break
            for chosen, powers in product(group, product((1.0, -1.0), repeat=count)):
                if all(p == 1 for p in powers) and count < 3:
                    continue  # columns and quadratics hold those
                pairs = list(zip(powers, chosen, strict=True))
                size = sum(p * math.log(self.features.scales[logs[k]]) for p, k in pairs)
                inputs = tuple((self.features.logarithm_inputs[k], p) for p, k in pairs)
                unit = Unit(exponential, (Sum(inputs, (), size),))
                key = "".join(f"x{logs[k]}^{p:g}" for p, k in pairs)
                out.append(Atom(unit.value(self.problem.samples.x), Sum.of(unit), key, 1, 1 + count))
        return out

    def sums(self) -> Iterator[Atom]:
        """Sums and differences of two out of 1, columns and their products."""
        ratios = self.library.ratios if len(self.columns) < 4 else (1.0,)
        return pairs_of([self.one, *self.columns, *self.quadratics], ratios)

    @cached_property
    def one(self) -> Atom:
        """The number 1, for sums such as 1 + x²."""
        x = self.problem.samples.x
        return Atom(torch.ones(x.shape[1], dtype=x.dtype), Sum((), (), 1.0), "1", cost=0)

    def arguments(self, most: int) -> list[Atom]:
        """What functions are taken of: columns, products, sums and differences, quotients; the simplest."""
        polynomials = [*self.columns, *self.quadratics]
        out = [*polynomials, *pairs_of(self.columns), *self.monomials()]
        count = len(self.columns)
        out += self.powers if count < 3 else ()
        out += pairs_of(polynomials) if count < 5 else ()
        out += self._shifted_products() if count < 5 else ()
        out += self._quotients(polynomials) if count < 4 else ()
        return sorted({a.key: a for a in out}.values(), key=lambda a: a.cost)[:most]

    def _quotients(self, arguments: Sequence[Atom]) -> Iterator[Atom]:
        """One argument over another that stays away from zero."""
        over = self.named("div")
        if over is None:
            return
        for below in arguments:
            size = below.value.abs()
            if float(size.min()) >= self.library.min_divisor * float(size.max()):
                others = (above for above in arguments if above is not below)
                yield from (joined(over, above, below, f"{above.key}/{below.key}") for above in others)

    def _shifted_products(self) -> Iterator[Atom]:
        """Products of two columns of which one or both are first moved by 1."""
        times = self.named("mul")
        if times is None:
            return
        for (first, second), (b, c) in product(combinations(self.columns, 2), _MOVES):
            left, right = first.plus(b), second.plus(c)
            yield joined(times, left, right, f"({left.key})({right.key})")

    def functions(self) -> Iterator[Atom]:
        """Functions of simple arguments, as long as there is time for more."""
        arguments = self.arguments(self.library.max_arguments)
        return until(self.stop, self.functions_of(arguments, fine=len(arguments) < self.library.max_fine))

    def functions_of(self, arguments: Sequence[Atom], fine: bool) -> Iterator[Atom]:
        """Every primitive whose scale matters, of every argument times factors; more of them if `fine`."""
        library = self.library
        low, high = library.argument_sizes
        for primitive in self.unary:
            if homogeneous(primitive):
                continue
            wave = angular_frequency(primitive)
            rate = wave or 1.0
            plain = [f / rate for f in (library.turns if wave else library.factors)]
            slopes = library.relative_slopes if len(arguments) < 20 else library.relative_factors
            grid = (library.relative_turns if wave else slopes) if fine else ()
            for argument in arguments:
                size = float(argument.value.abs().max()) or 1.0
                factors = [(f, 1 + (f != 1.0 / rate)) for f in plain if low < f * size * rate < high]
                factors += [(f / size / rate, 4) for f in grid]
                if not parity(primitive):
                    factors += [(-f, c) for f, c in factors]
                scales = torch.tensor([f for f, _ in factors], dtype=torch.float64)
                values = primitive(scales[:, None] * argument.value)
                finite = torch.isfinite(values).all(dim=1).tolist()
                for (factor, cost), value, good in zip(factors, values, finite, strict=True):
                    if good:
                        yield argument.inside(primitive, value, factor, cost)

    def roots(self, arguments: Iterable[Atom], primitives: Iterable[Primitive]) -> Iterator[Atom]:
        """Every primitive whose scale does not matter, of sums whose sign does not change."""
        kinds = [p for p in primitives if homogeneous(p) and p.name != "id"]
        for argument in until(self.stop, arguments):
            sign = -1.0 if bool((argument.value < 0).all()) else 1.0
            for primitive in kinds:
                value = primitive(sign * argument.value)
                finite = bool(torch.isfinite(value).all())
                if finite and float(value.abs().max()) < self.library.max_peak * float(value.abs().mean()):
                    yield argument.inside(primitive, value, sign)

    def simplest(self, atoms: Iterable[Atom]) -> list[Atom]:
        """As many as the library may hold."""
        return sorted(atoms, key=lambda a: a.cost)[: self.library.max_atoms]


def joined(primitive: Primitive, first: Atom, second: Atom, key: str) -> Atom:
    """The product or quotient of two atoms."""
    value, term = primitive(first.value, second.value), Sum.of(Unit(primitive, (first.term, second.term)))
    return Atom(value, term, key, 1 + max(first.depth, second.depth), first.cost + second.cost)


def pairs_of(arguments: Sequence[Atom], ratios: Iterable[float] = (1.0,)) -> Iterator[Atom]:
    """Sums and differences of two arguments, one of them times a ratio."""
    for (first, second), ratio, sign in product(combinations(arguments, 2), ratios, (1.0, -1.0)):
        yield Atom(
            first.value + sign * ratio * second.value,
            first.term + second.term * (sign * ratio),
            f"{first.key}{'+' if sign > 0 else '-'}{second.key}",
            max(first.depth, second.depth),
            first.cost + second.cost + (ratio != 1.0),
        )


@cache
def homogeneous(primitive: Primitive) -> bool:
    """Whether a factor of the argument comes out as a factor or a term, as of a root or a logarithm."""
    if isinstance(primitive.formula, Plain):
        return primitive.formula.function.homogeneous
    g = torch.tensor([0.3, 0.7, 1.1, 1.9], dtype=torch.float64)
    once, twice = primitive(g), primitive(2 * g)
    quotient, difference = twice / once, twice - once
    return bool(torch.allclose(quotient, quotient[:1]) or torch.allclose(difference, difference[:1]))


@cache
def parity(primitive: Primitive) -> bool:
    """Whether the sign of the argument comes out as a sign or not at all."""
    if isinstance(primitive.formula, Plain):
        return primitive.formula.function.parity is not None
    g = torch.tensor([0.3, 0.7, 1.1], dtype=torch.float64)
    there, back = primitive(g), primitive(-g)
    return bool(torch.allclose(there, back) or torch.allclose(there, -back))


def matches(
    problem: Problem,
    target: Tensor,
    bank: list[int],
    values: Tensor,
    keys: list[str],
    *,
    terms: int,
    most: int,
    stop: Callable[[], bool],
) -> Iterator[tuple[tuple[int, ...], Tensor, Tensor, float]]:
    """Sums of a constant, a bank and up to `terms` atoms that come nearest to a target: which atoms, all
    columns, their factors, and the share of the target's variance that is left."""
    weighted, x = problem.weighted, problem.samples.x
    base = torch.cat([torch.ones(1, len(target), dtype=x.dtype), x[bank]])
    seen = (weighted(target), weighted(base), weighted(values))
    for found in match(*seen, keys, problem.settings.library, terms=terms, most=most, stop=stop):
        columns = torch.cat([base, values[list(found.support)]])
        factors = linear_fit(weighted(columns), weighted(target))
        left = weighted(target - factors @ columns).square().sum()
        error = float(left / weighted(target - target.mean()).square().sum())
        yield found.support, columns, factors, error


@dataclass(frozen=True)
class Matched:
    """An ansatz, and how well the match that it comes from does."""

    ansatz: Ansatz
    key: tuple[str, ...]
    score: float
    error: float

    @property
    def exact(self) -> bool:
        return self.error < EXACT_MATCH


def best_ansatzes(found: list[Matched], thinned: Problem, whole: Problem) -> list[Ansatz]:
    """The best ansatzes that differ, for transforms of all rows; few of them if one is exact."""
    library = whole.settings.library
    best: dict[tuple[int, tuple[str, ...]], Matched] = {}
    for each in found:
        key = (id(each.ansatz.transform), each.key)
        if key not in best or each.score < best[key].score:
            best[key] = each
    ranked = sorted(best.values(), key=lambda m: m.score)
    sizes = sorted({len(m.key) for m in ranked})
    fair = [
        m for n in sizes for m in [r for r in ranked if len(r.key) == n][: library.max_fits // len(sizes)]
    ]
    chosen = [m for m in ranked if m.exact][: library.max_exact_fits] or fair
    targets = dict(zip(thinned.targets, whole.targets, strict=True))
    return [Ansatz(targets[m.ansatz.transform], m.ansatz.readout) for m in chosen]


def until(stop: Callable[[], bool], atoms: Iterable[Atom]) -> Iterator[Atom]:
    """Atoms as long as there is time for more."""
    return takewhile(lambda atom: not stop(), atoms)
