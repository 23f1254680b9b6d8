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
from dataclasses import dataclass, field, replace
from typing import Any

import sympy as sp
import torch
from jaxtyping import Float
from torch import Tensor, nn

from eqlearn.dynamics.forms import STEPPERS, CellForm
from eqlearn.dynamics.settings import FINISH, MOTION
from eqlearn.errors import InvalidArgument, counted
from eqlearn.latent.comparison.bend import Bend
from eqlearn.latent.comparison.canonical import reduce
from eqlearn.latent.comparison.compare import Choice
from eqlearn.latent.comparison.shortlist import shortlist
from eqlearn.latent.comparison.structures import leaves
from eqlearn.latent.gauge import Gauge
from eqlearn.latent.motion.finish import DistilLoss, Follow, distil_, finish, glanced, plainly
from eqlearn.latent.motion.given import Formula, GivenLaw, check_given, read_given
from eqlearn.latent.motion.law import Law
from eqlearn.latent.motion.own import OwnEncoder, fitted_in, with_latents
from eqlearn.latent.motion.refine import Propagation, Refined, refine
from eqlearn.latent.motion.series import EncoderShape, SeriesEncoder
from eqlearn.latent.motion.system import FoundDynamics, Pairs, SeriesRows, encoder_scales, single_steps
from eqlearn.latent.settings import LatentSettings
from eqlearn.latent.stages import LatentProgress, Run
from eqlearn.nn.primitives import PrimitivesLike, parse_kinds
from eqlearn.numerics.budget import never
from eqlearn.search.search import discover
from eqlearn.search.settings import SCIENCE
from eqlearn.symbolic.expressions import real_symbol
from eqlearn.training.schedule import Phase, Schedule
from eqlearn.validation.latents import Batch, Gathered, LatentData
from eqlearn.validation.options import checked_choice, checked_seed
from eqlearn.validation.trajectories import check_latents, latent_names

# The latents of the warm start only lead to the law: each series' own is fitted afterwards.
STRUCTURES = LatentSettings(
    warm_steps=400, max_starts=3, structures=400, kept=36, screened=200, compared=1_000, serving_starts=4,
    growth=0,
)  # fmt: skip
DISTIL: Schedule = (Phase(name="distillation", steps=6_000, lr=3e-3, decay="cosine"),)


@dataclass(frozen=True, kw_only=True)
class DynamicsSearch:
    """How equations of motion behind an encoder are searched for; the same for every system.

    `form` says what the equations give: rates of change ("ode", integrated by the `stepper`), the change in a
    step per unit of time ("residual"), or the next states ("map"); `primitives` what they may be made of, and
    `given` what is known of them: by the names of their states, formulas in the names of states and latents,
    `{"x": "v"}`, as text or `Equation`; of `equation.torch()` the constants are fitted with the rest.

    `encoder` is the shape of the `SeriesEncoder` that is used by default, one that suits the length of the
    series unless given. `structures` says how structures are compared. `orders` times, a law is offered the
    next order of its expansion. `distil` are the phases in which the encoder learns each series' latent (its
    read-out alone, without any), in batches of `batch`, and `candidates` the most laws that are followed
    through the rollout for a glance, beside sums of products; the best `finished` of them are finished.
    """

    form: CellForm = "ode"
    stepper: str = "rk4"
    primitives: PrimitivesLike = SCIENCE
    given: Mapping[str, Formula] = field(default_factory=dict, hash=False)
    encoder: EncoderShape | None = None
    structures: LatentSettings = STRUCTURES
    candidates: int = 3
    finished: int = 2
    orders: int = 1
    distil: Schedule = DISTIL
    batch: int = 128

    def __post_init__(self) -> None:
        check_given(self.given)
        checked_choice("`form`", self.form, ("map", "residual", "ode"))
        checked_choice("`stepper`", self.stepper, STEPPERS)
        parse_kinds(self.primitives)


