"""One call that reads back whatever was saved: a network, an equation, or a law with its encoders."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from torch import nn

from eqlearn.errors import InvalidArgument, InvalidFile
from eqlearn.io import storage
from eqlearn.latent.found import LAW, FoundLatent, load_latent
from eqlearn.nn.eql import EQL
from eqlearn.runs.folder import RUN
from eqlearn.symbolic.equation import Equation


def load(
    path: str | os.PathLike[str], encoders: Mapping[str, nn.Module] | None = None
) -> EQL | Equation | FoundLatent:
    """The network or the equation that `save` wrote, or the law behind encoders of `found.save(folder)`.

    A law comes with its model if `encoders` are given, by name, built as those that were trained; the saved
    weights go into copies of them. Without, there are its equations and all figures but no model. A custom
    primitive must be registered first, under the name it had.

    **Raises:** `InvalidFile` for a file that is truncated, altered, crafted or not ours, and for a folder
    that holds no law; nothing in it is ever unpickled or evaluated. `FileNotFoundError` if nothing is there.
    """
    place = Path(path)
    if not place.is_dir():
        if encoders is not None and place.exists():
            raise InvalidArgument(
                f"`encoders` are for the folder of a law behind encoders; {path} is a file, load it without"
            )
        return storage.load(place)
    if (place / LAW).is_file():
        return load_latent(place, encoders)
    if (place / RUN).is_file():
        raise InvalidFile(
            f"{path} is the folder of a run; load one of its files, such as {place / 'equation.json'}"
        )
    raise InvalidFile(f"{path} is a folder without {LAW}, so `found.save` did not write it")
