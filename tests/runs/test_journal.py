import json

import numpy as np
import pytest
import safetensors.torch
import torch

from eqlearn.errors import InvalidFile
from eqlearn.io.checksummed import write_tensors
from eqlearn.nn.primitives import lookup
from eqlearn.runs.journal import FileJournal
from eqlearn.search.networks.fit import Fit
from eqlearn.search.networks.population import Population
from eqlearn.search.networks.structures import Structure
from eqlearn.search.step import StepResult


def make_fit(seed, skip=False):
    rng = np.random.default_rng(seed)
    layers = (tuple(map(lookup, ("id", "sin1", "sin1", "mul"))), tuple(map(lookup, ("one", "square", "div"))))
    structure = Structure(2, layers, 1, skip=skip)
    masks = [torch.as_tensor(rng.random(shape) < 0.4) for shape in structure.shapes()]
    masks[-1][0, 0] = True
    population = Population([structure], [masks])
    theta = torch.as_tensor(rng.normal(size=population.places.shape) * 10.0 ** rng.integers(-12, 9))
    return Fit(population, theta, float(rng.random()) / 3)


OUTCOME = StepResult(7, "sums", [make_fit(0), make_fit(1, skip=True)], 32, 1, {"every weight dropped": 2})


def test_a_round_comes_back_bit_for_bit(tmp_path):
    FileJournal(tmp_path).record(OUTCOME)

    back = FileJournal(tmp_path).recall(7)

    assert (back.number, back.started, back.exact, back.failures) == (7, 32, 1, {"every weight dropped": 2})
    for mine, theirs in zip(back.fits, OUTCOME.fits, strict=True):
        assert mine.loss == theirs.loss
        assert torch.equal(mine.theta, theirs.theta)
        assert mine.population.structures == theirs.population.structures
        assert all(map(torch.equal, mine.population.masks[0], theirs.population.masks[0]))


def test_the_networks_that_come_back_compute_the_same(tmp_path):
    x = torch.rand(2, 50, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    FileJournal(tmp_path).record(OUTCOME)

    back = FileJournal(tmp_path).recall(7)

    for mine, theirs in zip(back.fits, OUTCOME.fits, strict=True):
        left = mine.population.evaluate(mine.theta, x)
        right = theirs.population.evaluate(theirs.theta, x)
        assert torch.equal(left.nan_to_num(), right.nan_to_num())


@pytest.mark.parametrize("loss", [1e-300, 0.1 + 0.2, float("inf"), 5e-324])
def test_an_error_of_any_size_comes_back_exactly(tmp_path, loss):
    fit = OUTCOME.fits[0]
    FileJournal(tmp_path).record(StepResult(0, "linear", [Fit(fit.population, fit.theta, loss)], 1, 0))

    assert FileJournal(tmp_path).recall(0).fits[0].loss == loss


def test_a_round_that_found_nothing_is_remembered(tmp_path):
    FileJournal(tmp_path / "rounds").record(
        StepResult(3, "networks", [], 16, 0, {"not finite on the data": 16})
    )

    assert FileJournal(tmp_path / "rounds").recall(3).failures == {"not finite on the data": 16}


def test_a_round_that_did_not_finish_is_not_known(tmp_path):
    assert FileJournal(tmp_path).recall(0) is None


def test_every_cut_of_a_file_is_refused(tmp_path):
    journal = FileJournal(tmp_path)
    journal.record(OUTCOME)
    whole = journal.path(7).read_bytes()

    for length in range(0, len(whole), len(whole) // 20):
        journal.path(7).write_bytes(whole[:length])
        with pytest.raises(InvalidFile):
            journal.recall(7)


def tampered(tmp_path, change):
    """A round with a proper seal whose content was changed."""
    journal = FileJournal(tmp_path)
    journal.record(OUTCOME)
    data = journal.path(7).read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    plain, tensors = json.loads(header["__metadata__"]["eqlearn"]), safetensors.torch.load(data)
    change(plain, tensors)
    write_tensors(journal.path(7), plain, tensors)
    return journal


@pytest.mark.parametrize(
    "change",
    [
        lambda plain, tensors: plain.update(format="other"),
        lambda plain, tensors: plain.update(version=99),
        lambda plain, tensors: plain.update(number=8),
        lambda plain, tensors: plain.pop("failures"),
        lambda plain, tensors: plain.update(failures=[1]),
        lambda plain, tensors: plain.update(structures=3),
        lambda plain, tensors: plain["structures"][0].update(layers=["id sin1*999999 mul", "one square div"]),
        lambda plain, tensors: plain["structures"][0].update(
            layers=["id sin1*2 mul", "one*999999 square div"]
        ),
        lambda plain, tensors: plain["structures"][0].update(layers=["id __import__ mul", "square"]),
        lambda plain, tensors: plain["structures"][0].update(in_features=10**9),
        lambda plain, tensors: plain["structures"][0].update(in_features="2; import os"),
        lambda plain, tensors: tensors.update({"0.theta": torch.zeros(1, 2, dtype=torch.float64)}),
        lambda plain, tensors: tensors.update({"0.theta": tensors["0.theta"].float()}),
        lambda plain, tensors: tensors.update({"0.mask.1": tensors["0.mask.1"].double()}),
        lambda plain, tensors: tensors.pop("1.loss"),
    ],
)
def test_a_crafted_round_is_refused(tmp_path, change):
    journal = tampered(tmp_path, change)

    with pytest.raises(InvalidFile, match="delete it"):
        journal.recall(7)
