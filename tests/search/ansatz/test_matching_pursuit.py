"""Matching pursuit: the atoms that a target is made of, and nothing else."""

import pytest
import torch

from eqlearn.numerics.criteria import match_score
from eqlearn.search.ansatz.matching_pursuit import match
from eqlearn.search.settings import Library

LIBRARY = Library()


def noise(rows, count, seed=0):
    return torch.randn(count, rows, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("support", [(3,), (3, 17), (3, 17, 40), (3, 17, 40, 55)])
def test_the_atoms_a_target_is_made_of_are_found(support):
    atoms = noise(50, 80)
    base = torch.ones(1, 50, dtype=torch.float64)
    target = atoms[list(support)].sum(dim=0) + 2.5

    found = match(target, base, atoms, range(80), LIBRARY, terms=4, most=5)

    best = min(found, key=lambda m: match_score(m.error, 50, len(m.support)))
    assert set(best.support) == set(support)
    assert best.error < 1e-12


def test_a_target_in_the_span_of_the_base_needs_no_atoms():
    atoms = noise(50, 20)
    base = noise(50, 3, seed=1)

    assert match(base.sum(dim=0), base, atoms, range(20), LIBRARY, terms=2, most=5) == []


def test_of_atoms_alike_only_the_best_is_given():
    atoms = noise(50, 20)
    base = torch.ones(1, 50, dtype=torch.float64)

    found = match(atoms[4], base, atoms, ["same"] * 20, LIBRARY, terms=1, most=5)

    assert [m.support for m in found] == [(4,)]


def test_constant_and_infinite_atoms_do_no_harm():
    atoms = noise(50, 20)
    atoms[0], atoms[1] = 1.0, torch.inf
    base = torch.ones(1, 50, dtype=torch.float64)

    found = match(atoms[4] + atoms[6], base, atoms, range(20), LIBRARY, terms=2, most=5)

    assert set(min(found, key=lambda m: m.error).support) == {4, 6}
