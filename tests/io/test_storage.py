"""What is saved comes back bit by bit; what was not saved by us is refused, and runs nothing."""

import io
import json
import math
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eqlearn.errors import InvalidArgument, InvalidFile, WrongType
from eqlearn.io import checksummed as checksummed
from eqlearn.io import storage
from eqlearn.io.checksummed import read_checksummed, write_json, write_tensors
from eqlearn.io.storage import load, save
from eqlearn.nn.eql import EQL
from eqlearn.nn.primitives import PRIMITIVES, Primitive, register
from eqlearn.symbolic.equation import Equation

EQUATION = Equation.parse("2.5*x**2 + sin(2*pi*`mass of a`) - 1/3", ["x", "mass of a"])
ARCHITECTURES = {
    "single": {},
    "population": {"members": 3},
    "gated": {"gates": True, "members": 2},
    "wide": {"out_features": 4, "skip": True, "bias": True},
    "layers": {"primitives": ["one id*2 sin", "mul div*2 id"], "gates": True, "skip": True},
    "deep": {"primitives": "id mul", "hidden_layers": 5, "members": 1},
}
shared_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


class Touch:
    """Leaves a mark on the disk if it is ever unpickled."""

    def __init__(self, path) -> None:
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def network(name: str = "gated") -> EQL:
    net = EQL(2, seed=0, **ARCHITECTURES[name])
    generator = torch.Generator().manual_seed(0)
    for linear in net.linears:
        linear.keep_(torch.rand(linear.mask.shape, generator=generator) < 0.6)
    return net


def parts(net: EQL, folder) -> tuple[dict, dict]:
    save(net, folder / "parts")
    return read_checksummed(folder / "parts")


@dataclass(repr=False)
class Saved:
    """The bytes of a saved network and of a saved equation, and a file to put altered ones in."""

    network: bytes
    equation: bytes
    file: Path


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    save(network(), folder / "network")
    save(EQUATION, folder / "equation")
    return Saved((folder / "network").read_bytes(), (folder / "equation").read_bytes(), folder / "altered")


# What comes back


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_a_network_comes_back_bit_by_bit(name, dtype, tmp_path):
    net = network(name).to(dtype)

    save(net, tmp_path / "net")
    loaded = load(tmp_path / "net")

    assert repr(loaded) == repr(net)
    assert loaded.state_dict().keys() == net.state_dict().keys()
    assert all(
        torch.equal(a, b)
        for a, b in zip(loaded.state_dict().values(), net.state_dict().values(), strict=True)
    )
    assert all(a.dtype == b.dtype for a, b in zip(loaded.parameters(), net.parameters(), strict=True))


def test_a_loaded_population_goes_on_with_the_same_noise(tmp_path):
    net, x = network("gated"), torch.linspace(-1, 1, 8).reshape(4, 2)
    net(x)

    save(net, tmp_path / "net")

    assert torch.equal(load(tmp_path / "net")(x), net(x))


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_comes_back(training, tmp_path):
    save(network().train(training), tmp_path / "net")

    assert load(tmp_path / "net").training is training


def test_a_member_that_diverged_comes_back_as_it_was(tmp_path):
    net = network("population")
    with torch.no_grad():
        net.readout.raw[1] = math.nan
        net.readout.raw[2, 0, 0] = math.inf

    save(net, tmp_path / "net")

    torch.testing.assert_close(
        load(tmp_path / "net").readout.raw, net.readout.raw, equal_nan=True, rtol=0, atol=0
    )


def test_a_network_with_a_custom_primitive_comes_back_if_it_is_registered(tmp_path):
    register(Primitive("softplus", 1, lambda m, g: m.log(1 + m.exp(g))))
    try:
        net = EQL(1, primitives="id softplus", seed=0)
        save(net, tmp_path / "net")

        assert torch.equal(load(tmp_path / "net")(torch.ones(3, 1)), net(torch.ones(3, 1)))
    finally:
        del PRIMITIVES["softplus"]
    with pytest.raises(InvalidFile, match="softplus"):
        load(tmp_path / "net")


