"""A pendulum's law from nothing but films of it: `python examples/film.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from eqlearn import FoundFilm, discover_film, make_films

FPS = 30


def main(quick: bool = False) -> FoundFilm:
    """Finds the law, prints it, and draws the first film beside what the law makes of its start."""
    films, angles = make_films("pendulum", films=3 if quick else 8, frames=60 if quick else 200, fps=FPS)
    found = discover_film(
        films, FPS, order=2, primitives="id sin1 exp" if quick else "id square sin1 exp mul"
    )
    print(found)
    for constant in found.constants:
        print(f"{constant.value:.4f} ± {constant.standard_error:.4f}")
    _, moved = found.pictures(0)
    some = np.linspace(0, len(moved) - 1, 8).round().astype(int)
    figure = Figure(figsize=(10, 6), layout="constrained")
    rows = figure.subfigures(2, 1, height_ratios=(1.3, 1))
    for axes, k in zip(rows[0].subplots(2, 8).T, some, strict=True):
        for each, picture in zip(axes, (films[0][k], moved[k, ..., 0]), strict=True):
            each.imshow(picture, cmap="gray", vmin=0, vmax=1)
            each.set_axis_off()
        axes[0].set_title(f"{k / FPS:.1f} s", fontsize=9)
    rows[0].suptitle(f"the film, and the law from its start:  {found}", fontsize=10)
    times, below = np.arange(len(moved)) / FPS, rows[1].subplots()
    sign = np.sign(np.vdot(angles[0][:, 0], found.states[0][:, 0]))
    below.plot(times, angles[0][:, 0], "o", ms=3, color="0.6", label="true angle, which no one told")
    below.plot(times, sign * found.states[0][:, 0], color="#c2410c", label="z by the law")
    below.set(xlabel="seconds", ylabel="radians")
    below.legend(fontsize=8)
    figure.savefig("film.png", dpi=120)
    print(Path("film.png").resolve())
    return found


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
