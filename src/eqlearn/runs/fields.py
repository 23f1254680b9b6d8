"""A search for equations of fields in a run folder: what is found is kept, and taken up again."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eqlearn.errors import InvalidArgument, InvalidFile
from eqlearn.fields.discover import discover_pde
from eqlearn.fields.found import FoundPDE
from eqlearn.fields.law import Law
from eqlearn.io.checksummed import atomic_write, read_checksummed, write_json
from eqlearn.report.fields import field_page
from eqlearn.runs.folder import REPORT, ROUNDS, RunFolder
from eqlearn.search.search import Progress
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Constant
from eqlearn.validation.fields import Field

FORMAT, VERSION, FOUND = "eqlearn-laws", 1, "equations.json"


class LawJournal:
    """The laws of each field in a file of its own, for a search of these data with these options."""

    def __init__(self, folder: Path, about: str) -> None:
        self.folder, self.about = folder, about

    def recall(self, name: str) -> list[Law] | None:
        """The laws of a field, if they were found before."""
        path = self.folder / f"{name}.json"
        if not path.exists():
            return None
        plain, _ = read_checksummed(path)
        if (plain.get("format"), plain.get("version")) != (FORMAT, VERSION):
            raise InvalidFile(f"{path} holds no laws of this version; delete it to search again")
        if plain["about"] != self.about:
            raise InvalidArgument(
                f"{path} is of a search in other data or with other options; choose another folder"
            )
        return [_law(one) for one in plain["laws"]]

    def record(self, name: str, laws: Sequence[Law]) -> None:
        """Keeps the laws of a field."""
        self.folder.mkdir(parents=True, exist_ok=True)
        plain = {"format": FORMAT, "version": VERSION, "about": self.about, "laws": [_plain(o) for o in laws]}
        write_json(self.folder / f"{name}.json", plain)


def _plain(law: Law) -> dict[str, Any]:
    variables = sorted(s.name for s in law.expr.free_symbols) or ["u"]
    errors = [c.standard_error if math.isfinite(c.standard_error) else None for c in law.constants]
    return {
        "equation": Equation(law.expr, variables).to_json(), "error": law.error, "noise": law.noise,
        "constants": [[c.value, e] for c, e in zip(law.constants, errors, strict=True)],
        "score": law.score, "unexplained": law.unexplained,
    }  # fmt: skip


def _law(plain: dict[str, Any]) -> Law:
    constants = (Constant(v, math.inf if e is None else e) for v, e in plain["constants"])
    return Law(
        Equation.from_json(plain["equation"]).expr, tuple(constants), plain["error"], plain["noise"],
        plain["score"], plain["unexplained"],
    )  # fmt: skip


def _about(field: Field, options: dict[str, Any]) -> str:
    """What tells a search of some data with some options from any other; its budget may differ."""
    told = hashlib.sha256(json.dumps(options, sort_keys=True, default=str).encode())
    for name, values in ((n, v) for one in (field.axes, *field.experiments) for n, v in one.items()):
        told.update(name.encode() + np.ascontiguousarray(values).tobytes())
    return told.hexdigest()


def search_fields(
    folder: RunFolder,
    field: Field,
    *,
    seconds: float | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> FoundPDE:
    """Searches with these options of `discover_pde`, and saves what was found, with a page; `resume` goes on
    with the search in the folder, if there is one."""
    rounds = folder.path / ROUNDS
    if (rounds.exists() or (folder.path / FOUND).exists()) and not resume:
        raise InvalidArgument(
            f"{folder} holds a run already; continue it with `--resume`, or choose another folder"
        )
    journal = LawJournal(rounds, _about(field, options))
    with folder.locked((FOUND, REPORT)):
        found = discover_pde(
            field, time=field.time, seconds=seconds, progress=progress, journal=journal, **options
        )
        write_json(folder.path / FOUND, found.to_json())
        atomic_write(folder.path / REPORT, field_page(found).encode())
    return found