def test_a_primitive_that_changed_its_meaning_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setitem(PRIMITIVES, "wave", Primitive("wave", 1, lambda m, g: m.sin(g)))
    save(EQL(1, primitives="id wave", seed=0), tmp_path / "net")
    monkeypatch.setitem(PRIMITIVES, "wave", Primitive("wave", 1, lambda m, g: m.sin(3 * g)))

    with pytest.raises(InvalidFile, match="another function"):
        load(tmp_path / "net")


def test_an_equation_comes_back(tmp_path):
    save(EQUATION, tmp_path / "equation.json")

    assert load(tmp_path / "equation.json") == EQUATION


def test_an_equation_file_is_json_that_anyone_can_read(tmp_path):
    save(EQUATION, tmp_path / "equation.json")

    plain = json.loads((tmp_path / "equation.json").read_text())

    assert plain["variables"] == ["x", "mass of a"]


@given(
    st.lists(
        st.text(min_size=1, max_size=8).filter(lambda t: t.strip() == t and t.isprintable()),
        min_size=1,
        max_size=3,
        unique=True,
    )
)
@settings(max_examples=30)
def test_any_variable_names_come_back(tmp_path_factory, names):
    file = tmp_path_factory.getbasetemp() / "names.json"
    equation = Equation.parse("1.5", names)

    save(equation, file)

    assert load(file) == equation


def test_a_network_is_a_safetensors_file(tmp_path):
    from safetensors.torch import load_file

    save(network(), tmp_path / "net.safetensors")

    assert load_file(tmp_path / "net.safetensors").keys() == network().state_dict().keys()


def test_loading_leaves_the_global_generator_alone(saved):
    saved.file.write_bytes(saved.network)
    before = torch.get_rng_state()

    load(saved.file)

    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("thing", [network(), EQUATION], ids=["network", "equation"])
def test_saving_the_same_twice_gives_the_same_bytes(thing, tmp_path):
    save(thing, tmp_path / "a")
    save(thing, tmp_path / "b")

    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_only_networks_and_equations_are_saved(tmp_path, unchecked_types):
    with pytest.raises(WrongType, match="Linear"):
        save(torch.nn.Linear(1, 1), tmp_path / "net")
    assert not list(tmp_path.iterdir())


def test_an_unregistered_primitive_is_not_saved(tmp_path):
    net = EQL(1, primitives=[Primitive("mine", 1, lambda m, g: g)], seed=0)

    with pytest.raises(InvalidArgument, match="register"):
        save(net, tmp_path / "net")
    assert not list(tmp_path.iterdir())


def test_a_process_killed_while_saving_leaves_a_file_that_loads(tmp_path):
    code = (
        "import sys, torch\nfrom eqlearn.nn.eql import EQL\nfrom eqlearn.io.storage import save\n"
        "net = EQL(2, members=200, seed=0)\nwhile True: save(net, sys.argv[1])"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "net")]) as process:
        while not (tmp_path / "net").exists():
            time.sleep(0.01)
        time.sleep(0.1)
        process.send_signal(signal.SIGKILL)

    assert load(tmp_path / "net").members == 200


# What is refused


@given(st.sampled_from(["network", "equation"]), st.data())
@settings(shared_folder, max_examples=300)
def test_a_changed_byte_is_noticed(saved, kind, data):
    content = bytearray(getattr(saved, kind))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    saved.file.write_bytes(content)

    with pytest.raises(InvalidFile):
        load(saved.file)


@given(st.sampled_from(["network", "equation"]), st.data())
@settings(shared_folder, max_examples=200)
def test_a_truncated_file_is_noticed(saved, kind, data):
    saved.file.write_bytes(getattr(saved, kind)[: data.draw(st.integers(0, len(getattr(saved, kind)) - 1))])

    with pytest.raises(InvalidFile):
        load(saved.file)


