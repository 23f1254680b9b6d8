"""A law behind encoders by one call: small searches from end to end, what ends them, what they refuse."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
import torch
from torch import nn
from torch.utils.data import DataLoader

from eqlearn.errors import EqlearnError, InvalidArgument, InvalidFile, WrongType
from eqlearn.latent import stages
from eqlearn.latent.discover import discover_latent
from eqlearn.latent.found import load_latent
from eqlearn.latent.settings import LatentSettings
from eqlearn.latent.warm_start import warm_start

SMALL = LatentSettings(
    warm_steps=300, max_starts=2, joint_steps=40, refine_steps=200, structures=40, kept=12, shortlist=3,
    serving_starts=4, batch=64, growth=1, front_seconds=1.0, compared=300,
)  # fmt: skip
TINY = LatentSettings(
    warm_steps=40, max_starts=1, joint_steps=10, refine_steps=20, shortlist=2, structures=12, kept=6,
    serving_starts=2, batch=32, growth=0, front_seconds=1.0, compared=100, explained=-10.0,
)  # fmt: skip
ROWS = 400


def spring(rows=ROWS, seed=0):
    """A picture of 6 pixels whose brightness grows with k, bent; F = -k*x."""
    draw = torch.Generator().manual_seed(seed)
    k, x = 0.5 + 1.5 * torch.rand(rows, generator=draw), 2 * torch.rand(rows, generator=draw) - 1
    pixels = torch.tanh(k[:, None] * torch.linspace(0.3, 1.2, 6)) + 0.001 * torch.randn(
        rows, 6, generator=draw
    )
    return k, pixels, x, -k * x


def encoder(seed=0, outputs=1):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, outputs))


K, PIXELS, X, F = spring()


def search(**options):
    given = {
        "encoders": {"k": encoder()}, "inputs": {"k": PIXELS}, "columns": {"x": X}, "y": F,
        "primitives": "square exp mul", "settings": SMALL, "seconds": 60.0,
    }  # fmt: skip
    return discover_latent(**{**given, **options})


@pytest.fixture(scope="module")
def found():
    return search()


@pytest.fixture(scope="module")
def seen():
    """What `progress` was told."""
    told = []
    search(settings=TINY, progress=told.append)
    return told


# --- what is found ----------------------------------------------------------------------------------------


def test_the_spring_is_found(found):
    k, x = sp.symbols("k x")
    law = sp.sympify(str(found.equation), {"k": k, "x": x})

    assert sp.expand(law.diff(k) / x).is_number  # linear in k, times x, and nothing else but a shift of k
    assert sp.expand((law - law.subs(k, 0)) - law.diff(k) * k) == 0
    assert found.error < 0.01
    assert found.held_error < 0.02
    assert abs(np.corrcoef(found.latent("k", PIXELS), K)[0, 1]) > 0.99
    assert 1 <= found.agreement[0] <= found.agreement[1]
    assert found.ended == "complete"


def test_the_model_gives_what_is_printed(found):
    values = found.model({"k": PIXELS}, {"x": X})
    z = found.latent("k", PIXELS)

    printed = found.equation({"k": z.numpy(), "x": X.double().numpy()})

    np.testing.assert_allclose(values.detach().numpy(), printed, rtol=0, atol=1e-9)
    assert values.dtype == torch.float64
    left = float((values.detach() - F).square().mean() / F.double().var())
    assert left == pytest.approx(found.error, rel=0.5)


def test_the_gauge_is_the_line_from_the_raw_output(found):
    raw = found.model.encoders.encoders[0](PIXELS).detach().double()[:, 0]
    z = found.latent("k", PIXELS)
    gauge = found.gauge["k"]

    assert abs(gauge.correlation) == pytest.approx(
        abs(float(torch.corrcoef(torch.stack([raw, z]))[0, 1])), abs=0.02
    )
    assert (
        float((gauge.parameter(raw) - z).square().mean() / z.var()) < 1.1 * (1 - gauge.correlation**2) + 0.02
    )


def test_the_front_is_a_front(found):
    sizes, errors = [c.complexity for c in found.front], [c.error for c in found.front]

    assert sizes == sorted(sizes)
    assert errors == sorted(errors, reverse=True)


def test_the_encoders_and_the_random_state_are_left_as_they_were():
    mine = encoder()
    before = {name: value.clone() for name, value in mine.state_dict().items()}
    state = torch.get_rng_state()

    first = search(encoders={"k": mine}, settings=TINY)
    again = search(encoders={"k": mine}, settings=TINY)

    assert all(torch.equal(before[name], value) for name, value in mine.state_dict().items())
    assert torch.equal(state, torch.get_rng_state())
    assert str(first) == str(again)  # to all digits that are printed
    assert first.error == again.error


def test_two_encoders_that_share_weights_and_two_targets_and_no_columns():
    _, other, *_ = spring(seed=5)
    k2 = spring(seed=5)[0]
    one = encoder()
    y = torch.stack([K + k2, K * k2], dim=1)

    law = search(
        encoders={"a": one, "b": one}, inputs={"a": PIXELS, "b": other}, columns=None, y=y, settings=TINY
    )

    assert len(law.equations) == 2
    assert law.targets == ("y1", "y2")
    assert law.model({"a": PIXELS, "b": other}).shape == (ROWS, 2)
    assert len(law.model.encoders.encoders) == 1


@pytest.mark.slow
def test_an_encoder_of_two_outputs_may_use_one_latent_or_two():
    one = search(encoders={"k": encoder(outputs=2)}, settings=TINY, latents=1)
    two = search(encoders={"k": encoder(outputs=2)}, settings=TINY, latents=2)

    assert [s.name for s in one.model.slots] == ["k"]
    assert [s.name for s in two.model.slots] == ["k_1", "k_2"]


# --- data -------------------------------------------------------------------------------------------------


def rows_as_dicts():
    return [{"k": PIXELS[i], "x": X[i], "y": F[i]} for i in range(ROWS)]


def test_data_may_be_a_loader():
    loader = DataLoader(rows_as_dicts(), batch_size=50, shuffle=True)

    assert "x" in search(inputs=None, columns=None, y=None, data=loader, settings=TINY).equation.variables


def test_data_may_be_a_list():
    batches = [{"k": PIXELS[i : i + 50], "x": X[i : i + 50], "y": F[i : i + 50]} for i in range(0, ROWS, 50)]

    assert "x" in search(inputs=None, columns=None, y=None, data=batches, settings=TINY).equation.variables


@pytest.mark.parametrize("batches", [1, 8])
def test_data_that_end_are_refused(batches):
    size = ROWS // batches
    ends = (
        {"k": PIXELS[i : i + size], "x": X[i : i + size], "y": F[i : i + size]} for i in range(0, ROWS, size)
    )

    with pytest.raises(InvalidArgument, match="iterated over again, such as a DataLoader or a list"):
        search(inputs=None, columns=None, y=None, data=ends, settings=TINY)


# --- progress, Ctrl-C, time, journal ----------------------------------------------------------------------


def test_progress_is_told_stages_in_order_with_the_best_law(seen):
    stages = [p.stage for p in seen]

    assert stages[0] == "warm start 1"
    assert any(p.stage == "comparison" and p.best and p.error < np.inf for p in seen)
    assert [p.seconds for p in seen] == sorted(p.seconds for p in seen)
    assert all(np.isnan(p.head_error) == p.stage.startswith("warm start") for p in seen)


def interrupted_at(stage):
    def told(progress):
        if progress.stage.startswith(stage):
            raise KeyboardInterrupt

    return told


def test_ctrl_c_before_the_first_start_is_trained_is_raised():
    with pytest.raises(KeyboardInterrupt):
        search(progress=interrupted_at("warm start 1"))


@pytest.mark.parametrize("stage", ["warm start 2", "comparison", "refinement"])
def test_ctrl_c_later_gives_the_best_so_far(stage, monkeypatch):
    monkeypatch.setattr("eqlearn.latent.stages.Run.on_record", told_always)

    try:
        law = search(progress=interrupted_at(stage), settings=replace(TINY, max_starts=2))
    except KeyboardInterrupt:
        pytest.fail("it was raised")

    assert law.ended == "interrupted"
    assert law.model({"k": PIXELS}, {"x": X}).shape == (ROWS,)


def test_ctrl_c_amid_the_comparison_gives_the_best_of_the_smallest_structures(monkeypatch):
    module = import_module("eqlearn.latent.comparison.compare")
    whole, calls = module.serve, []

    def once(*args, **options):
        calls.append(None)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return whole(*args, **options)

    monkeypatch.setattr(module, "serve", once)

    law = search(settings=TINY)

    assert law.ended == "interrupted"
    assert np.isfinite(law.error)


def test_a_search_that_had_to_hurry_says_so():
    assert search(settings=replace(TINY, warm_steps=50_000), seconds=4.0).ended == "out of time"


def told_always(run, record):
    """As in `Run`, but not only every half second."""
    run.tell(float(record.loss))


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [5.0, 10.0, 30.0])
@pytest.mark.parametrize("sleep", [0.0, 0.02])
def test_the_time_is_kept(seconds, sleep):
    class Slow(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = encoder()

        def forward(self, x):
            time.sleep(sleep)
            return self.inner(x)

    began = time.time()
    search(
        encoders={"k": Slow()}, seconds=seconds, settings=LatentSettings(), primitives="square exp mul sin"
    )

    assert time.time() - began <= 1.1 * seconds + 1


SEARCH = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
torch.set_num_threads(1)
from test_discover_latent import search
print(search(seconds=None, journal=sys.argv[2]))
"""


