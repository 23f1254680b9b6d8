"""A library of elementary functions of simple arguments, evaluated on the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product, takewhile

import torch
from torch import Tensor

from eqlearn.nn.primitives import Plain, Primitive
from eqlearn.numerics.criteria import EXACT_MATCH
from eqlearn.search.ansatz.layout import Ansatz, Sum, Unit
from eqlearn.search.ansatz.target_transform import TargetTransform
from eqlearn.search.features import Features
from eqlearn.search.networks.starts import angular_frequency
from eqlearn.search.networks.structures import Vocabulary
from eqlearn.search.settings import Library


@dataclass(frozen=True)
class Argument:
    """A simple expression in the user's units: its values, how a network computes it, what it is made of."""

    value: Tensor
    term: Sum
    key: str
    layers: int = 0  # hidden layers of squares and products that its inputs stand for
    cost: int = 1  # how much there is to say; simplest first

    def as_atom(self) -> Atom:
        """The argument itself, as a function of it that is none."""
        return Atom(self.value, self.term, self.key, self.term.level + self.layers, self.cost)


@dataclass(frozen=True)
class Atom:
    """A function of an argument, the layers it takes, and how much there is to say about it."""

    value: Tensor
    term: Sum
    key: str
    depth: int
    cost: int


def plain_of(features: Features, x: Tensor) -> list[Argument]:
    """The columns themselves."""
    return [Argument(x[i] * size, Sum(((i, size),)), f"x{i}") for i, size in enumerate(features.scales)]


def quadratics_of(features: Features, x: Tensor) -> list[Argument]:
    """Squares and products of two columns."""
    out = []
    for place in features.polynomials(2)[len(features.scales) :]:
        i, j = features.factors(place)
        size = features.size(place)
        out.append(Argument(x[place] * size, Sum(((place, size),)), f"x{i}x{j}", 1, 2))
    return out


def powers_of(features: Features, x: Tensor) -> list[Argument]:
    """Third and fourth powers of columns."""
    out = []
    for place in features.polynomials(4)[len(features.scales) :]:
        first, *others = features.factors(place)
        if len(others) > 1 and set(others) == {first}:
            size = features.size(place)
            key = f"x{first}^{1 + len(others)}"
            out.append(Argument(x[place] * size, Sum(((place, size),)), key, 2, 3))
    return out


def monomials_of(
    features: Features,
    x: Tensor,
    exponential: Primitive | None,
    library: Library,
    power: float = 1.0,
    widest: int | None = None,
) -> list[Argument]:
    """Products and quotients of columns that are positive, at most `widest` of them, each to the `power` or
    its inverse: the exponential of a sum of their logarithms."""
    logs = features.logarithms
    if exponential is None or not logs:
        return []
    out: list[Argument] = []
    for count in range(1, min(len(logs), widest or len(logs)) + 1):
        group = list(combinations(range(len(logs)), count))
        if len(out) + len(group) * 2**count > library.max_monomials:
            break
        for chosen in group:
            for powers in product((power, -power), repeat=count):
                if all(p == 1 for p in powers) and count < 3:
                    continue  # columns and quadratics hold those
                places = [features.logarithm_inputs[k] for k in chosen]
                size = sum(
                    p * math.log(features.scales[logs[k]]) for p, k in zip(powers, chosen, strict=True)
                )
                term = Sum(tuple(zip(places, powers, strict=True)), (), size)
                unit = Unit(exponential, (term,))
                key = "".join(f"x{logs[k]}^{p:g}" for p, k in zip(powers, chosen, strict=True))
                out.append(Argument(unit.value(x), Sum.of(unit), key, 0, 1 + count))
    return out


