"""A search for equations of fields in a folder is taken up where it was killed."""

import json

import numpy as np
import pytest

from eqlearn import InvalidArgument
from eqlearn.cli import main
from eqlearn.fields import discover
from eqlearn.runs.fields import FOUND, LawJournal, search_fields
from eqlearn.runs.folder import REPORT, ROUNDS, RunFolder
from eqlearn.validation.fields import Field

X, T = np.linspace(0, 6, 60), np.linspace(0, 2, 50)
U = np.exp(-0.5 * T) * np.sin(X)[:, None] + 0.5 * np.exp(-2.0 * T) * np.cos(2 * X)[:, None]
V = np.exp(-T) * np.cos(X)[:, None] + 0.5 * np.exp(-4.0 * T) * np.sin(2 * X)[:, None]
FIELD = Field({"u": U, "v": V}, {"x": X, "t": T})


class Killed(Exception):
    pass


def test_a_killed_search_goes_on(tmp_path, monkeypatch):
    folder, record = RunFolder(tmp_path / "run"), LawJournal.record
    searched = []

    def dies(self, name, laws):
        record(self, name, laws)
        raise Killed

    monkeypatch.setattr(LawJournal, "record", dies)
    with pytest.raises(Killed):
        search_fields(folder, FIELD, form="weak", targets=["u", "v"])
    monkeypatch.setattr(LawJournal, "record", record)
    laws = discover._Task.laws
    monkeypatch.setattr(discover._Task, "laws", lambda self, name: searched.append(name) or laws(self, name))

    found = search_fields(folder, FIELD, form="weak", targets=["u", "v"], resume=True)

    assert searched == ["v"]
    assert [p.name for p in sorted((folder.path / ROUNDS).iterdir())] == ["u.json", "v.json"]
    assert found.equations[0].matches("0.5*u_xx", tolerance=1e-3)
    assert json.loads((folder.path / FOUND).read_text())["text"] == str(found)
    assert (folder.path / REPORT).exists()
    with pytest.raises(InvalidArgument, match="--resume"):
        search_fields(folder, FIELD, form="weak")
    with pytest.raises(InvalidArgument, match="other options"):
        search_fields(folder, FIELD, form="auto", targets=["u"], resume=True)


def test_several_experiments_in_a_file_have_a_hidden_parameter(tmp_path, capsys):
    rates = np.array([0.5, 1.0, 0.25, 0.7])
    u = np.exp(-rates[:, None, None] * T) * np.sin(X)[:, None] + 0.5 * np.exp(
        -4 * rates[:, None, None] * T
    ) * np.cos(2 * X[:, None])
    np.savez(tmp_path / "heat.npz", u=u, x=X, t=T)
    arguments = [
        "pde",
        str(tmp_path / "heat.npz"),
        "--latents",
        "1",
        "--out",
        str(tmp_path / "run"),
        "--json",
    ]

    assert main(arguments) == 0

    plain = json.loads(capsys.readouterr().out)
    assert plain["text"] == "u_t = u_xx*z"
    assert plain["latents"]["z"] == pytest.approx(rates.tolist(), rel=1e-2)
