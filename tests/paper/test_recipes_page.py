"""The recipes side by side: what was not run is said, and an eye forgives what it is told to."""

import json
from pathlib import Path

import pytest

from eqlearn.paper.dynamics.data import KINEMATICS
from eqlearn.paper.dynamics.trials import seen
from eqlearn.paper.pages.recipes import dynamics_beside, mnist_beside

RESULTS = Path(__file__).parents[2] / "results"


def ledger(name):
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def row(table, begins):
    line = next(line for line in table.splitlines() if line.startswith(f"| {begins}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_every_recipe_has_a_column_and_what_was_not_run_is_said():
    table = dynamics_beside("kinematics", {"kinematics/modern": ledger("kinematics/modern")})

    assert row(table, "right equations")[2:] == ["not run", "not run", "5 of 5"]


def test_a_seed_that_failed_counts_as_not_right_and_its_restarts_are_told():
    made = ledger("kinematics/paper-half")
    cost = {"seconds": 1.0, "cpu_seconds": 1.0}
    made["trials"]["eql 0"] = {"seed": 0, "failure": "died", **cost, "restarts": 7}

    table = dynamics_beside("kinematics", {"kinematics/paper-half": made})

    began = sum(t["restarts"] for key, t in made["trials"].items() if key.startswith("eql"))
    assert row(table, "right equations")[2].endswith("of 5")
    assert row(table, "trials that began again")[2] == f"{began} times in 5 seeds"


@pytest.mark.parametrize(
    ("u", "v", "right"),
    [
        ("0.55*a + 0.9*u + 1.05*v + 0.01", "v + 0.9*a - 0.02*sin(3*u)", True),
        ("0.7*a + u + v", "v + a", False),  # off by 40 %
        ("0.5*a + u + v + 0.3*sin(3*u)", "v + a", False),  # a term that no eye drops
        ("0.5*a + u", "v + a", False),  # a term is missing
        ("<a formula of 900 nodes>", "v + a", False),
        ("", "v + a", False),
    ],
)
def test_an_eye_drops_small_terms_and_lets_coefficients_be_off(u, v, right):
    trial = {"seed": 0, "in_parameter": {"u": u, "v": v}}

    assert seen(trial, KINEMATICS, 0.1, 0.2) is right


def test_mnist_beside_says_what_the_paper_does_and_what_was_not_run():
    table = mnist_beside({"mnist/modern": ledger("mnist/modern")})

    assert row(table, "rounded sums right, test digits")[1:4] == ["90.2 %", "not run", "not run"]
    assert row(table, "right equations")[4] == "5 of 5"
    assert row(table, "sums from 15 on, trained below 15, EQL")[4] == "not run"
