import json
import os
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

import eqlearn
from eqlearn.errors import InvalidArgument, InvalidFile
from eqlearn.io.checksummed import read_checksummed, write_json, write_tensors
from eqlearn.nn.eql import EQL
from eqlearn.runs.folder import RunFolder
from eqlearn.runs.session import rebuild_page
from made_runs import make_record

FILES = {
    "run.json", "equation.json", "equations.csv", "network.safetensors", "sample.safetensors", "report.html"
}  # fmt: skip


def test_a_run_leaves_its_files_and_nothing_half_written(write_run, record):
    folder = write_run(record)

    names = {p.name for p in folder.path.iterdir() if p.name != ".lock"}
    assert names == FILES


def test_a_run_has_not_ended_before_all_its_files_are_there(write_run, record, monkeypatch):
    folder = write_run(record)
    folder.write_json("run.json", {"status": "running"})

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("eqlearn.runs.folder.save", stopped)
    with pytest.raises(KeyboardInterrupt):
        folder.write_results(record, folder.read_sample(record))

    assert folder.read_status()["status"] == "running"


def test_what_was_written_is_read_back(write_run, record):
    folder = write_run(record)

    assert folder.read().to_json() == record.to_json()


def test_numbers_that_are_not_finite_come_back(write_run, record):
    odd = replace(record.front[0], validation_error=float("inf"), extrapolation_error=float("nan"))
    folder = write_run(replace(record, front=(odd, *record.front[1:])))

    back = folder.read().front[0]

    assert back.validation_error == float("inf")
    assert np.isnan(back.extrapolation_error)


def test_the_files_can_be_loaded_by_the_library(write_run, record):
    folder = write_run(record)

    assert eqlearn.load(folder.path / "equation.json") == record.best.equation
    assert isinstance(eqlearn.load(folder.path / "network.safetensors"), EQL)


def test_every_target_has_its_equation(write_run):
    folder = write_run(make_record(targets=("u", "v")))

    assert eqlearn.load(folder.path / "equation-2.json").variables == ("a", "b")


def test_the_front_is_a_table_with_all_digits(write_run):
    import pandas as pd

    record = make_record(front=("2.0", "1.2345678901234567*{0}"), pick=1)

    table = pd.read_csv(write_run(record).path / "equations.csv")

    assert table["equation"].tolist() == ["2.0", "1.2345678901234567*a"]
    assert table["pick"].tolist() == [0, 1]


def test_the_page_can_be_made_anew_from_the_folder(write_run, record):
    folder = write_run(record)
    page = folder.path / "report.html"
    before = page.read_text()
    page.unlink()

    rebuild_page(folder)

    assert page.read_text() == before


# --- the lock --------------------------------------------------------------------------------------------


def test_two_runs_never_write_into_one_folder(tmp_path):
    folder = RunFolder(tmp_path / "run")

    with folder.locked(), pytest.raises(InvalidArgument, match="another process is at work"):
        RunFolder(tmp_path / "run").locked().__enter__()


def test_the_lock_of_a_process_that_died_is_free(tmp_path):
    code = (
        "import os, sys; from eqlearn.runs.folder import RunFolder\n"
        "RunFolder(sys.argv[1]).locked().__enter__(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "run")], check=False)
    assert (tmp_path / "run" / ".lock").exists()

    with RunFolder(tmp_path / "run").locked():
        pass


def test_remnants_of_a_killed_process_are_swept_up(tmp_path):
    (tmp_path / "rounds").mkdir()
    remnants = [tmp_path / ".run.json.0123.tmp", tmp_path / "rounds" / ".00000.safetensors.0123.tmp"]
    for remnant in remnants:
        remnant.write_text("half")

    with RunFolder(tmp_path).locked():
        assert not any(remnant.exists() for remnant in remnants)


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("")

    with pytest.raises(InvalidArgument, match=r"holds other files, 'thesis\.tex'"):
        RunFolder(tmp_path).locked().__enter__()


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "run").write_text("")

    with pytest.raises(InvalidArgument, match="is a file"):
        RunFolder(tmp_path / "run").locked().__enter__()


def test_new_folders_are_numbered(tmp_path):
    names = [RunFolder.numbered(tmp_path / "runs", "kepler").path.name for _ in range(3)]

    assert names == ["kepler", "kepler-2", "kepler-3"]


# --- folders from elsewhere ------------------------------------------------------------------------------


def rewritten(folder, change):
    """The folder with a run.json that was changed and checksummed anew."""
    plain = read_checksummed(folder.path / "run.json")[0]
    change(plain)
    write_json(folder.path / "run.json", plain)
    return folder