@pytest.mark.slow
def test_a_search_that_was_killed_goes_on_from_its_journal(tmp_path):
    def begun(journal):
        command = [sys.executable, "-c", SEARCH, str(Path(__file__).parent), str(tmp_path / journal)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))

    whole, _ = begun("whole").communicate(timeout=200)
    killed = begun("killed")
    while not list((tmp_path / "killed").glob("start-1-*")):  # in the middle of the second start
        assert killed.poll() is None
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()

    again, _ = begun("killed").communicate(timeout=200)

    assert whole.startswith("y = ")
    assert again == whole


def test_a_journal_of_another_search_is_refused(tmp_path):
    search(settings=TINY, journal=tmp_path)

    with pytest.raises(InvalidArgument, match="belongs to another search"):
        search(settings=TINY, journal=tmp_path, seed=1)


# --- storage ----------------------------------------------------------------------------------------------


@pytest.fixture
def folder(found, tmp_path):
    found.save(tmp_path)
    return tmp_path


def test_a_law_is_loaded_as_it_was_saved(found, folder):
    again = load_latent(folder, {"k": encoder(3)})

    assert str(again) == str(found)
    assert torch.equal(again.model({"k": PIXELS}, {"x": X}), found.model({"k": PIXELS}, {"x": X}))
    assert torch.equal(again.latent("k", PIXELS), found.latent("k", PIXELS))
    assert again.constants == found.constants
    assert again.gauge == found.gauge
    assert (again.agreement, again.error, again.ended) == (found.agreement, found.error, found.ended)
    assert [str(c) for c in again.front] == [str(c) for c in found.front]


