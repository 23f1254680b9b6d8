"""Formulas of Feynman's lectures, searched with and without their units, in noise and without.

    python benchmarks/units.py [--noise 0.1] [--restarts 60] [--rows 200] [--seed 1] [--others]
        [--only with|without] --out F.json

The formulas are the first thirty of the suite in which at least two columns have a unit, or the others. Noise
is a fraction of the target's root mean square. Both searches have the same budget of restarts; every trial is
counted.
What is found is judged by `judge`, with the standard errors of its constants where there is noise.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd

from eqlearn import discover, environment, judge
from eqlearn.paper.rates import RIGHT
from eqlearn.paper.suites import find_suite

# By formula: the units of its columns, and of its target.
UNITS = {
    "I.9.18": ("m1 kg, m2 kg, G m**3/kg/s**2, x1 m, x2 m, y1 m, y2 m, z1 m, z2 m", "N"),
    "I.12.2": ("q1 C, q2 C, epsilon F/m, r m", "N"),
    "I.12.5": ("q2 C, Ef V/m", "N"),
    "I.13.4": ("m kg, v m/s, u m/s, w m/s", "J"),
    "I.14.3": ("m kg, g m/s**2, z m", "J"),
    "I.15.3x": ("x m, u m/s, c m/s, t s", "m"),
    "I.15.1": ("m_0 kg, v m/s, c m/s", "kg*m/s"),
    "I.18.4": ("m1 kg, m2 kg, r1 m, r2 m", "m"),
    "I.18.14": ("m kg, r m, v m/s, theta 1", "kg*m**2/s"),
    "I.25.13": ("q C, C F", "V"),
    "I.27.6": ("d1 m, d2 m, n 1", "m"),
    "I.29.16": ("x1 m, x2 m, theta1 1, theta2 1", "m"),
    "I.30.5": ("lambd m, d m, n 1", "1"),
    "I.32.17": ("epsilon F/m, c m/s, Ef V/m, r m, omega 1/s, omega_0 1/s", "W"),
    "I.34.1": ("c m/s, v m/s, omega_0 1/s", "1/s"),
    "I.34.27": ("omega 1/s, h J*s", "J"),
    "I.38.12": ("m kg, q C, h J*s, epsilon F/m", "m"),
    "I.39.11": ("gamma 1, pr Pa, V m**3", "J"),
    "I.40.1": ("n_0 1/m**3, m kg, x m, T K, g m/s**2, kb J/K", "1/m**3"),
    "I.43.16": ("mu_drift s/kg, q C, Volt V, d m", "m/s"),
    "I.43.43": ("gamma 1, kb J/K, A m**2, v m/s", "W/m/K"),
    "I.47.23": ("gamma 1, pr Pa, rho kg/m**3", "m/s"),
    "I.50.26": ("x1 m, omega 1/s, t s, alpha 1", "m"),
    "II.3.24": ("Pwr W, r m", "W/m**2"),
    "II.6.11": ("epsilon F/m, p_d C*m, theta 1, r m", "V"),
    "II.6.15b": ("epsilon F/m, p_d C*m, theta 1, r m", "V/m"),
    "II.8.31": ("epsilon F/m, Ef V/m", "J/m**3"),
    "II.11.3": ("q C, Ef V/m, m kg, omega_0 1/s, omega 1/s", "m"),
    "II.11.20": ("n_rho 1/m**3, p_d C*m, Ef V/m, kb J/K, T K", "C/m**2"),
    "II.13.23": ("rho_c_0 C/m**3, v m/s, c m/s", "C/m**3"),
}

# The suite's others of that kind, at which nobody looked while the search with units was made.
OTHERS = {
    "I.11.19": ("x1 m, y1 N, x2 m, y2 N, x3 m, y3 N", "J"),
    "II.15.4": ("mom J/T, B T, theta 1", "J"),
    "II.21.32": ("q C, epsilon F/m, r m, v m/s, c m/s", "V"),
    "II.27.16": ("epsilon F/m, c m/s, Ef V/m", "W/m**2"),
    "II.34.2a": ("q C, v m/s, r m", "A"),
    "II.34.11": ("g_ 1, q C, B T, m kg", "1/s"),
    "II.34.29b": ("g_ 1, h J*s, Jz J*s, mom J/T, B T", "J"),
    "II.35.21": ("n_rho 1/m**3, mom J/T, B T, kb J/K, T K", "A/m"),
    "II.37.1": ("mom J/T, chi 1, B T", "J"),
    "III.4.33": ("h J*s, omega 1/s, kb J/K, T K", "J"),
    "III.8.54": ("E_n J, t s, h J*s", "1"),
    "III.10.19": ("mom J/T, Bx T, By T, Bz T", "J"),
    "III.13.18": ("E_n J, d m, k 1/m, h J*s", "m/s"),
    "III.15.12": ("U J, k 1/m, d m", "J"),
    "III.19.51": ("m kg, q C, h J*s, n 1, epsilon F/m", "J"),
}


def trial(problem, told, noise, rows, restarts, seed, with_units):
    """One search, judged."""
    X, y = problem.data(seed)
    X, y = X[:rows], y[:rows]
    y = y + noise * np.sqrt(np.mean(y**2)) * np.random.default_rng([seed, 7]).normal(size=len(y))
    units = dict(pair.rsplit(" ", 1) for pair in told[0].split(", ")) | {"y": told[1]}
    began = time.process_time()
    frame = pd.DataFrame(X, columns=list(problem.ranges))
    found = discover(frame, y, restarts=restarts, seed=seed, units=units if with_units else None)
    best = found.best
    errors = [c.standard_error for c in best.constants[0]] if noise else None
    verdict = judge(best.equation, problem.truth, problem.ranges, standard_errors=errors)
    return {
        "problem": problem.name, "units": with_units, "tier": verdict.tier, "reason": verdict.reason,
        "equation": str(best.equation), "error": best.training_error,
        "cpu_seconds": round(time.process_time() - began, 2),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--noise", type=float, default=0.1)
    parser.add_argument("--restarts", type=int, default=60)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--others", action="store_true")
    parser.add_argument("--only", choices=("with", "without"), help="the others' trials another time")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    settings = {k: v for k, v in vars(options).items() if k not in ("out", "others", "only")}
    units = OTHERS if options.others else UNITS
    before = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    trials = before.get("trials", []) if before.get("settings") == settings else []  # goes on where it ended
    done = {(t["problem"], t["units"]) for t in trials}
    for problem in find_suite("feynman"):
        asked = {"with": (True,), "without": (False,), None: (False, True)}[options.only]
        asked = asked if problem.name in units else ()
        for with_units in (u for u in asked if (problem.name, u) not in done):
            trials.append(trial(problem, units[problem.name], **settings, with_units=with_units))
            print(
                {k: trials[-1][k] for k in ("problem", "units", "tier", "equation", "cpu_seconds")},
                flush=True,
            )
        counts = {str(u): sum(t["tier"] in RIGHT for t in trials if t["units"] == u) for u in (False, True)}
        started = len({t["problem"] for t in trials})
        words = " ".join(f"--{k} {v}" for k, v in settings.items()) + " --others" * options.others
        record = {
            "command": f"python benchmarks/units.py {words}", "settings": settings, "found": counts,
            "formulas": started, "environment": environment(), "trials": trials,
        }  # fmt: skip
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