SEARCH = DynamicsSearch()


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
) -> FoundDynamics:
    """The search of `train_dynamics`."""
    seed = checked_seed(seed)
    reader = _reader(pairs, settings, encoder, latents, seed)
    search = _Search(pairs, settings, reader, latents, seed, progress, stop)
    rows = pairs.propagated.states[:, 0].numel()
    quick: list[tuple[float, _Candidate]] = []
    for candidate in search.candidates():
        fit = glanced(search.law(candidate), candidate.latent, pairs.propagated, stop=stop)
        quick.append((fit.score(rows), candidate))
        search.tell(fit)
        if fit.loss < FINISH.enough or (stop() and math.isfinite(fit.loss)):
            break
    done: list[tuple[_Candidate, Refined]] = []
    for _, candidate in sorted(quick, key=lambda one: one[0])[: settings.finished]:
        law = search.law(candidate)
        fit = finish(law, candidate.latent, pairs.propagated, orders=settings.orders, stop=stop)
        done.append((candidate, fit))
        search.tell(fit)
        if fit.loss < FINISH.enough or (stop() and math.isfinite(fit.loss)):
            break
    candidate, fit = min(done, key=lambda one: one[1].score(rows))
    if not math.isfinite(fit.loss):
        raise InvalidArgument(
            "every law that suits the single steps diverges when it is followed; give shorter series, or "
            "other `primitives`"
        )
    agreement = None if candidate.choice is None else search.agreement(candidate.choice)
    gauges = tuple(_encoders_gauge(fit))
    law = fit.law.regauged([gauge.inverse for gauge in gauges])
    trained, failures = search.trained, search.failures
    if trained is not None and len(fit.law.latents):
        trained = with_latents(trained, len(fit.law.latents))
        loss = DistilLoss.of(fit, gauges, pairs.observed, batch=settings.batch, seed=seed)
        failures += not distil_(trained, loss, settings.distil, follow)
    return FoundDynamics(
        trained, law, law.equations(), fit.law.equations(), gauges, None, fit, failures, agreement
    )


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
    ) -> None:
        self.pairs, self.settings, self.encoder, self.seed = pairs, settings, encoder, seed
        self.progress, self.stop, self.began = progress, stop, time.time()
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
        listed, beyond = self._choices(data, len(free))
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
        return self.run.agreement(choice, self.choices, self.found_starts)

    def tell(self, fit: Refined) -> None:
        """Reports a law that was followed through the rollout."""
        if self.progress is not None:
            head = math.nan if self.run is None else self.run.head_error
            best = ", ".join(str(e.rounded(4)) for e in fit.law.equations())
            self.progress(LatentProgress("rollout", time.time() - self.began, fit.loss, head, best))

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
            "auto" if self.any_number else free, self.seed, True, options, began, None, self.progress, None,
            self.stop,
        )  # fmt: skip
        self.found_starts = starts = run.starts()
        run.start, run.head_error, run.stage = starts[0], starts[0].error, "comparison"
        self.failures += run.failures
        self.trained = starts[0].model.encoders.encoders[0]  # type: ignore[assignment]
        self.choices = choices = [c for c in run.compared(starts[0]) if _uses_all(c)]
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


def _reader(
    pairs: Pairs, settings: DynamicsSearch, encoder: nn.Module | None, latents: int | None, seed: int
) -> SeriesEncoder | OwnEncoder | None:
    """The encoder before it is trained: a copy of one's own, or one that suits the series."""
    observed = pairs.observed
    scales = encoder_scales(observed, "time")
    if encoder is not None:
        own = fitted_in(encoder, observed.states.float(), scales)
        if own.members is not None:
            raise InvalidArgument("`encoder` has members; a search takes one, and starts it anew by itself")
        if latents is not None and not 1 <= latents <= own.latents:
            raise InvalidArgument(
                f"`encoder` gives {counted(own.latents, 'latent')}, but `latents` is {latents}"
            )
        return own
    if latents == 0:
        return None
    count, times, states = (1 if latents is None else latents), *observed.states.shape[1:]
    shape = settings.encoder or EncoderShape.suited(times)
    return SeriesEncoder(states, times, count, shape=shape, scales=scales, seed=seed)


def _uses_all(choice: Choice) -> bool:
    """Whether each latent stands in some state's law."""
    used = {leaf for tree in choice.fit.trees for leaf, _ in leaves(tree)}
    return all(slot in used for slot in range(len(choice.data.slots)))


def _encoders_gauge(fit: Refined) -> Iterator[Gauge]:
    """Latents as an encoder gives them: with standard deviation ½, or in the units of a given law."""
    for name, p in zip(fit.law.latents, fit.latent, strict=True):
        known = name in fit.law.known
        yield Gauge(1.0, 0.0) if known else Gauge(2 * float(p.std(correction=0)) or 1.0, float(p.mean()))
