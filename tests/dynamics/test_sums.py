import numpy as np
import pytest

from eqlearn.dynamics.library import allowed_shapes
from eqlearn.dynamics.settings import MotionSettings
from eqlearn.dynamics.sums import TermSearch
from eqlearn.dynamics.weak import WeakForm
from eqlearn.errors import InvalidArgument
from eqlearn.search.settings import SCIENCE

X = np.random.default_rng(0).uniform(0.3, 3.0, size=(100, 1))
SCIENTIFIC = allowed_shapes(SCIENCE)


def found(target, allowed=SCIENTIFIC, degree=8):
    search = TermSearch(X, allowed, degree)
    return search.candidates(WeakForm(np.eye(len(X)), target))


def test_the_best_sum_is_the_shortest_that_is_exact():
    best = found(0.4 * X[:, 0] - 1.2 * np.sin(X[:, 0]))[0]

    assert len(best.terms) == 2
    assert sorted(round(f, 9) for f in best.factors) == [-1.2, 0.4]


def test_a_constant_inside_a_term_is_tuned():
    best = found(X[:, 0] - 2 * X[:, 0] / (0.83 + X[:, 0]))[0]
    (atom,) = best.atoms

    assert len(best.terms) == 2
    assert np.isclose(atom.constants[0], 0.83, rtol=1e-3)


@pytest.mark.parametrize(("middle", "slope"), [(2.9, 1.7), (0.5, 0.2)])
def test_a_function_with_two_constants_is_found_however_gentle(middle, slope):
    best = found(0.4 - X[:, 0] + 2 / (1 + np.exp(slope * X[:, 0] - middle)))[0]

    (atom,) = best.atoms
    assert len(best.terms) == 3
    assert np.allclose(np.abs(atom.constants), [middle, slope], rtol=1e-3)


def test_of_exact_values_longer_sums_are_kept_too():
    sums = found(X[:, 0] + 0.3 * X[:, 0] ** 2)

    assert len({len(one.terms) for one in sums}) > 2
    assert len(sums[0].terms) == 2


def test_in_noise_the_true_terms_come_first():
    noise = 0.02 * np.random.default_rng(1).standard_normal(100)

    best = found(X[:, 0] - 0.3 * X[:, 0] ** 3 + noise)[0]

    assert [term.powers for term in best.terms] == [(1,), (3,)]


def test_the_equation_is_the_sum():
    best = found(0.4 * X[:, 0] - 1.2 * np.sin(X[:, 0]))[0]

    np.testing.assert_allclose(best.equation(["x"])(X), 0.4 * X[:, 0] - 1.2 * np.sin(X[:, 0]), atol=1e-9)


def test_settings_that_can_not_be_are_refused():
    with pytest.raises(InvalidArgument, match="`max_terms`"):
        MotionSettings(max_terms=0)
    with pytest.raises(InvalidArgument, match="`corner_deviations`"):
        MotionSettings(corner_deviations=0.0)
