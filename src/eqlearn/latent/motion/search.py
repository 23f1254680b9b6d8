"""Dynamics with a hidden parameter by the search behind encoders, with a step of time in the law's place.

Rows are times of the propagated series, columns the states then, targets what the equations should give
there; the encoder reads the observed series of the same parameter. Structures are found as for any law behind
an encoder. What decides between them is then not a step but the motion: each is refined through the whole
rollout, every series with a latent of its own, and the encoder learns to give those latents.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import sympy as sp
import torch
from jaxtyping import Float
from torch import Tensor, nn

from eqlearn.dynamics.settings import FINISH, MOTION
from eqlearn.errors import InvalidArgument
from eqlearn.latent.comparison.bend import Bend
from eqlearn.latent.comparison.canonical import reduce
from eqlearn.latent.comparison.compare import Choice
from eqlearn.latent.comparison.shortlist import shortlist
from eqlearn.latent.comparison.structures import leaves
from eqlearn.latent.motion.finish import (
    DistilLoss,
    Follow,
    distil_,
    encoder_gauges,
    finish,
    glanced,
    plainly,
    whole,
)
from eqlearn.latent.motion.given import GivenLaw, read_given
from eqlearn.latent.motion.law import Law
from eqlearn.latent.motion.own import OwnEncoder, with_latents
from eqlearn.latent.motion.refine import Propagation, Refined, refine
from eqlearn.latent.motion.series import SeriesEncoder
from eqlearn.latent.motion.system import FoundDynamics, Pairs, SeriesRows, reader_of, single_steps
from eqlearn.latent.settings import SEARCH, DynamicsSearch
from eqlearn.latent.stages import LatentProgress, Run
from eqlearn.nn.primitives import parse_kinds
from eqlearn.numerics.budget import never
from eqlearn.search.search import discover
from eqlearn.symbolic.expressions import real_symbol
from eqlearn.training.loop import Beginning, Record
from eqlearn.validation.latents import Batch, Gathered, LatentData
from eqlearn.validation.options import checked_seed
from eqlearn.validation.trajectories import check_latents, latent_names


def search_dynamics(
    pairs: Pairs,
    settings: DynamicsSearch = SEARCH,
    *,
    encoder: nn.Module | None = None,
    latents: int | None = None,
    seed: int = 0,
    follow: Follow = plainly,
    progress: Callable[[LatentProgress], object] | None = None,
    stop: Callable[[], bool] = never,
    journal: Path | None = None,
) -> FoundDynamics:
    """The search of `train_dynamics`."""
    seed = checked_seed(seed)
    reader = reader_of(pairs, settings.encoder, encoder, latents, seed)
    search = _Search(pairs, settings, reader, latents, seed, progress, stop, journal)
    candidate, fit = search.best()
    if not math.isfinite(fit.loss):
        raise InvalidArgument(
            "every law that suits the single steps diverges when it is followed; give shorter series, or "
            "other `primitives`"
        )
    agreement = None if candidate.choice is None else search.agreement(candidate.choice)
    gauges = encoder_gauges(fit)
    law = fit.law.regauged([gauge.inverse for gauge in gauges])
    trained, failures = search.trained, search.failures
    if trained is not None and len(fit.law.latents):
        trained = with_latents(trained, len(fit.law.latents))
        loss = DistilLoss(fit, gauges, pairs.observed, batch=settings.batch, seed=seed)
        failures += not distil_(trained, loss, settings.distil, search.watched(follow))
    return FoundDynamics(
        trained, law, law.equations(), fit.law.equations(), gauges, None, fit, failures, agreement,
        "interrupted" if search.interrupted else "stopped" if stop() else "complete",
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Candidate:
    """Laws of the learned states, by their place, in the names of `latents`; and each series' latents."""

    laws: dict[int, Any]
    names: tuple[str, ...]
    latent: Float[Tensor, "latents series"]
    choice: Choice | None = None


