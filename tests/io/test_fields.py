import mmap

import numpy as np
import pytest
from scipy.io import savemat

import made_fields as made
from eqlearn.cli import main
from eqlearn.errors import InvalidArgument, InvalidFile, UnknownName
from eqlearn.io.fields import read_field

U = np.sin(made.X[:, None] - made.T)


def test_arrays_are_read_whatever_the_order_of_their_dimensions(tmp_path):
    np.savez(tmp_path / "wave.npz", u=U.T, x=made.X, t=made.T)
    savemat(tmp_path / "wave.mat", {"u": U, "x": made.X[None], "t": made.T[:, None]})

    for name in ("wave.npz", "wave.mat"):
        field = read_field(tmp_path / name, ["u"], "t", ["x"])
        assert np.array_equal(field.experiments[0]["u"], U)


def test_arrays_of_a_folder_stay_in_their_files(tmp_path):
    for name, values in {"u": U, "x": made.X, "t": made.T}.items():
        np.save(tmp_path / f"{name}.npy", values)

    field = read_field(tmp_path, ["u"], "t", ["x"])

    base = field.experiments[0]["u"]
    while type(base) is np.ndarray:
        base = base.base
    assert isinstance(base, (np.memmap, mmap.mmap))
    with pytest.raises(UnknownName, match="no array 'w'"):
        read_field(tmp_path, ["w"], "t", ["x"])


def test_a_long_table_becomes_a_grid_and_its_gaps_are_left_out(tmp_path):
    places, times = np.meshgrid(made.X, made.T, indexing="ij")
    rows = np.column_stack([times.ravel(), places.ravel(), U.ravel()])[1:]
    np.savetxt(tmp_path / "wave.csv", rows, delimiter=",", header="t,x,u", comments="")

    field = read_field(tmp_path / "wave.csv", ["u"], "t", ["x"])

    assert field.masked
    assert np.nanmax(np.abs(field.experiments[0]["u"] - U)) < 1e-12


def test_files_that_will_not_do_are_refused_in_a_sentence(tmp_path):
    np.savez(tmp_path / "wave.npz", u=U, x=made.X[:-1], t=made.T)
    (tmp_path / "broken.npz").write_bytes(b"nothing")
    scattered = np.random.default_rng(0).uniform(size=(50, 3))
    np.savetxt(tmp_path / "some.csv", scattered, delimiter=",", header="t,x,u", comments="")

    with pytest.raises(InvalidArgument, match="shape"):
        read_field(tmp_path / "wave.npz", ["u"], "t", ["x"])
    with pytest.raises(UnknownName, match="no array 'w'"):
        read_field(tmp_path / "wave.npz", ["w"], "t", ["x"])
    with pytest.raises(InvalidFile, match=r"it is no \.npz file"):
        read_field(tmp_path / "broken.npz", ["u"], "t", ["x"])
    (tmp_path / "new.mat").write_bytes(b"\x89HDF and more")
    with pytest.raises(InvalidFile, match="HDF5"):
        read_field(tmp_path / "new.mat", ["u"], "t", ["x"])
    with pytest.raises(InvalidFile, match="no file"):
        read_field(tmp_path / "none.mat", ["u"], "t", ["x"])
    with pytest.raises(InvalidArgument, match="50 samples can't tell a field"):
        read_field(tmp_path / "some.csv", ["u"], "t", ["x"])


def test_the_command_writes_equations_and_a_page_with_pictures(tmp_path, capsys):
    u = made.solved(lambda u: [0.3 * made.d(u, 2)], made.start())[0]
    np.savez(tmp_path / "heat.npz", u=u, x=made.X, t=made.T)

    code = main(["pde", str(tmp_path / "heat.npz"), "--out", str(tmp_path / "run"), "--quiet"])

    assert code == 0
    assert capsys.readouterr().out == "u_t = 3*u_xx/10\n"
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == 3
    assert '"u_t"' in (tmp_path / "run" / "equations.json").read_text(encoding="utf-8")
    assert main(["pde", str(tmp_path / "none.npz")]) == 2
