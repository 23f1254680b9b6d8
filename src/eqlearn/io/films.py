"""Films from files: arrays, folders of pictures, and videos where a reader of videos is installed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from eqlearn.errors import InvalidArgument, InvalidFile, MissingExtra
from eqlearn.validation.films import Films, read_films
from eqlearn.validation.options import checked_choice

VIDEOS = (".mp4", ".mov", ".avi", ".mkv", ".webm", ".gif")
# A film is searched at 48 pixels a side; what is read from a video is averaged to a few times that at once.
LARGEST_SIDE = 192


def read_film_file(path: str | Path, fps: float | int | None = None) -> Films:
    """Films out of an `.npy` or `.npz` file, a folder of pictures (or of folders of them), or a video, whose
    own frames a second serve unless told."""
    place = Path(path)
    if not place.exists():
        raise InvalidFile(f"there is no file or folder {str(path)!r}")
    suffix = place.suffix.lower()
    if suffix in VIDEOS:
        frames, own = _video(place)
        return read_films(frames, own if fps is None else fps)
    if fps is None:
        raise InvalidArgument("pictures do not tell how many there are a second; give `fps`")
    if place.is_dir():
        return read_films(_folder(place), fps)
    checked_choice("kind of film", suffix or place.name, (".npy", ".npz", *VIDEOS))
    return read_films(_arrays(place), fps)


def _arrays(path: Path) -> Any:
    try:
        read = np.load(path, allow_pickle=False)
        return read if path.suffix.lower() == ".npy" else [read[name] for name in read.files]
    except (OSError, ValueError, EOFError) as error:
        raise InvalidFile(f"{path} is no array of numbers that NumPy reads") from error


def _folder(folder: Path) -> list[np.ndarray]:
    inner = [one for one in sorted(folder.iterdir(), key=_number) if one.is_dir()]
    return [_pictures(one) for one in inner if any(_listed(one))] or [_pictures(folder)]


def _listed(folder: Path) -> Iterator[Path]:
    return (one for one in folder.iterdir() if one.suffix.lower() == ".png")


def _pictures(folder: Path) -> np.ndarray:
    """The pictures of a folder in the order of the numbers in their names."""
    from matplotlib.image import imread

    files = sorted(_listed(folder), key=_number)
    if not files:
        raise InvalidFile(
            f"there are no pictures in {folder}; PNG files are read, in the order of their numbers"
        )
    frames = []
    for file in files:
        try:
            frames.append(np.atleast_2d(imread(file)))
        except (OSError, SyntaxError, ValueError) as error:  # what Pillow raises
            raise InvalidFile(f"{file} is no picture that can be read") from error
        if frames[-1].shape != frames[0].shape:
            raise InvalidFile(
                f"{file.name} is {_size(frames[-1])} and {files[0].name} is {_size(frames[0])}; "
                "all frames of a film must be of one size, and all grey or all in colour"
            )
    return np.stack(frames)


def _size(frame: np.ndarray) -> str:
    return f"{frame.shape[0]} x {frame.shape[1]} in {'grey' if frame.ndim == 2 else 'colour'}"


def _number(path: Path) -> tuple[list[int], str]:
    return [int(n) for n in re.findall(r"\d+", path.stem)], path.name


def _video(path: Path) -> tuple[np.ndarray, float]:
    """The frames of a video, averaged down, and how many there are a second."""
    try:
        import imageio.v3 as imageio

        own = float(imageio.immeta(path).get("fps") or 0.0)
        frames = [_smaller(np.asarray(frame)) for frame in imageio.imiter(path)]
    except ImportError as error:
        raise MissingExtra(
            f"to read {path.name}, install the extra for videos: pip install 'eqlearn[film]'; or save the "
            "frames as .npy"
        ) from error
    except Exception as error:
        raise InvalidFile(f"{path} is no video that can be read: {str(error)[:120]}") from error
    return np.stack(frames), own


def _smaller(frame: np.ndarray) -> np.ndarray:
    factor = max(1, -(-max(frame.shape[:2]) // LARGEST_SIDE))
    height, width = (n // factor * factor for n in frame.shape[:2])
    blocks = frame[:height, :width].reshape(height // factor, factor, width // factor, factor, -1)
    return np.asarray(blocks.mean(axis=(1, 3)), dtype=np.float32)
