"""The page of MNIST arithmetic says what was done, and sets the paper's values beside ours where they fit."""

from dataclasses import asdict

import pytest

from eqlearn.paper.mnist.recipes import Condition
from eqlearn.paper.pages.mnist import condition_page

FIGURES = {
    "accuracy": 0.971, "mean_absolute_error": 0.1, "correlation": -0.9957, "pairs": 20_000,
    "accuracy_below_bound": 0.975, "accuracy_from_bound": 0.955,
}  # fmt: skip


def trial(**changes):
    search = {
        "agreed": 1, "starts": 2, "held_error": 0.0123, "head_error": 0.0456, "cpu_seconds": 444.4,
        "threads": 1, "equivalent": ["z_1*z_2"],
    }  # fmt: skip
    return {
        "seed": 0, "equation": "5.8*z_1 + 5.8*z_2 + 9.0", "expected": "5.8*z_1 + 5.8*z_2 + 9.0",
        "in_digits": "psi_1 + psi_2", "right_form": True, "asymmetry": 0.001, "composed_error": 0.01,
        "train": FIGURES, "test": FIGURES, "seconds": 600.0, "resumed": False, "search": search, **changes,
    }  # fmt: skip


def page(condition, *trials, **others):
    return condition_page(asdict(condition), trials, others)


def test_the_papers_values_stand_beside_its_own_experiment():
    told = page(Condition(), trial())

    assert "| accuracy of the rounded result | test | 90.2 % | **97.1 %** | 97.1 % |" in told
    assert "| correlation of latent and digit, its size | test | 0.988 | **0.9957** | 0.9957 |" in told
    assert "| coefficients of the two latents differ by |  | 0.39 % | **0.100 %** | 0.100 % |" in told


@pytest.mark.parametrize("condition", [Condition(dataset="digits"), Condition(formula="a*b")])
def test_other_experiments_stand_alone(condition):
    assert "paper" not in page(condition, trial())


def test_what_each_search_left_is_told():
    told = page(Condition(), trial())

    assert "| 0 | 1 of 2 | 0.012 (0.046) | `z_1*z_2` | 444 | 1 |" in told


def test_a_training_by_gradient_has_no_search_to_tell_of():
    one = trial()
    del one["search"]

    assert "discover_latent" not in page(Condition(recipe="paper-half"), one)


def test_an_equation_of_another_form_is_counted_as_such():
    wrong = trial(seed=1, right_form=False, in_digits=None, asymmetry=None)

    told = page(Condition(), trial(), wrong)

    assert "Right equations: **1 of 2**" in told
    assert "another law" in told


def test_both_networks_stand_in_the_table_of_sums_never_seen():
    relu = trial(equation=None, test={**FIGURES, "accuracy_from_bound": 0.004})

    told = page(Condition(below=15.0), trial(), eql=[trial()], relu=[relu])

    assert "| test | EQL | 91 % | **97.5 %** | 83 % | **95.5 %** |" in told
    assert "| test | ReLU | 92 % | **97.5 %** | 0.6 % | **0.4 %** |" in told


def test_a_bound_above_every_result_leaves_nothing_to_count():
    none = trial(
        train={**FIGURES, "accuracy_from_bound": None}, test={**FIGURES, "accuracy_from_bound": None}
    )

    told = page(Condition(below=19.0), none, eql=[none])

    assert "| test | EQL | **97.5 %** | **none there** |" in told


def test_a_trial_that_came_to_nothing_is_counted_and_named():
    told = page(Condition(), trial(), {"seed": 1, "failure": "every equation came to nothing"})

    assert "Right equations: **1 of 2**" in told
    assert "Came to nothing: seed 1: every equation came to nothing." in told
    assert page(Condition(), {"seed": 1, "failure": "no"}) == "Came to nothing: seed 1: no."
