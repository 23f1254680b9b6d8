"""Films of simulated motion: small grey pictures of pendulums, springs, balls and planets, to try a search
on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from eqlearn.validation.options import check_whole, checked_choice, checked_seed

Rate = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Scene:
    """A motion and its picture: the law as text, accelerations `(films, coordinates)` from positions and
    velocities, starts drawn from a generator, and from positions `(frames, coordinates)` the points that are
    drawn, `(frames, points, 2)` in shares of a picture, across and down."""

    law: str
    acceleration: Rate
    start: Callable[[np.random.Generator], tuple[Sequence[float] | np.ndarray, Sequence[float] | np.ndarray]]
    points: Callable[[np.ndarray], np.ndarray]
    width: float = 0.05


def _rod(angles: np.ndarray) -> np.ndarray:
    """A rod that hangs from the middle, with points along it."""
    along = np.linspace(0.15, 0.42, 6)
    return np.stack([0.5 + np.sin(angles) * along, 0.45 + np.cos(angles) * along], axis=2)


def _beads(xy: np.ndarray) -> np.ndarray:
    return xy[:, None]


def _line(x: np.ndarray) -> np.ndarray:
    return np.stack([0.5 + 0.33 * x, np.full_like(x, 0.5)], axis=2)


def _pulled(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.asarray(-q / np.sum(q**2, axis=1, keepdims=True) ** 1.5)


def _far_from_the_sun(g: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The far end of an ellipse that stays in the picture, anywhere around the sun."""
    far, near, angle = g.uniform(1.0, 1.5), g.uniform(0.5, 0.9), g.uniform(0, 2 * np.pi)
    speed = np.sqrt(2 * near / (far * (far + near)))
    way = np.array([np.cos(angle), np.sin(angle)])
    return far * way, speed * np.array([-way[1], way[0]])


def _thrown(g: np.random.Generator) -> tuple[list[float], list[float]]:
    """From a place near the ground to another, over the middle."""
    here, there = g.uniform(0.15, 0.85, 2)
    return [here, g.uniform(0.75, 0.85)], [(there - here) / 6.6, -g.uniform(0.35, 0.39)]


SCENES: dict[str, Scene] = {
    "pendulum": Scene(
        "z'' = -14.15*sin(z)", lambda q, v: -14.15 * np.sin(q),
        lambda g: ([g.uniform(0.4, 2.2) * g.choice([-1, 1])], [g.uniform(-2, 2)]), _rod,
    ),
    "spring": Scene(
        "z'' = -9*z", lambda q, v: -9 * q, lambda g: ([g.uniform(-1, 1)], [g.uniform(-1, 1)]), _line, 0.07
    ),
    "damped spring": Scene(
        "z'' = -16*z - 0.5*z'", lambda q, v: -16 * q - 0.5 * v,
        lambda g: ([g.uniform(0.5, 1) * g.choice([-1, 1])], [g.uniform(-1, 1)]), _line, 0.07,
    ),
    "duffing": Scene(
        "z'' = 4*z - z**3, z in units that make its last factor one", lambda q, v: 4 * q - 12 * q**3,
        lambda g: ([g.uniform(0.3, 0.95) * g.choice([-1, 1])], [g.uniform(-0.5, 0.5)]), _line, 0.07,
    ),
    "ball": Scene(
        "z'' = 1, z in units that make it one", lambda q, v: np.full_like(q, 0.11),
        lambda g: ([g.uniform(0.75, 0.85)], [-g.uniform(0.36, 0.39)]),
        lambda x: np.stack([np.full_like(x, 0.5), x], axis=2), 0.06,
    ),
    "planet": Scene(
        "z1'' = -z1/(z1**2 + z2**2)**(3/2), and z2'' alike", _pulled,
        _far_from_the_sun, lambda q: _beads(0.5 + 0.26 * q),
    ),
    "plane spring": Scene(
        "z1'' = -9*z1, z2'' = -4*z2", lambda q, v: -q * [9, 4],
        lambda g: (g.uniform(-1, 1, 2), g.uniform(-2, 2, 2)), lambda q: _beads(0.5 + 0.25 * q),
    ),
    "throw": Scene(
        "z1'' = 0, z2'' = 1, z in units that make it one", lambda q, v: np.full_like(q, [0.0, 0.11]),
        _thrown,
        _beads, 0.06,
    ),
    "two springs": Scene(
        "z1'' = -9*z1 + 4*z2, z2'' = 4*z1 - 9*z2, or their two modes", lambda q, v: -9 * q + 4 * q[:, ::-1],
        lambda g: (g.uniform(-1, 1, 2), g.uniform(-2, 2, 2)),
        lambda q: np.stack([0.5 + 0.25 * q, np.broadcast_to([0.3, 0.8], q.shape)], axis=2), 0.07,
    ),
}  # fmt: skip
"""Films by name."""


def make_films(
    name: str,
    films: int = 8,
    frames: int = 200,
    *,
    fps: float | int = 30.0,
    size: tuple[int, int] = (27, 24),
    noise: float = 0.01,
    seed: int = 0,
    finer: int = 10,
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Films `(frames, height, width)` with values from about 0 to 1, and the coordinates behind each,
    `(frames, coordinates)`.

    `name` is one of `SCENES`; each film has a start of its own. `noise` is that of every pixel.
    """
    scene = SCENES[checked_choice("film", name, SCENES)]
    check_whole("films", films, 1)
    check_whole("frames", frames, 2)
    generator = np.random.default_rng(checked_seed(seed))
    starts = [scene.start(generator) for _ in range(films)]
    q, v = (np.array([start[k] for start in starts], dtype=float) for k in range(2))
    paths, step = [q], 1 / (fps * finer)
    for _ in range(frames - 1):
        for _ in range(finer):  # leapfrog, in its form with velocities at whole steps
            half = v + step / 2 * scene.acceleration(q, v)
            q = q + step * half
            v = half + step / 2 * scene.acceleration(q, half)
        paths.append(q)
    motion = np.stack(paths, axis=1)
    pictures = [drawn(scene.points(path), scene.width, size) for path in motion]
    grain = [noise * generator.normal(size=film.shape) for film in pictures]
    return [film + g for film, g in zip(pictures, grain, strict=True)], list(motion)


def drawn(points: np.ndarray, width: float, size: tuple[int, int]) -> np.ndarray:
    """Pictures of soft points, `(frames, points, 2)` in shares of the picture's smaller side."""
    height, across = size
    smaller = min(size)
    x = (np.arange(across) + 0.5 - across / 2) / smaller + 0.5
    y = (np.arange(height) + 0.5 - height / 2) / smaller + 0.5
    left, down = points[..., 0, None], points[..., 1, None]
    columns = np.exp(-((x - left) ** 2) / (2 * width**2))
    rows = np.exp(-((y - down) ** 2) / (2 * width**2))
    return np.asarray(1 - np.prod(1 - 0.95 * rows[..., :, None] * columns[..., None, :], axis=1))
