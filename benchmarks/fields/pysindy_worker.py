"""PySINDy's part in the comparison of fields: arrays in, equations of each of its three ways out.

Run in the peers' environment, with the path of an .npz file that holds fields and axes (time last), and a
JSON object on standard input: `fields`, `targets`, `axes`. Library: polynomials up to the third degree times
derivatives in space up to the fourth (second in two dimensions) along each axis, as in its own notebooks;
columns of size 1. An answer is a list for each target: an equation for each of ten thresholds, since nothing
in the package chooses one. `derivatives` are finite differences (`PDELibrary`), `weak` integrals over 500
boxes (`WeakPDELibrary`), `ensemble` the mean of 20 fits of `weak` to resampled rows.
"""

from __future__ import annotations

import json
import re
import sys
import time
import traceback
import warnings

import numpy as np
import pysindy as ps

THRESHOLDS = (1e-4, 1e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
BOXES, BAGS = 500, 20


class Kept(ps.STLSQ):
    """Keeps the columns and the rates of change that a model makes."""

    def fit(self, columns, rates, **options):
        self.columns, self.rates = np.asarray(columns), np.asarray(rates)
        return super().fit(columns, rates, **options)


def regression(kind: str, u: np.ndarray, axes: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """The columns and the rates of change, `(rows, terms)` and `(rows, fields)`, and the terms' names."""
    space, t = axes[:-1], axes[-1]
    common = {
        "function_library": ps.PolynomialLibrary(degree=3, include_bias=False),
        "derivative_order": 4 if len(space) == 1 else 2,
        "include_bias": True,
    }
    if kind == "derivatives":
        grid = space[0] if len(space) == 1 else np.stack(np.meshgrid(*space, indexing="ij"), axis=-1)
        made = ps.PDELibrary(spatial_grid=grid, **common)
    else:
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        np.random.seed(0)  # noqa: NPY002 (it draws its boxes by this)
        made = ps.WeakPDELibrary(spatiotemporal_grid=grid, K=BOXES, **common)
    kept = Kept(threshold=0.0)
    model = ps.SINDy(optimizer=kept, feature_library=made)
    model.fit(u, t=t)
    return kept.columns, kept.rates, [n.replace("^", "**") for n in model.get_feature_names()]


def fitted(kind: str, columns: np.ndarray, rate: np.ndarray, threshold: float) -> np.ndarray:
    """The coefficients of one field's terms; the threshold is relative to the size of its rates."""
    size = float(np.linalg.norm(rate))
    one = ps.STLSQ(threshold=threshold * size, normalize_columns=True, alpha=1e-5)
    if kind == "ensemble":
        one = ps.EnsembleOptimizer(opt=one, bagging=True, n_models=BAGS)
    one.fit(columns, rate[:, None])
    return np.asarray(one.coef_).ravel()


def written(names: list[str], row: np.ndarray, fields: list[str], axes: list[str]) -> str:
    """A sum in u, u_x, u_xx: its own name of the second field's slope along the first axis is x1_1."""
    parts = []
    for name, number in zip(names, row, strict=True):
        if number:
            factors = re.findall(r"x(\d+)(?:_(\d+))?(\*\*\d+)?", name)
            text = "*".join(
                fields[int(f)] + ("_" + "".join(axes[int(d) - 1] for d in slope) if slope else "") + power
                for f, slope, power in factors
            )
            parts.append(f"({float(number)!r})*({text or 1})")
    return " + ".join(parts) or "0"


def main() -> None:
    task = json.load(sys.stdin)
    with np.load(sys.argv[1]) as held:
        u = np.stack([held[n].astype(float) for n in task["fields"]], axis=-1)
        axes = [held[a].astype(float) for a in task["axes"]]
    warnings.simplefilter("ignore")
    answers = {}
    for kind in ("derivatives", "weak", "ensemble"):
        began = time.process_time()
        try:
            columns, rates, names = regression(kind, u, axes)
            texts = []
            for target in task["targets"]:
                rate = rates[:, task["fields"].index(target)]
                rows = [fitted(kind, columns, rate, threshold) for threshold in THRESHOLDS]
                texts.append([written(names, row, task["fields"], task["axes"]) for row in rows])
            answers[kind] = {"equations": texts, "seconds": time.process_time() - began, "failure": None}
        except Exception as error:  # what a peer raises is its answer, kept in the ledger
            failure = traceback.format_exception_only(error)[-1].strip()
            answers[kind] = {"equations": [], "seconds": time.process_time() - began, "failure": failure}
    print(json.dumps({"version": ps.__version__, "answers": answers}))


if __name__ == "__main__":
    main()