def test_without_encoders_there_is_a_law_but_no_model(found, folder):
    again = load_latent(folder)

    assert str(again) == str(found)
    with pytest.raises(InvalidArgument, match="loaded without its encoders"):
        again.model({"k": PIXELS}, {"x": X})


@pytest.mark.parametrize(
    ("encoders", "said"),
    [
        ({"z": encoder()}, "must be for k, in this order"),
        ({"k": nn.Linear(6, 1)}, "not of the kind that was saved"),
        ({"k": encoder(), "l": encoder()}, "must be for k"),
    ],
)
def test_other_encoders_are_refused(folder, encoders, said):
    with pytest.raises(InvalidArgument, match=said):
        load_latent(folder, encoders)


@pytest.mark.parametrize("name", ["law.json", "model.safetensors"])
def test_a_damaged_file_is_refused(folder, name):
    path = folder / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)

    with pytest.raises(InvalidFile):
        load_latent(folder, {"k": encoder()})


def test_a_file_of_another_kind_is_refused(folder):
    plain = json.loads((folder / "law.json").read_text())
    assert plain

    (folder / "law.json").write_text("{}")

    with pytest.raises(InvalidFile):
        load_latent(folder)


def test_a_model_says_what_it_lacks(found):
    with pytest.raises(InvalidArgument, match="`inputs` lacks k"):
        found.model({"z": PIXELS}, {"x": X})
    with pytest.raises(InvalidArgument, match="`columns` lacks x"):
        found.model({"k": PIXELS})
    with pytest.raises(InvalidArgument, match="column 'x' holds 3 rows, the inputs hold 400"):
        found.model({"k": PIXELS}, {"x": X[:3]})
    with pytest.raises(InvalidArgument, match="there is no encoder 'z'"):
        found.latent("z", PIXELS)


def test_a_report_is_a_page(found, tmp_path):
    assert found.report(tmp_path).read_text().startswith("<!doctype html>")


# --- what is refused --------------------------------------------------------------------------------------


class Gives(nn.Module):
    """An encoder with a weight, which gives what it is told to."""

    def __init__(self, give):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(6, 1))
        self.give = give

    def forward(self, x):
        return self.give(x @ self.weight)


