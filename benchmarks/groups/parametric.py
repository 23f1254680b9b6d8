"""Equations of fields whose coefficients vary in time or in space: are the terms right, how far off are they?

    python benchmarks/groups/parametric.py --data DIR --seeds 1 2 3 --out results/groups/parametric.json

DIR may hold `parametric_*.npz` with `u`, `x`, `t` and the true coefficients by term (`c_uux`, `c_ux`, `c_u`,
`c_uxx`, `c_uxxxx`); four more fields are made here. Noise is relative to the field's standard deviation. A
trial's `error` is the mean squared error of all coefficients along the axis, as Rudy et al. (2019) have it.
Trials in the file are kept.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp
from scipy.integrate import solve_ivp

from eqlearn import FoundPDE, atomic_write, discover_pde, environment

TERMS = {"c_u": "u", "c_uu": "u**2", "c_ux": "u_x", "c_uux": "u*u_x", "c_uxx": "u_xx", "c_uxxxx": "u_xxxx"}
Rate = Callable[[float, np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def solved(rate: Rate, start: Callable[[np.ndarray], np.ndarray], end: float) -> dict[str, np.ndarray]:
    """A field on a periodic line of length 20, its derivatives by spectra."""
    x, t = np.linspace(-10, 10, 200, endpoint=False), np.linspace(0, end, 200)
    wave = 2j * np.pi * np.fft.fftfreq(200, 0.1)

    def rates(time: float, u: np.ndarray) -> np.ndarray:
        spectrum = np.fft.fft(u)
        return rate(time, x, u, np.fft.ifft(wave * spectrum).real, np.fft.ifft(wave**2 * spectrum).real)

    u = solve_ivp(rates, (0, end), start(x), t_eval=t, method="LSODA", rtol=1e-9, atol=1e-10).y
    return {"u": u, "x": x, "t": t}


def made(name: str) -> dict[str, np.ndarray]:
    """One of the fields of our own, with its coefficients."""
    wavy = 2 * np.pi / 20
    x, t = np.linspace(-10, 10, 200, endpoint=False), np.linspace(0, 6, 200)
    if name == "seasons":  # growth that follows the year
        grow = 0.6 + 0.5 * np.cos(1.5 * t)
        field = solved(
            lambda s, x, u, ux, uxx: (0.6 + 0.5 * np.cos(1.5 * s)) * u - 0.4 * u**2 + 0.2 * uxx,
            lambda x: 0.3 + 0.2 * np.sin(wavy * x) + 0.2 * np.cos(3 * wavy * x), 6,
        )  # fmt: skip
        return {**field, "c_u": grow, "c_uu": np.full(200, -0.4), "c_uxx": np.full(200, 0.2)}
    if name == "cooling":  # viscosity and speed that fade
        fade = 0.5 * np.exp(-0.4 * t)
        field = solved(
            lambda s, x, u, ux, uxx: -u * ux + 0.5 * np.exp(-0.4 * s) * uxx,
            lambda x: np.sin(wavy * x) + 0.5 * np.cos(2 * wavy * x), 6,
        )  # fmt: skip
        return {**field, "c_uux": np.full(200, -1.0), "c_uxx": fade}
    if name == "wind":  # a wind that turns, over even diffusion
        field = solved(
            lambda s, x, u, ux, uxx: -(0.8 - 0.3 * s) * ux + 0.15 * uxx,
            lambda x: np.exp(-(x**2)) + 0.6 * np.exp(-((x - 5) ** 2) / 2), 6,
        )  # fmt: skip
        return {**field, "c_ux": -(0.8 - 0.3 * t), "c_uxx": np.full(200, 0.15)}
    source = 0.3 * np.cos(2 * wavy * x) - 0.2  # growth that differs from place to place
    field = solved(
        lambda s, x, u, ux, uxx: (0.3 * np.cos(2 * wavy * x) - 0.2) * u + 0.3 * uxx + u * ux * 0.5,
        lambda x: 1 + 0.5 * np.sin(wavy * x) + 0.4 * np.cos(4 * wavy * x), 6,
    )  # fmt: skip
    return {**field, "c_u": source, "c_uxx": np.full(200, 0.3), "c_uux": np.full(200, 0.5)}


OWN = {"seasons": "t", "cooling": "t", "wind": "t", "soil": "x"}
GIVEN = {"burgers": "t", "advection_diffusion": "x", "ks": "x"}


def coefficients(found: FoundPDE, axis: str, along: np.ndarray) -> dict[str, np.ndarray]:
    """What multiplies each term, along the axis."""
    equation, table = found.equations[0], found.varying
    names = [v for v in equation.variables if v == "u" or v.startswith("u_")]
    terms: dict[str, Any] = {}
    for term in sp.expand(equation.expr).as_ordered_terms():
        inside = {s for s in term.free_symbols if s.name in names}
        number, rest = term.as_independent(*inside) if inside else (term, sp.S.One)
        terms[str(rest)] = terms.get(str(rest), 0) + number
    curves = {}
    for rest, number in terms.items():
        symbols = sorted(number.free_symbols, key=str)
        values = [
            along if s.name == axis else table.interpolated(along)[:, table.names.index(s.name)]
            for s in symbols
        ]
        curves[rest] = np.broadcast_to(sp.lambdify(symbols, number)(*values), along.shape)
    return curves


def trial(name: str, data: Path | None, noise: float, seed: int) -> dict[str, Any]:
    """One search: are the terms right, and how far off are the coefficients?"""
    axis = {**OWN, **GIVEN}[name]
    field = made(name) if name in OWN else dict(np.load(f"{data}/parametric_{name}.npz"))
    u = np.asarray(field["u"], dtype=float)
    noisy = u + noise * u.std() * np.random.default_rng(seed).normal(size=u.shape)
    began = time.process_time()
    found = discover_pde({"u": noisy}, {"x": field["x"], "t": field["t"]}, varies=axis, seed=seed)
    seconds = time.process_time() - began
    truth = {TERMS[k]: np.broadcast_to(field[k], len(field[axis])) for k in TERMS if k in field}
    curves = coefficients(found, axis, field[axis])
    squares = {k: float(np.mean((curves.get(k, 0.0) - v) ** 2)) for k, v in truth.items()}
    return {
        "field": name, "varies": axis, "noise": noise, "seed": seed, "equation": str(found),
        "terms_right": set(curves) == set(truth), "error": float(np.mean(list(squares.values()))),
        "errors": squares, "as_splines": 0 if found.varying is None else len(found.varying.names),
        "unexplained": bool(found.unexplained), "cpu_seconds": round(seconds, 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--noise", type=float, nargs="+", default=[0.0, 0.01])
    parser.add_argument("--fields", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    fields = options.fields or [*OWN, *(GIVEN if options.data else ())]
    trials = json.loads(options.out.read_text())["trials"] if options.out.exists() else []
    done = {(t["field"], t["noise"], t["seed"]) for t in trials}
    for noise in options.noise:
        for seed in options.seeds if noise else options.seeds[:1]:
            for name in fields:
                if (name, noise, seed) not in done:
                    trials.append(trial(name, options.data, noise, seed))
                    print(trials[-1], flush=True)
                    right = sum(t["terms_right"] for t in trials)
                    result = {"right": right, "of": len(trials), "trials": trials}
                    text = json.dumps({**result, "environment": environment()}, indent=1) + "\n"
                    atomic_write(options.out, text.encode())


if __name__ == "__main__":
    main()
