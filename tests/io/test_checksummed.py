"""Checksummed files: written whole or not at all, refused when anything in them is not as it should be."""

import os
import stat

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from eqlearn.errors import InvalidFile
from eqlearn.io import checksummed as checksummed
from eqlearn.io.checksummed import atomic_write, read_checksummed, write_json, write_tensors


def test_plain_data_come_back(tmp_path):
    plain = {"a": [1, 2.5, None], "b": {"c": "sha256"}}

    write_json(tmp_path / "file", plain)

    assert read_checksummed(tmp_path / "file") == (plain, {})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.bool])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_tensors_come_back(dtype, shape, tmp_path):
    tensor = (torch.rand(shape, generator=torch.Generator().manual_seed(0)) * 5).to(dtype)

    write_tensors(tmp_path / "file", {"a": 1}, {"t": tensor})
    plain, tensors = read_checksummed(tmp_path / "file")

    assert plain == {"a": 1}
    assert tensors["t"].dtype == dtype
    assert torch.equal(tensors["t"], tensor)


def test_tensors_that_share_memory_or_stride_come_back(tmp_path):
    whole = torch.arange(6.0).reshape(2, 3)

    write_tensors(tmp_path / "file", {}, {"a": whole, "b": whole[0], "c": whole.mT})

    assert torch.equal(read_checksummed(tmp_path / "file")[1]["c"], whole.mT)


@given(st.text(max_size=20))
def test_a_text_that_looks_like_a_seal_does_no_harm(tmp_path_factory, text):
    file = tmp_path_factory.getbasetemp() / "checksummed"
    plain = {"a": f'{text}"sha256": "{"0" * 64}"', "b": f'\\"sha256\\": \\"{"0" * 64}\\"{text}'}

    write_json(file, plain)
    assert read_checksummed(file)[0] == plain
    write_tensors(file, plain, {"t": torch.zeros(1)})
    assert read_checksummed(file)[0] == plain


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(step, tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"old")

    def fail(*args):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="disk is full"):
        atomic_write(tmp_path / "file", b"new")

    assert (tmp_path / "file").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_written_file_has_the_users_usual_permissions(tmp_path):
    (tmp_path / "usual").touch()

    atomic_write(tmp_path / "file", b"data")

    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == stat.S_IMODE(
        (tmp_path / "usual").stat().st_mode
    )


def test_a_link_is_replaced_so_that_a_folder_from_elsewhere_can_not_point_outside(tmp_path):
    (tmp_path / "target").write_bytes(b"mine")
    (tmp_path / "link").symlink_to(tmp_path / "target")

    atomic_write(tmp_path / "link", b"data")

    assert (tmp_path / "link").read_bytes() == b"data"
    assert (tmp_path / "target").read_bytes() == b"mine"


def test_a_name_of_full_length_can_be_written(tmp_path):
    atomic_write(tmp_path / ("n" * 250), b"data")

    assert (tmp_path / ("n" * 250)).read_bytes() == b"data"


SEAL = f'\\"sha256\\": \\"{"0" * 64}\\"'


def crafted(header: str, data: bytes = b"") -> bytes:
    text = header.encode()
    return checksummed._checksum(len(text).to_bytes(8, "little") + text + data, checksummed._INNER_SEAL)


@pytest.mark.parametrize(
    "tensor",
    [
        '{"dtype": "F32", "shape": [1000000000000], "data_offsets": [0, 4]}',
        '{"dtype": "F32", "shape": [4611686018427387904, 4], "data_offsets": [0, 4]}',
        '{"dtype": "F32", "shape": [1], "data_offsets": [0, 4000000000]}',
        '{"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}',
        '{"dtype": "PICKLE", "shape": [1], "data_offsets": [0, 4]}',
        '{"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}',
        "7",
    ],
)
def test_a_crafted_tensor_header_is_refused(tensor, tmp_path):
    head = f'{{"__metadata__": {{"eqlearn": "{{{SEAL}}}"}}, "t": {tensor}}}'
    (tmp_path / "evil").write_bytes(crafted(head, bytes(4)))

    with pytest.raises(InvalidFile):
        read_checksummed(tmp_path / "evil")


@pytest.mark.parametrize(
    "head",
    [
        f'{{"__metadata__": "{SEAL}"}}',
        f'{{"a": "{SEAL}"}}',
        f'{{"__metadata__": {{"eqlearn": "[{SEAL[:12]}]", "b": "{SEAL}"}}}}',
        f'{{"__metadata__": {{"eqlearn": "{"[" * 100_000}", "b": "{SEAL}"}}}}',
        f'{{"b": "{SEAL}", "x": {"[" * 100_000}',
        f'["b": "{SEAL}"]',
    ],
    ids=["no object", "no metadata", "a list", "deep inside", "deep", "broken"],
)
def test_a_crafted_header_is_refused(head, tmp_path):
    (tmp_path / "evil").write_bytes(crafted(head))

    with pytest.raises(InvalidFile):
        read_checksummed(tmp_path / "evil")


def test_deep_json_in_an_equation_is_refused(tmp_path):
    text = f'{{"sha256": "{"0" * 64}", "x": {"[" * 200_000}{"]" * 200_000}}}'
    (tmp_path / "evil").write_bytes(checksummed._checksum(text.encode(), checksummed._SEAL))

    with pytest.raises(InvalidFile, match="deep"):
        read_checksummed(tmp_path / "evil")


def test_a_mask_that_is_neither_true_nor_false_is_refused(tmp_path):
    head = f'{{"__metadata__": {{"eqlearn": "{{{SEAL}}}"}}, '
    head += '"mask": {"dtype": "BOOL", "shape": [4], "data_offsets": [0, 4]}}'
    (tmp_path / "evil").write_bytes(crafted(head, bytes([0, 1, 2, 1])))

    with pytest.raises(InvalidFile, match="neither true nor false"):
        read_checksummed(tmp_path / "evil")


def test_a_file_too_large_is_refused_unread(tmp_path):
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(2**40)  # sparse: takes no room on the disk

    with pytest.raises(InvalidFile, match="bytes"):
        read_checksummed(tmp_path / "huge")