def pairs_of(arguments: Sequence[Argument], ratios: Iterable[float]) -> Iterator[Argument]:
    """Sums and differences of two arguments, one of them times a ratio."""
    ratios = tuple(ratios)
    for first, second in combinations(arguments, 2):
        for ratio in ratios:
            for sign in (1.0, -1.0):
                yield Argument(
                    first.value + sign * ratio * second.value,
                    first.term + second.term * (sign * ratio),
                    f"{first.key}{'+' if sign > 0 else '-'}{second.key}",
                    max(first.layers, second.layers),
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


def functions_of(
    arguments: Sequence[Argument], primitives: Iterable[Primitive], library: Library, fine: bool = True
) -> Iterator[Atom]:
    """Every primitive whose scale matters, of every argument times factors; more of them if `fine`."""
    for primitive in primitives:
        if homogeneous(primitive):
            continue
        rate = angular_frequency(primitive)
        for argument in arguments:
            size = float(argument.value.abs().max()) or 1.0
            plain = [f / (rate or 1.0) for f in (library.turns if rate else library.factors)]
            simple = [f for f in plain if 0.2 < f * size * (rate or 1.0) < 60]
            own = []
            if fine:
                slopes = library.relative_slopes if len(arguments) < 20 else library.relative_factors
                grid = library.relative_turns if rate else slopes
                own = [f / size / (rate or 1.0) for f in grid]
            factors = [(f, 1 + (f != 1.0 / (rate or 1.0))) for f in simple] + [(f, 4) for f in own]
            if not parity(primitive):
                factors += [(-f, c) for f, c in factors]
            scales = torch.tensor([f for f, _ in factors], dtype=torch.float64)
            values = primitive(scales[:, None] * argument.value)
            fine_rows = torch.isfinite(values).all(dim=1).tolist()
            for (factor, cost), value, good in zip(factors, values, fine_rows, strict=True):
                if good:
                    unit = Unit(primitive, (argument.term * factor,))
                    depth = unit.level + argument.layers
                    key = f"{primitive.name}({argument.key})"
                    yield Atom(value, Sum.of(unit), key, depth, argument.cost + cost)


def roots_of(arguments: Iterable[Argument], primitives: Iterable[Primitive]) -> Iterator[Atom]:
    """Every primitive whose scale does not matter, of sums whose sign does not change."""
    kinds = [p for p in primitives if homogeneous(p) and p.name != "id"]
    for argument in arguments:
        value, term = argument.value, argument.term
        if bool((value < 0).all()):
            value, term = -value, term * -1.0
        for primitive in kinds:
            atom = primitive(value)
            if bool(torch.isfinite(atom).all()) and float(atom.abs().max()) < 1e6 * float(atom.abs().mean()):
                unit = Unit(primitive, (term,))
                key = f"{primitive.name}({argument.key})"
                yield Atom(atom, Sum.of(unit), key, unit.level + argument.layers, argument.cost + 1)


def constant_one(x: Tensor) -> Argument:
    """The number 1 as an argument, for sums such as 1 + x²."""
    return Argument(torch.ones(x.shape[1], dtype=x.dtype), Sum((), (), 1.0), "1", cost=0)


def simple_arguments(
    features: Features, x: Tensor, vocabulary: Vocabulary, library: Library, most: int
) -> list[Argument]:
    """What functions are taken of: columns, products, sums and differences, quotients; the simplest ones."""
    columns, quadratics = plain_of(features, x), quadratics_of(features, x)
    out = [*columns, *quadratics, *pairs_of(columns, (1.0,))]
    out += monomials_of(features, x, vocabulary.named("exp"), library)
    few = len(columns) < 5
    out += powers_of(features, x) if len(columns) < 3 else ()
    out += pairs_of([*columns, *quadratics], (1.0,)) if few else ()
    out += shifted_products_of(columns, vocabulary.named("mul")) if few else ()
    out += quotients_of([*columns, *quadratics], vocabulary.named("div")) if len(columns) < 4 else ()
    unique = {a.key: a for a in out}.values()
    return sorted(unique, key=lambda a: a.cost)[:most]


def involved(term: Sum, features: Features) -> set[int]:
    """The columns that a term depends on."""
    places = {i for place, _ in term.inputs for i in features.factors(place)}
    count = len(features.scales)
    own = {i if i < count else features.logarithms[i - count] for i in places}
    return own.union(*(involved(a, features) for unit, _ in term.units for a in unit.arguments))


def quotients_of(arguments: Sequence[Argument], over: Primitive | None) -> Iterator[Argument]:
    """One argument over another that stays away from zero."""
    if over is None:
        return
    for below in arguments:
        size = below.value.abs()
        if float(size.min()) < 1e-3 * float(size.max()):
            continue
        for above in arguments:
            if above is not below:
                unit = Unit(over, (above.term, below.term))
                cost, layers = above.cost + below.cost, max(above.layers, below.layers)
                key = f"{above.key}/{below.key}"
                yield Argument(above.value / below.value, Sum.of(unit), key, layers, cost)


def shifted_products_of(columns: Sequence[Argument], times: Primitive | None) -> Iterator[Argument]:
    """Products of two columns of which one or both are first moved by 1."""
    if times is None:
        return
    for first, second in combinations(columns, 2):
        for b, c in product((0.0, 1.0, -1.0), repeat=2):
            if b or c:
                left, right = first.term + Sum((), (), b), second.term + Sum((), (), c)
                value = (first.value + b) * (second.value + c)
                key = f"({first.key}{b:+.0f})({second.key}{c:+.0f})"
                yield Argument(value, Sum.of(Unit(times, (left, right))), key, 0, 4)


@dataclass(frozen=True)
class Matched:
    """An ansatz, and how well the match that it comes from does."""

    ansatz: Ansatz
    key: tuple[str, ...]
    score: float
    error: float


def best_ansatzes(
    found: list[Matched], whole: dict[TargetTransform | None, TargetTransform | None], library: Library
) -> list[Ansatz]:
    """The best ansatzes that differ, for transforms of all rows; few of them if one is exact."""
    best: dict[tuple[int, tuple[str, ...]], Matched] = {}
    for each in found:
        key = (id(each.ansatz.transform), each.key)
        if key not in best or each.score < best[key].score:
            best[key] = each
    ranked = sorted(best.values(), key=lambda m: m.score)
    exact = [m for m in ranked if m.error < EXACT_MATCH]
    sizes = sorted({len(m.key) for m in ranked})
    fair = [
        m for n in sizes for m in [r for r in ranked if len(r.key) == n][: library.max_fits // len(sizes)]
    ]
    chosen = exact[: library.max_exact_fits] or fair
    return [Ansatz(whole[m.ansatz.transform], m.ansatz.readout) for m in chosen]


def until(stop: Callable[[], bool], atoms: Iterable[Atom]) -> Iterator[Atom]:
    """Atoms as long as there is time for more."""
    return takewhile(lambda atom: not stop(), atoms)


def simplest(atoms: list[Atom], library: Library) -> list[Atom]:
    """As many as the library may hold."""
    return sorted(atoms, key=lambda a: a.cost)[: library.max_atoms]
