"""One trial of a dynamical system: find the equations, then measure them on fresh series, far out."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import sympy as sp
import torch
from jaxtyping import Float
from torch import Tensor

from eqlearn import (
    DynamicsSearch,
    DynamicsSystem,
    EncoderShape,
    EQLCell,
    EqlearnError,
    Equation,
    FoundDynamics,
    Gauge,
    NotFinite,
    Pairs,
    PropagationLoss,
    Record,
    SeriesEncoder,
    Training,
    TrainingState,
    encoder_scales,
    fit_gauge,
    restart_seed,
    restarted,
    rewritten,
    rollout,
    train,
    train_dynamics,
    without_small,
)
from eqlearn.paper.baselines import ReLUCell
from eqlearn.paper.dynamics.data import System
from eqlearn.paper.dynamics.presets import TWINS, DynamicsPreset

# Whether a term is there is decided where the fitted line says that the parameter is zero, far from the
# line's middle. With 200 series its standard error there would be half of what `FAINT` lets pass.
TEST_SERIES = 2_000
POINTS = 200  # of them kept in the record, for the figure of z against the parameter
FAINT = 1e-3  # of the largest change: below it, a term is not counted as one that was found
LEGIBLE = 90  # weights of a network whose equations are worth a line while it trains


def fresh_pairs(system: System, seed: int) -> Pairs:
    """Fresh series that no training saw, followed far beyond the horizon of training."""
    return system.pairs(100_000 + seed, series=TEST_SERIES, steps=system.far)


def equation_trial(preset: DynamicsPreset, seed: int, **options: Any) -> dict[str, Any]:
    """Encoder and equations from training series of one seed, measured on fresh ones with the encoder's z.

    `options` are those of `train_dynamics`.
    """
    system, began, worked = preset.system, time.perf_counter(), time.process_time()
    journal = options.pop("journal", None)

    def run(restart: int) -> FoundDynamics:
        kept = journal if not (journal and restart) else journal / f"restart-{restart}"
        start = restart_seed(seed, restart)
        return train_dynamics(system.pairs(seed), preset.settings, seed=start, journal=kept, **options)

    try:
        found, restarts = restarted(run)
    except EqlearnError as error:
        return {"seed": seed, "failure": str(error), "seconds": time.perf_counter() - began}
    if found.ended == "interrupted":
        raise KeyboardInterrupt  # half a search is no trial; the same command goes on with it
    cost = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - worked}
    test = fresh_pairs(system, seed)
    z = found.latent(test.observed.states)[0]
    try:
        gauge = fit_gauge(z, _known(test))
    except EqlearnError as error:
        return {"seed": seed, "failure": str(error), **cost, "restarts": restarts}
    predicted = found.predict(test.observed.states, test.propagated.states[:, 0], system.far)
    return {
        "seed": seed,
        "failure": "",
        **cost,
        "diverged": found.failures,
        "restarts": restarts,
        "agreement": found.agreement,
        "line_error": _line_error(gauge, z, _known(test)),
        **_said(found, gauge, system, test),
        "z": _rounded(z[:POINTS]),
        "parameter": _rounded(_known(test)[:POINTS]),
        **_propagated(predicted, test),
    }


def _said(found: FoundDynamics, gauge: Gauge, system: System, test: Pairs) -> dict[str, Any]:
    """The equations in all gauges, and how far they are from the truth."""
    found_ones = dict(zip(system.states, found.equations, strict=True))
    parameter = {s: _in_parameter(e, gauge, system) for s, e in found_ones.items()}
    short = {s: shortened(e, s, system, test) for s, e in parameter.items() if e is not None}
    measures = {s: compared(short[s], s, system) for s in short}
    worst = max((m["coefficient_error"] for m in measures.values()), default=float("inf"))
    spurious = [term for m in measures.values() for term in m["spurious"]]
    return {
        "correlation": gauge.correlation,
        "scale": gauge.scale,
        "shift": gauge.shift,
        "equations": {s: _text(e) for s, e in found_ones.items()},
        "canonical": {s: _text(e.snapped()) for s, e in zip(system.states, found.canonical, strict=True)},
        "in_parameter": {s: _text(e) for s, e in parameter.items()},
        "readable": {s: str(e.rounded(4)) for s, e in short.items()},
        "coefficient_error": worst,
        "spurious": spurious,
        "missing": [term for m in measures.values() for term in m["missing"]],
        "right": len(short) == len(system.states) and worst <= system.tolerance and not spurious,
    }


def _line_error(gauge: Gauge, z: Tensor, parameter: Tensor) -> float:
    """The standard error of the fitted line where the parameter is zero."""
    off = parameter - gauge.parameter(z)
    away = (gauge.latent(0.0) - z.mean()).square() / (z - z.mean()).square().mean()
    return float((off.square().sum() / (len(z) - 2) * (1 + away) / len(z)).sqrt())


def _in_parameter(equation: Equation, gauge: Gauge, system: System) -> Equation | None:
    """The equation in the true parameter; None where a network left unpruned is too large to multiply out."""
    if equation.complexity > 400:
        return None
    return rewritten(equation, gauge, "z", system.parameter)


def seen(trial: Mapping[str, Any], system: System, faint: float, tolerance: float) -> bool:
    """Whether an eye might take a trial's equations for the truth: without terms of less than `faint` of the
    largest change, and coefficients off by at most `tolerance`."""
    test, variables = fresh_pairs(system, trial["seed"]), (*system.states, system.parameter)
    for state in system.states:
        text = trial["in_parameter"].get(state) or "<"
        if text.startswith("<"):  # too long to be read
            return False
        short = shortened(Equation.parse(text, variables), state, system, test, faint)
        told = compared(short, state, replace(system, truth=_visible(system, test, faint)))
        if told["spurious"] or told["coefficient_error"] > tolerance:
            return False
    return True


def _visible(system: System, test: Pairs, faint: float) -> dict[str, str]:
    """The truth without what such an eye would not miss."""
    variables = (*system.states, system.parameter)
    whole = {s: Equation.parse(text, variables) for s, text in system.truth.items()}
    return {s: str(shortened(e, s, system, test, faint)) for s, e in whole.items()}


def shortened(equation: Equation, state: str, system: System, test: Pairs, faint: float = FAINT) -> Equation:
    """The equation without what is too faint to be read: less than that part of the largest change."""
    first = test.propagated.states[:, : system.horizon].reshape(-1, len(system.states)).numpy()
    sample = {name: first[:, i] for i, name in enumerate(system.states)}
    sample[system.parameter] = _known(test).repeat_interleave(system.horizon).numpy()
    return without_small(equation, sample, faint, beside=state)


def compared(equation: Equation, state: str, system: System) -> dict[str, Any]:
    """The largest relative error of a true coefficient, terms that are missing, and terms that should not
    be there: neither in the truth nor in the next orders of its expansion."""
    variables = (*system.states, system.parameter)
    truth = _coefficients(Equation.parse(system.truth[state], variables))
    mine = _coefficients(equation)
    allowed = {Equation.parse(text, variables).expr for text in system.higher.get(state, ())}
    errors = [abs(mine.get(m, 0.0) - c) / abs(c) for m, c in truth.items()]
    return {
        "coefficient_error": max(errors),
        "missing": [f"{m} in {state}'" for m in truth if m not in mine],
        "spurious": [
            f"{c:.3g}*{m} in {state}'" for m, c in mine.items() if m not in truth and m not in allowed
        ],
    }


def _coefficients(equation: Equation) -> dict[Any, float]:
    terms = (term.as_coeff_Mul() for term in sp.Add.make_args(sp.expand(equation.expr)))
    return {m: float(c) for c, m in terms}


def twin_trial(
    preset: DynamicsPreset,
    seed: int,
    *,
    share: float = 1.0,
    follow: Callable[[str, Callable[[TrainingState | None], Training]], Iterator[Record]] | None = None,
) -> dict[str, Any]:
    """The same encoder with a ReLU network for a cell, trained on the same series.

    `share` of the steps are taken; `follow` is as in `train_dynamics`.
    """
    system, began = preset.system, time.perf_counter()
    pairs = system.pairs(seed)
    twin = TWINS[system.name]
    schedule = tuple(replace(p, steps=max(20, int(share * p.steps))) for p in twin.schedule)
    settings = preset.settings
    own = settings.form if isinstance(settings, DynamicsSearch) else settings.cell.form
    form: Literal["map", "residual"] = "map" if own == "map" else "residual"
    scales = pairs.propagated.scales.float()
    shape = settings.encoder or EncoderShape.suited(system.observed)
    encoder = SeriesEncoder(
        len(system.states), system.observed, 1, shape=shape,
        scales=encoder_scales(pairs.observed, twin.scaling), seed=seed * 1000 + 500,
    )  # fmt: skip
    cell = ReLUCell(
        len(system.states), 1, depth=twin.depth, form=form, dt=system.dt, scales=scales, seed=seed
    )
    model = DynamicsSystem(encoder, cell)
    loss = PropagationLoss(pairs, scales=scales, batch=settings.batch, seed=seed)

    def start(state: TrainingState | None) -> Training:
        return train(model, loss, schedule, optimiser=torch.optim.Adam, resume=state)

    try:
        deque(start(None) if follow is None else follow("twin", start), maxlen=0)
    except EqlearnError as error:
        return {"seed": seed, "failure": str(error), "seconds": time.perf_counter() - began}
    seconds = time.perf_counter() - began
    model.eval()
    encoder.take_statistics_(pairs.observed.states.float())
    test = fresh_pairs(system, seed)
    with torch.no_grad():
        first = test.propagated.states[:, 0]
        after = model(test.observed.states.float(), first.float(), system.far).double()
        z = model.latent(test.observed.states.float())[0].double()
    try:
        correlation = fit_gauge(z, _known(test)).correlation
    except EqlearnError as error:
        return {"seed": seed, "failure": str(error), "seconds": seconds}
    predicted = torch.cat([first.mT[None], after]).permute(2, 0, 1)
    return {
        "seed": seed,
        "failure": "",
        "seconds": seconds,
        "correlation": correlation,
        **_propagated(predicted, test),
    }


def euler(system: System, seed: int) -> dict[str, Any]:
    """Euler's method on the true rate of change with the true parameter, on the same test series."""
    test = fresh_pairs(system, seed)
    variables = (*system.states, system.parameter)
    rates = [Equation.parse(system.rate[s], variables) for s in system.states]

    def step(y: Tensor, z: Tensor) -> Tensor:
        rows = torch.cat([y, z]).mT.numpy()
        return y + system.dt * torch.from_numpy(np.stack([rate(rows) for rate in rates]))

    first = test.propagated.states[:, 0].mT
    after = rollout(step, first, _known(test)[None], system.far)
    return {"seed": seed, **_propagated(torch.cat([first[None], after]).permute(2, 0, 1), test)}


