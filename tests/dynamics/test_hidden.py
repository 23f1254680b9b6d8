import numpy as np
import pytest

from eqlearn.dynamics.hidden import discover_hidden
from eqlearn.errors import InvalidArgument, UnknownName
from moving import series_of

STIFFNESS = np.array([0.5, 0.8, 1.2, 1.7, 2.1, 2.6])
SMALL = {"primitives": "id mul", "hidden_layers": 1, "restarts": 20}


def springs(noise=0.0, damping=0.23, stiffness=STIFFNESS):
    """One series for each stiffness, each from a start of its own."""
    return [
        series_of(lambda t, s, k=k: [s[1], -k * s[0] - damping * s[1]], [[1, 0.1 * i]], 8, 0.1, noise, i)[0]
        for i, k in enumerate(stiffness)
    ]


@pytest.fixture(scope="module")
def found():
    return discover_hidden(springs(noise=0.01), dt=0.1, names=["x", "v"], **SMALL)


def test_the_constant_that_differs_becomes_a_variable(found):
    assert found.found.variables == ("x", "v", "z")
    assert {str(s) for s in found.equations[1].expr.free_symbols} == {"x", "v", "z"}


def test_noise_adds_no_term(found):
    assert str(found.equations[0]) == "v"
    assert len(found.equations[1].expr.expand().args) == 2


def test_every_series_has_its_parameter_within_four_standard_errors(found):
    off = np.abs(found.latents[:, 0] - STIFFNESS) / found.latent_errors[:, 0]

    assert (off < 4).all()
    assert (found.latent_errors[:, 0] < 0.05 * STIFFNESS).all()


def test_a_constant_that_is_the_same_everywhere_has_an_error_that_covers_the_truth(found):
    (damping,) = found.found.best.constants[1]

    assert 0 < damping.standard_error < 0.02
    assert abs(abs(damping.value) - 0.23) < 4 * damping.standard_error


def test_what_was_found_can_be_simulated_with_any_parameter(found):
    true = series_of(lambda t, s: [s[1], -3 * s[0] - 0.23 * s[1]], [[0.5, 0]], 4, 0.1)[0]

    np.testing.assert_allclose(found.simulate([0.5, 0], 40, latents=[3.0]), true, atol=0.02)


def test_a_parameter_is_needed_for_a_simulation(found):
    with pytest.raises(InvalidArgument, match="`latents` must hold 1 number"):
        found.simulate([0.5, 0], 40)


@pytest.mark.parametrize(
    ("series", "options", "message"),
    [
        (springs()[:4], {"dt": 0.1}, "give at least 5 series"),
        (springs(), {"dt": 0.1, "latents": 0}, "0 hidden parameter"),
        (springs(), {}, "`dt`, the step of time, is not given"),
        ([*springs(), springs()[0][:3]], {"dt": 0.1}, "has 3 times, too few"),
        (springs(), {"dt": 0.1, "seconds": -3.0}, "`seconds` must be positive, got -3"),
        (springs(), {"dt": 0.1, "names": ["x", "z"]}, "a state is named z, as hidden parameters are"),
    ],
)
def test_what_can_not_show_a_parameter_is_refused_at_once(series, options, message):
    with pytest.raises(InvalidArgument, match=message):
        discover_hidden(series, **options)


def test_an_unknown_form_is_refused():
    with pytest.raises(UnknownName, match="no `form` of dynamics named 'pde'"):
        discover_hidden(springs(), "pde", dt=0.1)


def test_series_of_one_system_have_no_hidden_parameter():
    same = springs(stiffness=np.full(5, 1.3))

    with pytest.raises(InvalidArgument, match="no constant of the equations of motion differs"):
        discover_hidden(same, dt=0.1, names=["x", "v"], **SMALL)
