"""MNIST arithmetic: the paper's recipe, the released code's and ours, as data, and what each is tried on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch

from eqlearn import (
    INITS,
    L0,
    GatedL0,
    Init,
    InvalidArgument,
    Penalty,
    Phase,
    RMSPropTF1,
    Schedule,
    SmoothHalf,
    UnknownName,
)
from eqlearn.paper.benchmark import PAPER, RELEASED
from eqlearn.paper.mnist.pairs import Augmentation, Operation

# The paper's functions, each with a slope near one at zero: sin(g) in place of sin(2πg), the logistic
# function in place of sigmoid(20g). What they can express is the same, but a penalty on weights no longer
# favours a sine, whose weight is 2π times smaller than a straight line's: so came the paper's Trial 3.
EVEN = "one*2 id*4 square*4 sin1*2 exp*2 logistic*2 mul*2"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that decides a trial, but for the data, the operation and the seed.

    `learn` trains encoder and equation together. Where there are `heads`, that many equations share the
    encoder, the last of them held straight; `sparsify` then trains them alone on its latents of `observed`
    pairs, the simplest is kept, `refine` trains it with the encoder, its form held, and `finish` does so once
    more between two exact fits of its constants, the normalisation of the latents held.
    """

    name: str
    learn: Schedule
    penalty: Penalty
    primitives: str = PAPER
    init: Init = INITS["default"]
    gates: Literal["none", "hidden", "all"] = "none"
    encoder: Mapping[str, Any] = field(default_factory=dict)
    rows: int | None = None
    batch: int = 200
    pairs: int = 2_000
    disjoint: bool = False
    augmentation: Augmentation | None = None
    huber: float | None = None
    optimiser: Callable[..., torch.optim.Optimizer] = RMSPropTF1
    heads: int | None = None
    observed: int = 1_000
    sparsify: Schedule = ()
    refine: Schedule = ()
    finish: Schedule = ()


