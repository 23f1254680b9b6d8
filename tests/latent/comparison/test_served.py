"""The served comparison on latents that are a bent copy of the truth: the right structure leaves least."""

import numpy as np
import pytest
import torch

from eqlearn.latent.comparison.compare import Choice
from eqlearn.latent.comparison.served import Batch, serve, served_again
from eqlearn.latent.comparison.shortlist import is_disguised
from eqlearn.latent.comparison.structures import size
from made_latents import BENDS, made_comparison, uniform

ROWS = 300
K, X, Q = uniform(ROWS, 0.5, 2, 0), uniform(ROWS, 0.3, 3, 1), uniform(ROWS, 0.5, 1.5, 2)
LAWS = {
    "spring": (-3 * K * X, ("mul", 0, 1)),
    "decay": (2 * torch.exp(-K * X) + 1, ("exp", ("mul", 0, 1))),
    "sum": (K**2 + 0.7 * X, ("add", 0, 1)),
    "root": (torch.sqrt(K + X), ("sqrt", ("add", 0, 1))),
    "saturation": (X / (K + X), ("inv", ("shift", ("div", 0, 1)))),
}
TREES = [tree for _, tree in LAWS.values()]


@pytest.mark.parametrize("bend", BENDS)
@pytest.mark.parametrize("law", LAWS)
def test_the_right_structure_leaves_the_least_however_the_latent_is_bent(law, bend):
    y, right = LAWS[law]
    data, bases = made_comparison({"k": BENDS[bend](K)}, {"x": X}, y)

    fits = served_again(data, serve(data, [(tree,) for tree in TREES], starts=6, steps=15))

    errors = {fit.trees[0]: fit.error for fit in fits}
    assert errors[right] < 1e-4
    for fit in fits:
        disguised = is_disguised(Choice(fit, data, tuple(bases), ("x",)))  # exp(z*x/1000) is z*x
        longer = fit.size > size(right)  # 1/(c + z/x) holds z*x, without the c
        assert fit.trees[0] == right or disguised or longer or fit.error > max(1e-4, 2 * errors[right])


A, B = uniform(ROWS, 0.5, 2, 3), uniform(ROWS, 0.4, 2.2, 4)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("y", "tree"),
    [
        (A / (B + X), ("div", 0, ("add", 1, 2))),
        (A * X / (B + X), ("div", 0, ("shift", ("div", 1, 2)))),
        (A * torch.exp(-B * X), ("mul", 0, ("exp", ("mul", 1, 2)))),
        (torch.sqrt(A * X + B), ("sqrt", ("add", ("mul", 0, 2), 1))),
    ],
    ids=["quotient", "saturation", "decay", "root"],
)
def test_poles_and_steep_functions_are_no_trap_from_any_seed(y, tree, seed):
    z = {name: (torch.log(q) - torch.log(q).mean()) / torch.log(q).std() for name, q in (("a", A), ("b", B))}
    data, _ = made_comparison(z, {"x": X}, y)

    (fit,) = served_again(data, serve(data, [(tree,)], starts=6, steps=10, seed=seed))

    assert fit.error < 1e-3


def test_columns_are_not_bent():
    # y = k + x**2: with x free to bend, k + x would do.
    data, _ = made_comparison({"k": K}, {"x": X}, K + X**2)

    straight, bent = serve(data, [(("add", 0, 1),), (("add", 0, ("square", 1)),)], steps=30)

    assert straight.error > 0.01
    assert bent.error < 1e-6


def test_shared_encoders_bend_alike():
    # a + b**2 behind one encoder: it can't give b squared and a as it is.
    a, b = uniform(ROWS, 0.5, 2, 3), uniform(ROWS, 0.5, 2, 4)
    latents, trees = {"a": a, "b": b}, [(("add", 0, 1),), (("add", 0, ("square", 1)),)]
    shared, _ = made_comparison(latents, {}, a + b**2, shared=True)
    own, _ = made_comparison(latents, {}, a + b**2)

    plain, right = served_again(shared, serve(shared, trees, starts=6, steps=15))
    free, _ = serve(own, trees, steps=30)

    assert right.error < 1e-5 < 1e-3 < plain.error
    assert free.error < 1e-5


def test_several_outputs_share_their_bends():
    both = torch.stack([K * X, K + X], dim=1)
    data, _ = made_comparison({"k": torch.log(K)}, {"x": X}, both)
    right = (("mul", 0, 1), ("add", 0, 1))
    # Each alone is right behind a bend of its own: log(k*x) is a sum, too, but k is not log(k).
    wrong = (("mul", 0, 1), ("add", ("exp", 0), 1))

    good, bad = served_again(data, serve(data, [right, wrong], starts=6, steps=20))

    assert good.error < 1e-4
    assert bad.error > 10 * good.error
    assert [fit.bends[0].shape for fit in (good, bad)] == [(1, 10), (1, 10)]