class _Search:
    """The states' laws that suit single steps, and what is needed to say them."""

    def __init__(
        self,
        pairs: Pairs,
        settings: DynamicsSearch,
        encoder: SeriesEncoder | OwnEncoder | None,
        latents: int | None,
        seed: int,
        progress: Callable[[LatentProgress], object] | None,
        stop: Callable[[], bool],
        journal: Path | None,
    ) -> None:
        self.pairs, self.settings, self.encoder, self.seed = pairs, settings, encoder, seed
        self.progress, self.stopped, self.journal, self.began = progress, stop, journal, time.time()
        self.interrupted, self.told = False, 0.0
        self.fits: list[tuple[float, _Candidate, Refined]] = []  # with their scores, in the order they came
        count = 0 if encoder is None else encoder.latents
        if count:
            check_latents(count, pairs.propagated, MOTION.min_series)
        self.states, self.names = pairs.propagated.names, latent_names(count)
        self.given = read_given(settings.given, self.states, self.names, None)
        used = {s.name for law in self.given.values() for s in law.equation.expr.free_symbols}
        self.known = tuple(name for name in self.names if name in used)
        self.learned = [place for place in range(len(self.states)) if place not in self.given]
        # A law may use fewer latents than an encoder gives, unless their number is told.
        self.any_number = latents is None and not self.known
        self.trained, self.failures = encoder, 0
        self.run: Run | None = None
        self.listed: tuple[list[Choice], list[Choice]] | None = None

    def stop(self) -> bool:
        """Whether to end with what there is, after Ctrl-C or as the user says."""
        return self.interrupted or self.stopped()

    def best(self) -> tuple[_Candidate, Refined]:
        """The law that follows the motion best, with a latent for each series; the best so far at Ctrl-C."""
        try:
            return self._followed()
        except KeyboardInterrupt:
            if not self.fits and self.listed is None:
                raise  # there is nothing yet
            self.interrupted = True
        if not self.fits:
            return self._followed()
        _, candidate, fit = min(self.fits, key=lambda one: one[0])
        return candidate, whole(fit, candidate.latent, self.pairs.propagated)

    def _followed(self) -> tuple[_Candidate, Refined]:
        """The best of the candidates: all of them glanced at, and the first few finished."""
        series, stop = self.pairs.propagated, self.stop
        for candidate in self.candidates():
            fit = glanced(self.law(candidate), candidate.latent, series, stop=stop)
            self.tell("rollout", candidate, fit)
            if fit.loss < FINISH.enough or (stop() and math.isfinite(fit.loss)):
                break
        done: list[tuple[float, _Candidate, Refined]] = []
        for _, candidate, _ in sorted(self.fits, key=lambda one: one[0])[: self.settings.finished]:
            tell = partial(self.tell, "refinement", candidate)
            law, orders = self.law(candidate), self.settings.orders
            fit = finish(law, candidate.latent, series, orders=orders, stop=stop, on_fit=tell)
            done.append((self.tell("refinement", candidate, fit), candidate, fit))
            if fit.loss < FINISH.enough or (stop() and math.isfinite(fit.loss)):
                break
        _, candidate, fit = min(done, key=lambda one: one[0])
        return candidate, fit

    def candidates(self) -> Iterator[_Candidate]:
        """Laws that suit single steps, the shortest first."""
        known = self._known_latents()
        free = [name for name in self.names if name not in self.known]
        if not self.learned:
            yield _Candidate({}, self.known, known)
            return
        states, targets, index = single_steps(self.pairs.propagated, self.settings.form)
        columns = torch.cat([states, known.mT[index]], dim=1)
        if not free:
            names = [*self.states, *self.known]
            laws = {p: self._discovered(columns, targets[:, p], names) for p in self.learned}
            yield _Candidate(laws, self.known, known)
            return
        data = self._rows(columns, targets[:, self.learned], index)
        if self.listed is None:
            self.listed = self._choices(data, len(free))
        listed, beyond = self.listed
        short = [self._candidate(choice, known, free) for choice in listed]
        yield from short
        yield self._products(short[0], states, targets, index)
        yield from (self._candidate(choice, known, free) for choice in beyond)

    def law(self, candidate: _Candidate) -> Law:
        """A candidate and what is given as one law of motion."""
        both = candidate.laws | {p: law.present().expr for p, law in self.given.items()}
        return self._law([both[p] for p in range(len(self.states))], candidate.names, self.given)

    def agreement(self, choice: Choice) -> tuple[int, int]:
        """How many of the starts that explain the data as well come to this law, and of how many."""
        assert self.run is not None
        try:
            if not self.interrupted:
                return self.run.agreement(choice, self.choices, self.found_starts)
        except KeyboardInterrupt:
            self.interrupted = True
        return 1, len(self.found_starts)

    def tell(self, stage: str, candidate: _Candidate, fit: Refined) -> float:
        """Keeps and reports a law that was followed through the rollout; gives its score."""
        score = fit.score(self.pairs.propagated.states[:, 0].numel())
        self.fits.append((score, candidate, fit))
        self._say(stage, fit.loss)
        return score

    def _say(self, stage: str, error: float) -> None:
        if self.progress is not None:
            head = math.nan if self.run is None else self.run.head_error
            law = min(self.fits, key=lambda one: one[0])[2].law
            best = ", ".join(str(e.rounded(4)) for e in law.equations())
            self.progress(LatentProgress(stage, time.time() - self.began, error, head, best))

    def watched(self, follow: Follow) -> Follow:
        """Trainings that tell how far they are, and end where they stand at Ctrl-C or at a stop."""

        def watched(name: str, start: Beginning) -> Iterator[Record]:
            try:
                for record in () if self.stop() else follow(name, start):
                    if time.time() - self.told > 0.5:
                        self.told = time.time()
                        self._say(name, float(record.loss))
                    yield record
                    if self.stop():
                        return
            except KeyboardInterrupt:
                self.interrupted = True

        return watched

    def _law(self, laws: Sequence[Any], names: Sequence[str], given: Mapping[int, GivenLaw]) -> Law:
        tied = [place for place, law in given.items() if law.trained]
        held = [place for place in given if place not in tied]
        form, stepper, dt = self.settings.form, self.settings.stepper, self.pairs.propagated.dt
        return Law.of(laws, self.states, names, form=form, stepper=stepper, dt=dt, held=held, tied=tied)

    def _known_latents(self) -> Float[Tensor, "known series"]:
        """The latents of given laws, fitted to each series step by step."""
        series = self.pairs.propagated
        empty = torch.zeros(len(self.known), len(series.series), dtype=torch.float64)
        if not self.known:
            return empty
        laws = [
            self.given[p].present().expr if p in self.given else sp.S.Zero for p in range(len(self.states))
        ]
        problem = replace(Propagation.of(series), forced=True)
        blind = torch.tensor([math.inf if p in self.learned else 1.0 for p in range(len(self.states))])
        problem = replace(problem, scales=problem.scales * blind)
        law = self._law(laws, self.known, self.given)
        fits = [refine(law, empty + at, problem, stop=self.stop) for at in (0.5, -0.5)]
        return min(fits, key=lambda fit: fit.loss).latent

    def _discovered(self, columns: Tensor, target: Tensor, names: Sequence[str]) -> Any:
        """The law of a state in which nothing is hidden."""
        rows = torch.linspace(0, len(columns) - 1, min(len(columns), MOTION.rate_rows)).round().long()
        found = discover(
            columns[rows].numpy(), target[rows].numpy(), primitives=self.settings.primitives,
            seconds=self.settings.structures.front_seconds, seed=self.seed, variables=names,
        )  # fmt: skip
        self.interrupted = self.interrupted or found.ended == "interrupted"
        return found.best.equation.expr

    def _rows(self, columns: Tensor, targets: Tensor, index: Tensor) -> SeriesRows:
        """Rows of which some times of each series are held back."""
        observed = self.pairs.observed.states.float()
        whole = Batch({"z": Gathered(observed, index)}, columns, targets)
        order = torch.randperm(len(index), generator=torch.Generator().manual_seed(self.seed))
        options = self.settings.structures
        count = min(options.measured, max(1, int(options.held * len(index))))
        seen, held = order[count:], order[:count]
        return SeriesRows(whole[seen], whole[held], (*self.states, *self.known), index[seen])

    def _choices(self, data: LatentData, free: int) -> tuple[list[Choice], list[Choice]]:
        """The short list, and the best beyond it, behind the encoder of the best warm start."""
        assert self.encoder is not None
        options, began = self.settings.structures, self.began
        self.run = run = Run(
            {"z": self.encoder}, {"z": self.encoder.latents}, data, parse_kinds(self.settings.primitives),
            "auto" if self.any_number else free, self.seed, True, options, began, None, self.progress,
            self.journal, self.stop,
        )  # fmt: skip
        self.found_starts = starts = run.starts()
        run.start, run.head_error, run.stage = starts[0], starts[0].error, "comparison"
        self.failures += run.failures
        self.trained = starts[0].model.encoders.encoders[0]  # type: ignore[assignment]
        self.choices = choices = [c for c in run.compared(starts[0]) if _uses_all(c)]
        self.interrupted = run.interrupted
        if not choices:
            raise InvalidArgument(
                "no structure with a latent could be fitted; is the parameter hidden in the observed series?"
            )
        listed, _ = shortlist(choices, starts[0].error, options, self.stop)
        front: list[Choice] = []
        for choice in sorted(choices, key=lambda c: (c.size, c.error)):
            if all(choice.error < 0.95 * c.error for c in front):
                front.append(choice)
        beyond = [c for c in reversed(front) if all(c.fit.trees != o.fit.trees for o in listed)]
        most = self.settings.candidates
        return listed[:most], beyond[: max(0, most - len(listed))]

    def _products(self, near: _Candidate, states: Tensor, targets: Tensor, index: Tensor) -> _Candidate:
        """Each law as a sum of all products of two states, also times a latent: a state may stand in it
        twice, as in growth towards a limit. What the motion does not need is taken out of it later."""
        laws = Law.products(self.states, states, near.names, near.latent[:, index], targets[:, self.learned])
        return _Candidate(dict(zip(self.learned, laws, strict=True)), near.names, near.latent)

    @torch.no_grad()
    def _candidate(self, choice: Choice, known: Tensor, free: Sequence[str]) -> _Candidate:
        """A choice as laws, with each series' latents as they are bent for it."""
        assert self.run is not None
        reduced = reduce(choice.data, choice.fit, settings=self.settings.structures, stop=self.stop)
        encoders = self.run.start.model.encoders.eval()
        bend = Bend(choice.bases[0].double(), reduced.fit.bends[0])
        pieces = self.pairs.observed.states.float().split(1_000)
        bent = torch.cat([bend(encoders.of_group(0, piece).double()) for piece in pieces]).mT
        slots = [slot.name for slot in choice.data.slots]
        mine = latent_names(len(slots)) if self.any_number else tuple(free)
        names = mine if self.any_number else self.names
        told = {real_symbol(a): real_symbol(b) for a, b in zip(slots, mine, strict=True)}
        equations = reduced.equations(slots, choice.columns)
        laws = {p: e.expr.subs(told, simultaneous=True) for p, e in zip(self.learned, equations, strict=True)}
        values = dict(zip(mine, bent, strict=True)) | dict(zip(self.known, known, strict=True))
        latent = torch.stack([values[name] for name in names])
        return _Candidate(laws, names, latent, choice)


def _uses_all(choice: Choice) -> bool:
    """Whether each latent stands in some state's law."""
    used = {leaf for tree in choice.fit.trees for leaf, _ in leaves(tree)}
    return all(slot in used for slot in range(len(choice.data.slots)))
