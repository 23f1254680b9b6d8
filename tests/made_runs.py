"""Runs made by hand, so that what is written about them can be tested without a search."""

import numpy as np

from eqlearn.nn.eql import EQL
from eqlearn.report.payload import Sample
from eqlearn.report.record import RunRecord, SearchRound
from eqlearn.search.candidate import Candidate
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Constant

FRONT = ("2.0", "1.5*{0}", "1.5*{0} - 0.25*{1}**2", "1.5*{0} - 0.25*sin(2.5*{1}) + exp(-{0})")


def quoted(name):
    return "`" + name.replace("`", "``") + "`"


def make_record(inputs=("a", "b"), targets=("y",), front=FRONT, pick=2, **changes):
    """A record whose errors fall by a factor of ten from one equation to the next."""
    candidates = []
    for i, text in enumerate(front):
        equation = Equation.parse(text.format(*map(quoted, inputs)), inputs)
        constants = tuple(Constant(c, abs(c) / 50) for c in equation.constants)
        candidates.append(
            Candidate(
                equations=(equation,) * len(targets),
                constants=(constants,) * len(targets),
                training_error=10.0**-i,
                description_length=-5.0 * i,
                exact=False,
                validation_error=2 * 10.0**-i,
                held_out_rows=12,
                method="networks",
            )
        )
    best = candidates[pick]
    data = {"name": "'data.csv'", "rows": 60, "rows_read": 60, "rows_dropped": 0, "fingerprint": "f" * 64}
    environment = {"eqlearn": "0.1.0", "started": "2026-01-02T03:04:05+00:00", "packages": {"torch": "2.13"}}
    fields = {
        "inputs": tuple(inputs), "targets": tuple(targets), "front": tuple(candidates), "pick": pick,
        "noise": (0.125,) * len(targets), "restarts": 96, "rounds": 6, "seconds": 1.5,
        "ended": "no further gain", "failures": {"not finite on the data": 3},
        "network_inputs": tuple(inputs),
        "history": (
            SearchRound(1, 16, 0.5, 0.1, 3, str(candidates[0])), SearchRound(2, 32, 1.0, 0.01, 8, str(best)),
        ),
        "data": data, "settings": {"seed": 0, "primitives": "id square", "seconds": None},
        "environment": environment,
    }  # fmt: skip
    return RunRecord(**{**fields, **changes})


def make_sample(record):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2.0, size=(60, len(record.inputs)))
    y = np.stack([e(X) for e in record.best.equations], axis=1) + 0.05 * rng.normal(
        size=(60, len(record.targets))
    )
    return Sample.of(X, y, np.arange(60) % 5 == 0)


def make_network(record):
    return EQL(len(record.inputs), len(record.targets), "id square mul", 1, bias=True, seed=0).double()
