"""PySINDy's part in the comparison of laws of motion: a trajectory in, equations and a motion foretold out.

Run in the peers' environment, with a JSON object on standard input: `series` (rows, states), `dt`, `names`,
`start` and `steps`. Library: polynomials of degree three and sines of the states; of several thresholds the
one whose sum explains the rates in fewest terms (Bayesian criterion).
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings

import numpy as np
import pysindy as ps
from scipy.integrate import solve_ivp

THRESHOLDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
NOISY = 1e-3


def fitted(x: np.ndarray, dt: float, names: list[str], threshold: float) -> ps.SINDy:
    rough = np.linalg.norm(np.diff(x, 4, axis=0)) / np.linalg.norm(x) / math.sqrt(70)
    slopes = ps.SmoothedFiniteDifference() if rough > NOISY else ps.FiniteDifference(order=4)
    library = ps.ConcatLibrary([ps.PolynomialLibrary(degree=3), ps.FourierLibrary(n_frequencies=1)])
    model = ps.SINDy(
        optimizer=ps.STLSQ(threshold=threshold), feature_library=library, differentiation_method=slopes
    )
    return model.fit(x, t=dt, feature_names=names)


def criterion(model: ps.SINDy, x: np.ndarray, dt: float) -> float:
    rates = model.differentiation_method._differentiate(x, dt)
    left = np.square(rates - model.predict(x)).mean(axis=0)
    terms = np.count_nonzero(model.coefficients())
    return float(len(x) * np.log(np.maximum(left, 1e-300)).sum() + terms * math.log(len(x)))


def formulas(model: ps.SINDy) -> list[str]:
    names = [n.replace("^", "**").replace(" ", "*") for n in model.get_feature_names()]
    return [
        " + ".join(f"({c!r})*{n}" for c, n in zip(map(float, row), names, strict=True) if c) or "0"
        for row in model.coefficients()
    ]


def main() -> None:
    task = json.load(sys.stdin)
    x, began = np.array(task["series"]), time.process_time()
    warnings.simplefilter("ignore")
    models = [fitted(x, task["dt"], task["names"], threshold) for threshold in THRESHOLDS]
    model = min(models, key=lambda one: criterion(one, x, task["dt"]))
    clock = task["dt"] * np.arange(task["steps"] + 1)
    cpu = time.process_time() - began
    motion = solve_ivp(
        lambda t, y: model.predict(y[None])[0], (0, clock[-1]), task["start"], t_eval=clock, rtol=1e-6,
    ).y.T  # fmt: skip
    told = motion.tolist() if len(motion) == len(clock) and np.isfinite(motion).all() else None
    print(json.dumps({"equations": formulas(model), "motion": told, "cpu": cpu, "version": ps.__version__}))


if __name__ == "__main__":
    main()
