"""Films from files."""

import builtins

import numpy as np
import pytest
from matplotlib.image import imsave

from eqlearn.errors import InvalidArgument, InvalidFile, MissingExtra
from eqlearn.io.films import read_film_file

FRAMES = np.random.default_rng(0).uniform(size=(22, 6, 5))


def test_an_array_and_a_folder_of_pictures_hold_the_same_film(tmp_path):
    np.save(tmp_path / "film.npy", FRAMES)
    folder = tmp_path / "film"
    folder.mkdir()
    for k, frame in enumerate(FRAMES):
        imsave(folder / f"frame{k + 1}.png", np.stack([frame] * 3, axis=2))

    array, pictures = read_film_file(tmp_path / "film.npy", 30), read_film_file(folder, 30)

    assert array.frames[0].shape == (22, 6, 5, 1)
    assert np.abs(pictures.frames[0] - array.frames[0]).max() < 0.01


def test_a_folder_of_folders_and_an_archive_hold_several_films(tmp_path):
    np.savez(tmp_path / "films.npz", a=FRAMES, b=FRAMES)
    for name in ("a", "b"):
        (tmp_path / "films" / name).mkdir(parents=True)
        for k, frame in enumerate(FRAMES):
            imsave(tmp_path / "films" / name / f"{k}.png", np.stack([frame] * 3, axis=2))

    assert len(read_film_file(tmp_path / "films.npz", 30).frames) == 2
    assert len(read_film_file(tmp_path / "films", 30).frames) == 2


def test_what_can_not_be_read_is_refused(tmp_path):
    (tmp_path / "text.npy").write_text("no array")
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "1.png").write_text("no picture")
    np.save(tmp_path / "film.npy", FRAMES)

    for name, message in [("text.npy", "no array"), ("empty", "no pictures"), ("broken", "no picture"),
                          ("missing.npy", "no file")]:  # fmt: skip
        with pytest.raises(InvalidFile, match=message):
            read_film_file(tmp_path / name, 30)
    with pytest.raises(InvalidArgument, match="give `fps`"):
        read_film_file(tmp_path / "film.npy")


def test_a_video_without_its_extra_names_the_extra(tmp_path, monkeypatch):
    (tmp_path / "film.mp4").write_bytes(b"not looked at")
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("imageio"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)

    with pytest.raises(MissingExtra, match=r"eqlearn\[film\]"):
        read_film_file(tmp_path / "film.mp4")