def test_latents_that_an_encoder_mixed_are_unmixed():
    p, q = uniform(ROWS, -1, 1, 5), uniform(ROWS, -1, 1, 6)
    mixed = torch.stack([p + 0.6 * q, 0.8 * q - 0.5 * p], dim=1)
    y = X * p + Q * q**2
    data, _ = made_comparison({"s": mixed}, {"x": X, "q": Q}, y, slots=[2])
    tree = ("add", ("mul", 0, 2), ("mul", 1, 3))
    one, _ = made_comparison({"s": mixed}, {"x": X, "q": Q}, y, slots=[1])

    (two,) = served_again(data, serve(data, [(tree,)], starts=6, steps=15))
    (single,) = serve(one, [(("mul", 0, ("add", 1, 2)),)], starts=6, steps=15)

    assert two.error < 1e-4
    assert single.error > 0.01


def test_slopes_are_those_of_finite_differences():
    both = torch.stack([K * X, torch.exp(-K) + Q], dim=1)
    data, _ = made_comparison({"k": torch.log(K)}, {"x": X, "q": Q}, both)
    trees = (("exp", ("shift", ("mul", 0, 1))), ("div", ("scale", ("square", 0)), ("shift", 2)))
    batch = Batch(data.some(50), [trees], 1)
    point = batch.begin(np.random.default_rng(0)) + 0.1
    system, loss = batch.linearise(point), []
    for i in range(batch.parameters):
        step = torch.zeros_like(point)
        step[:, i] = 1e-6
        loss.append((batch.linearise(point + step).loss - batch.linearise(point - step).loss) / 2e-6)

    # The normal equations' slope, J'r, is half that of the mean square; two columns stand in one law only.
    assert int((system.slope == 0).sum()) == 2
    torch.testing.assert_close(torch.cat(loss), 2 * system.slope[0], rtol=1e-4, atol=1e-6)


def test_a_fit_that_goes_on_leaves_no_more():
    y, right = LAWS["decay"]
    data, _ = made_comparison({"k": K**3}, {"x": X}, y)
    fits = serve(data, [(right,), (("add", 0, 1),)], starts=2, steps=3)

    for before, after in zip(fits, served_again(data, fits), strict=True):
        assert after.error <= before.error * (1 + 1e-9)


def test_a_structure_without_a_finite_value_leaves_infinitely_much():
    data, _ = made_comparison({"k": K}, {"x": X - 10}, K * X)

    (bad, good) = serve(data, [(("add", 0, ("log", 1)),), (("mul", 0, 1),)], starts=2)

    assert bad.error == float("inf")
    assert np.isfinite(good.error)


def test_a_stop_ends_the_fits():
    y, right = LAWS["decay"]
    data, _ = made_comparison({"k": K**3}, {"x": X}, y)

    (stopped,) = serve(data, [(right,)], stop=lambda: True)
    (done,) = serve(data, [(right,)])

    assert done.error < stopped.error


@pytest.mark.parametrize("held", [(), (0,), (1,), (0, 1)])
def test_factor_and_offset_are_settled_as_least_squares_would(held):
    data, _ = made_comparison({"k": K}, {"x": X}, torch.stack([K * X + 3, 2 * K - X], dim=1))
    batch = Batch(data, [(("mul", 0, 1), ("exp", 0))], 2)
    point = batch.begin(np.random.default_rng(0))
    fixed = torch.zeros_like(point, dtype=torch.bool)
    fixed[:, [batch.readout + i for i in held]] = True
    readout = torch.zeros_like(fixed)
    readout[:, batch.readout :] = True

    settled = batch.settled(point, fixed)

    slope = batch.linearise(settled).slope
    assert bool((settled != point)[readout & ~fixed].all())
    torch.testing.assert_close(settled[~readout | fixed], point[~readout | fixed], rtol=0, atol=0)
    assert float(slope[readout & ~fixed].abs().max()) < 1e-10


def test_a_line_of_values_that_do_not_vary_stays_as_it_is():
    data, _ = made_comparison({"k": K}, {"x": X}, K * X)
    batch = Batch(data, [(("sub", 0, 0),)], 1)
    point = batch.begin(np.random.default_rng(0))

    torch.testing.assert_close(batch.settled(point), point, rtol=0, atol=0)