FROZEN = encoder().requires_grad_(False)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"encoders": {"k": Gives(lambda z: 0 * z + 1)}}, "encoder 'k' gives the same latent for all"),
        ({"encoders": {"k": Gives(lambda z: z / 0)}}, "encoder 'k' gives NaN or infinity"),
        ({"encoders": {"k": Gives(lambda z: z[:, 0])}}, "encoder 'k' gives shape .* it must give"),
        ({"encoders": {"k": Gives(lambda z: z.detach())}}, "without a gradient"),
        ({"encoders": {"k": Gives(lambda z: (z, z))}}, "it must give a tensor"),
        ({"encoders": {"k": nn.Linear(5, 1)}}, "encoder 'k' can't read"),
        ({"encoders": {"k": FROZEN}}, "without a gradient"),
        ({"encoders": {"k": FROZEN}, "reset": False}, "without a gradient"),
        ({"encoders": [encoder()]}, "`encoders` must be a dictionary"),
        ({"encoders": encoder()}, "`encoders` must be a dictionary"),
        ({"encoders": {}}, "`encoders` must be a dictionary"),
        ({"encoders": {"k": lambda x: x}}, "encoder 'k' must be an nn.Module"),
        ({"encoders": {"y": encoder()}, "inputs": {"y": PIXELS}}, "can't be named 'y'"),
        ({"encoders": {1: encoder()}, "inputs": {1: PIXELS}}, "must be a sequence of names"),
        ({"inputs": {"k": PIXELS, "z": PIXELS}}, "no encoder is named 'z'"),
        ({"inputs": {"z": PIXELS}}, "no encoder is named 'z'"),
        ({"inputs": {}}, "there is no 'k' among the inputs"),
        ({"inputs": PIXELS}, "`inputs` must be a dictionary"),
        ({"inputs": {"k": PIXELS[:-1]}}, "'k' holds 399 rows and `y` 400"),
        ({"inputs": {"k": PIXELS * float("nan")}}, "input 'k' holds NaN"),
        ({"inputs": {"k": ["a"] * ROWS}}, "input 'k' must be a tensor"),
        ({"columns": {"x": X[:-1]}}, "'x' holds 399 rows and `y` 400"),
        ({"columns": {"x": ["a"] * ROWS}}, "column 'x' must hold numbers"),
        ({"columns": {"x": X / 0}}, "column 'x' holds NaN or infinity"),
        ({"columns": {"k": X}}, "'?k'? names an encoder and a column"),
        ({"columns": {"x": X, "y": X}}, "can't be named 'y'"),
        ({"columns": X}, "`columns` must be a dictionary"),
        ({"y": F > 0}, "classes are out of scope"),
        ({"y": ["a", "b"] * (ROWS // 2)}, "classes are out of scope"),
        ({"y": np.array(["a", "b"] * (ROWS // 2))}, "classes are out of scope"),
        ({"y": F * float("inf")}, "`y` holds NaN or infinity"),
        ({"y": F[:, None, None]}, r"`y` must be \(rows,\) or \(rows, outputs\)"),
        ({"y": None}, "needs `inputs` and `y`"),
        ({"y": torch.ones(ROWS)}, "`y` is the same in all rows"),
        ({"inputs": {"k": PIXELS[:20]}, "columns": {"x": X[:20]}, "y": F[:20]}, "20 rows are too few"),
        ({"data": [{"k": PIXELS, "x": X, "y": F}]}, "not both"),
        ({"latents": 0}, "`latents` must be a whole number of at least 1, or 'auto', got 0"),
        ({"latents": "all"}, "`latents` must be a whole number"),
        ({"primitives": "mul nosuch"}, "nosuch"),
        ({"seconds": 0}, "`seconds`"),
        ({"seed": -1}, "`seed`"),
        ({"settings": {"warm_steps": 3}}, "`settings`"),
    ],
)  # fmt: skip
def test_what_can_not_be_searched_is_refused_in_a_sentence(options, said):
    with pytest.raises(EqlearnError, match=said) as caught:
        search(**{"settings": TINY, **options})

    assert "\n" not in str(caught.value)


def test_a_target_that_no_input_tells_is_refused():
    noise = torch.randn(ROWS, generator=torch.Generator().manual_seed(9))

    with pytest.raises(
        InvalidArgument, match=r"nothing to find: the warm start explains \d+ ?% of the spread"
    ):
        search(y=noise, settings=replace(TINY, explained=0.2))


@pytest.mark.slow
def test_starts_that_got_stuck_do_not_confirm_each_other(monkeypatch):
    began = []

    def stuck_twice(*args, settings, **options):
        start = warm_start(*args, settings=settings, **options)
        if settings.warm_steps > 4:  # fewer measure how long a step takes
            began.append(start)
        return replace(start, held_error=1.1) if len(began) <= 2 else start

    monkeypatch.setattr(stages, "warm_start", stuck_twice)
    law = search(settings=replace(TINY, explained=0.05, warm_steps=150, max_starts=2), seconds=None)

    assert len(began) > 2
    assert law.head_error < 0.9


def test_a_batch_that_is_no_dictionary_is_refused():
    with pytest.raises(WrongType, match="a batch must be a dictionary of tensors by name, got tuple"):
        search(inputs=None, columns=None, y=None, data=[(PIXELS, F)])


def test_a_pretrained_encoder_is_taken_as_it_is():
    mine = encoder()
    mine[0].requires_grad_(False)

    law = search(encoders={"k": mine}, reset=False, settings=TINY)

    trained = law.model.encoders.encoders[0]
    assert torch.equal(trained[0].weight, mine[0].weight)
    assert not torch.equal(trained[2].weight, mine[2].weight)