def _propagated(predicted: Float[Tensor, "series time states"], test: Pairs) -> dict[str, Any]:
    """The root mean square error at each time, over series and states; the states of the first."""
    truth = test.propagated.states
    errors = (predicted - truth).square().sum(dim=2).mean(dim=0).sqrt()
    stride = max(1, (len(errors) - 1) // 100)
    return {
        "steps": list(range(0, len(errors), stride)),
        "errors": _rounded(errors[::stride]),
        "far_error": float(errors[-1]),
        "series": [_rounded(state) for state in predicted[0].mT],
    }


def _rounded(values: Tensor) -> list[float | None]:
    """Six digits are enough for a figure; what is not finite is written as null."""
    return [float(f"{v:.6g}") if np.isfinite(v) else None for v in values.tolist()]


def _known(pairs: Pairs) -> Tensor:
    if pairs.observed.parameter is None:
        raise EqlearnError("these series do not say their true parameter, so nothing can be compared")
    return pairs.observed.parameter


def _text(equation: Equation | None) -> str:
    if equation is None:
        return ""
    text = str(equation)
    return text if len(text) <= 2_000 else f"<a formula of {equation.complexity} nodes>"


def exact_series(system: System, seed: int) -> Mapping[str, Any]:
    """The truth of the series that is shown, state by state, with its times."""
    test = fresh_pairs(system, seed)
    times = system.dt * np.arange(system.far + 1)
    return {"times": times.tolist(), "series": [_rounded(s) for s in test.propagated.states[0].mT]}


def present_equations(record: Record, states: Sequence[str]) -> list[str]:
    """The equations that the leading member of a training has come to, cut to a line each.

    Nothing while they are too long to be worth reading: a network that is not pruned yet.
    """
    system = record.model
    if not isinstance(system, DynamicsSystem) or not isinstance(system.cell, EQLCell):
        return []
    losses = record.loss.nan_to_num(nan=torch.inf)
    leader = int(losses.argmin())
    if system.cell.members is None or int(record.weights_left.flatten()[leader]) > LEGIBLE:
        return []
    cell = system.cell.member(leader).double().eval()
    try:
        equations = Equation.read_all(cell, [*states, "z"])
    except NotFinite:  # a look at a network that is still moving
        return []
    expanded = [Equation(sp.expand(e.expr), e.variables).rounded(3) for e in equations]
    return [f"{s}' = {e}"[:110] for s, e in zip(states, expanded, strict=True)]