@given(st.sampled_from(["network", "equation"]), st.binary(min_size=1, max_size=64))
@settings(shared_folder, max_examples=50)
def test_a_longer_file_is_noticed(saved, kind, more):
    saved.file.write_bytes(getattr(saved, kind) + more)

    with pytest.raises(InvalidFile):
        load(saved.file)


@given(st.one_of(st.binary(max_size=200), st.binary(max_size=200).map(lambda b: b"{" + b), st.just(b"")))
@settings(shared_folder, max_examples=200)
def test_bytes_that_are_not_ours_are_refused(saved, content):
    saved.file.write_bytes(content)

    with pytest.raises(InvalidFile):
        load(saved.file)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.text(max_size=8), json_values, max_size=4))
@settings(shared_folder)
def test_any_other_json_with_a_seal_is_refused(saved, plain):
    write_json(saved.file, plain)

    with pytest.raises(InvalidFile):
        load(saved.file)


@given(st.data())
@settings(shared_folder, max_examples=150)
def test_a_network_described_otherwise_is_refused(saved, data):
    saved.file.write_bytes(saved.network)
    plain, tensors = read_checksummed(saved.file)
    name = data.draw(st.sampled_from([n for n in plain if n != "training"]))
    value = data.draw(json_values.filter(lambda v: (type(v), v) != (type(plain[name]), plain[name])))
    write_tensors(saved.file, {**plain, name: value}, tensors)

    with pytest.raises(InvalidFile):
        load(saved.file)


@given(st.data())
@settings(shared_folder)
def test_an_equation_described_otherwise_runs_into_no_other_error(saved, unchecked_types, data):
    plain = EQUATION.to_json()
    name = data.draw(st.sampled_from(list(plain)))
    write_json(saved.file, {**plain, name: data.draw(json_values)})

    try:
        loaded = load(saved.file)
    except InvalidFile:
        return
    assert isinstance(loaded, Equation)


def test_a_pickle_is_refused_and_not_run(tmp_path):
    (tmp_path / "evil").write_bytes(pickle.dumps(Touch(tmp_path / "mark")))

    with pytest.raises(InvalidFile):
        load(tmp_path / "evil")
    assert not (tmp_path / "mark").exists()


def test_a_torch_file_is_refused_and_not_run(tmp_path):
    buffer = io.BytesIO()
    torch.save(Touch(tmp_path / "mark"), buffer)
    (tmp_path / "evil").write_bytes(buffer.getvalue())

    with pytest.raises(InvalidFile):
        load(tmp_path / "evil")
    assert not (tmp_path / "mark").exists()


def test_a_pickle_among_the_tensors_is_refused_and_not_run(tmp_path):
    plain, tensors = parts(network(), tmp_path)
    evil = torch.frombuffer(bytearray(pickle.dumps(Touch(tmp_path / "mark"))), dtype=torch.uint8)
    write_tensors(tmp_path / "evil", plain, {**tensors, "readout.extra": evil})

    with pytest.raises(InvalidFile, match=r"readout\.extra"):
        load(tmp_path / "evil")
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    "code",
    [
        "__import__('os').system('touch {mark}')",
        "open('{mark}', 'w')",
        "x.__class__.__mro__",
        "(lambda: 1)()",
        "eval('1')",
        "x; import os",
        "9**9**9**9",
        "(" * 10_000 + "x" + ")" * 10_000,
    ],
)
def test_code_in_a_formula_is_refused_and_not_run(code, tmp_path):
    text = code.replace("{mark}", str(tmp_path / "mark"))
    write_json(tmp_path / "evil", {**EQUATION.to_json(), "expression": text})

    with pytest.raises(InvalidFile):
        load(tmp_path / "evil")
    assert not (tmp_path / "mark").exists()


