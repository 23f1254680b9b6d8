"""Discovery of dynamics: the equations of motion of a system all of whose states were observed."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from eqlearn.dynamics.forms import find_form
from eqlearn.dynamics.found import FoundMotion
from eqlearn.dynamics.library import allowed_shapes
from eqlearn.dynamics.prepared import Prepared
from eqlearn.dynamics.selection import Model, best_together, fitted_model, snapped, without_spare_terms
from eqlearn.dynamics.settings import MOTION, SEARCHES, MotionSettings
from eqlearn.dynamics.sums import SumOfTerms, TermSearch
from eqlearn.dynamics.varying import varying_equation
from eqlearn.nn.primitives import PrimitivesLike
from eqlearn.numerics.budget import Deadline
from eqlearn.numerics.criteria import EXACT_MOTION, EXACT_WEAK
from eqlearn.search.candidate import Candidate, pareto_front
from eqlearn.search.search import Found, Progress, discover
from eqlearn.search.settings import SCIENCE
from eqlearn.search.step import Journal
from eqlearn.symbolic.equation import Equation
from eqlearn.validation.observed import read_observed
from eqlearn.validation.options import check_budget, check_settings, checked_choice


def discover_dynamics(
    series: Any,
    form: str = "ode",
    *,
    dt: float | None = None,
    times: Any = None,
    names: Iterable[str] | None = None,
    inputs: Iterable[str] = (),
    varies: str | None = None,
    order: int = 1,
    primitives: PrimitivesLike = SCIENCE,
    hidden_layers: int = 3,
    penalty: str = "half",
    seconds: float | None = None,
    restarts: int | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    journal: Callable[[str], Journal] | None = None,
    settings: MotionSettings = MOTION,
) -> FoundMotion:
    """Finds the equations of motion of `series`: an ODE `dy/dt = f(y)`, or a map `y' = f(y)`.

    **Main arguments:** `series`, as `Trajectories.of` takes them, with `names` and the step of time `dt`,
    which an ODE needs (its constants are in that unit) and a map does not; `seconds` and `restarts`, the
    budget of all states together and of each state; `seed`.

    **Of an ODE:** `times`, in place of `dt`, where steps are not equal: those of all series, or a list with
    those of each; NaN in `series`, where nothing was observed; `order` 2 for `d²x/dt² = f(x, dx)` from
    positions x alone, where `dx` is the velocity, which then is a state.

    **Other arguments:** `inputs`, the names of columns that drive the motion and have no equations, such as
    a force or the time itself; `varies`, one of these that coefficients may be functions of; the others are
    as for `discover`, and `journal` gives the journal of the search of that name.

    Sums of terms out of a library (monomials, elementary functions of the states, products of both) come
    first, from the weak form of the equations, for which no derivative of data is taken. What they do not
    explain is searched for in a table of rates of change, as any table. The equations are then chosen, rid of
    spare terms, refitted and snapped by simulating the motion itself.
    """
    check_budget(seconds, restarts)
    kind = find_form(form)
    check_settings(settings, MotionSettings)
    began = time.time()
    trajectories = read_observed(
        series, dt, names, times=times, inputs=inputs, order=order, continuous=kind.continuous,
        fewest=kind.min_times,
    )  # fmt: skip
    if varies is not None:
        checked_choice("input", varies, trajectories.input_names)
    allowed = allowed_shapes(primitives)
    prepared = Prepared.of(trajectories, kind, settings, order)
    end = math.inf if seconds is None else began + seconds
    degree = 2**hidden_layers if allowed & {"square", "mul", "pow"} else 1
    task = _Task(prepared, began, progress, journal, (allowed, degree), {
        "primitives": primitives, "penalty": penalty, "seed": seed, "n_jobs": n_jobs,
        "hidden_layers": hidden_layers,
    })  # fmt: skip

    def until(share: float) -> float:
        return end if seconds is None else began + share * seconds

    task.sums(until(settings.until_sums))
    if varies is not None:
        task.varying(trajectories.variables.index(varies), until(settings.until_choice))
    model = task.choose(until(settings.until_choice))
    if task.follow(model, until(settings.until_second)):
        model = task.choose(until(settings.until_second_choice), model)
    todo = task.unexplained(model)
    if todo and not task.interrupted and time.time() < end:
        task.search("all", todo, until(settings.until_all_layers), restarts)
        model = task.choose(until(settings.until_last_choice), model)
    return task.finish(model, end)


class _Task:
    """A search for dynamics under way: its tables, what was found for each state, the best model."""

    def __init__(
        self, prepared: Prepared, began: float, progress: Callable[[Progress], None] | None,
        journal: Callable[[str], Journal] | None, vocabulary: tuple[frozenset[str], int],
        options: dict[str, Any],
    ) -> None:  # fmt: skip
        self.vocabulary = vocabulary
        self.prepared, self.trajectories, self.began = prepared, prepared.trajectories, began
        self.form, self.settings = prepared.form, prepared.settings
        self.progress, self.journal, self.options = progress, journal, options
        self.X, self.y = prepared.table
        self.found: list[dict[str, Found]] = [{} for _ in self.trajectories.names]
        self.linear: list[list[Equation]] = [[] for _ in self.trajectories.names]
        self.stopped = False
        self.chosen: tuple[Equation, ...] = ()

    def sums(self, end: float) -> None:
        """Sparse sums of library terms for each state, in the weak form."""
        found = self._sums(self.prepared, end)
        if 0 < self.prepared.noise.max() < self.settings.maybe_clean:
            # Where motion is fast, smoothing takes away more of it than there is noise.
            clean = self.prepared.clean()
            others = self._sums(clean, end)
            if all(sums[0].loss < EXACT_WEAK for sums in others):
                found, self.prepared = others, clean
        for k, sums in zip(self.prepared.sought, found, strict=True):
            self.linear[k] = self.prepared.written(sums)
        steps = self.settings.noisy_steps if self.prepared.noisy else self.settings.short_steps
        self.segments = self.prepared.segments(steps, self.settings.choice_segments)

    def varying(self, place: int, end: float) -> None:
        """Equations whose coefficients are functions of the input at this place, before the others."""
        prepared, variables = self.prepared, self.trajectories.variables
        for k in prepared.sought:
            found = varying_equation(
                prepared.weak[k], prepared.states, variables, place, *self.vocabulary, self.settings,
                primitives=self.options["primitives"], seed=self.options["seed"], end=self.stop(end),
            )  # fmt: skip
            self.linear[k] = self.linear[k] if found is None else [found, *self.linear[k][:1]]

    def follow(self, model: Model, end: float) -> bool:
        """Sums of terms once more, in the states as a model moves; whether there are any new ones."""
        prepared = self.prepared.followed(model)
        if prepared is None or self.stop(end)():
            return False
        before = [list(front) for front in self.linear]
        for k, sums in zip(prepared.sought, self._sums(prepared, end), strict=True):
            self.linear[k] = prepared.written(sums)
        return self.linear != before

    def _sums(self, prepared: Prepared, end: float) -> list[list[SumOfTerms]]:
        search = TermSearch(prepared.states, *self.vocabulary, self.settings)
        found = []
        for place, k in enumerate(prepared.sought):
            now = time.time()
            stop = self.stop(now + (end - now) / (len(prepared.sought) - place))
            noisy = prepared.smoothing is not None and not stop()
            sums = search.candidates(prepared.weak[k], stop, tune=not noisy)
            if noisy:
                # Noise in the states is in the terms as well, as far as the equation is steep there.
                slopes = search.slopes(sums[0])
                again = search.candidates(prepared.reweighted(k, slopes), stop)
                known = {one.key for one in again}
                sums = again + [one for one in sums if one.key not in known][: self.settings.max_sums // 3]
            found.append(sums)
        return found

    @property
    def every(self) -> list[Found]:
        return [found for each in self.found for found in each.values()]

    @property
    def interrupted(self) -> bool:
        return self.stopped or any(found.ended == "interrupted" for found in self.every)

    def stop(self, end: float) -> Deadline:
        """The end, or at once where the search was interrupted."""
        return Deadline(0.0 if self.interrupted else end)

    def report(self, best: Candidate, others: Iterable[Found], rounds: int = 0, restarts: int = 0) -> None:
        """Calls `progress` with the best so far; rounds and restarts of `others` are added."""
        if self.progress is not None:
            for found in others:
                rounds, restarts = rounds + found.rounds, restarts + found.restarts
            self.progress(Progress(rounds, restarts, time.time() - self.began, best))

    def search(self, name: str, states: Sequence[int], end: float, restarts: int | None) -> None:
        """Searches each of these states by itself; the time until `end` is shared evenly."""
        for place, k in enumerate(states):
            share = (end - time.time()) / (len(states) - place)
            if self.interrupted or share <= 0:
                continue
            journal = None if self.journal is None else self.journal(f"{k}-{name}")
            self.found[k][name] = discover(
                self.X, self.y[:, k], restarts=restarts, settings=SEARCHES[name],
                variables=self.trajectories.variables,
                seconds=None if math.isinf(share) else max(share, 0.1),
                progress=self._joint_report(k, name), journal=journal, **self.options,
            )  # fmt: skip

    def _joint_report(self, state: int, name: str) -> Callable[[Progress], None]:
        """What reports the progress of one state's search as that of all."""

        def report(latest: Progress) -> None:
            before = self.found[state].get(name)
            others = [found for found in self.every if found is not before]
            best = [_best(each) for each in self.found]
            mine = best[state]
            if mine is None or latest.best.description_length < mine.description_length:
                best[state] = latest.best
            there = [b for b in best if b is not None]
            joint = Candidate(
                equations=tuple(
                    e if b is None else b.equation for b, e in zip(best, self.chosen, strict=True)
                ),
                training_error=math.sqrt(sum(b.training_error**2 for b in there) / len(there)),
                description_length=sum(b.description_length for b in there),
                exact=all(b.exact for b in there),
            )
            self.report(joint, others, latest.round, latest.restarts)

        return report

    def choose(self, end: float, before: Model | None = None) -> Model:
        """The best equations together, of all that were found so far."""
        first = [front[0] for front in self._fronts] if before is None else before.equations
        try:
            model = fitted_model(first, self.segments, stop=self.stop(end)) if before is None else before
            longer = best_together(self._fronts, model, self.stop(end))
            while longer is not model:
                model = self.prepared.grown(longer, self.stop(end))
                longer = model if model is longer else best_together(self._fronts, model, self.stop(end))
        except KeyboardInterrupt:
            self.stopped = True
            model = fitted_model(first, self.segments) if before is None else before
        self.report(model.candidate(), self.every)
        self.chosen = model.equations
        return model

    @property
    def _fronts(self) -> list[list[Equation]]:
        """All equations that were found for each state: the most promising sums of terms first, then what
        searches found, simplest first."""
        fronts = []
        for k, each in enumerate(self.found):
            if k in self.prepared.known:
                fronts.append([self.prepared.known[k]])
                continue
            front = pareto_front([c for found in each.values() for c in found.front])
            short = [c.equation for c in front if c.complexity <= self.settings.max_simulated]
            fronts.append([*self.linear[k], *short])
        return fronts

    def unexplained(self, model: Model) -> list[int]:
        """The states whose simulation misses more than the noise."""
        if not model.fit.finite:
            return self.prepared.sought
        enough = np.maximum(self.settings.above_noise * self.prepared.noise, EXACT_MOTION)
        return [k for k in self.prepared.sought if model.fit.errors[k] > enough[k]]

    def finish(self, model: Model, end: float) -> FoundMotion:
        """Refits on long pieces where there is noise, snaps, and lists the front."""
        noisy = model.fit.finite and model.error > self.settings.noisy
        try:
            if noisy:
                final = self.prepared.grown(model, self.stop(end))
            else:
                segments = self.prepared.segments(self.settings.short_steps, self.settings.fit_segments)
                final = fitted_model(model.equations, segments, before=model, stop=self.stop(end))
            if final.fit.finite:
                model = snapped(without_spare_terms(final, self.stop(end)), self.stop(end))
        except KeyboardInterrupt:
            self.stopped = True
        best = model.candidate()
        front, every = self._joint_front(best, model, self.stop(end)), self.every
        failures = sum((Counter(f.failures) for f in every), Counter())
        found = Found(
            best=best, front=front,
            restarts=sum(f.restarts for f in every), rounds=sum(f.rounds for f in every),
            exact_restarts=sum(f.exact_restarts for f in every), failures=dict(failures),
            seconds=time.time() - self.began, ended=self._ended(best, end),
            variables=self.trajectories.variables, inputs=self.trajectories.variables,
        )  # fmt: skip
        return FoundMotion(
            found, self.prepared.targets,
            tuple(float(n) for n in model.fit.errors * self.trajectories.spread),
            model.segments.values.shape[1] - 1, self.trajectories.dt, self.form.name, (self.X, self.y),
            inputs=self.trajectories.input_names, even=self.prepared.even,
        )  # fmt: skip

    def _ended(self, best: Candidate, end: float) -> str:
        if self.interrupted:
            return "interrupted"
        if best.exact:
            return "exact"
        return "out of time" if time.time() > end - 1 else "no further gain"

    def _joint_front(self, best: Candidate, model: Model, stop: Callable[[], bool]) -> tuple[Candidate, ...]:
        """The chosen equations, and what each bound on a state's formula would have given."""
        fronts = [sorted(front, key=lambda e: e.complexity) for front in self._fronts]
        bounds = sorted({e.complexity for front in fronts for e in front})
        seen, candidates = set(), [best]
        for bound in bounds[:8]:
            if stop():
                break
            within = ([e for e in front if e.complexity <= bound] or front[:1] for front in fronts)
            chosen = tuple(max(front, key=lambda e: e.complexity) for front in within)
            if chosen in seen or sum(e.complexity for e in chosen) >= best.complexity:
                continue
            seen.add(chosen)
            trial = fitted_model(chosen, model.segments, starts=model.fit.starts, stop=stop)
            candidates.append(trial.candidate())
        return (*(c for c in pareto_front(candidates) if c.training_error > best.training_error), best)


def _best(searches: dict[str, Found]) -> Candidate | None:
    every = [c for found in searches.values() for c in found.front]
    return min(every, key=lambda c: c.description_length, default=None)
