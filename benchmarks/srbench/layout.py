"""SRBench's data, a folder for each set with `name.tsv.gz` and `metadata.yaml`, as in PMLB; split, noise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from sklearn.model_selection import train_test_split

from eqlearn import EqlearnError, Equation, InvalidFile

TARGET = "target"
TRAINING_SHARE = 0.75
# How descriptions spell some functions, and how `Equation.parse` does.
SPELLINGS = {"ln": "log", "arcsin": "asin", "arccos": "acos", "arctan": "atan"}


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table and, where its description holds a formula, the truth; else `flaw` says why there is none."""

    name: str
    X: pd.DataFrame
    y: np.ndarray
    truth: Equation | None
    flaw: str = ""

    @property
    def box(self) -> dict[str, tuple[float, float]]:
        """The range of every column; a constant one is given a little room, which the judge needs."""
        low, high = self.X.min(), self.X.max()
        room = np.where(low == high, 1e-3 * np.maximum(np.abs(low), 1.0), 0.0)
        return {
            name: (float(a), float(b)) for name, a, b in zip(self.X, low - room, high + room, strict=True)
        }


@dataclass(frozen=True, eq=False)
class Split:
    """Training rows, with noise if asked for, and test rows without."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray


def folders(root: Path, pattern: str = "*") -> Iterator[Path]:
    """The folders of data sets whose names fit the pattern, in the order of their names."""
    for folder in sorted(root.glob(pattern)):
        if folder.is_dir() and any(folder.glob("*.tsv*")):
            yield folder


def read(folder: Path) -> Dataset | None:
    """The data set of a folder; None if it is one for classification."""
    about = _metadata(folder / "metadata.yaml")
    if about.get("task", "regression") != "regression":
        return None
    table = _table(folder)
    X, y = table.drop(columns=TARGET), table[TARGET].to_numpy()
    try:
        truth, flaw = Equation.parse(formula(str(about.get("description", ""))), tuple(X.columns)), ""
    except EqlearnError as error:
        truth, flaw = None, str(error)
    return Dataset(folder.name, X, y, truth, flaw)


def formula(description: str) -> str:
    """The right side of the first line with an equals sign, which is where SRBench looks for it."""
    for line in description.splitlines():
        if "=" in line:
            text = line.rpartition("=")[2].strip()
            return re.sub(r"\b(\w+)(?=\s*\()", lambda word: SPELLINGS.get(word[1], word[1]), text)
    raise InvalidFile("the description holds no formula (a line with an equals sign)")


def _metadata(path: Path) -> dict[str, Any]:
    """The two entries that are needed; what is wrong with others (a bare colon in a title) does no harm."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFile(f"{path} can't be read: {error}") from error
    entries: dict[str, Any] = {}
    for entry in re.findall(
        r"^(?:description|task):.*\n?(?:(?:[ \t].*)?\n)*(?:[ \t].*)?", text, re.MULTILINE
    ):
        try:
            entries.update(yaml.safe_load(entry))
        except yaml.YAMLError as error:
            raise InvalidFile(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    return entries


def _table(folder: Path) -> pd.DataFrame:
    path = next(
        (p for p in (folder / f"{folder.name}.tsv.gz", folder / f"{folder.name}.tsv") if p.exists()), None
    )
    if path is None:
        raise InvalidFile(f"there is no {folder.name}.tsv.gz in {folder}")
    try:
        table = pd.read_csv(path, sep="\t", compression="infer").astype(float)
    except (OSError, ValueError, EOFError) as error:
        raise InvalidFile(
            f"{path} is not a table of numbers ({str(error).splitlines()[0]}); "
            "PMLB's tables come with `git lfs pull`"
        ) from error
    if TARGET not in table:
        raise InvalidFile(f"{path} has no column named {TARGET!r}")
    if table.shape[1] < 2 or len(table) < 4:
        raise InvalidFile(f"{path} has {table.shape[1]} columns and {len(table)} rows, which is too little")
    if not np.isfinite(table.to_numpy()).all():
        raise InvalidFile(f"{path} holds values that are missing or infinite")
    return table.rename(columns=str)


def split(
    data: Dataset,
    seed: int,
    *,
    target_noise: float = 0.0,
    feature_noise: float = 0.0,
    most_rows: int = 10_000,
) -> Split:
    """SRBench's trial of this seed: 75 % of the rows, at most so many, for training, the others for testing.

    Noise is normal, on training rows only: that of the target has the share `target_noise` of the root mean
    square of its values as standard deviation, and likewise for each column. Random numbers are drawn as
    there, so the same seed gives the same rows and noise, but for tables that are too large: there SRBench
    may take a row twice.
    """
    rng = np.random.RandomState(seed)
    X, X_test, y, y_test = train_test_split(
        data.X, data.y, train_size=TRAINING_SHARE, test_size=1 - TRAINING_SHARE, random_state=seed
    )
    if 0 < most_rows < len(y):
        chosen = rng.choice(len(y), size=most_rows, replace=False)
        X, y = X.iloc[chosen], y[chosen]
    y = y + _noise(y, target_noise, rng)
    if feature_noise > 0:
        X = X.apply(lambda column: column + _noise(column.to_numpy(), feature_noise, rng))
    return Split(X, y, X_test, y_test)


def _noise(values: np.ndarray, share: float, rng: np.random.RandomState) -> Any:
    return rng.normal(0.0, share * np.sqrt(np.mean(values**2)), len(values)) if share > 0 else 0.0
