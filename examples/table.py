"""A table to an equation: the planets' distances and periods, and the law that Kepler found in them."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from eqlearn import EQLRegressor, load_dataset


def main() -> None:
    planets = load_dataset("kepler")  # a data frame and a series, as pandas would read them from a file
    model = EQLRegressor(restarts=20).fit(planets.X, planets.y)
    law = model.equation_
    print(f"T = {law}, typical error {model.noise_:.2g} years")

    a = np.geomspace(0.3, 100, 200)
    figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
    axes.loglog(a, law(a), color="tab:orange", label=f"${law.latex()}$")
    axes.loglog(planets.X["a"], planets.y, "o", color="tab:blue", label="planets and dwarf planets")
    axes.set(xlabel="semi-major axis a (au)", ylabel="period T (years)", title="Kepler's third law")
    axes.legend()
    figure.savefig("table.png", dpi=150)
    print(Path("table.png").resolve())
    plt.close(figure)


if __name__ == "__main__":
    main()
