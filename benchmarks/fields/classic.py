"""The data sets that others publish figures for, from a folder that the environment names.

`EQLEARN_FIELDS` holds the folders `pde_find` (Rudy et al. 2017), `sga_pde` (Chen et al. 2022), `wsindy_pde`
(Messenger & Bortz 2021) and `generated` (a spiral and a flow, by their published recipes). None of them is
part of the project.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from problems import Problem
from scipy.io import loadmat

Sets = tuple[dict[str, np.ndarray], dict[str, np.ndarray]]


def _folder() -> Path:
    return Path(os.environ["EQLEARN_FIELDS"])


def _matlab(
    name: str, parts: str = "u", *, times: str = "t", field: str = "usol", flipped: bool = False
) -> Sets:
    held = loadmat(_folder() / name)
    values = held[field].T if flipped else held[field]
    axes = {"x": held["x"].ravel().astype(float), "t": held[times].ravel().astype(float)}
    return dict(zip(parts, (values.real, values.imag), strict=False)), axes


def _wsindy(name: str) -> Sets:
    held = loadmat(_folder() / "wsindy_pde" / name)
    x, t = held["xs"][0]
    return {"u": held["U_exact"][0, 0]}, {"x": x.ravel(), "t": t.ravel()}


def _generated(name: str, fields: str) -> Sets:
    with np.load(_folder() / "generated" / name) as held:
        return {f: held[f] for f in fields}, {a: held[a] for a in ("x", "y", "t")}


def _sga(name: str, end: float) -> Sets:
    u = np.load(_folder() / "sga_pde" / f"{name}.npy").T
    return {"u": u}, {"x": np.linspace(1, 2, 100), "t": np.linspace(0, end, 251)}


def _chafee_infante() -> Sets:
    part = {k: np.load(_folder() / "sga_pde" / f"chafee_infante_{k}.npy") for k in ("CI", "x", "t")}
    return {"u": part["CI"]}, {"x": part["x"], "t": part["t"]}


BURGERS = {"u": {"u*u_x": -1.0, "u_xx": 0.1}}
KURAMOTO = {"u": {"u*u_x": -1.0, "u_xx": -1.0, "u_xxxx": -1.0}}
SCHROEDINGER = {
    "u": {"v_xx": -0.5, "u**2*v": -1.0, "v**3": -1.0},
    "v": {"u_xx": 0.5, "u**3": 1.0, "u*v**2": 1.0},
}
OSCILLATOR = {"u": {"v_xx": -0.5, "x**2*v": 0.5}, "v": {"u_xx": 0.5, "x**2*u": -0.5}}
SPIRAL = {
    "u": {"u_xx": 0.1, "u_yy": 0.1, "u": 1.0, "u**3": -1.0, "u*v**2": -1.0, "u**2*v": 1.0, "v**3": 1.0},
    "v": {"v_xx": 0.1, "v_yy": 0.1, "v": 1.0, "v**3": -1.0, "u**2*v": -1.0, "u*v**2": -1.0, "u**3": -1.0},
}
VORTICITY = {"w": {"u*w_x": -1.0, "v*w_y": -1.0, "w_xx": 0.01, "w_yy": 0.01}}


def problems(seed: int = 0) -> dict[str, Problem]:
    """Every data set with the truth; the seed is that of nothing here."""
    return {
        "Burgers": Problem(lambda: _matlab("pde_find/burgers.mat"), BURGERS),
        "KdV": Problem(lambda: _matlab("pde_find/kdv.mat"), {"u": {"u*u_x": -6.0, "u_xxx": -1.0}}),
        "Kuramoto-Sivashinsky": Problem(
            lambda: _matlab("pde_find/kuramoto_sivishinky.mat", times="tt", field="uu"), KURAMOTO
        ),
        "nonlinear Schroedinger": Problem(
            lambda: _matlab("pde_find/nls.mat", "uv", flipped=True), SCHROEDINGER
        ),
        "quantum oscillator": Problem(
            lambda: _matlab("pde_find/harmonic_osc.mat", "uv", flipped=True), OSCILLATOR
        ),
        "reaction-diffusion spiral": Problem(
            lambda: _generated("reaction_diffusion_spiral_64.npz", "uv"), SPIRAL
        ),
        "Navier-Stokes vorticity": Problem(
            lambda: _generated("navier_stokes_vorticity_64.npz", "wuv"), VORTICITY
        ),
        "Chafee-Infante": Problem(_chafee_infante, {"u": {"u_xx": 1.0, "u": -1.0, "u**3": 1.0}}),
        "PDE_divide": Problem(lambda: _sga("PDE_divide", 1.0), {"u": {"u_x/x": -1.0, "u_xx": 0.25}}),
        "PDE_compound": Problem(lambda: _sga("PDE_compound", 0.5), {"u": {"u*u_xx + u_x**2": 1.0}}),
        "Burgers (SGA-PDE)": Problem(lambda: _matlab("sga_pde/burgers.mat"), BURGERS),
        "KdV (SGA-PDE)": Problem(
            lambda: _matlab("sga_pde/KdV.mat", times="tt", field="uu"),
            {"u": {"u*u_x": -1.0, "u_xxx": -0.0025}},
        ),
        "Burgers, inviscid (WSINDy)": Problem(lambda: _wsindy("burgers.mat"), {"u": {"u*u_x": -1.0}}),
        "KdV (WSINDy)": Problem(lambda: _wsindy("KdV.mat"), {"u": {"u*u_x": -1.0, "u_xxx": -1.0}}),
        "Kuramoto-Sivashinsky (WSINDy)": Problem(lambda: _wsindy("KS.mat"), KURAMOTO),
    }
