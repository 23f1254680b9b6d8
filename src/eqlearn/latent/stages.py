"""One search for a law behind encoders, stage by stage, within its time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import nn

from eqlearn.errors import InvalidArgument
from eqlearn.latent.assemble import constants_of, gauges_of, predicted_by, share_left, shown_rows
from eqlearn.latent.comparison.bend import Bend
from eqlearn.latent.comparison.canonical import Reduced, reduce
from eqlearn.latent.comparison.compare import Choice, carried, compare
from eqlearn.latent.comparison.shortlist import agreement, length, shortlist
from eqlearn.latent.found import FoundLatent, LatentCandidate, LatentModel
from eqlearn.latent.joint import JointModel, train_law
from eqlearn.latent.settings import LatentSettings
from eqlearn.latent.warm_start import FitLoss, Start, Units, warm_start
from eqlearn.numerics.budget import never
from eqlearn.validation.latents import LatentData


@dataclass(frozen=True)
class LatentProgress:
    """How far a search behind encoders has come: the stage, the part of the variance that is left there, what
    the head left (NaN before it is trained), and the best law so far, if any."""

    stage: str
    seconds: float
    error: float
    head_error: float
    best: str = ""


class Run:
    """One search, stage by stage."""

    def __init__(
        self,
        encoders: dict[str, nn.Module],
        sizes: dict[str, int],
        data: LatentData,
        primitives: tuple[Any, ...],
        latents: int | Literal["auto"],
        seed: int,
        reset: bool,
        settings: LatentSettings,
        began: float,
        seconds: float | None,
        progress: Callable[[LatentProgress], object] | None,
        journal: Path | None,
        stop: Callable[[], bool] = never,
    ) -> None:
        self.encoders, self.sizes, self.data, self.primitives = encoders, sizes, data, primitives
        self.latents: int | None = None if latents == "auto" else latents
        self.seed, self.reset, self.settings, self.stopped = seed, reset, settings, stop
        self.began, self.seconds, self.progress, self.journal = began, seconds, progress, journal
        self.units = Units.of(data.sample(settings.measured))
        self.interrupted, self.rushed, self.failures = False, False, 0
        self.a_step = 0.0 if seconds is None else self._seconds_a_step()
        self.head_error, self.best, self.stage, self.last = math.nan, "", "warm start", 0.0
        self.history: list[dict[str, Any]] = []

    # --- the clock ---------------------------------------------------------------------------------------

    def deadline(self, share: float) -> Callable[[], bool]:
        """The stop condition at this share of the budget, or at Ctrl-C."""
        at = math.inf if self.seconds is None else self.began + share * self.seconds

        def over() -> bool:
            late = time.time() > at
            self.rushed = self.rushed or late
            return self.interrupted or late or self.stopped()

        return over

    def left(self, share: float) -> float:
        """Seconds until that share of the budget is used."""
        return math.inf if self.seconds is None else self.began + share * self.seconds - time.time()

    def tell(self, error: float) -> None:
        if self.progress is not None:
            used = time.time() - self.began
            self.progress(LatentProgress(self.stage, used, error, self.head_error, self.best))

    def on_record(self, record: Any) -> None:
        now = time.time()
        entry = {"stage": self.stage, "step": record.step, "error": float(record.loss)}
        self.history.append({**entry, "seconds": round(now - self.began, 2)})
        if now - self.last > 0.5:
            self.last = now
            self.tell(float(record.loss))

    # --- the stages --------------------------------------------------------------------------------------

    def found(self) -> FoundLatent:
        starts = self.starts()
        self.start = best = starts[0]
        self.head_error = best.error
        self.stage = "comparison"
        choices = self.compared(best)
        if not choices:
            raise InvalidArgument(
                "no structure could be fitted in time; give more `seconds` or fewer columns"
            )
        listed_, equivalent = shortlist(choices, best.error, self.settings, self.deadline(0.65))
        self.best = str(listed_[0].skeletons()[0])
        try:
            self.tell(listed_[0].error)
            law, model = self.decided(best, listed_)
            if law is not listed_[0]:
                equivalent = []
            agreed = self.agreement(law, choices, starts)
            reduced, model, law = self.refined(law, model)
        except KeyboardInterrupt:
            self.interrupted = True
            law, model, agreed = listed_[0], None, (1, len(starts))
            reduced = reduce(law.data, law.fit, settings=self.settings)
        return self.assembled(best, choices, equivalent, law, model, reduced, agreed)

    def compared(self, start: Start) -> list[Choice]:
        """Every small structure behind the encoders of a start. After Ctrl-C the smallest, which are fitted
        at once and are enough for an answer."""
        try:
            return self._compared(start)
        except KeyboardInterrupt:
            self.interrupted = True
            return self._compared(start)

    def _compared(self, start: Start) -> list[Choice]:
        settings, stop = self.settings, self.deadline(0.6)
        if self.seconds is not None:
            settings = replace(settings, front_seconds=min(settings.front_seconds, 0.1 * self.seconds))
        return compare(
            start, self.data, self.primitives, latents=self.latents, seed=self.seed, settings=settings,
            stop=stop, on_best=None if self.interrupted else self.on_best,
        )  # fmt: skip

    def on_best(self, choice: Choice) -> None:
        """Tells the best structure of a comparison that goes on."""
        self.best = str(choice.skeletons()[0])
        self.tell(choice.error)

    def starts(self) -> list[Start]:
        """Warm starts of both kinds by turns, the best first, until a second one confirms the best; more of
        them as long as none explains anything: a start can get stuck, with data that hold a law."""
        found: list[Start] = []
        limit = 0.5
        settings, stuck = self.paced(limit), 1 - self.settings.explained
        for number in range(settings.tries * settings.max_starts):
            alone = len(self.encoders) + len(self.data.columns) < 2
            kind = "plain" if number % 2 == 0 or alone else "interactions"
            self.stage = f"warm start {number + 1}"
            try:
                start = warm_start(
                    self.encoders, self.sizes, self.data, kind=kind, fresh=self.reset and number > 0,
                    seed=100 * self.seed + number, settings=settings, stop=self.deadline(limit),
                    on_record=self.on_record, journal=self.journal,
                )  # fmt: skip
            except KeyboardInterrupt:
                if not found:
                    raise
                self.interrupted = True
                break
            found += [start] if start is not None and math.isfinite(start.held_error) else []
            self.failures = number + 1 - len(found)
            found.sort(key=lambda s: s.held_error)
            used = 1 - self.left(limit) / (limit * self.seconds) if self.seconds else 0.0
            if used > (number + 1) / (number + 2):  # no time for one more
                break
            if not found or found[0].held_error > stuck:  # two that got stuck do not confirm each other
                continue
            second = found[1].held_error if len(found) > 1 else math.inf
            enough = second <= settings.confirmed * found[0].held_error
            if number + 1 >= (settings.starts if enough else settings.max_starts):
                break
        if not found:
            raise InvalidArgument(
                "every warm start diverged; scale the inputs, or lower the settings' `rate`"
            )
        if found[0].held_error > stuck:
            explained = max(0.0, 1 - found[0].held_error)
            raise InvalidArgument(
                f"nothing to find: the warm start explains {100 * explained:.0f} % of the spread "
                "of `y` on rows held back"
            )
        return found

    def paced(self, share: float) -> LatentSettings:
        """Settings with as many steps as the budget has time for: at least two starts, and the refinement."""
        settings = self.settings
        if self.seconds is None:
            return settings
        both = 2.9 * settings.warm_steps * self.a_step  # a plain start, and one of interactions
        factor = min(1.0, share * self.seconds * 0.9 / max(both, 1e-9))
        self.rushed = self.rushed or factor < 1
        return replace(settings, warm_steps=max(50, int(factor * settings.warm_steps)))

    def _seconds_a_step(self) -> float:
        """How long one step of training takes here."""
        few = replace(self.settings, warm_steps=4)
        trial = warm_start(self.encoders, self.sizes, self.data, seed=1, settings=few)
        if trial is None:
            return 0.0
        model = trial.model.train()
        loss = FitLoss(self.data, self.units, batch=self.settings.batch, seed=0)
        before = time.perf_counter()
        for _ in range(3):
            loss(model, None).backward()
        return 1.3 * (time.perf_counter() - before) / 3

    def decided(self, start: Start, listed_: list[Choice]) -> tuple[Choice, JointModel | None]:
        """The shortest law that joint training brings as far as the best on the list."""
        if len(listed_) == 1:
            return listed_[0], None
        self.stage, close = "short list", self.settings.close
        left = [(choice, start.model.encoders, choice) for choice in listed_]
        trained: list[tuple[Choice, JointModel, float, float]] = []
        for round_ in range(2):  # successive halving: those far behind after the first round go
            trained = []
            for number, (choice, encoders, at) in enumerate(left):
                share = 0.65 + 0.05 * (round_ + (number + 1) / len(left))
                model, error, held = train_law(
                    encoders, at.bases, at.data.slots, at.fit, self.data,
                    steps=(1 + round_) * self.settings.joint_steps, seed=self.seed + round_,
                    settings=self.settings, stop=self.deadline(share),
                    on_record=self.on_record,
                    path=self._path(f"joint-{round_}-{listed_.index(choice)}"),
                )  # fmt: skip
                trained.append((choice, model, error, held))
            # What is left far below the head's error says nothing about which law is the better one.
            least = max(min(t[2] for t in trained), self.settings.negligible * start.error)
            least_held = max(min(t[3] for t in trained), self.settings.negligible * start.held_error)
            near = [t for t in trained if t[2] <= close**3 * least and t[3] <= close**3 * least_held]
            enough = close * least + self.settings.unseen * least_held
            _, _, error, held = trained[0]  # the shortest law, also the best on rows it has not seen
            if len(near) < 2 or (error <= enough and held <= least_held):
                break
            left = [
                (choice, model.encoders, carried(choice, model, self.data, self.settings))
                for choice, model, *_ in near
            ]
        good = [t for t in trained if t[2] <= enough and t[3] <= close * least_held]
        # A wrong law can need more constants than its structure shows: so lengths are compared in full.
        choice, model, *_ = min(
            good or trained,
            key=lambda t: (length(carried(t[0], t[1], self.data, self.settings), self.settings), t[2]),
        )
        self.best = str(choice.skeletons()[0])
        return choice, model

    def agreement(self, law: Choice, choices: list[Choice], starts: list[Start]) -> tuple[int, int]:
        """How many of the starts that explain the data as well come to this law."""
        self.stage = "agreement"
        good = [s for s in starts[1:] if s.held_error <= self.settings.confirmed * starts[0].held_error]
        stop = self.deadline(0.75)
        return agreement(law, choices, good, self.data, settings=self.settings, stop=stop)

    def refined(self, law: Choice, model: JointModel | None) -> tuple[Reduced, JointModel, Choice]:
        """The law and its encoders trained on, first with all constants free, then the simple ones held."""
        self.stage = "refinement"
        start_encoders = model.encoders if model is not None else self.start.model.encoders
        choice = law if model is None else carried(law, model, self.data, self.settings)
        exact: np.ndarray | None = None
        reduced: Reduced | None = None
        for number, (share, part) in enumerate(((0.8, 0.3), (0.93, 0.7))):
            model, _, _ = train_law(
                start_encoders, choice.bases, choice.data.slots, choice.fit, self.data,
                steps=self._steps(int(part * self.settings.refine_steps), share), fixed=exact,
                seed=self.seed + 7 + number, settings=self.settings, stop=self.deadline(share),
                on_record=self.on_record, path=self._path(f"refine-{number}"),
            )  # fmt: skip
            start_encoders = model.encoders
            choice = carried(choice, model, self.data, self.settings)
            if reduced is None:
                reduced = reduce(choice.data, choice.fit, settings=self.settings, stop=self.deadline(0.85))
                choice = replace(choice, fit=reduced.fit)
                exact = reduced.fixed
                self.best = str(reduced.equations(choice.names, choice.columns)[0])
        assert reduced is not None
        assert model is not None
        final = reduce(
            choice.data, choice.fit, settings=self.settings, stop=self.deadline(0.99), known=reduced.exact
        )
        return final, model, choice

    def _steps(self, steps: int, share: float) -> int:
        """As many of these steps as there is time for."""
        if self.seconds is None:
            return steps
        possible = int(0.9 * self.left(share) / max(self.a_step, 1e-9))
        self.rushed = self.rushed or possible < steps
        return max(20, min(steps, possible))

    def _path(self, name: str) -> Path | None:
        return None if self.journal is None else self.journal / f"{name}.safetensors"

    def assembled(
        self,
        start: Start,
        choices: list[Choice],
        equivalent: list[Choice],
        law: Choice,
        model: JointModel | None,
        reduced: Reduced,
        agreed: tuple[int, int],
    ) -> FoundLatent:
        """The result: the equation as printed inside the model, latents in its gauge."""
        encoders = deepcopy(model.encoders if model is not None else start.model.encoders)
        equations = reduced.equations(law.names, law.columns)
        bends = [
            Bend(basis.double(), coefficients)
            for basis, coefficients in zip(law.bases, reduced.fit.bends, strict=True)
        ]
        network = LatentModel(encoders, bends, law.data.slots, equations, law.columns)
        sample, held = self.data.sample(self.settings.measured), self.data.held
        predicted, true = predicted_by(network, sample), sample.y
        errors = [
            share_left(p, b.y, self.units)
            for p, b in ((predicted, sample), (predicted_by(network, held), held))
        ]
        latents, gauges = gauges_of(network, sample)
        front: dict[int, Choice] = {}
        for choice in sorted(choices, key=lambda c: (c.size, c.error)):
            if all(choice.error < 0.95 * c.error for c in front.values()):
                front[choice.size] = choice
        return FoundLatent(
            equations,
            constants_of(equations, reduced),
            tuple(LatentCandidate(c.skeletons(), c.size, c.error) for c in front.values()),
            tuple(c.skeletons() for c in equivalent),
            gauges,
            agreed,
            errors[0],
            errors[1],
            start.error,
            time.time() - self.began,
            "interrupted" if self.interrupted else "out of time" if self.rushed else "complete",
            ("y",) if len(equations) == 1 else tuple(f"y{i + 1}" for i in range(len(equations))),
            tuple(self.history),
            shown_rows(network, sample, latents, predicted, true),
            network,
        )
