"""One trial of MNIST arithmetic by gradient: trained from start to end, and kept on disk."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from time import perf_counter

from torch import nn

from eqlearn import (
    EQL,
    ImageArithmetic,
    ImageEncoder,
    InvalidFile,
    Record,
    Training,
    TrainingState,
    followed,
    load,
    read_checksummed,
    restart_seed,
    restarted,
    save,
    seeded,
    settle_,
    take_statistics_,
    train,
    write_tensors,
)
from eqlearn.paper.baselines import relu_network
from eqlearn.paper.mnist.digits import Digits
from eqlearn.paper.mnist.encoder import DigitEncoder
from eqlearn.paper.mnist.pairs import PairLoss, Pairs
from eqlearn.paper.mnist.recipes import MODERN, Condition

FORMAT = "eqlearn-image-arithmetic"
_SYSTEM, _EQUATION = "system.safetensors", "equation.safetensors"


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained system, in `eval()`, and the seconds it took; of a trial that was `resumed`, since then."""

    model: ImageArithmetic
    seconds: float
    resumed: bool
    restarts: int = 0


def build(condition: Condition, side: int, seed: int) -> ImageArithmetic:
    """The untrained system. The paper's gives `9 y + 9`, whatever the operation [34]."""
    recipe = condition.full_recipe()
    with seeded(seed):
        if condition.recipe == MODERN:
            table = condition.operation.table()
            middle, spread = float(table.mean()), float(table.std())
            return ImageArithmetic(DigitEncoder(side), relu_network(2), scale=spread, offset=middle)
        encoder = ImageEncoder(side, **recipe.encoder)
        network: nn.Module = relu_network(2)
    if condition.network == "eql":
        gates = recipe.gates != "none"
        network = EQL(2, 1, recipe.primitives, gates=gates, init=recipe.init, seed=64 * seed)
        if recipe.gates == "hidden":
            network.readout.gate = None
    return ImageArithmetic(encoder, network)


def trained(
    condition: Condition,
    digits: Digits,
    seed: int,
    *,
    state: Path | None = None,
    on_record: Callable[[Record], object] | None = None,
    record_every: int = 100,
) -> Trained:
    """One trial from start to end; with `state`, a file, where it stands is kept there, and a trial that was
    killed goes on from it to the same end."""
    recipe = condition.full_recipe()
    images, labels = digits.train.images[: recipe.rows], digits.train.labels[: recipe.rows]
    began, resumed = perf_counter(), state is not None and state.exists()

    def run(restart: int) -> ImageArithmetic:
        """The whole training, on other pairs and from other weights at each restart."""
        own = restart_seed(seed, restart)
        model = build(condition, digits.side, own)
        pairs = Pairs(
            images, labels, condition.operation, seed=own, batch=recipe.batch, pairs=recipe.pairs,
            augmentation=recipe.augmentation, below=condition.below,
        )  # fmt: skip
        loss = PairLoss(pairs)

        def start(where: TrainingState | None) -> Training:
            return train(
                model, loss, recipe.learn, penalty=recipe.penalty, optimiser=recipe.optimiser,
                record_every=record_every, on_record=on_record, resume=where,
            )  # fmt: skip

        kept = state.with_stem(f"{state.stem}-{restart}") if state and restart else state
        deque(start(None) if kept is None else followed(kept, start), maxlen=0)
        return model

    model, restarts = restarted(run)
    settle_(model.equation)
    take_statistics_(model.encoder, images)
    return Trained(model.eval(), perf_counter() - began, resumed, restarts)


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
