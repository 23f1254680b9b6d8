"""Arithmetic on images: the result, its gradients, its pairs, its formula."""

import pytest
import torch

from eqlearn.errors import InvalidArgument, InvalidExpression
from eqlearn.latent.arithmetic import ImageArithmetic
from eqlearn.latent.images import ImageEncoder
from eqlearn.nn.eql import EQL
from eqlearn.nn.penalties import sparsity
from eqlearn.nn.sparse import prune_
from eqlearn.paper.baselines import relu_network
from eqlearn.paper.mnist.pairs import Operation, PairLoss, random_pairs
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


def loss(**options):
    return PairLoss(IMAGES, LABELS_, Operation("a+b"), **{"batch": 20, "pairs": 50, **options})


@pytest.mark.parametrize(
    ("formula", "a", "b", "result", "scale", "offset"),
    [
        ("a+b", 7, 8, 15, 9, 9),
        ("a-b", 2, 9, -7, 9, 0),
        ("a*b", 6, 7, 42, 40.5, 40.5),
        ("(a+b)^2", 1, 2, 9, 162, 162),
    ],
)
def test_an_operation_knows_its_results_and_their_range(formula, a, b, result, scale, offset):
    operation = Operation(formula)

    assert float(operation.table()[a, b]) == result
    assert (operation.scale, operation.offset) == (scale, offset)


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


def test_pairs_that_are_not_below_the_bound_are_never_seen():
    seen = []

    class Spy(ImageArithmetic):
        def combine(self, first, second):
            seen.append(first + second)
            return super().combine(first, second)

    labels_as_latents = torch.nn.Module()
    labels_as_latents.forward = lambda images: images[:, 0, :1].float()
    images = LABELS_[:, None, None].expand(60, 8, 8).to(torch.uint8)
    model = Spy(labels_as_latents, EQL(2, 1, seed=0))

    PairLoss(images, LABELS_, Operation("a+b"), batch=40, pairs=400, below=15.0)(model, PHASE)

    assert float(seen[0].max()) == 14


def test_a_step_without_a_pair_below_the_bound_teaches_nothing():
    model = system()
    images, labels = IMAGES[LABELS_ > 0], LABELS_[LABELS_ > 0]

    value = PairLoss(images, labels, Operation("a+b"), batch=20, pairs=50, below=1.0)(model, PHASE)
    value.backward()

    assert float(value.detach()) == 0
    assert all(float(p.grad.abs().sum()) == 0 for p in model.encoder.parameters() if p.grad is not None)


class Always(ImageArithmetic):
    """A system that says the same number for every pair."""

    def __init__(self, number):
        super().__init__(ImageEncoder(8, channels=(2,), kernel=3, dense=(4,)), EQL(2, 1, seed=0))
        self.number = number

    def combine(self, first, second):
        return torch.full((len(first),), self.number)


@pytest.mark.parametrize(("said", "cost"), [(0.5, 0.25), (1.0, 1.0), (-7.0, 13.0)])
def test_a_large_error_counts_by_its_size_where_huber_says_so(said, cost):
    zeros = PairLoss(IMAGES, torch.zeros_like(LABELS_), Operation("a+b"), batch=20, pairs=50, huber=1.0)

    assert float(zeros(Always(said), PHASE)) == pytest.approx(cost)


def test_a_huber_that_is_not_positive_is_refused():
    with pytest.raises(InvalidArgument, match="`huber` must be positive"):
        loss(huber=0.0)


def test_a_formula_that_can_not_be_read_is_named():
    with pytest.raises(InvalidExpression, match=r"`formula` 'a\+' can't be read"):
        Operation("a+").table()


def test_random_pairs_are_seeded_and_keep_to_what_is_allowed():
    allowed = Operation("a+b").table() >= 15

    first, second = random_pairs(LABELS_, 500, 7, allowed)

    assert torch.equal(random_pairs(LABELS_, 500, 7, allowed)[0], first)
    assert len(first) > 0
    assert bool((LABELS_[first] + LABELS_[second] >= 15).all())


@pytest.mark.usefixtures("unchecked_types")
def test_images_without_a_label_each_are_refused():
    with pytest.raises(InvalidArgument, match="60 images, 59 labels"):
        PairLoss(IMAGES, LABELS_[:-1], Operation())
