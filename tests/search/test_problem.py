"""The problem of a search: what its steps see of the data."""

import torch

from eqlearn.numerics.budget import never
from eqlearn.search.problem import Problem, remembered
from search_problems import problem_of


def test_a_transform_is_seen_in_units_of_its_spread_and_costs_a_layer():
    problem = problem_of("exp(a)", ("a",))
    exponential = next(t for t in problem.transforms if t.unit.name == "exp")

    plain, depth = problem.seen(None)
    seen, shallower = problem.seen(exponential)

    assert isinstance(problem, Problem)
    torch.testing.assert_close(plain, problem.samples.y[0])
    torch.testing.assert_close(seen.std(), torch.tensor(1.0, dtype=torch.float64))
    assert shallower == depth - 1


def test_thinning_keeps_rows_targets_and_weights_together():
    problem = problem_of("a**2", ("a",), rows=100)

    thin = problem.thinned(11)

    assert thin.samples.rows == 11
    torch.testing.assert_close(thin.samples.x[0, [0, -1]], problem.samples.x[0, [0, -1]])
    for before, after in zip(problem.transforms, thin.transforms, strict=True):
        assert after.target.shape[1] == 11
        assert after.scale == before.scale
    assert problem.thinned(1000) is problem


def test_weights_enter_by_their_roots():
    from dataclasses import replace

    problem = problem_of("a", ("a",), rows=4)
    weighted = replace(
        problem, samples=replace(problem.samples, weight=torch.tensor([4.0, 1.0, 0.0, 9.0]).double())
    )

    values = weighted.weighted(torch.ones(4, dtype=torch.float64))

    assert values.tolist() == [2.0, 1.0, 0.0, 3.0]


def test_what_was_made_is_remembered_unless_it_was_cut_short():
    problems = [problem_of(formula, ("a",)) for formula in ("a", "a**2", "a**3")]
    clock = iter([True])
    made = []

    @remembered(2)
    def make(problem, stop):
        made.append(problem)
        return len(made)

    assert make(problems[0], lambda: next(clock, False)) == 1  # cut short
    assert [make(problems[0], never) for _ in range(2)] == [2, 2]
    assert [make(p, never) for p in (*problems, problems[1])] == [2, 3, 4, 3]
    assert make(problems[0], never) == 5  # pushed out by the two after it
