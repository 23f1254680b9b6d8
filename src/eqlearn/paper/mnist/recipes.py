"""MNIST arithmetic: our search and the recipes of the paper, as data, and what each is tried on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import torch

from eqlearn import (
    INITS,
    L0,
    GatedL0,
    Init,
    InvalidArgument,
    LatentSettings,
    Penalty,
    Phase,
    RMSPropTF1,
    Schedule,
    SmoothHalf,
    UnknownName,
)
from eqlearn.paper.benchmark import PAPER, RELEASED
from eqlearn.paper.mnist.pairs import Augmentation, Operation


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that decides a training by gradient, but for the data, the operation and the seed."""

    name: str
    learn: Schedule
    penalty: Penalty = field(default_factory=SmoothHalf)
    primitives: str = PAPER
    init: Init = INITS["default"]
    gates: Literal["none", "hidden", "all"] = "none"
    encoder: Mapping[str, Any] = field(default_factory=dict)
    rows: int | None = None
    batch: int = 200  # 100 pairs [27]
    pairs: int | None = None
    augmentation: Augmentation | None = None
    optimiser: Callable[..., torch.optim.Optimizer] = RMSPropTF1


@dataclass(frozen=True, kw_only=True)
class Search:
    """How the law is searched for: batches of `pairs` pairs of `batch` images, what a law may be made of, and
    the settings of `discover_latent`; where results have a bound, `bounded_steps` for the refinement, since
    large digits are in few of the pairs that are left. It has no budget of seconds, so that results do not
    depend on how busy a machine is."""

    settings: LatentSettings
    bounded_steps: int
    primitives: str = PAPER
    batch: int = 128
    pairs: int = 2_000
    augmentation: Augmentation | None = None

    def settings_for(self, below: float | None) -> LatentSettings:
        """The settings for results below a bound, or for all of them."""
        return self.settings if below is None else replace(self.settings, refine_steps=self.bounded_steps)

    def twin(self, below: float | None) -> Recipe:
        """The training of a network in the law's place: as many steps on the same batches."""
        settings = self.settings_for(below)
        steps = settings.warm_steps + settings.refine_steps
        return Recipe(
            name=MODERN,
            learn=(Phase(name="learn", steps=steps, lr=settings.rate, decay="one-cycle"),),
            batch=self.batch,
            pairs=self.pairs,
            augmentation=self.augmentation,
            optimiser=partial(torch.optim.AdamW, weight_decay=settings.decay),
        )


MODERN = "modern"
SEARCHES: dict[str, Search] = {
    "mnist": Search(
        settings=LatentSettings(refine_steps=5_000, refine_rate=4e-3, robust=4.0),
        bounded_steps=8_000,
        augmentation=Augmentation(degrees=10.0, stretch=0.1, shift=2.0),
    ),
    "digits": Search(
        settings=LatentSettings(), bounded_steps=LatentSettings().refine_steps
    ),  # 1,437 images of 8 x 8 pixels
}
# Numbers in brackets are rows of "the paper's text and the authors' code" in docs/paper.md.
_PAPER = Recipe(
    name="paper-half",
    learn=(
        Phase(name="sparsify", steps=10_000, lr=1e-2, penalty=0.05, prune_below=0.01),  # [28, 30]
        Phase(name="fine-tune", steps=10_000, lr=1e-4),  # [29]
    ),
    penalty=SmoothHalf(a=0.01),
    init=INITS["released-systems"],  # [35]
    encoder={"padding": "same", "glorot": True},  # [32]
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
    encoder={
        "padding": "same",
        "glorot": True,
        "affine": True,
        "brightest": 1.0,
        "momentum": 0.01,
        "epsilon": 1e-3,
    },  # [26, 33]
    rows=10_000,  # [25]
)
RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        _PAPER,
        replace(
            _PAPER, name="paper-l0", learn=_L0_PHASES, penalty=L0(), gates="all",
            init=INITS["released-systems-l0"],  # [35]
        ),
        _RELEASED,
        replace(
            _RELEASED, name="released-l0", learn=_L0_PHASES, penalty=GatedL0(), gates="hidden",
            init=INITS["released-systems-l0"],
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Condition:
    """What a trial is a trial of: the recipe ("modern" is the search), the data, the operation, the bound on
    sums seen, what follows the encoder ("eql", an equation, or "relu", a network)."""

    recipe: str = MODERN
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

    @property
    def searched(self) -> bool:
        """Whether there is a law to search for, rather than a network to train by gradient."""
        return self.recipe == MODERN and self.network == "eql"

    def full_recipe(self) -> Recipe:
        """The recipe of a training by gradient, as it applies here."""
        if self.recipe == MODERN:
            return SEARCHES[self.dataset].twin(self.below)
        if self.recipe not in RECIPES:
            known = ", ".join((MODERN, *RECIPES))
            raise UnknownName(f"no recipe named {self.recipe!r}; the known ones are {known}")
        recipe = RECIPES[self.recipe]
        if self.dataset == "digits":  # 8 x 8 pixels: a smaller encoder
            small = {"channels": (16, 32), "kernel": 3}
            recipe = replace(recipe, encoder={**recipe.encoder, **small})
        if self.recipe == "released-half" and self.below is not None:  # [31]
            first, second = recipe.learn
            plain = " ".join(unit for unit in RELEASED.split() if not unit.startswith("mul"))
            recipe = replace(recipe, primitives=plain, learn=(replace(first, ramp="sin2"), second))
        if self.network == "relu":
            unpenalised = tuple(replace(p, penalty=0.0, prune_below=None) for p in recipe.learn)
            recipe = replace(recipe, learn=unpenalised)
        return recipe