@pytest.mark.parametrize(
    "change",
    [
        lambda run: run.update(format="other"),
        lambda run: run.update(version=2),
        lambda run: run.update(status="running"),
        lambda run: run.pop("front"),
        lambda run: run.update(front=[]),
        lambda run: run.update(front=7),
        lambda run: run.update(pick=99),
        lambda run: run.update(pick=-1),
        lambda run: run.update(inputs="ab"),
        lambda run: run.update(inputs=["a", "a"]),
        lambda run: run.update(inputs=[]),
        lambda run: run.update(targets=["y", "z"]),
        lambda run: run.update(noise=[]),
        lambda run: run.update(history=[[1]]),
        lambda run: run.update(history="x"),
        lambda run: run.update(failures=[1]),
        lambda run: run["front"][2]["outputs"][0].update(expression="__import__('os').system('touch owned')"),
        lambda run: run["front"][2]["outputs"][0].update(expression="().__class__.__bases__"),
        lambda run: run["front"][2]["outputs"][0].update(expression="9**9**9**9"),
        lambda run: run["front"][2]["outputs"][0].update(expression="(" * 5000),
        lambda run: run["front"][2]["outputs"][0].update(constants=[["a", {}]]),
        lambda run: run["front"][0].update(training_error=[1]),
        lambda run: run["front"][0].update(training_error=True),
    ],
)
def test_a_crafted_run_is_refused_in_one_sentence(write_run, record, change, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = rewritten(write_run(record), change)

    with pytest.raises(InvalidFile) as refusal:
        folder.read()

    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize("name", ["run.json", "sample.safetensors", "network.safetensors"])
def test_every_changed_byte_is_seen(write_run, record, name):
    folder = write_run(record)
    whole = (folder.path / name).read_bytes()

    for place in range(0, len(whole), len(whole) // 12):
        changed = bytearray(whole)
        changed[place] ^= 1
        (folder.path / name).write_bytes(bytes(changed))
        with pytest.raises(InvalidFile):
            rebuild_page(folder)


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("owned",)


@pytest.mark.parametrize("name", ["run.json", "sample.safetensors", "network.safetensors", "equation.json"])
def test_a_pickle_is_never_opened(write_run, record, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = write_run(record)
    (folder.path / name).write_bytes(pickle.dumps(Bomb()))

    if name != "equation.json":  # which is for users, and read by no command
        with pytest.raises(InvalidFile):
            rebuild_page(folder)

    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    "tensors",
    [
        {"X": torch.zeros(3, 2)},
        {"X": torch.zeros(3, 1), "y": torch.zeros(3, 1), "part": torch.zeros(3), "ranges": torch.zeros(2, 3)},
        {
            "X": torch.zeros(3, 2),
            "y": torch.zeros(3, 1),
            "part": torch.full((3,), 9, dtype=torch.uint8),
            "ranges": torch.zeros(2, 3),
        },
    ],
)
def test_a_sample_that_does_not_fit_is_refused(write_run, record, tensors):
    folder = write_run(record)
    write_tensors(folder.path / "sample.safetensors", {"format": "eqlearn-sample"}, tensors)

    with pytest.raises(InvalidFile):
        rebuild_page(folder)


def test_a_network_of_another_run_is_refused(write_run, record):
    folder = write_run(record)
    eqlearn.save(EQL(5, 1, "id", 1, seed=0), folder.path / "network.safetensors")

    with pytest.raises(InvalidFile, match="not the network of this run"):
        rebuild_page(folder)


@pytest.mark.parametrize("name", ["report.html", ".lock"])
def test_nothing_is_written_through_a_link(write_run, record, tmp_path, name):
    folder = write_run(record)
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (folder.path / name).unlink(missing_ok=True)
    (folder.path / name).symlink_to(precious)

    with pytest.raises(InvalidFile, match="link"), folder.locked():
        rebuild_page(folder)

    assert precious.read_text() == "mine"


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InvalidArgument, match="no run folder"):
        RunFolder(tmp_path / "none").read()


def test_a_folder_without_a_run_is_named(tmp_path):
    with pytest.raises(InvalidArgument, match=r"no run\.json"):
        RunFolder(tmp_path).read()


def test_json_is_plain_for_other_programs(write_run, record):
    text = (write_run(record).path / "run.json").read_text()

    json.loads(text, parse_constant=pytest.fail)  # NaN and infinity are not JSON
