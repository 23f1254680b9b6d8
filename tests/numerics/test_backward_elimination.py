"""Backward elimination: what leaves, in which order, and when it ends."""

import itertools

import numpy as np
import pytest
import torch

from eqlearn.numerics.stepwise import eliminate, removals, saliencies

RNG = np.random.default_rng(0)
MATRIX = RNG.normal(size=(80, 6)) @ np.triu(np.ones((6, 6)))
Y = MATRIX[:, [1, 4]] @ [3.0, -2.0] + 0.1 * RNG.normal(size=80)


def fitted(used):
    """Weights of the used columns, and the squared error that they leave."""
    weights = np.linalg.lstsq(MATRIX[:, used], Y, rcond=None)[0]
    return weights, float(((MATRIX[:, used] @ weights - Y) ** 2).sum())


def score(used):
    return 0.5 * len(Y) * np.log(fitted(used)[1]) + len(used) * np.log(len(Y))


def one_less(models):
    return [[[c for c in used if c != gone] for gone in used] if len(used) > 1 else [] for used in models]


def test_a_saliency_is_the_rise_of_the_error_once_the_others_have_been_refitted():
    every = list(range(6))
    weights, error = fitted(every)

    found = saliencies(torch.tensor(MATRIX.T @ MATRIX), torch.tensor(weights))

    rises = [fitted([c for c in every if c != gone])[1] - error for gone in every]
    np.testing.assert_allclose(found, rises, rtol=1e-5)


def test_a_saliency_does_not_depend_on_units():
    weights, units = fitted(list(range(6)))[0], np.array([1e3, 1.0, 1e-3, 1.0, 1.0, 1e6])

    plain = saliencies(torch.tensor(MATRIX.T @ MATRIX), torch.tensor(weights))
    other = MATRIX * units
    scaled = saliencies(torch.tensor(other.T @ other), torch.tensor(weights / units))

    torch.testing.assert_close(scaled, plain, rtol=1e-6, atol=0)


def test_what_another_weight_can_make_up_for_is_not_salient():
    twice = np.column_stack([MATRIX[:, 0], MATRIX[:, 0], MATRIX[:, 3]])

    twin, other, alone = saliencies(torch.tensor(twice.T @ twice), torch.ones(3, dtype=torch.float64))

    assert max(twin, other) < 1e-6 * alone


def test_a_curvature_that_is_none_still_gives_an_order():
    found = saliencies(-torch.eye(2, dtype=torch.float64), torch.tensor([2.0, 1.0], dtype=torch.float64))

    assert found.argsort().tolist() == [1, 0]


def test_runs_come_before_single_ones_and_never_take_all():
    order = torch.tensor([4, 1, 3, 0])

    found = [gone.tolist() for gone in removals(order, singles=2, runs=(8, 4, 3, 2))]

    assert found == [[4, 1, 3], [4, 1], [4], [1]]


def test_one_part_is_only_removed_alone():
    assert [gone.tolist() for gone in removals(torch.tensor([7]), singles=3, runs=(1, 2))] == [[7]]


def test_elimination_finds_the_columns_that_matter():
    assert eliminate([list(range(6))], one_less, score) == [[1, 4]]


def test_every_step_lowers_the_score_and_the_last_can_not_be_bettered():
    seen = []

    (last,) = eliminate([list(range(6))], one_less, score, progress=lambda models: seen.append(models[0]))

    scores = [score(used) for used in [list(range(6)), *seen]]
    assert all(after <= before for before, after in itertools.pairwise(scores))
    assert all(score(trial) >= score(last) for trial in one_less([last])[0])


def test_the_first_trial_that_is_better_is_taken_and_no_other_fitted():
    tried = []

    def lazily(models):
        for used in models:
            yield from ((tried.append(gone), [c for c in used if c != gone])[1] for gone in used)

    (first,) = eliminate([[9, 0, 1, 4]], lambda models: [lazily(models)], len, first=True, stop=once())

    assert first == [0, 1, 4]
    assert tried == [9]


def once():
    """A stop condition that lets one round pass."""
    asked = iter([False])
    return lambda: next(asked, True)


def test_nothing_is_removed_once_it_is_time_to_stop():
    assert eliminate([list(range(6))], one_less, score, stop=lambda: True) == [list(range(6))]


def test_models_are_eliminated_side_by_side_and_each_ends_on_its_own():
    asked = []

    def smaller(models):
        asked.append(len(models))
        return one_less(models)

    found = eliminate([[1, 4], list(range(6)), [1]], smaller, score)

    assert found == [[1, 4], [1, 4], [1]]
    assert asked[:2] == [3, 1]


def test_what_may_replace_a_model_can_be_decided_by_the_pair():
    found = eliminate([[0, 1, 4]], one_less, score, beats=lambda trial, model: 4 in trial and len(trial) > 1)

    assert found == [[1, 4]]


def test_a_model_that_replaces_another_is_tidied():
    (found,) = eliminate([[0, 1, 4]], one_less, score, tidied=lambda used: [*used, "tidied"], stop=once())

    assert found == [1, 4, "tidied"]


def test_as_many_answers_as_models_are_asked_for():
    with pytest.raises(ValueError, match="zip"):
        eliminate([[0, 1]], lambda models: [], score)
