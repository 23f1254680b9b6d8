"""The one gradient loop: any model, any loss, any schedule."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.optim import Optimizer

from eqlearn.errors import Diverged, InvalidArgument, WrongType
from eqlearn.nn.penalties import Penalty, find_penalty, over_layers, sparsity
from eqlearn.nn.sparse import prune_, sparse_layers, weights_left
from eqlearn.training.direct import DirectStep
from eqlearn.training.members import Failure, Members
from eqlearn.training.optimisers import OptimiserFactory, RMSPropTF1
from eqlearn.training.schedule import Phase, Schedule, check_schedule
from eqlearn.training.state import TrainingState, at_rest, load_optimiser_, named, optimiser_tensors
from eqlearn.validation.options import check_least

Loss: TypeAlias = Callable[[Any, Phase], Tensor]


@dataclass(frozen=True, kw_only=True, eq=False)
class Record:
    """The state of training after `step` steps of a phase; tensors hold one number, or one per member.

    `loss` and the unweighted `penalty` are those of the last step, `weights_left` counts after pruning. The
    loss of a failed member is NaN. `model` is the live model, for a callback that reads the equation.
    """

    phase: str
    step: int
    total_step: int
    loss: Float[Tensor, "*members"]
    penalty: Float[Tensor, "*members"]
    weights_left: Int[Tensor, "*members"]
    alive: Bool[Tensor, "*members"]
    failures: tuple[Failure, ...]
    lr: float
    penalty_weight: float
    seconds: float
    model: nn.Module = field(repr=False)


@dataclass(eq=False)
class Training:
    """A run in progress: iterating over it trains; `state()`, between two records, is for resuming it."""

    model: nn.Module
    loss: Loss
    schedule: Schedule
    penalty: Penalty
    optimiser: Optimizer
    members: Members
    record_every: int
    on_record: Callable[[Record], object] | None
    phase: int = 0
    step: int = 0
    seconds: float = 0.0
    failures: tuple[Failure, ...] = ()

    def __post_init__(self) -> None:
        self._records = self._run()
        self._layers = list(sparse_layers(self.model))

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        return next(self._records)

    def state(self) -> TrainingState:
        """A copy of everything needed to resume from here."""
        tensors = named("model", self.model.state_dict()) | named("kept", self.members.kept)
        tensors |= named("optimiser", optimiser_tensors(self.optimiser))
        if isinstance(self.loss, nn.Module):
            tensors |= named("loss", self.loss.state_dict())
        return TrainingState(
            phase=self.phase, step=self.step, seconds=self.seconds, failures=self.failures, tensors=tensors
        )

    def _run(self) -> Iterator[Record]:
        self.model.train()
        clock, direct = perf_counter(), DirectStep.of(self)
        for index in range(self.phase, len(self.schedule)):
            phase = self.schedule[index]
            start = self.step if index == self.phase else 0
            for step in range(start, phase.steps):
                self.phase, self.step = index, step
                ends = step + 1 == phase.steps
                told, done = ends or (step + 1) % self.record_every == 0, None
                if direct is not None and phase.clip is None and self.members.all_alive:
                    done = direct(phase.penalty_at(step), phase.lr_at(step), told)
                fit, penalty = self._advance(phase, step) if done is None else done
                self.step += 1
                if ends and phase.prune_below is not None:
                    prune_(self.model, below=phase.prune_below)
                    self.members.keep_()
                if told:
                    self.seconds += perf_counter() - clock
                    record = self._record(phase, fit, penalty)
                    if self.on_record is not None:
                        self.on_record(record)
                    yield record
                    self.model.train()  # the caller may have evaluated the model
                    clock, direct = perf_counter(), DirectStep.of(self)

    def _advance(self, phase: Phase, step: int) -> tuple[Tensor, Tensor | None]:
        """Takes one step; returns the loss, and the penalty if it has a weight."""
        members, weight, penalty = self.members, phase.penalty_at(step), None
        members.forget_()
        with members.understudied():
            fit = self.loss(self.model, phase)
            if not isinstance(fit, Tensor) or not fit.requires_grad:
                raise WrongType(
                    "`loss` must give a tensor that depends on the model's weights, without `.item()` or "
                    f"`.detach()`, got {fit!r}"
                )
            if fit.shape != members.alive.shape:
                raise InvalidArgument(_wrong_shape(fit, members.count))
            # The objective is the sum of both over the members, failed ones left out of the loss.
            parts, weights = [fit], [members.alive.to(fit.dtype)]
            if weight > 0:
                penalty = over_layers(self._layers, self.penalty)
                parts, weights = [fit, penalty], [*weights, torch.full_like(penalty, weight)]
            torch.autograd.backward(parts, weights)
        if failed := members.guard_(fit, phase.clip):
            self.failures += tuple(Failure(member, phase.name, step) for member in failed)
            if not bool(members.alive.any()):
                raise Diverged(phase.name, step)
        for group in self.optimiser.param_groups:
            group["lr"] = phase.lr_at(step)
        try:
            getattr(self.optimiser, "update", self.optimiser.step)()
            members.hold_()
        except BaseException:
            members.restore_()  # Ctrl-C between two tensors must not leave half a step behind
            raise
        return fit, penalty

    @torch.no_grad()
    def _record(self, phase: Phase, fit: Tensor, penalty: Tensor | None) -> Record:
        sparse = _is_sparse(self.model)
        if penalty is None:
            with at_rest(self.model):  # measuring it must not advance the noise of gates
                penalty = sparsity(self.model, self.penalty) if sparse else torch.zeros_like(fit)
        left = weights_left(self.model) if sparse else torch.zeros_like(fit, dtype=torch.int64)
        return Record(
            phase=phase.name,
            step=self.step,
            total_step=sum(p.steps for p in self.schedule[: self.phase]) + self.step,
            loss=torch.where(self.members.alive, fit.detach(), torch.nan),
            penalty=penalty.detach().clone(),
            weights_left=left,
            alive=self.members.alive.clone(),
            failures=self.failures,
            lr=phase.lr_at(self.step - 1),
            penalty_weight=phase.penalty_at(self.step - 1),
            seconds=self.seconds,
            model=self.model,
        )


Beginning: TypeAlias = Callable[[TrainingState | None], Training]


def train(
    model: nn.Module,
    loss: Loss,
    schedule: Sequence[Phase],
    *,
    penalty: str | Penalty = "half",
    optimiser: OptimiserFactory = RMSPropTF1,
    record_every: int = 500,
    on_record: Callable[[Record], object] | None = None,
    resume: TrainingState | None = None,
) -> Training:
    """Trains `model` in place by `schedule`, as its records are iterated over.

    ```python
    for record in train(model, lambda model, phase: (model(x) - y).square().mean(), schedule):
        print(record.phase, record.step, record.loss)
    ```

    `loss(model, phase)` is one number, or one per member of a network with `members`; their sum is minimised,
    so that members stay independent. It has the data: it draws its batches itself. A loss with a state of its
    own (its position in the data) is an `nn.Module` with buffers. `optimiser` makes an optimiser from
    parameters; the phase sets its rate. Penalty and pruning act on the sparse layers only. There is a record
    every `record_every` steps and at the end of each phase.

    A member whose loss or gradient is no longer finite keeps its last finite weights and joins `failures`.

    **Raises:** `Diverged` when no member is left.
    """
    if not isinstance(model, nn.Module):
        raise WrongType(f"`model` must be an nn.Module, such as an `EQL`, got {type(model).__name__}")
    _check_loss(loss)
    schedule = check_schedule(schedule)
    if not callable(optimiser):
        raise WrongType(
            f"`optimiser` must make an optimiser from parameters, as `torch.optim.Adam` does (without "
            f"parentheses), got {type(optimiser).__name__}"
        )
    check_least("record_every", record_every)
    for phase in schedule if not _is_sparse(model) else ():
        if phase.penalty > 0 or phase.prune_below is not None:
            raise InvalidArgument(
                f"phase {phase.name!r} has `penalty`={phase.penalty} and `prune_below`={phase.prune_below}, "
                "but the model holds no sparse layer; is there an EQL in it?"
            )
    rule, descent = find_penalty(penalty), optimiser(model.parameters())
    run = Training(model, loss, schedule, rule, descent, Members(model), record_every, on_record)
    if resume is not None:
        _resume(run, resume)
    return run


def _check_loss(loss: Any) -> None:
    """Refuses what can't be called as `loss(model, phase)`: data, a loader, a loss of two tensors."""
    what = "`loss` must be a function `loss(model, phase)` that gives the error of the model"
    if not callable(loss):
        raise WrongType(
            f"{what}, got {type(loss).__name__}; draw the batches inside it, as `next(batches)` of "
            "an endless iterator over a DataLoader"
        )
    if isinstance(loss, nn.modules.loss._Loss):
        name = type(loss).__name__
        raise WrongType(
            f"{what}, got {name}, which compares two tensors; "
            f"write `lambda model, phase: {name}()(model(x), y)`"
        )
    try:
        inspect.signature(loss.forward if isinstance(loss, nn.Module) else loss).bind(None, None)
    except TypeError:
        raise WrongType(f"{what}, got one that does not take these two arguments") from None
    except ValueError:
        pass  # some functions written in C do not say what they take


