"""One trial of MNIST arithmetic: trained from start to end, and kept on disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from time import perf_counter

import torch
from torch import Tensor, nn

from eqlearn import (
    EQL,
    ImageArithmetic,
    ImageEncoder,
    InvalidFile,
    Record,
    Schedule,
    SmoothHalf,
    Training,
    TrainingState,
    eliminate,
    encode,
    followed,
    load,
    polish,
    read_checksummed,
    save,
    seeded,
    settle_,
    take_statistics_,
    train,
    write_tensors,
)
from eqlearn.paper.baselines import relu_network
from eqlearn.paper.mnist.digits import Digits, LabelledImages
from eqlearn.paper.mnist.heads import Head, eliminated_heads, free_constant_, hold_straight_, simplest_head
from eqlearn.paper.mnist.pairs import PairLoss, random_pairs
from eqlearn.paper.mnist.recipes import Condition

POLISHED = 50_000  # pairs that fit the constants of an equation whose form is decided
STAGES = ("learn", "refine", "finish")
FORMAT = "eqlearn-image-arithmetic"
_SYSTEM, _EQUATION = "system.safetensors", "equation.safetensors"


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained system, in `eval()`, the equations that were to choose from, and the seconds it took.

    Of a trial that was `resumed`, the seconds are those since then.
    """

    model: ImageArithmetic
    heads: tuple[Head, ...]
    seconds: float
    resumed: bool


def build(condition: Condition, side: int, seed: int) -> ImageArithmetic:
    """The untrained system."""
    recipe, operation = condition.full_recipe(), condition.operation
    with seeded(seed):
        encoder = ImageEncoder(side, **recipe.encoder)
        network: nn.Module = relu_network(2)
    if condition.network == "eql":
        network = EQL(
            2, 1, recipe.primitives, members=recipe.heads, gates=recipe.gates != "none", init=recipe.init,
            seed=64 * seed,
        )  # fmt: skip
        if recipe.gates == "hidden":
            network.readout.gate = None
        if recipe.heads is not None:
            hold_straight_(network)
    return ImageArithmetic(encoder, network, operation.scale, operation.offset)


def trained(
    condition: Condition,
    digits: Digits,
    seed: int,
    *,
    state: Path | None = None,
    on_record: Callable[[Record], object] | None = None,
    record_every: int = 100,
) -> Trained:
    """One trial from start to end; with `state`, where it stands goes to files beside that path, and a trial
    that was killed goes on from them to the same end."""
    recipe = condition.full_recipe()
    data = LabelledImages(digits.train.images[: recipe.rows], digits.train.labels[: recipe.rows])
    model = build(condition, digits.side, seed)
    began, resumed = perf_counter(), state is not None and _checkpoint(state, "learn").exists()

    def run(stage: int, schedule: Schedule) -> None:
        loss = PairLoss(
            data.images, data.labels, condition.operation, seed=len(STAGES) * seed + stage,
            batch=recipe.batch, pairs=recipe.pairs, disjoint=recipe.disjoint,
            augmentation=recipe.augmentation, below=condition.below, huber=recipe.huber,
        )  # fmt: skip

        # A form that is held has no gates any more; its phases have no penalty, which is only recorded.
        penalty = recipe.penalty if stage == 0 else SmoothHalf()

        def start(where: TrainingState | None) -> Training:
            return train(
                model, loss, schedule, penalty=penalty, optimiser=recipe.optimiser,
                record_every=record_every, on_record=on_record, resume=where,
            )  # fmt: skip

        records = start(None) if state is None else followed(_checkpoint(state, STAGES[stage]), start)
        deque(records, maxlen=0)

    run(0, recipe.learn)
    heads: list[Head] = []
    if isinstance(model.equation, EQL) and recipe.heads is not None:
        z, y = _observed(model, data, condition, seed, recipe.observed)
        heads = eliminated_heads(
            model.equation, z, y, recipe.sparsify, penalty=recipe.penalty, optimiser=recipe.optimiser
        )
        network = simplest_head(heads).network
        for stage, schedule in ((1, recipe.refine), (2, recipe.finish)):
            model.equation = network
            if stage == 2 and isinstance(model.encoder, ImageEncoder):
                model.encoder.hold_normalisation_()
            run(stage, schedule)
            z, y = _observed(model, data, condition, seed, POLISHED)
            free_constant_(network)
            network = eliminate(network, z[: recipe.observed], y[: recipe.observed])
            network = polish(network, z, y).network.to(z.dtype)
        model.equation = network
    else:
        settle_(model.equation)
        take_statistics_(model.encoder, data.images)
    return Trained(model.eval(), tuple(heads), perf_counter() - began, resumed)


def forget(state: Path) -> None:
    """Removes the files of a trial that is over."""
    for stage in STAGES:
        _checkpoint(state, stage).unlink(missing_ok=True)


def _checkpoint(state: Path, stage: str) -> Path:
    return state.with_name(f"{state.name}.{stage}.safetensors")


def _observed(
    model: ImageArithmetic, data: LabelledImages, condition: Condition, seed: int, count: int
) -> tuple[Tensor, Tensor]:
    """Latents of random pairs of training images, and what the equation is to give for them."""
    take_statistics_(model.encoder, data.images)
    latents = encode(model.encoder, data.images)
    table = condition.operation.table()
    allowed = None if condition.below is None else table < condition.below
    first, second = random_pairs(data.labels, count, seed, allowed)
    target = table[data.labels[first], data.labels[second]]
    return torch.cat([latents[first], latents[second]], dim=1), (target - model.offset) / model.scale


def save_system(folder: Path, model: ImageArithmetic, condition: Condition, side: int) -> None:
    """Writes the system into `folder`; the equation also by itself, for `eqlearn.load`."""
    folder.mkdir(parents=True, exist_ok=True)
    plain = {"format": FORMAT, "condition": asdict(condition), "side": side}
    own = model.encoder if isinstance(model.equation, EQL) else model
    write_tensors(folder / _SYSTEM, plain, own.state_dict())
    if isinstance(model.equation, EQL):
        save(model.equation, folder / _EQUATION)


def load_system(folder: Path) -> tuple[ImageArithmetic, Condition]:
    """The system that `save_system` wrote, in `eval()`."""
    plain, tensors = read_checksummed(folder / _SYSTEM)
    if plain.get("format") != FORMAT:
        raise InvalidFile(f"{folder / _SYSTEM} holds no image arithmetic")
    known = {field.name for field in fields(Condition)}
    try:
        condition = Condition(**{name: plain["condition"][name] for name in known})
        model = build(condition, int(plain["side"]), 0)
        own: nn.Module = model if condition.network == "relu" else model.encoder
        own.load_state_dict(tensors)
    except (LookupError, TypeError, ValueError, RuntimeError) as error:
        raise InvalidFile(f"{folder / _SYSTEM} does not fit what it says it is: {error}") from error
    if condition.network == "eql":
        equation = load(folder / _EQUATION)
        if not isinstance(equation, EQL):
            raise InvalidFile(f"{folder / _EQUATION} holds no network")
        model.equation = equation
    return model.eval(), condition
