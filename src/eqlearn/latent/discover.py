"""A law behind any encoders, by one call: warm starts, served comparison, joint training, canonical gauge.

Kim et al. (2019) train an encoder and an EQL network together and read the equation off. What a latent means
is then the encoder's choice, and a run's equation shows this choice as much as the law. Here the search is
modulo that choice: encoders are trained with a smooth head; every small structure is compared with the
latents free to bend; the short list is trained on with the encoders, its form held; the constants that an
encoder can make up for go.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any, Literal

from torch import Tensor, nn

from eqlearn.errors import InvalidArgument, WrongType
from eqlearn.io.storage import opened_journal
from eqlearn.latent.encoder import check_encoder
from eqlearn.latent.found import FoundLatent
from eqlearn.latent.settings import LATENT, LatentSettings
from eqlearn.latent.stages import LatentProgress, Run
from eqlearn.nn.primitives import PrimitivesLike, parse_kinds
from eqlearn.search.settings import SCIENCE
from eqlearn.validation.latents import Gathered, LatentData, read_latent_data
from eqlearn.validation.options import check_budget, check_settings, checked_names, checked_seed


def discover_latent(
    encoders: Mapping[str, nn.Module],
    inputs: Mapping[str, Any] | None = None,
    columns: Any = None,
    y: Any = None,
    *,
    data: Iterable[Any] | None = None,
    primitives: PrimitivesLike = SCIENCE,
    latents: int | Literal["auto"] = "auto",
    seconds: float | None = 600.0,
    seed: int = 0,
    reset: bool = True,
    settings: LatentSettings = LATENT,
    progress: Callable[[LatentProgress], object] | None = None,
    journal: str | os.PathLike[str] | None = None,
) -> FoundLatent:
    """Finds the law that gives `y` from what encoders read off their inputs, and from measured columns.

    **Main arguments:** `encoders`, by name, any modules from their input to `(rows, 1)` or `(rows, n)`; the
    same object twice shares its weights. `inputs`, a tensor `(rows, ...)` or `Gathered` for each name;
    `columns`, measured quantities that enter the equation as they are, by name; `y` `(rows,)` or
    `(rows, outputs)`. Or `data` in place of the three: an iterable of batches, each a dictionary of tensors
    by name, with "y".

    **Other arguments:** `primitives`, what the law may be made of; `latents`, how many of each encoder's
    outputs (mixed and bent at will) the law may use, "auto" for the fewest that explain the data; `seconds`,
    for everything; `reset`, whether starts after the first draw the encoders' weights anew (false for
    pretrained ones); `progress`, called as it goes; `journal`, a folder where trainings are kept, so that a
    search that was killed goes on from there.

    The encoders are left as they are; the trained ones are in `found.model`. Ctrl-C ends the search with the
    best law so far.
    """
    began = time.time()
    check_budget(seconds, None)
    check_settings(settings, LatentSettings)
    seed, units = checked_seed(seed), parse_kinds(primitives)
    names = _checked_encoders(encoders)
    if latents != "auto" and not (isinstance(latents, int) and latents >= 1):
        raise InvalidArgument(f"`latents` must be a whole number of at least 1, or 'auto', got {latents!r}")
    rows = read_latent_data(
        names, inputs, columns, y, data, held=settings.held, measured=settings.measured, seed=seed
    )
    sizes = {
        name: check_encoder(name, encoder, _first(rows.training.inputs[name]))
        for name, encoder in encoders.items()
    }
    run = Run(
        dict(encoders), sizes, rows, units, latents, seed, reset, settings, began, seconds, progress,
        None if journal is None else opened_journal(journal, _about(rows, seed, settings)),
    )  # fmt: skip
    return run.found()


def _checked_encoders(encoders: Any) -> tuple[str, ...]:
    if not isinstance(encoders, Mapping) or not encoders:
        raise WrongType("`encoders` must be a dictionary of modules by name, such as {'z': encoder}")
    if "y" in encoders:
        raise InvalidArgument("an encoder can't be named 'y', which is the target's name")
    return checked_names(tuple(encoders))


def _first(x: Tensor | Gathered, count: int = 64) -> Tensor:
    return x.values[x.index[:count]] if isinstance(x, Gathered) else x[:count]


def _about(data: LatentData, seed: int, settings: LatentSettings) -> dict[str, Any]:
    """What tells a search from others, for its journal."""
    return {
        "format": "eqlearn-latent-journal",
        "seed": seed,
        "rows": len(data.training),
        "target": float(data.training.y.sum()),
        "inputs": sorted(data.training.inputs),
        "columns": list(data.columns),
        "settings": asdict(settings),
    }
