"""Small data sets that ship with the package, each with its source (see files/README.md)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eqlearn.validation.options import checked_choice


@dataclass(frozen=True)
class DataSet:
    """A table of published numbers; every column but `target` is an input."""

    name: str
    target: str
    about: str
    source: str

    @property
    def path(self) -> Path:
        """The CSV file."""
        return Path(__file__).parent / "files" / f"{self.name}.csv"

    @property
    def X(self) -> Any:
        """The inputs, a data frame."""
        return self._table().drop(columns=self.target)

    @property
    def y(self) -> Any:
        """The target, a series."""
        return self._table()[self.target]

    def _table(self) -> Any:
        import pandas as pd  # takes half a second, so only where a table is read

        return pd.read_csv(self.path, dtype="float64")


DATASETS: dict[str, DataSet] = {
    data.name: data
    for data in (
        DataSet(
            "kepler",
            "T",
            "Periods (years) and semi-major axes (au) of the planets and dwarf planets: Kepler's third law.",
            "JPL Solar System Dynamics (planets); IAU Minor Planet Center (dwarf planets)",
        ),
        DataSet(
            "balmer",
            "wavelength",
            "Wavelengths (nm, in air) of hydrogen's lines to level 2, by upper level n: Balmer's formula.",
            "NIST Atomic Spectra Database",
        ),
        DataSet(
            "ultrasound",
            "response",
            "Ultrasonic response of reference blocks by distance in metal: a noisy calibration curve.",
            "NIST Statistical Reference Datasets, Chwirut2",
        ),
    )
}
"""The data sets by name."""


def load_dataset(name: str) -> DataSet:
    """The data set of that name: `load_dataset("kepler").X`, `.y`."""
    return DATASETS[checked_choice("data set", name, DATASETS)]
