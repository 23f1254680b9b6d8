"""Laws as sums of terms."""

import numpy as np
import pytest

from eqlearn.latent.film.laws import ONE, TWO, Structure, known_terms, structures
from eqlearn.search.settings import SCIENCE


@pytest.mark.parametrize("term", [*ONE, *TWO], ids=lambda t: t.name)
def test_a_term_is_the_same_in_numbers_and_in_symbols(term):
    count = 1 if term in ONE else 2
    q, v = np.random.default_rng(0).uniform(0.3, 1.5, size=(2, count, 5))
    structure = Structure((term,), count, 2)
    numbers = [1.5 + k for k in range(term.coefficients)]

    symbols = structure.equations(numbers)[count:]

    expected = np.einsum("c,ckr->kr", numbers, term.values(q, v))
    for equation, row in zip(symbols, expected, strict=True):
        np.testing.assert_allclose(equation(np.concatenate([q, v]).T), row)


@pytest.mark.parametrize("term", [t for t in (*ONE, *TWO) if t.degrees], ids=lambda t: t.name)
def test_a_term_scales_with_its_unit_as_it_says(term):
    q, v = np.random.default_rng(0).uniform(0.3, 1.5, size=(2, 1 if term in ONE else 2, 5))

    larger = term.values(2 * q, 2 * v)

    np.testing.assert_allclose(larger, 2.0 ** sum(term.degrees) * term.values(q, v))


def test_no_law_is_listed_that_a_shift_makes_shorter():
    listed = {s.key for s in structures(known_terms(1, 2, SCIENCE), 2, 1, 2)}

    assert frozenset({"q", "v"}) in listed
    assert frozenset({"1", "q"}) not in listed


def test_a_law_of_first_order_has_no_velocities_and_none_has_functions_that_are_not_allowed():
    assert not {t.name for t in known_terms(1, 1, SCIENCE)} & {"v", "qv", "v2"}
    assert {t.name for t in known_terms(1, 2, "id")} == {"1", "q", "v"}


def test_every_number_of_a_law_keeps_its_place():
    structure = Structure(tuple(t for t in ONE if t.name in ("v", "q3", "sin")), 1, 2)
    turned = Structure(structure.terms[::-1], 1, 2)
    numbers = np.array([-2.0, 0.3, 1.7])

    values = [s.field.values(np.array([[0.4, 0.9]]), s.shares @ n)
              for s, n in ((structure, numbers), (turned, numbers[::-1]))]  # fmt: skip

    np.testing.assert_allclose(values[0], values[1])
    both = {t.name: n for t, n in zip(structure.terms, numbers, strict=True)}
    expected = both["sin"] * np.sin(0.4) + both["q3"] * 0.4**3 + both["v"] * 0.9
    np.testing.assert_allclose(values[0], [[0.9, expected]])


def test_equations_may_share_a_number():
    structure = Structure(tuple(t for t in TWO if t.name == "r-3q"), 2, 2)

    rate = structure.field.values(np.array([[3.0, 4.0, 0.1, 0.2]]), structure.shares @ np.array([-50.0]))

    np.testing.assert_allclose(rate, [[0.1, 0.2, -1.2, -1.6]])
