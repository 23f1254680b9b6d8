"""Handwritten digits: files that are whole are read, others refused and explained."""

import gzip
import hashlib

import numpy as np
import pytest
import torch

from eqlearn.errors import InvalidFile, UnknownName
from eqlearn.paper.mnist.digits import SHA256, load_digits, mnist_contents, packed, read_idx, unpacked

PIXELS = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
GOOD = bytes([0, 0, 8, 3]) + np.array([2, 3, 4], dtype=">u4").tobytes() + PIXELS.tobytes()
FILES = {"small-images": hashlib.sha256(GOOD).hexdigest()}


def test_an_idx_file_gives_its_array():
    np.testing.assert_array_equal(read_idx(GOOD, "small-images"), PIXELS)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (GOOD[:-1], "says it holds 2 x 3 x 4 bytes, but has 23"),
        (GOOD + b"\0", "but has 25"),
        (GOOD[:9], "cut short within its header"),
        (bytes([0, 0, 9, 3]) + GOOD[4:], "00 00 09"),
        (b"<html>not found</html>", "does not begin as an IDX file"),
        (b"", "nothing"),
    ],
)
def test_another_idx_file_is_refused(content, reason):
    with pytest.raises(InvalidFile, match=reason):
        read_idx(content, "small-images")


def test_gzipped_and_plain_content_are_the_same():
    assert unpacked(gzip.compress(GOOD), "x") == unpacked(GOOD, "x") == unpacked(packed(GOOD), "x")


def test_a_gzip_file_that_is_cut_short_is_refused():
    with pytest.raises(InvalidFile, match=r"small\.gz is cut short"):
        unpacked(gzip.compress(GOOD)[:-9], "small.gz")


@pytest.mark.parametrize("name", ["small-images", "small-images.gz"])
def test_files_are_read_from_a_folder(tmp_path, name):
    (tmp_path / name).write_bytes(packed(GOOD) if name.endswith(".gz") else GOOD)

    assert mnist_contents(tmp_path, files=FILES) == {"small-images": GOOD}


def test_the_folder_may_come_from_the_environment(tmp_path, monkeypatch):
    (tmp_path / "small-images.gz").write_bytes(packed(GOOD))
    monkeypatch.setenv("EQLEARN_DATA", str(tmp_path))

    assert mnist_contents(files=FILES) == {"small-images": GOOD}


def test_an_altered_file_of_a_folder_is_refused_and_left(tmp_path):
    path = tmp_path / "small-images.gz"
    path.write_bytes(packed(GOOD[:-1] + b"\xff"))

    with pytest.raises(InvalidFile, match="altered or cut short"):
        mnist_contents(tmp_path, files=FILES)
    assert path.exists()


def test_a_folder_without_the_files_is_refused(tmp_path):
    with pytest.raises(InvalidFile, match="has no small-images"):
        mnist_contents(tmp_path, files=FILES)


@pytest.fixture
def no_folder(monkeypatch):
    monkeypatch.delenv("EQLEARN_DATA", raising=False)


def fails(names):
    raise OSError("no route to host")


@pytest.mark.usefixtures("no_folder")
def test_the_next_source_serves_when_one_fails_or_lies(tmp_path):
    sources = {"down": fails, "lies": lambda names: {"small-images": GOOD[:-1]},
               "works": lambda names: {"small-images": GOOD}}  # fmt: skip

    contents = mnist_contents(cache=tmp_path, fetchers=sources, files=FILES)

    assert contents == {"small-images": GOOD}


@pytest.mark.usefixtures("no_folder")
def test_what_was_fetched_is_not_fetched_again(tmp_path):
    mnist_contents(cache=tmp_path, fetchers={"works": lambda names: {"small-images": GOOD}}, files=FILES)

    assert mnist_contents(cache=tmp_path, fetchers={"down": fails}, files=FILES) == {"small-images": GOOD}


@pytest.mark.usefixtures("no_folder")
def test_a_half_written_file_of_the_cache_is_removed_and_explained(tmp_path):
    path = tmp_path / "small-images.gz"
    path.write_bytes(packed(GOOD)[:20])

    with pytest.raises(InvalidFile, match=r"can't be had from anywhere.*no route to host.*--data-dir"):
        mnist_contents(cache=tmp_path, fetchers={"down": fails}, files=FILES)
    assert not path.exists()


def test_four_files_are_known_by_their_sum():
    assert len(SHA256) == 4
    assert all(len(digest) == 64 for digest in SHA256.values())


def test_the_embedded_digits_need_no_file():
    digits = load_digits("digits")

    assert digits.side == 8
    assert len(digits.train) == 1437
    assert len(digits.test) == 360
    assert digits.train.images.dtype == torch.uint8
    assert set(digits.test.labels.tolist()) == set(range(10))


def test_an_unknown_set_is_named():
    with pytest.raises(UnknownName, match="'mnits'"):
        load_digits("mnits")