# Numbers in brackets are rows of "the paper's text and the authors' code" in docs/paper.md.
_PAPER = Recipe(
    name="paper-half",
    learn=(
        Phase(name="sparsify", steps=10_000, lr=1e-2, penalty=0.05, prune_below=0.01),  # [28, 30]
        Phase(name="fine-tune", steps=10_000, lr=1e-4),  # [29]
    ),
    penalty=SmoothHalf(a=0.01),
    init=INITS["released-systems"],  # [35]
    encoder={"padding": "same"},  # [32]
    disjoint=True,  # 100 pairs of 200 images [27]
)
_L0_PHASES = tuple(  # the released three phases [36]; the paper gives none
    Phase(name=name, steps=10_001, lr=lr, penalty=0.05)
    for name, lr in (("coarse", 1e-2), ("middle", 1e-3), ("fine", 1e-4))
)
_RELEASED = replace(
    _PAPER,
    name="released-half",
    learn=(
        Phase(name="sparsify", steps=10_001, lr=1e-2, penalty=0.05, prune_below=0.01),
        Phase(name="fine-tune", steps=10_001, lr=1e-3),
    ),
    penalty=SmoothHalf(a=0.05),
    primitives=RELEASED,
    encoder={"padding": "same", "affine": True, "brightest": 1.0, "momentum": 0.01},  # [26, 33]
    rows=10_000,  # [25]
)
_MODERN = Recipe(
    name="modern-half",
    learn=(
        Phase(
            name="learn",
            steps=3_000,
            lr=2e-3,
            warm_up=200,
            decay="cosine",
            penalty=0.05,
            ramp="linear",
            clip=5.0,
        ),
    ),
    penalty=SmoothHalf(),
    primitives=EVEN,
    init=Init(first=0.3, middle=0.3, last=0.5),
    batch=100,
    pairs=1_000,
    augmentation=Augmentation(degrees=10.0, stretch=0.1, shift=2.0),
    huber=1.0,
    optimiser=torch.optim.Adam,
    heads=8,
    sparsify=(
        Phase(name="sparsify", steps=1_000, lr=1e-2, penalty=1.0, ramp="linear", prune_below=0.01, clip=5.0),
    ),
    refine=(Phase(name="refine", steps=8_000, lr=2e-3, warm_up=200, decay="cosine", clip=5.0),),
    finish=(Phase(name="finish", steps=4_000, lr=1e-3, warm_up=200, decay="cosine", clip=5.0),),
)
RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        _PAPER,
        replace(
            _PAPER, name="paper-l0", learn=_L0_PHASES, penalty=L0(), gates="all", init=INITS["released-l0"],
        ),
        _RELEASED,
        replace(
            _RELEASED, name="released-l0", learn=_L0_PHASES, penalty=GatedL0(), gates="hidden",
            init=INITS["released-l0"],
        ),
        _MODERN,
        replace(
            _MODERN,
            name="modern-l0",
            learn=(replace(_MODERN.learn[0], penalty=0.02),),
            sparsify=(replace(_MODERN.sparsify[0], penalty=0.5),),
            penalty=L0(),
            gates="all",
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Condition:
    """What a trial is a trial of: the recipe, the data, the operation, the bound on sums seen, the network
    after the encoder ("eql" or "relu")."""

    recipe: str = "modern-half"
    dataset: str = "mnist"
    formula: str = "a+b"
    below: float | None = None
    network: str = "eql"

    @property
    def name(self) -> str:
        parts = [self.recipe]
        parts += [] if self.dataset == "mnist" else [self.dataset]
        parts += [] if self.formula == "a+b" else [self.formula.replace("*", "x").replace("/", "over")]
        parts += [] if self.below is None else [f"below-{self.below:g}"]
        parts += [] if self.network == "eql" else [self.network]
        return "-".join(parts)

    @property
    def operation(self) -> Operation:
        return Operation(self.formula)

    def check(self) -> None:
        """Refuses an operation or a bound that leaves nothing to learn."""
        table = self.operation.table()
        if self.below is not None and not bool((table < self.below).any()):
            least = float(table.min())
            raise InvalidArgument(
                f"no result of {self.formula!r} is `below` {self.below:g}; they begin at {least:g}"
            )

    def full_recipe(self) -> Recipe:
        """The recipe as it applies here."""
        if self.recipe not in RECIPES:
            raise UnknownName(f"no recipe named {self.recipe!r}; the known ones are {', '.join(RECIPES)}")
        recipe = RECIPES[self.recipe]
        if self.dataset == "digits":  # 8 x 8 pixels, 1,437 images: a smaller encoder, fewer steps
            recipe = replace(recipe, encoder={"channels": (16, 32), "kernel": 3, "padding": "same"})
            if recipe.heads is not None:
                recipe = replace(
                    recipe,
                    augmentation=None,
                    huber=None,
                    batch=200,
                    pairs=500,
                    observed=min(recipe.observed, 500),
                    learn=shortened(recipe.learn, 400),
                    sparsify=shortened(recipe.sparsify, 400),
                    refine=shortened(recipe.refine, 1_000),
                    finish=shortened(recipe.finish, 200),
                )
        if self.recipe == "released-half" and self.below is not None:  # [31]
            first, second = recipe.learn
            plain = " ".join(unit for unit in RELEASED.split() if not unit.startswith("mul"))
            recipe = replace(recipe, primitives=plain, learn=(replace(first, ramp="sin2"), second))
        if self.network == "relu":
            unpenalised = tuple(replace(p, penalty=0.0, prune_below=None) for p in recipe.learn)
            learn = (*unpenalised, *recipe.refine, *recipe.finish)
            recipe = replace(recipe, learn=learn, heads=None, sparsify=(), refine=(), finish=())
        return recipe


def shortened(schedule: Schedule, steps: int) -> Schedule:
    """The schedule with at most that many steps in each phase."""
    return tuple(
        replace(phase, steps=min(phase.steps, steps), warm_up=min(phase.warm_up, steps // 10))
        for phase in schedule
    )
