"""Finished rounds on disk, from which a killed search resumes and ends with the same candidates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from eqlearn.errors import EqlearnError, InvalidFile
from eqlearn.io.checksummed import read_checksummed, write_tensors
from eqlearn.nn.primitives import format_set, parse_counts, parse_set
from eqlearn.search.networks.fit import Fit
from eqlearn.search.networks.population import Population
from eqlearn.search.networks.structures import Structure
from eqlearn.search.step import StepResult

FORMAT, VERSION = "eqlearn-round", 2


class FileJournal:
    """One file per round, written whole or not at all, with weights and errors to the bit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, number: int) -> Path:
        return self.folder / f"{number:05d}.safetensors"

    def recall(self, number: int) -> StepResult | None:
        """The result of a round, if it has finished."""
        path = self.path(number)
        if not path.exists():
            return None
        plain, tensors = read_checksummed(path)
        try:
            result = _result(plain, tensors)
        except (EqlearnError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise InvalidFile(
                f"{path} is not a round of a search ({error}); delete it to run it again"
            ) from error
        if result.number != number:
            raise InvalidFile(f"{path} holds round {result.number}; delete it to run round {number} again")
        return result

    def record(self, result: StepResult) -> None:
        """Saves a finished round."""
        self.folder.mkdir(parents=True, exist_ok=True)
        tensors: dict[str, Tensor] = {}
        for i, fit in enumerate(result.fits):
            tensors[f"{i}.theta"] = fit.theta
            tensors[f"{i}.loss"] = torch.tensor(fit.loss, dtype=torch.float64)
            for level, mask in enumerate(fit.population.masks[0]):
                tensors[f"{i}.mask.{level}"] = mask
        plain = {
            "format": FORMAT,
            "version": VERSION,
            **{name: getattr(result, name) for name in ("number", "method", "started", "exact", "failures")},
            "structures": [_plain_structure(fit.population.structures[0]) for fit in result.fits],
        }
        write_tensors(self.path(result.number), plain, tensors)


def _plain_structure(structure: Structure) -> dict[str, Any]:
    names = ("in_features", "out_features", "skip", "bias")
    layers = [format_set(units) for units in structure.layers]
    return {**{name: getattr(structure, name) for name in names}, "layers": layers}


def _result(plain: dict[str, Any], tensors: dict[str, Tensor]) -> StepResult:
    if plain["format"] != FORMAT or plain["version"] != VERSION:
        raise InvalidFile(f"it is {plain['format']!r:.40} of version {plain['version']!r:.40}")
    fits = []
    for i, structure in enumerate(plain["structures"]):
        masks = [tensors[f"{i}.mask.{level}"] for level in range(len(structure["layers"]) + 1)]
        population = Population([_structure(structure, masks)], [masks])
        theta = tensors[f"{i}.theta"]
        if theta.shape != population.places.shape or theta.dtype != torch.float64:
            raise InvalidFile(f"the weights of network {i} do not fit its structure")
        fits.append(Fit(population, theta, float(tensors[f"{i}.loss"])))
    failures = {str(reason): int(count) for reason, count in plain["failures"].items()}
    number, started, exact = (int(plain[name]) for name in ("number", "started", "exact"))
    return StepResult(number, str(plain["method"]), fits, started, exact, failures)


def _structure(plain: dict[str, Any], masks: list[Tensor]) -> Structure:
    """The structure, whose sizes are compared with actual tensors before it is built."""
    for text, mask in zip(plain["layers"], masks, strict=False):
        arguments = sum(primitive.arity * count for primitive, count in parse_counts(text))
        constants = sum(count for primitive, count in parse_counts(text) if primitive.arity == 0)
        if arguments != mask.shape[0] or constants > 10_000:
            raise InvalidFile(f"a layer of {arguments} arguments has a mask of {mask.shape[0]}")
    layers, inputs, outputs = map(parse_set, plain["layers"]), plain["in_features"], plain["out_features"]
    options = {name: bool(plain[name]) for name in ("skip", "bias")}
    structure = Structure(int(inputs), tuple(layers), int(outputs), **options)
    shapes = [tuple(mask.shape) for mask in masks]
    if shapes != structure.shapes() or any(mask.dtype != torch.bool for mask in masks):
        raise InvalidFile(f"masks of shapes {shapes} do not fit a structure of {structure.shapes()}")
    return structure
