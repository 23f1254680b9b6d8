"""Structures as programs: their values and slopes, beside those of PyTorch's own differentiation."""

import numpy as np
import pytest
import sympy as sp
import torch

from eqlearn.latent.comparison.structures import ANY, compiled, operation, parts, replaced, size, symbolic
from eqlearn.nn.primitives import PAPER, parse_kinds
from eqlearn.search.settings import SCIENCE

NAMES = [
    "add",
    "sub",
    *dict.fromkeys(p.name for p in (*parse_kinds(SCIENCE), *parse_kinds(PAPER)) if p.arity),
]
POINTS = np.random.default_rng(1).uniform(0.2, 0.9, size=(3, 7))
CONSTANTS = np.array([[0.4], [1.3]])


def by_torch(tree):
    """The value of the structure at `POINTS` and its slopes by variables and constants."""
    variables = [torch.tensor(p, requires_grad=True) for p in POINTS]
    constants = [torch.tensor(c, requires_grad=True) for c in CONSTANTS]
    left = iter(constants)

    def value(part):
        if isinstance(part, int):
            return variables[part]
        args = [value(child) for child in part[1:]]
        if part[0] == "shift":
            return args[0] + next(left)
        if part[0] == "scale":
            return args[0] * next(left)
        return operation(part[0])(*args)

    found = value(tree)
    found.sum().backward()
    return found.detach().numpy(), [v.grad for v in variables], [c.grad for c in constants]


def in_all_places(name):
    """The operation on a sum, inside a product, and beside itself."""
    if operation(name).arity == 2:
        return (name, ("mul", 0, 1), ("add", 2, (name, 1, 0)))
    return ("mul", (name, ("add", 0, ("mul", 1, 2))), (name, 1))


@pytest.mark.parametrize("name", NAMES)
def test_slopes_are_those_of_torch(name):
    tree = ("scale", ("shift", in_all_places(name)))
    value, slopes, by_constant = compiled(tree).linearise(POINTS, CONSTANTS)
    expected, by_variable, of_constants = by_torch(tree)

    np.testing.assert_allclose(value, expected, rtol=1e-12)
    assert set(slopes) == {v for v, grad in enumerate(by_variable) if grad is not None}
    for variable, slope in slopes.items():
        np.testing.assert_allclose(np.broadcast_to(slope, 7), by_variable[variable], rtol=1e-8, atol=1e-12)
    for slope, grad in zip(by_constant, of_constants, strict=True):
        np.testing.assert_allclose(np.sum(slope), grad[0], rtol=1e-8)


def test_a_program_runs_for_many_members_at_once():
    program = compiled(("scale", ("exp", ("shift", ("mul", 0, 1)))))
    members = np.random.default_rng(2).normal(size=(2, 5, 7))
    constants = np.random.default_rng(3).normal(size=(2, 5, 1))

    together, slopes, by_constant = program.linearise(members, constants)

    for m in range(5):
        alone, own, each = program.linearise(members[:, m], constants[:, m])
        np.testing.assert_array_equal(together[m], alone)
        np.testing.assert_array_equal(slopes[1][m], own[1])
        np.testing.assert_array_equal(by_constant[0][m], each[0])


def test_the_slopes_of_an_unknown_function_are_those_of_torch():
    """A polynomial whose linear coefficient is one, between two other constants."""
    constants = np.array([[0.4], [0.3], [-0.2], [0.15], [0.1], [1.3]])
    program = compiled(("scale", (ANY, ("shift", ("mul", 0, 1)))))
    value, slopes, by_constant = program.linearise(POINTS, constants)

    numbers = torch.tensor(constants, requires_grad=True)
    variables = torch.tensor(POINTS, requires_grad=True)
    v = variables[0] * variables[1] + numbers[0]
    expected = numbers[5] * (numbers[1] + v + numbers[2] * v**2 + numbers[3] * v**3 + numbers[4] * v**4)
    expected.sum().backward()

    np.testing.assert_allclose(value, expected.detach(), rtol=1e-12)
    np.testing.assert_allclose(slopes[0], variables.grad[0], rtol=1e-12)
    np.testing.assert_allclose([np.sum(s) for s in by_constant], numbers.grad[:, 0], rtol=1e-12)


def test_constants_start_at_rest():
    program = compiled(("scale", ("sin1", ("shift", 0))))

    np.testing.assert_array_equal(program.value(POINTS, program.start), np.sin(POINTS[0]))
    np.testing.assert_array_equal(compiled((ANY, 0)).value(POINTS, np.zeros((4, 1))), POINTS[0])


def test_the_formula_has_the_values_of_the_program():
    tree = ("div", ("shift", ("square", 0)), ("scale", ("exp", ("sub", 1, 2))))
    names = sp.symbols("a b c", real=True)
    formula = sp.lambdify(names, symbolic(tree, names, iter([0.4, 1.3])))

    np.testing.assert_allclose(formula(*POINTS), compiled(tree).value(POINTS, CONSTANTS), rtol=1e-12)


def test_the_size_counts_a_constant_with_its_operator():
    assert size(("mul", 0, 1)) == 3
    assert size(("mul", ("shift", 0), 1)) == 5
    assert size(("exp", ("scale", ("add", 0, 1)))) == 6


def test_every_part_is_found_where_its_path_says():
    tree = ("mul", ("exp", 0), ("add", 1, 2))

    assert {part for _, part in parts(tree)} == {tree, ("exp", 0), ("add", 1, 2), 0, 1, 2}
    for path, part in parts(tree):
        assert replaced(tree, path, part) == tree
        assert replaced(tree, path, 7) != tree