def _resume(run: Training, state: TrainingState) -> None:
    if not (0 <= state.phase < len(run.schedule) and 0 <= state.step <= run.schedule[state.phase].steps):
        raise InvalidArgument(
            f"`resume` stands at step {state.step} of phase {state.phase}, which `schedule` does not have; "
            "give the schedule that the run was started with"
        )
    kept = state.part("kept")
    try:
        run.model.load_state_dict(state.part("model"))
        load_optimiser_(run.optimiser, state.part("optimiser"))
        if isinstance(run.loss, nn.Module):
            run.loss.load_state_dict(state.part("loss"))
        run.members.kept = {name: kept[name] for name in run.members.kept}
    except (RuntimeError, LookupError, ValueError) as error:
        raise InvalidArgument(f"`resume` belongs to another model, loss or optimiser: {error}") from error
    run.phase, run.step, run.seconds, run.failures = state.phase, state.step, state.seconds, state.failures
    run.members.stop([failure.member for failure in state.failures])


def _is_sparse(model: nn.Module) -> bool:
    return any(True for _ in sparse_layers(model))


def _wrong_shape(fit: Tensor, members: int | None) -> str:
    if members is None:
        return f"`loss` must give one number, got shape {tuple(fit.shape)}; take its mean"
    return (
        f"`loss` must give one number per member, shape ({members},), got {tuple(fit.shape)}; "
        "take the mean over all axes but the first"
    )