def test_code_in_the_sets_is_refused_and_not_run(tmp_path):
    plain, tensors = parts(network("single"), tmp_path)
    evil = f"id __import__('os').system('touch\t{tmp_path}/mark')"
    write_tensors(tmp_path / "evil", {**plain, "layers": [evil, evil]}, tensors)

    with pytest.raises(InvalidFile):
        load(tmp_path / "evil")
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"in_features": 10**12},
        {"out_features": 10**12},
        {"members": 10**12},
        {"members": 0},
        {"members": -1},
        {"layers": ["id*999999"] * 2},
        {"layers": ["one*999999 id"] * 2},
        {"layers": ["id " * 10_000] * 2},
        {"layers": ["id"] * 10_000},
        {"layers": []},
        {"layers": ["one", "one"]},
        {"layers": [""]},
        {"layers": [["id"]]},
        {"layers": ["id sine"]},
        {"in_features": True},
        {"in_features": 2.0},
        {"skip": 1},
        {"values": {}},
        {"values": {"id": "x"}},
        {"version": 2},
        {"version": True},
        {"version": None},
        {"format": "eqlearn-other"},
        {"format": None},
    ],
    ids=lambda change: str(change)[:40],
)
def test_a_crafted_description_is_refused_before_anything_is_built(change, tmp_path, monkeypatch):
    plain, tensors = parts(network("population"), tmp_path)
    write_tensors(tmp_path / "evil", {**plain, **change}, tensors)
    monkeypatch.setattr(storage, "EQL", lambda *a, **o: pytest.fail("a network was built"))

    with pytest.raises(InvalidFile):
        load(tmp_path / "evil")


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("readout.raw", torch.zeros(3, 1, 17)),
        ("readout.raw", torch.zeros(3, 1, 18, dtype=torch.int64)),
        ("readout.mask", torch.zeros(3, 1, 18)),
        ("hidden.0.linear.raw", torch.zeros(3, 18, 2, dtype=torch.float64)),
        ("readout.gate.step", torch.zeros((), dtype=torch.int64)),
    ],
)
def test_tensors_that_do_not_fit_are_refused(name, tensor, tmp_path):
    plain, tensors = parts(network("population"), tmp_path)
    write_tensors(tmp_path / "evil", plain, {**tensors, name: tensor})

    with pytest.raises(InvalidFile):
        load(tmp_path / "evil")


def test_huge_shapes_of_empty_tensors_are_refused_before_anything_is_built(tmp_path, monkeypatch):
    plain, tensors = parts(network("population"), tmp_path)
    empty = {
        name: t.new_empty((0, t.shape[1], 10**12 if "hidden.0" in name else 18))
        for name, t in tensors.items()
    }
    write_tensors(tmp_path / "evil", {**plain, "members": 0, "in_features": 10**12}, empty)
    monkeypatch.setattr(storage, "EQL", lambda *a, **o: pytest.fail("a network was built"))

    with pytest.raises(InvalidFile, match="shape"):
        load(tmp_path / "evil")


@pytest.mark.parametrize("name", ["readout.raw", "readout.mask", "hidden.1.linear.raw"])
def test_a_missing_tensor_is_refused(name, tmp_path):
    plain, tensors = parts(network("population"), tmp_path)
    del tensors[name]
    write_tensors(tmp_path / "evil", plain, tensors)

    with pytest.raises(InvalidFile):
        load(tmp_path / "evil")


def test_a_file_too_large_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(checksummed, "LARGEST_FILE", 1000)

    with pytest.raises(InvalidArgument, match="bytes"):
        save(network(), tmp_path / "net")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs a file without an end")
def test_a_file_without_an_end_is_refused():
    with pytest.raises(InvalidFile):
        load("/dev/zero")


def test_a_missing_file_is_reported_as_python_does(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere")


def test_the_message_names_the_file(tmp_path):
    (tmp_path / "weights.pt").write_bytes(b"PK\x03\x04")

    with pytest.raises(InvalidFile, match=r"weights\.pt"):
        load(tmp_path / "weights.pt")


def test_a_network_with_gates_in_some_layers_is_not_saved(tmp_path):
    net = EQL(2, 1, "id mul", gates=True, seed=0)
    net.readout.gate = None

    with pytest.raises(InvalidArgument, match="call `settle_`"):
        save(net, tmp_path / "net.safetensors")
    assert not list(tmp_path.iterdir())
