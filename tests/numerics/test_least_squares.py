"""One Levenberg-Marquardt: against SciPy, in batches, with a nuisance block, penalties and rows in pieces."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import least_squares as scipy_least_squares

from eqlearn.numerics.least_squares import Normal, Rule, SquareRoot, levenberg_marquardt, linear_fit

X = np.linspace(0.1, 3.0, 60)
NOISE = 0.05 * np.random.default_rng(0).normal(size=len(X))


def decay(c):
    value = c[0] * np.exp(-c[1] * X) + c[2]
    return value, np.stack([np.exp(-c[1] * X), -c[0] * X * np.exp(-c[1] * X), np.ones_like(X)], axis=1)


def wave(c):
    inner = c[1] * X + c[2]
    return c[0] * np.sin(inner), np.stack(
        [np.sin(inner), c[0] * X * np.cos(inner), c[0] * np.cos(inner)], axis=1
    )


def saturation(c):
    below = c[1] + X
    return c[0] * X / below, np.stack([X / below, -c[0] * X / below**2], axis=1)


PROBLEMS = [
    (decay, [2.0, 0.7, 0.3], [1.0, 1.5, 0.0]),
    (wave, [1.5, 2.0, 0.4], [1.0, 1.8, 0.7]),
    (saturation, [3.0, 0.5], [1.0, 2.0]),
]
every_problem = pytest.mark.parametrize(("model", "true", "start"), PROBLEMS)


def square_root(model, y):
    """The problem by its slopes, and how often these were asked for."""
    asked = []

    def linearise(point):
        value, slopes = model(point[0].numpy())
        return SquareRoot((value - y)[None], lambda: asked.append(1) or (slopes[None], None))

    return linearise, asked


def normal(model, y):
    """The same by normal equations, for any number of members."""

    def linearise(point):
        each = [model(member.numpy()) for member in point]
        residual = torch.tensor(np.stack([value - y for value, _ in each]))
        slopes = torch.tensor(np.stack([slopes.T for _, slopes in each]))
        return Normal.summed([(residual, slopes, None)], len(y))

    return linearise


def row(values):
    return torch.tensor(values, dtype=torch.float64)[None]


@every_problem
def test_the_optimum_in_noise_is_that_of_scipy(model, true, start):
    y = model(true)[0] + NOISE
    theirs = scipy_least_squares(
        lambda c: model(c)[0] - y, start, lambda c: model(c)[1], method="lm", xtol=1e-15, ftol=1e-15
    )

    by_slopes, system = levenberg_marquardt(square_root(model, y)[0], row(start), Rule(60))
    by_squares, _ = levenberg_marquardt(normal(model, y), row(start), Rule(60))

    np.testing.assert_allclose(by_slopes[0], theirs.x, rtol=1e-7)
    np.testing.assert_allclose(by_squares[0], theirs.x, rtol=1e-7)
    assert float(system.loss) == pytest.approx(2 * theirs.cost / len(y), rel=1e-12)


@every_problem
def test_constants_of_clean_data_come_out_to_rounding(model, true, start):
    point, _ = levenberg_marquardt(square_root(model, model(true)[0])[0], row(start), Rule(60))

    np.testing.assert_allclose(point[0], true, rtol=1e-14)


def test_members_do_not_touch_each_other():
    y = decay([2.0, 0.7, 0.3])[0] + NOISE
    starts = row([[1.0, 1.5, 0.0], [3.0, 0.5, 0.1], [math.nan, 1.0, 1.0]])[0]
    rule = Rule(80, damping=1e-2, up=4.0, patience=6, gain=1e-12)

    together, system = levenberg_marquardt(normal(decay, y), starts, rule)

    for start, found in zip(starts[:2], together[:2], strict=True):
        alone, _ = levenberg_marquardt(normal(decay, y), start[None], rule)
        torch.testing.assert_close(found, alone[0], rtol=1e-7, atol=0)
    assert math.isinf(float(system.loss[2]))
    assert math.isnan(float(together[2, 0]))


def with_offsets(groups, seed=1):
    """A decay that all groups share, on top of an offset that each has of its own; both ways to write it."""
    rng = np.random.default_rng(seed)
    offsets = rng.normal(size=groups)
    y = np.stack([decay([2.0, 0.7, 0.0])[0] + o + 0.05 * rng.normal(size=len(X)) for o in offsets])

    def parts(point):
        c, own = np.split(point[0].numpy(), [2])
        value, slopes = decay([*c, 0.0])
        residual = value + own[:, None] - y
        return residual, np.broadcast_to(slopes[:, :2], (groups, len(X), 2)), np.ones((groups, len(X), 1))

    def eliminated(point):
        residual, common, own = parts(point)
        return SquareRoot(residual, lambda: (common, own))

    def whole(point):
        residual, common, own = parts(point)
        spread = np.zeros((groups, len(X), groups))
        spread[np.arange(groups), :, np.arange(groups)] = own[..., 0]
        slopes = np.concatenate([common, spread], axis=2).reshape(1, -1, 2 + groups)
        return SquareRoot(residual.reshape(1, -1), lambda: (slopes, None))

    return eliminated, whole, row([1.0, 1.5] + [0.0] * groups)


@pytest.mark.parametrize("damping", [1e-12, 1e-3, 10.0])
def test_a_nuisance_block_moves_as_in_the_whole_problem(damping):
    eliminated, whole, start = with_offsets(5)
    damped = torch.full_like(start, damping)

    moves = [f(start).solve(damped, start, None, None) for f in (eliminated, whole)]

    torch.testing.assert_close(moves[0], moves[1], rtol=1e-10, atol=1e-12)
    falls = [float(f(start).promised(moves[0])) for f in (eliminated, whole)]
    assert falls[0] == pytest.approx(falls[1], rel=1e-12)


def test_the_slopes_that_are_left_are_those_that_no_nuisance_can_make_up_for():
    eliminated, whole, start = with_offsets(4)

    left, slopes = eliminated(start).followed, whole(start).slopes[0][0]

    others = slopes[:, 2:] @ np.linalg.lstsq(slopes[:, 2:], slopes[:, :2], rcond=None)[0]
    np.testing.assert_allclose(left, slopes[:, :2] - others, atol=1e-12)


def test_a_fit_with_a_nuisance_block_is_that_of_the_whole_problem():
    eliminated, whole, start = with_offsets(6)

    (found, system), (expected, _) = (levenberg_marquardt(f, start, Rule(50)) for f in (eliminated, whole))

    torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-9)
    assert math.isfinite(float(system.loss))


def test_a_nuisance_that_its_group_does_not_feel_stays():
    slopes, own = np.ones((2, 4, 1)), np.ones((2, 4, 1))
    own[1] = 0.0

    move = SquareRoot(np.ones((2, 4)), lambda: (slopes, own)).solve(
        torch.full((1, 3), 1e-6, dtype=torch.float64), row([0.0, 0.0, 0.0]), None, None
    )

    assert bool(torch.isfinite(move).all())
    assert float(move[0, 2]) == 0


def test_a_nuisance_block_alone_is_fitted_too():
    y = np.array([[1.0, 3.0], [5.0, 6.0]])

    def linearise(point):
        own = point[0].numpy()[:, None]
        return SquareRoot(own - y, lambda: (np.empty((2, 2, 0)), np.ones((2, 2, 1))))

    point, system = levenberg_marquardt(linearise, row([0.0, 0.0]), Rule(9))

    torch.testing.assert_close(point, row([2.0, 5.5]))
    assert system.followed.shape == (4, 0)


@pytest.mark.parametrize("size", [1, 7, 60])
def test_rows_in_pieces_give_the_step_of_all_rows(size):
    y, at = decay([2.0, 0.7, 0.3])[0] + NOISE, row([1.0, 1.5, 0.1])
    value, slopes = decay(at[0].numpy())
    cuts = range(size, len(y), size)
    pieces = list(zip(np.split(value - y, cuts), np.split(slopes, cuts), strict=True))
    squares = [(torch.tensor(r)[None], torch.tensor(s.T.copy())[None], None) for r, s in pieces]
    damping = torch.full_like(at, 1e-3)

    whole, by_pieces = square_root(decay, y)[0](at), SquareRoot.summed(pieces)

    expected = whole.solve(damping, at, None, None)
    for system in (by_pieces, Normal.summed(squares, len(y))):
        torch.testing.assert_close(system.solve(damping, at, None, None), expected, rtol=1e-8, atol=1e-12)
        assert float(system.loss) == pytest.approx(float(whole.loss), rel=1e-12)
    assert by_pieces.rows == len(y)


def test_a_piece_that_is_not_finite_makes_the_loss_infinite():
    pieces = [
        (np.ones(3), np.ones((3, 1))),
        (np.array([np.nan]), np.ones((1, 1))),
        (np.ones(3), np.ones((3, 1))),
    ]

    assert math.isinf(float(SquareRoot.summed(pieces).loss))


@pytest.mark.parametrize("kind", [square_root, normal])
def test_fixed_parameters_stay_and_the_others_find_their_best(kind):
    y = decay([2.0, 0.7, 0.3])[0] + NOISE
    made = kind(decay, y)
    linearise = made[0] if kind is square_root else made
    theirs = scipy_least_squares(
        lambda c: decay([c[0], 0.9, c[1]])[0] - y, [1.0, 0.0], xtol=1e-15, ftol=1e-15
    )

    point, _ = levenberg_marquardt(
        linearise, row([1.0, 0.9, 0.0]), Rule(60), fixed=torch.tensor([[False, True, False]])
    )

    assert float(point[0, 1]) == 0.9
    np.testing.assert_allclose(point[0, [0, 2]], theirs.x, rtol=1e-6)


@pytest.mark.parametrize("kind", [square_root, normal])
def test_a_penalty_is_a_ridge(kind):
    matrix = np.stack([X, np.sqrt(X), np.ones_like(X)], axis=1)
    y = matrix @ [1.0, -2.0, 0.5] + NOISE
    made = kind(lambda c: (matrix @ c, matrix), y)
    linearise = made[0] if kind is square_root else made
    ridge = torch.tensor([[1e-2, 3e-2, 0.0]], dtype=torch.float64)
    expected = np.linalg.solve(matrix.T @ matrix / len(y) + np.diag(ridge[0]), matrix.T @ y / len(y))

    point, _ = levenberg_marquardt(
        linearise, row([0.0, 0.0, 0.0]), Rule(30), penalty=lambda point, step: ridge
    )

    np.testing.assert_allclose(point[0], expected, rtol=1e-6)


@pytest.mark.parametrize("kind", [square_root, normal])
def test_linear_parameters_are_solved_exactly_at_every_step(kind):
    y = decay([2.0, 0.7, 0.3])[0] + NOISE
    made = kind(decay, y)
    linearise = made[0] if kind is square_root else made

    point, _ = levenberg_marquardt(
        linearise, row([0.0, 1.5, 0.0]), Rule(3), linear=torch.tensor([[True, False, True]])
    )

    columns = torch.tensor(decay(point[0].numpy())[1][:, [0, 2]].T.copy())
    torch.testing.assert_close(point[0, [0, 2]], linear_fit(columns, torch.tensor(y)), rtol=1e-6, atol=1e-9)


def test_a_linear_parameter_that_is_fixed_stays():
    y = decay([2.0, 0.7, 0.3])[0] + NOISE

    point, _ = levenberg_marquardt(
        normal(decay, y),
        row([1.0, 1.5, 0.1]),
        Rule(9),
        linear=torch.tensor([[True, False, True]]),
        fixed=torch.tensor([[False, False, True]]),
    )

    assert float(point[0, 2]) == 0.1
    assert float(point[0, 0]) != 1.0


def test_steps_and_stop_end_a_fit():
    linearise, asked = square_root(decay, decay([2.0, 0.7, 0.3])[0])
    start = row([1.8, 0.8, 0.2])

    none, _ = levenberg_marquardt(linearise, start, Rule(0))
    stopped, _ = levenberg_marquardt(linearise, start, Rule(9), stop=lambda: True)
    assert not asked
    one, _ = levenberg_marquardt(linearise, start, Rule(1))

    assert torch.equal(none, start)
    assert torch.equal(stopped, start)
    assert not torch.equal(one, start)


def test_what_is_good_enough_takes_no_step():
    linearise, asked = square_root(decay, decay([2.0, 0.7, 0.3])[0] + NOISE)

    point, system = levenberg_marquardt(linearise, row([2.0, 0.7, 0.3]), Rule(9, enough=1.0))

    assert not asked
    assert float(system.loss) == pytest.approx(float(np.mean(NOISE**2)))
    assert torch.equal(point, row([2.0, 0.7, 0.3]))


def test_an_optimum_is_recognised_at_once():
    y = decay([2.0, 0.7, 0.3])[0] + NOISE
    best, _ = levenberg_marquardt(square_root(decay, y)[0], row([1.0, 1.5, 0.0]), Rule(60))
    seen = []

    def linearise(point):
        seen.append(point)
        return square_root(decay, y)[0](point)

    levenberg_marquardt(linearise, best, Rule(60))

    assert len(seen) <= 4


def test_a_start_that_is_not_finite_is_given_back_with_an_infinite_loss():
    linearise, asked = square_root(decay, np.full(len(X), np.inf))
    start = row([1.0, 1.0, 1.0])

    point, system = levenberg_marquardt(linearise, start, Rule(9))

    assert torch.equal(point, start)
    assert math.isinf(float(system.loss))
    assert not asked


def test_a_step_out_of_the_domain_is_refused():
    """log(c) of one number c: the first steps from far above lead below zero."""

    def linearise(point):
        c = float(point[0, 0])
        value = math.log(c) if c > 0 else math.nan
        return SquareRoot(np.array([[value]]), lambda: (np.array([[[1 / c]]]), None))

    point, system = levenberg_marquardt(linearise, row([20.0]), Rule(60))

    assert float(point) == pytest.approx(1.0, rel=1e-12)
    assert float(system.loss) < 1e-24


def test_a_linear_fit_gives_the_same_digits_whatever_was_in_memory_before():
    generator = torch.Generator().manual_seed(0)
    columns = torch.randn(3, 40, dtype=torch.float64, generator=generator)
    y = torch.randn(40, dtype=torch.float64, generator=generator)

    found = set()
    for _ in range(50):
        left_behind = [torch.randint(3, (3,), dtype=torch.int32, generator=generator) for _ in range(4)]
        del left_behind
        found.add(tuple(linear_fit(columns, y).tolist()))

    assert len(found) == 1
    factors = torch.tensor(found.pop(), dtype=torch.float64)
    assert torch.allclose(columns @ (factors @ columns - y), torch.zeros(3, dtype=torch.float64))
