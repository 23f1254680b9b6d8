"""How hard and how wide a search looks: every number that was tuned, named for its quantity, as data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import InitVar, field, replace
from typing import Any

from eqlearn.errors import InvalidArgument
from eqlearn.search.groups.group_settings import GroupSettings
from eqlearn.search.networks.sparsify import Half, HardConcreteL0
from eqlearn.search.networks.structures import LEVELS, Level
from eqlearn.search.subexpressions.bank_settings import AffineSettings, BankSettings, SubsetSettings
from eqlearn.search.units.unit_settings import Dimensional
from eqlearn.validation.options import check_fields, checked_names, tuned

# What a scientist expects; `pow` adds products of powers of the columns that are positive throughout.
SCIENCE = "id square sin1 cos exp log sqrt inv tanh mul div pow"

# The strategies of the package, the cheapest first; `strategies.STRATEGIES` says what each looks for.
STRATEGY_ORDER = (
    "linear", "rational", "profiled", "affine", "span", "subsets", "products", "evolution",
    "wide-span", "sums", "symmetry", "pairs", "elimination",
)  # fmt: skip
MAX_DEGREE = 8  # polynomials of a higher one come to rounding near any smooth function of one column
# What `sketches`, an earlier name of `strategies`, called some of them.
FORMER_NAMES = {"scanned": "profiled", "reduced": "symmetry", "modulated": "affine", "banks": "elimination"}


@tuned
class Screening:
    """Which columns of a wide table are searched in: all of at most `max_unscreened`; else those that stand
    out, at least `min_columns`, judged on `rows` rows in `bins` bins of equal count."""

    max_unscreened: int = 12
    min_columns: int = 7
    rows: int = 4000
    bins: int = 8


@tuned
class Library:
    """Elementary functions of simple arguments, and which of their sums and products are tried.

    Factors of arguments come as they stand in formulas, in the user's units (`factors`; `turns` for periodic
    functions), and relative to the argument's own size, so that no unit of measurement is favoured
    (`relative_factors`, or for few arguments `relative_slopes`, and `relative_turns`). `ratios` are those of
    the two terms of a sum. Fits are compared on `rows` rows. Factors are tried that make the largest argument
    one of `argument_sizes`, and relative ones where there are fewer than `max_fine` arguments. A divisor is
    nowhere below `min_divisor` of its largest value, and no value above `max_peak` times the mean one. A
    factor of a product is taken to the nearest of its powers ½, 1 and 2, at most `max_rounding` away. Inputs
    that enter linearly beside the functions are fewer than the part `max_bank` of the rows.
    """

    factors: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0, 3.0)
    turns: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0, 3.0, 5.0, *(k * math.pi for k in (0.5, 1, 2, 4)))
    relative_factors: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    relative_slopes: tuple[float, ...] = tuple(0.25 * 1.35**k for k in range(13))
    relative_turns: tuple[float, ...] = tuple(0.5 * 1.25**k for k in range(20))
    ratios: tuple[float, ...] = (1.0, 2.0, 0.5, 3.0)
    argument_sizes: tuple[float, float] = (0.2, 60.0)
    max_fine: int = 60
    min_divisor: float = 1e-3
    max_peak: float = 1e6
    max_rounding: float = 0.3
    max_bank: float = 0.4
    rows: int = 96
    max_monomials: int = 800  # products of powers of several columns at a time, such as a·b/(c·d)
    max_arguments: int = 100
    max_atoms: int = 8_000
    max_factors: int = 90  # of each side of a product of two functions
    max_fits: int = 40
    max_exact_fits: int = 6  # where one is exact
    max_paired: int = 1000  # atoms of which all pairs are tried: memory holds the square of it
    beam: int = 32  # supports carried on to the next size


@tuned
class IslandSettings:
    """An island of trees: how many there are, how they vary and how long.

    Trees have at most `max_nodes` nodes and `max_constants` constants that are fitted, in `steps` steps, for
    the best `fitted` children of a generation. Parents win tournaments of `tournament`. Children are made by
    insertion, replacement, crossover, hoisting or swapping with the chances `kinds`. The part `plain` forgets
    its own scale and offset before it is asked what a node should be, on `rows` rows (all, where values hold
    noise); the answer is the best of `offered` subexpressions, others in each generation, out of a bank of
    `entries`. A node costs between the two of `parsimony`, in logarithms of the error. After `generations`,
    or `shortening` more once something is exact, the `last` best at different prices (`noisy_last` in noise)
    are fitted in `last_steps`; of laws that are exact at once, `kept` are taken. A search in noise ends after
    `patience` rounds without a better score, and `enough` islands where the best law leaves noise alone. What
    would make a tree whole has at most `closing_terms` terms.
    """

    members: int = 300
    generations: int = 12
    max_nodes: int = 30
    max_constants: int = 10
    fitted: int = 30
    steps: int = 6
    tournament: int = 3
    kinds: tuple[float, ...] = (0.4, 0.3, 0.15, 0.05, 0.1)
    plain: float = 0.5
    entries: int = 2000
    rows: int = 100
    offered: int = 700
    parsimony: tuple[float, float] = (0.02, 0.6)
    shortening: int = 4
    last: int = 2
    noisy_last: int = 6
    last_steps: int = 40
    kept: int = 4
    patience: int = 4
    enough: int = 3
    closing_terms: int = 10


@tuned
class Profile:
    """One number outside a function, by trial: `factors` before a logarithm in units of the target's spread
    (with larger ones it is almost a straight line), `gaps` between an offset and the nearest value of the
    target in parts of its range. They are compared on `rows` rows, in banks of at most `max_inputs`."""

    factors: tuple[float, ...] = tuple(sign * 0.25 * 2 ** (k / 2) for k in range(13) for sign in (1, -1))
    gaps: tuple[float, ...] = tuple(0.01 * 2**k for k in range(9))
    rows: int = 200
    max_inputs: int = 40


@tuned
class Symmetry:
    """Fewer variables: how far the slopes of a polynomial surrogate (of one of `degrees`, as high as the rows
    allow) may be from a symmetry, relative to their size, for it to be tried; and of how many variables the
    rest may be for a library of functions to be worth its time."""

    tolerance: float = 0.05
    degrees: tuple[int, ...] = (5, 4, 3, 2, 1)
    max_variables: int = 6


@tuned
class Drawing:
    """Where the weights of drawn networks start.

    They are normal, of standard deviation `spread` (less where many inputs meet). The part `waves` of the
    periodic units of the first layer start at a frequency of the data along one input, with weights of size
    `aside` on the others. In a network grown from a parent, fresh weights of the read-out and of the parent's
    units are scaled by these factors, and the part `moved` of the parent's weights moves by `wobble` of its
    size. The target is fitted as it is in the part `plain` of the networks, else through a transform.
    """

    spread: float = 0.5
    waves: float = 0.7
    aside: float = 0.02
    fresh_readout: float = 0.3
    fresh_weight: float = 0.1
    moved: float = 0.25
    wobble: float = 0.2
    plain: float = 0.5
    plain_of_logarithms: float = 0.25


@tuned
class Reading:
    """Which networks are read as formulas, and which formulas end a search.

    A formula is read out of a network of at most `max_weights`, unless it is exact; of those that did not
    lead while the search ran, `max_last` at its end, by score. `max_terms` of a sum of columns fill a line.
    An exact formula of at most `max_brief` nodes ends the search at once, one of at most `max_short` when
    nothing shorter is likely, and a longer one when a second round is exact as well; `patience` is how many
    rounds may yet shorten an exact formula. Formulas are compared on at most `rows`, and refitted to rows
    that were held out where there are at most `max_refit_rows`. Sums of columns more than `max_behind` nats
    behind the best by Akaike's criterion are not read, and at most `max_sums` are. In noise,
    the `max_pruned` shortest descriptions are tried without each of their parts. What looks like noise is
    taken for it up to the part `max_noise` of the target's spread.
    """

    max_weights: int = 18
    max_last: int = 10
    max_terms: int = 12
    max_brief: int = 16
    max_short: int = 25
    patience: int = 7
    rows: int = 20_000
    max_noise: float = 0.3
    max_refit_rows: int = 5000
    max_behind: float = 8.0
    max_sums: int = 8
    max_pruned: int = 6


@tuned
class Shares:
    """Shares of a budget of time: until rounds end, for what one round may look for proposals (so that a
    strategy that takes long leaves time to the others), and for the last fit, at least and at most."""

    rounds: float = 0.88
    proposals: float = 0.3
    last_fit: float = 0.04
    max_last_fit: float = 0.2


@tuned
class Settings:
    """How hard and how wide the search looks; the defaults serve all problems.

    `members` is the most networks solved together in a round, fewer where one step of least squares would
    take more than `max_multiplications`. `rows` is how many rows the search itself sees (all rows serve the
    last fit). `validation` is the fraction held out when there are at least `enough_rows`. `patience` is how
    many rounds without a better score end a search in noisy data. `strategies` are tried in this order; from
    "evolution" on, an island of trees after each of them, and then islands alone. Without it,
    networks are drawn after the strategies; with no strategies, networks find it all, and without `networks`
    the strategies.
    The first rounds, so many as run `alone`, take little time; of the strategies after them so many as are
    `abreast` do not wait for each other, and islands wait for nothing.
    Eliminated are the `finalists` of a round, of which one may have more than `max_weights`; a round that
    looks for exact laws eliminates what is not exact only up to `max_quick_weights`, unless the values hold
    noise. A bank of more than
    `max_inputs` would make every network of it a large one. Networks grow from the best `parents`.
    """

    members: int = 24
    rows: int = 256
    validation: float = 0.2
    enough_rows: int = 60
    patience: int = 10
    finalists: int = 4
    strategies: tuple[str, ...] = STRATEGY_ORDER
    alone: int = 5
    abreast: int = 4
    networks: bool = True
    levels: tuple[Level, ...] = LEVELS
    half: Half = field(default_factory=Half)
    l0: HardConcreteL0 = field(default_factory=HardConcreteL0)
    screening: Screening = field(default_factory=Screening)
    library: Library = field(default_factory=Library)
    bank: BankSettings = field(default_factory=BankSettings)
    island: IslandSettings = field(default_factory=IslandSettings)
    affine: AffineSettings = field(default_factory=AffineSettings)
    subsets: SubsetSettings = field(default_factory=SubsetSettings)
    profile: Profile = field(default_factory=Profile)
    symmetry: Symmetry = field(default_factory=Symmetry)
    drawing: Drawing = field(default_factory=Drawing)
    reading: Reading = field(default_factory=Reading)
    shares: Shares = field(default_factory=Shares)
    groups: GroupSettings = field(default_factory=GroupSettings)
    dimensional: Dimensional = field(default_factory=Dimensional)
    max_inputs: int = 36
    max_degree: int = 6  # of quotients: of a higher degree, they come to rounding near any smooth function
    max_multiplications: float = 2e8
    max_weights: int = 25
    max_quick_weights: int = 12
    parents: int = 6
    sketches: InitVar[Any] = None  # what `strategies` was called before

    def __post_init__(self, sketches: Any) -> None:
        if sketches is not None:
            names = checked_names(sketches, "sketches")
            object.__setattr__(self, "strategies", tuple(FORMER_NAMES.get(name, name) for name in names))
        object.__setattr__(self, "strategies", checked_names(self.strategies, "strategies"))
        check_fields(self, ("members", "rows", "enough_rows", "patience", "finalists", "abreast"))
        if not 0 <= self.validation < 1:
            raise InvalidArgument(f"`validation` must be at least 0 and below 1, got {self.validation}")
        if not self.strategies and not self.networks:
            raise InvalidArgument("with no `strategies` and no `networks` there is nothing to search with")


DEFAULTS = Settings()


def for_parts(settings: Settings, columns: int, others: Sequence[str] = ()) -> Settings:
    """The settings for the searches of parts of a table that has groups: strategies alone, if there are any,
    without those that take longer than another part, and without `others`."""
    out = {
        *others,
        *settings.groups.left_out,
        *(["symmetry"] if columns < settings.groups.min_columns else []),
    }
    kept = tuple(name for name in settings.strategies if name not in out)
    return replace(settings, strategies=kept, networks=False) if kept else settings
