"""MNIST arithmetic: a short search and a short training on the embedded digits, trials that are killed."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
import short_mnist
import torch
from short_mnist import CONDITION, TRAINED, add_short

from eqlearn.errors import Diverged, InvalidArgument, InvalidExpression, InvalidFile, UnknownName
from eqlearn.latent.gauge import Gauge
from eqlearn.latent.images import ImageArithmetic
from eqlearn.nn.eql import EQL
from eqlearn.paper.mnist import recipes, trials
from eqlearn.paper.mnist.digits import load_digits
from eqlearn.paper.mnist.encoder import DigitEncoder
from eqlearn.paper.mnist.measures import asymmetry, composed, evaluate, in_digits, is_right, measures
from eqlearn.paper.mnist.pairs import LATENTS, Operation
from eqlearn.paper.mnist.recipes import RECIPES, SEARCHES, Condition
from eqlearn.paper.mnist.search import as_system, searched, told
from eqlearn.paper.mnist.trials import build, load_system, save_system, trained
from eqlearn.runs.load import load
from eqlearn.symbolic.equation import Equation


@pytest.fixture(scope="module")
def digits():
    return load_digits("digits")


@pytest.fixture(scope="module")
def short():
    with pytest.MonkeyPatch.context() as patch:
        add_short(patch.setattr)
        yield


@pytest.fixture(scope="module")
def whole(short, digits):
    return trained(TRAINED, digits, 3, record_every=5)


@pytest.fixture(scope="module")
def found(short, digits):
    return searched(replace(CONDITION, formula="a*b"), digits, 3)


def once_diverging(function):
    """The function, but that its first call ends as a training does whose loss is not finite."""
    calls = []

    def wrapped(*arguments, **options):
        calls.append(None)
        if len(calls) == 1:
            raise Diverged("only", 3)
        return function(*arguments, **options)

    return wrapped


def same_tensors(one, other):
    first, second = one.state_dict(), other.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


def test_a_short_search_on_the_embedded_digits_finds_the_product(found, digits):
    figures, _ = measures(as_system(found), digits, Operation("a*b"), 3, equation=found.equation)

    assert figures["right_form"]
    assert figures["in_digits"] == "psi_1*psi_2"
    assert figures["train"]["accuracy"] > 0.9
    assert abs(figures["train"]["correlation"]) > 0.98


def test_what_is_told_of_a_search_is_what_was_found(found):
    plain = told(found)

    assert (plain["agreed"], plain["starts"]) == found.agreement
    assert plain["front"][-1] == {
        "law": str(found.front[-1]), "nodes": found.front[-1].complexity, "error": found.front[-1].error,
    }  # fmt: skip
    assert plain["held_error"] == found.held_error


def test_a_law_that_was_found_comes_back_with_an_encoder_of_its_kind(tmp_path, found, digits):
    found.save(tmp_path)

    again = load(tmp_path, encoders=dict.fromkeys(LATENTS, DigitEncoder(digits.side)))

    images = digits.test.images[:20]
    torch.testing.assert_close(again.latent("z_2", images), found.latent("z_2", images))


def test_a_training_that_is_killed_goes_on_to_the_same_end(tmp_path, whole, digits):
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    command = [sys.executable, short_mnist.__file__, str(tmp_path / "state")]
    ended = subprocess.run(command, env=environment, check=False, timeout=250)
    assert ended.returncode == -signal.SIGKILL
    phases = []

    resumed = trained(
        TRAINED, digits, 3, state=tmp_path / "state", record_every=5,
        on_record=lambda record: phases.append((record.phase, record.step)),
    )  # fmt: skip

    assert resumed.resumed
    assert phases[0] == ("fine-tune", 10)
    assert same_tensors(resumed.model, whole.model)
    assert Equation.read(resumed.model, LATENTS) == Equation.read(whole.model, LATENTS)


def test_a_system_comes_back_from_its_files(tmp_path, whole, digits):
    save_system(tmp_path, whole.model, TRAINED, digits.side)

    model, condition = load_system(tmp_path)

    assert condition == TRAINED
    assert same_tensors(model, whole.model)


def test_a_system_whose_file_is_another_is_refused(tmp_path, whole, digits):
    save_system(tmp_path, whole.model, TRAINED, digits.side)
    (tmp_path / "equation.safetensors").replace(tmp_path / "system.safetensors")

    with pytest.raises(InvalidFile, match="no image arithmetic"):
        load_system(tmp_path)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("dataset", ["mnist", "digits"])
def test_every_recipe_makes_a_system_of_its_data(recipe, dataset):
    side = {"mnist": 28, "digits": 8}[dataset]
    images = torch.zeros(2, side, side, dtype=torch.uint8)

    model = build(Condition(recipe=recipe, dataset=dataset), side, 0).eval()

    assert isinstance(model.equation, EQL)
    assert (model.scale, model.offset) == (9.0, 9.0)
    assert model(images, images).shape == (2,)


def test_the_papers_recipe_is_its_text():
    recipe = RECIPES["paper-half"]

    assert [(p.steps, p.lr, p.penalty, p.prune_below) for p in recipe.learn] == [
        (10_000, 1e-2, 0.05, 0.01), (10_000, 1e-4, 0.0, None),
    ]  # fmt: skip
    assert (recipe.batch, recipe.pairs, recipe.augmentation) == (200, None, None)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_keeps_what_its_encoder_is_on_smaller_images(recipe):
    large, small = (Condition(recipe=recipe, dataset=d).full_recipe().encoder for d in ("mnist", "digits"))

    assert {**large, "channels": (16, 32), "kernel": 3} == small


def test_encoders_of_the_recipes_start_as_in_keras():
    encoder = build(Condition(recipe="released-half", dataset="digits"), 8, 0).encoder

    assert not any(p.any() for name, p in encoder.features.named_parameters() if name.endswith("bias"))
    assert encoder.normalise.eps == 1e-3
    bound = (6 / (1 * 9 + 16 * 9)) ** 0.5
    assert 0.8 * bound < float(encoder.features[0].weight.detach().abs().max()) <= bound


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_each_recipe_ends_and_begins_again_after_a_loss_that_is_not_finite(recipe, digits, monkeypatch):
    brief = tuple(replace(phase, steps=3) for phase in RECIPES[recipe].learn)
    monkeypatch.setitem(recipes.RECIPES, recipe, replace(RECIPES[recipe], learn=brief))
    monkeypatch.setattr("eqlearn.paper.mnist.trials.train", once_diverging(trials.train))

    result = trained(Condition(recipe=recipe, dataset="digits"), digits, 0)

    assert result.restarts == 1
    assert torch.isfinite(result.model(*digits.test.images[None, :2].transpose(0, 1))).all()


@pytest.mark.parametrize("recipe", ["paper-l0", "released-l0"])
def test_l0_starts_with_an_uncut_spread_of_a_half_and_a_readout_from_0_to_1(recipe):
    init = RECIPES[recipe].init

    assert (init.first, init.middle, init.truncate, init.uniform_readout) == (0.5, 0.5, None, True)


@pytest.mark.parametrize("dataset", SEARCHES)
def test_a_relu_twin_has_our_encoder_batches_and_steps(dataset):
    condition = Condition(dataset=dataset, network="relu")
    search, twin = recipes.SEARCHES[dataset], condition.full_recipe()

    steps = sum(phase.steps for phase in twin.learn)
    assert steps == search.settings.warm_steps + search.settings.refine_steps
    assert (twin.batch, twin.pairs, twin.augmentation) == (search.batch, search.pairs, search.augmentation)
    assert isinstance(build(condition, 8, 0).encoder, DigitEncoder)
    assert not condition.searched


def test_a_relu_twin_of_the_papers_is_trained_without_a_penalty():
    twin = Condition(recipe="paper-half", network="relu").full_recipe()

    assert [p.steps for p in twin.learn] == [p.steps for p in RECIPES["paper-half"].learn]
    assert all(p.penalty == 0 and p.prune_below is None for p in twin.learn)


def test_an_unknown_recipe_is_named():
    with pytest.raises(UnknownName, match=r"'papre-half'.* modern, paper-half"):
        Condition(recipe="papre-half").full_recipe()


@pytest.mark.parametrize("formula", ["a+", "a+c", "__import__('os')", "lambda: 0"])
def test_what_is_no_formula_of_two_labels_is_refused(formula):
    with pytest.raises(InvalidExpression):
        Condition(formula=formula).check()


def test_a_bound_below_every_result_is_refused():
    with pytest.raises(InvalidArgument, match="they begin at -9"):
        Condition(formula="a-b", below=-9.0).check()


def test_conditions_have_names_of_their_own():
    conditions = [
        Condition(), Condition(recipe="paper-half"), Condition(dataset="digits"), Condition(formula="a*b"),
        Condition(formula="a-b"), Condition(below=15.0), Condition(below=15.0, network="relu"),
    ]  # fmt: skip

    names = {condition.name for condition in conditions}

    assert len(names) == len(conditions)
    assert not any(set("/\\*") & set(name) for name in names)


class KnownLatents(torch.nn.Module):
    """Gives each image the latent that belongs to the digit written in its first pixel."""

    def __init__(self, latents):
        super().__init__()
        self.latents = latents

    def forward(self, images):
        return self.latents[images[:, 0, 0].long()][:, None]


def labelled(digits):
    """The same labels, with images that tell them."""
    train = replace(digits.train, images=digits.train.labels[:, None, None].expand(-1, 8, 8).to(torch.uint8))
    return replace(digits, train=train, test=train)


def exact_system(latents, equation):
    """An encoder without error, and a module that computes `equation` of two latents, in units of 9."""
    head = torch.nn.Module()
    head.forward = lambda z: (equation(z[:, :1], z[:, 1:]) - 9) / 9
    return ImageArithmetic(KnownLatents(latents), head)


def test_a_bent_latent_that_the_equation_undoes_has_no_error(digits):
    psi = torch.arange(10.0)
    model = exact_system((psi / 9).sqrt(), lambda a, b: 9 * a**2 + 9 * b**2)

    figures, evaluations = measures(model, labelled(digits), Operation(), 0)

    assert figures["composed_error"] < 1e-5
    assert figures["test"]["accuracy"] == 1.0
    assert abs(figures["test"]["correlation"]) < 0.99
    torch.testing.assert_close(composed(model, evaluations["train"], Operation())[:, 2], psi + 5)


def test_results_below_and_from_the_bound_are_counted_apart(digits):
    psi = torch.arange(10.0)
    model = exact_system(psi, lambda a, b: (a + b).clamp(max=14))

    figures = evaluate(model, labelled(digits).test, Operation(), 0).plain(15.0)

    assert (figures["accuracy_below_bound"], figures["accuracy_from_bound"]) == (1.0, 0.0)


def test_where_no_result_is_from_the_bound_on_there_is_no_accuracy(digits):
    model = exact_system(torch.arange(10.0), lambda a, b: a + b)

    assert evaluate(model, labelled(digits).test, Operation(), 0).plain(19.0)["accuracy_from_bound"] is None


def test_an_equation_is_rewritten_in_units_of_the_digit():
    gauge = Gauge(-2.0, 4.5)
    equation = Equation.parse("-2.001*z_1 - 1.998*z_2 + 9.0", LATENTS)

    assert str(in_digits(equation, gauge)) == "psi_1 + psi_2"


@pytest.mark.parametrize(
    ("formula", "operation", "right"),
    [
        ("z_1 + z_2", "a+b", True),
        ("-5.8*z_1 - 5.8*z_2 + 9", "a+b", True),
        ("-5.8*z_1 - 5.4*z_2 + 9", "a+b", False),
        ("z_1 - z_2", "a+b", False),
        ("z_1 - z_2", "a-b", True),
        ("500*sin(0.002*z_1) + 500*sin(0.002*z_2)", "a+b", False),
        ("z_1*z_2", "a*b", True),
        ("(2*z_1 + 1)*(2*z_2 + 1)", "a*b", True),
        ("z_1*z_2 - 3", "a*b", False),
    ],
)
def test_a_law_is_right_up_to_unit_and_zero_of_the_latent(formula, operation, right):
    near = Gauge(1.0, 0.1)  # where the search for a line begins, and not where all of these are right

    assert is_right(Equation.parse(formula, LATENTS), Operation(operation), near) is right


@pytest.mark.parametrize("sign", [1, -1])
def test_coefficients_are_compared_by_their_size(sign):
    equation = Equation.parse(f"2.02*z_1 + {sign * 1.98}*z_2 + 1", LATENTS)

    assert asymmetry(equation) == pytest.approx(0.02)


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest.mark.skipif("EQLEARN_DATA" not in os.environ, reason="EQLEARN_DATA names no folder with MNIST")
@pytest.mark.parametrize(("below", "key"), [(None, "accuracy"), (15.0, "accuracy_from_bound")])
def test_one_full_search_reaches_the_table(unchecked_types, below, key):
    data = load_digits("mnist")

    law = searched(Condition(below=below), data, 0)
    figures, _ = measures(as_system(law), data, Operation(), 0, equation=law.equation)

    assert figures["in_digits"] == "psi_1 + psi_2"
    assert figures["test"][key] >= 0.97
    assert abs(figures["test"]["correlation"]) >= 0.995
