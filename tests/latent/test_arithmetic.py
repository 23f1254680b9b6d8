"""Arithmetic on images: the result, its gradients, its pairs, its formula."""

import pytest
import torch

from eqlearn.errors import InvalidArgument, InvalidExpression
from eqlearn.latent.images import ImageArithmetic, ImageEncoder
from eqlearn.nn.eql import EQL
from eqlearn.nn.penalties import sparsity
from eqlearn.nn.sparse import prune_
from eqlearn.paper.baselines import relu_network
from eqlearn.paper.mnist.pairs import Operation, PairLoss, Pairs, random_pairs
from eqlearn.symbolic.equation import Equation
from eqlearn.training.schedule import Phase
from eqlearn.training.state import seeded

PHASE = Phase(name="any", steps=1, lr=1e-3)
IMAGES = torch.randint(256, (60, 8, 8), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)
LATENTS = ["z_1", "z_2"]
LABELS_ = torch.arange(60) % 10


def system(members=None):
    with seeded(0):
        encoder = ImageEncoder(8, channels=(4, 8), kernel=3, padding="same")
    return ImageArithmetic(encoder, EQL(2, 1, members=members, seed=3))


def pairs(images=IMAGES, labels=LABELS_, **options):
    return Pairs(images, labels, Operation("a+b"), **{"batch": 20, "pairs": 50, **options})


def loss(**options):
    return PairLoss(pairs(**options))


@pytest.mark.parametrize(
    ("formula", "a", "b", "result"),
    [("a+b", 7, 8, 15), ("a-b", 2, 9, -7), ("a*b", 6, 7, 42), ("(a+b)^2", 1, 2, 9)],
)
def test_an_operation_knows_its_results(formula, a, b, result):
    assert float(Operation(formula).table()[a, b]) == result


@pytest.mark.parametrize("formula", ["a/b", "3", "a-a"])
def test_an_operation_without_finite_results_that_differ_is_refused(formula):
    with pytest.raises(InvalidArgument, match="must vary with its labels"):
        Operation(formula).table()


def test_an_operation_is_parsed_and_never_run():
    with pytest.raises(InvalidExpression):
        Operation("__import__('os')").table()


def test_gradients_reach_the_encoder_through_the_equation():
    model = system()

    loss()(model, PHASE).backward()

    weights = [p for p in model.encoder.parameters() if p.dim() > 1]
    assert all(float(p.grad.abs().sum()) > 0 for p in weights)


def test_penalty_and_pruning_leave_the_encoder_alone():
    model = system()
    before = {name: p.clone() for name, p in model.encoder.named_parameters()}

    sparsity(model).backward()
    prune_(model, below=0.2)

    assert all(p.grad is None for p in model.encoder.parameters())
    assert all(torch.equal(p, before[name]) for name, p in model.encoder.named_parameters())


def test_the_equation_is_the_model_after_the_encoder():
    model = system().double().eval()
    z = torch.rand(50, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 0.5

    values = Equation.read(model, LATENTS)(z.numpy())

    expected = model.combine(z[:, :1], z[:, 1:]).detach()
    torch.testing.assert_close(torch.from_numpy(values), expected, rtol=1e-9, atol=1e-9)


def test_a_twin_has_no_equation():
    model = ImageArithmetic(torch.nn.Identity(), relu_network(2))

    with pytest.raises(InvalidArgument, match="Sequential has no equation"):
        Equation.read(model, LATENTS)


def test_members_share_the_encoder_and_have_results_of_their_own():
    model = system(members=3).eval()

    assert model(IMAGES[:5], IMAGES[5:10]).shape == (3, 5)
    assert loss()(model, PHASE).shape == (3,)


def test_what_a_step_draws_depends_on_seed_and_step_only():
    model = system().eval()
    first, again, other = loss(seed=1), loss(seed=1), loss(seed=2)
    losses = [float(first(model, PHASE).detach()) for _ in range(3)]
    again.load_state_dict({"step": torch.tensor(2)})

    third = float(again(model, PHASE).detach())

    assert third == losses[2]
    assert len({*losses, float(other(model, PHASE).detach())}) == 4


@pytest.mark.parametrize("count", [None, 400])
def test_pairs_that_are_not_below_the_bound_are_never_drawn(count):
    batch = pairs(batch=60, pairs=count, below=15.0)

    results = torch.cat([batch.drawn(number)[3] for number in range(20)])

    assert float(results.max()) == 14


def test_a_batch_says_the_result_of_each_of_its_pairs():
    labels_shown = LABELS_[:, None, None].expand(60, 8, 8).to(torch.uint8)

    batch = next(iter(pairs(labels_shown)))

    first, second = (x.values[x.index][:, 0, 0] for x in (batch["z_1"], batch["z_2"]))
    assert torch.equal(batch["y"], (first + second).float())
    assert batch["z_1"].values is batch["z_2"].values


def test_no_image_is_paired_with_itself():
    images, first, second, _ = pairs(IMAGES[:2], LABELS_[:2]).drawn(0)

    assert len(first) > 0
    assert not (images[first] == images[second]).flatten(1).all(dim=1).any()


def test_every_pass_has_batches_that_no_one_had_before():
    endless, fresh = pairs(), pairs()
    first, second = next(iter(endless)), next(iter(endless))

    assert not torch.equal(first["y"], second["y"])
    assert torch.equal(next(iter(fresh))["y"], first["y"])


def test_in_disjoint_pairs_each_image_stands_once():
    _, first, second, _ = pairs(
        torch.arange(60_000).view(-1, 1, 1), torch.zeros(60_000).long(), pairs=None
    ).drawn(0)

    assert sorted([*first.tolist(), *second.tolist()]) == list(range(20))


def test_a_step_without_a_pair_below_the_bound_teaches_nothing():
    model = system()
    images, labels = IMAGES[LABELS_ > 0], LABELS_[LABELS_ > 0]

    value = loss(images=images, labels=labels, below=1.0)(model, PHASE)
    value.backward()

    assert float(value.detach()) == 0
    assert all(float(p.grad.abs().sum()) == 0 for p in model.encoder.parameters() if p.grad is not None)


def test_a_formula_that_can_not_be_read_is_named():
    with pytest.raises(InvalidExpression, match=r"`formula` 'a\+' can't be read"):
        Operation("a+").table()


def test_random_pairs_are_seeded():
    first, second = random_pairs(LABELS_, 500, 7)

    assert torch.equal(random_pairs(LABELS_, 500, 7)[0], first)
    assert not torch.equal(random_pairs(LABELS_, 500, 8)[0], first)
    assert not torch.equal(first, second)


@pytest.mark.usefixtures("unchecked_types")
def test_images_without_a_label_each_are_refused():
    with pytest.raises(InvalidArgument, match="60 images, 59 labels"):
        pairs(labels=LABELS_[:-1])
