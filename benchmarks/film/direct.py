"""Reads the angle off a film of a real pendulum directly, and says what k in theta'' = -k sin(theta) it has.

    python benchmarks/film/direct.py FRAMES.npy --fps 29.97 --first 390 --out results/film/direct.json

The angle is that of the principal axis of what is brighter than the film's median. Two answers, neither of
which knows a law's k beforehand: each swing's period, with the elliptic integral's factor for its amplitude
taken off, which leaves the period of small swings in frames; and a simulation with linear friction. A period
counts frames, so a k that is claimed says which frame rate it would take.
"""

from __future__ import annotations

import argparse
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares
from scipy.special import ellipk

BRIGHT = 0.15  # above the median of a pixel whose range is 0 to 1: what moves, not the camera's noise


def angles(frames: np.ndarray) -> np.ndarray:
    """The angle of the bright axis from the vertical in each frame, in radians."""
    weight = np.clip(frames - np.median(frames, axis=0), BRIGHT, None) - BRIGHT
    y, x = np.mgrid[: frames.shape[1], : frames.shape[2]].astype(float)
    found = []
    for one in weight:
        mean = np.array([(one * x).sum(), (one * y).sum()]) / one.sum()
        dx, dy = x - mean[0], y - mean[1]
        xx, xy, yy = ((one * product).sum() for product in (dx * dx, dx * dy, dy * dy))
        axis = np.linalg.eigh([[xx, xy], [xy, yy]])[1][:, 1]
        found.append(np.arctan2(*(axis * np.sign(axis[1]))))
    return np.array(found)


def swings(angle: np.ndarray) -> list[dict[str, float]]:
    """Each whole swing: its period in frames, its amplitude, and the period of small swings that follows."""
    below = np.flatnonzero((angle[:-1] < 0) & (angle[1:] >= 0))
    zeros = below - angle[below] / (angle[below + 1] - angle[below])
    found = []
    for first, last in pairwise(zeros):
        amplitude = float(np.ptp(angle[int(first) : int(last) + 2])) / 2
        longer = float(ellipk(np.sin(amplitude / 2) ** 2)) * 2 / np.pi
        period = float(last - first)
        found.append({"period": period, "degrees": float(np.degrees(amplitude)), "small": period / longer})
    return found


def simulated(angle: np.ndarray) -> tuple[float, float, float]:
    """k and friction per frame, and the root mean square that the simulation misses, in radians."""
    frames = np.arange(len(angle), dtype=float)

    def missed(point: np.ndarray) -> np.ndarray:
        k, friction, start, speed, level = point
        motion = solve_ivp(
            lambda t, y: [y[1], -k * np.sin(y[0]) - friction * y[1]], (0, frames[-1]), [start, speed],
            t_eval=frames, rtol=1e-8, atol=1e-9,
        )  # fmt: skip
        return np.asarray(motion.y[0] + level - angle)

    guess = [(2 * np.pi / swings(angle)[-1]["small"]) ** 2, 1e-3, angle[0], angle[1] - angle[0], 0.0]
    fit = least_squares(missed, guess, x_scale=[1e-3, 1e-3, 0.1, 0.01, 0.01])
    return float(fit.x[0]), float(fit.x[1]), float(np.sqrt(2 * fit.cost / len(angle)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("frames", type=Path)
    parser.add_argument("--fps", type=float, default=29.97)
    parser.add_argument("--first", type=int, default=None)
    parser.add_argument("--claimed", type=float, default=14.15)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    angle = angles(np.load(options.frames)[: options.first])
    angle -= (angle.max() + angle.min()) / 2
    every = swings(angle)
    small = np.array([one["small"] for one in every])
    k, friction, missed = simulated(angle)
    report = {
        "fps": options.fps, "frames": len(angle), "swings": every,
        "small_swing_frames": float(small.mean()), "deviation": float(small.std(ddof=1)),
        "k_of_periods": float((2 * np.pi * options.fps / small.mean()) ** 2),
        "k_simulated": k * options.fps**2, "friction": friction * options.fps, "missed_radians": missed,
        "claimed": options.claimed,
        "fps_of_claim": float(small.mean() * np.sqrt(options.claimed) / (2 * np.pi)),
    }  # fmt: skip
    options.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
