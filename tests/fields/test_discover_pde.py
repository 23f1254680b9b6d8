"""Equations are found from fields, clean and noisy, and bad input is refused in a sentence."""

import numpy as np
import pytest

import made_fields as made
from eqlearn import Field, FieldSettings, InvalidArgument, NotFinite, WrongType, discover_pde
from eqlearn.errors import UnknownName

AXES = {"x": made.X, "t": made.T}


@pytest.fixture(scope="module")
def burgers():
    return made.burgers()


@pytest.fixture(scope="module")
def found_burgers(burgers):
    return discover_pde({"u": burgers}, AXES)


def terms(equation):
    """The coefficients of an equation's terms by name."""
    found = {}
    for term in equation.expr.as_ordered_terms():
        number, rest = term.as_coeff_Mul()
        found[str(rest)] = float(number)
    return found


@pytest.mark.parametrize(("level", "tolerance"), [(0.01, 0.02), (0.2, 0.2)])
def test_burgers_equation_is_found_in_noise(burgers, level, tolerance):
    found = discover_pde({"u": made.with_noise(burgers, level)}, AXES)

    assert terms(found.equations[0]) == pytest.approx({"u*u_x": -1.0, "u_xx": 0.3}, rel=tolerance)
    assert found.targets == ("u_t",)
    assert found.unexplained == ()


def test_clean_burgers_equation_is_found_exactly(found_burgers):
    assert found_burgers.equations[0].matches("-u*u_x + 0.3*u_xx", tolerance=1e-12)
    assert found_burgers.constants == ((),)


def test_the_order_of_dimensions_is_that_of_the_axes(burgers):
    found = discover_pde({"u": burgers.T}, {"t": made.T, "x": made.X}, "t")

    assert terms(found.equations[0]) == pytest.approx({"u*u_x": -1.0, "u_xx": 0.3}, rel=1e-5)


def test_a_part_that_is_not_periodic_has_the_same_equation(burgers):
    found = discover_pde({"u": burgers[10:75]}, {"x": made.X[10:75], "t": made.T})

    assert found.data.periodic == frozenset()
    assert terms(found.equations[0]) == pytest.approx({"u*u_x": -1.0, "u_xx": 0.3}, rel=1e-3)


def test_uneven_times_do(burgers):
    some = np.sort(np.random.default_rng(1).choice(len(made.T), 60, replace=False))

    found = discover_pde({"u": burgers[:, some]}, {"x": made.X, "t": made.T[some]})

    assert terms(found.equations[0]) == pytest.approx({"u*u_x": -1.0, "u_xx": 0.3}, rel=1e-2)


def test_holes_are_left_out_if_asked(burgers):
    holes = burgers.copy()
    holes[20:24, 30:34] = np.nan

    found = discover_pde({"u": holes}, AXES, masked=True)

    assert terms(found.equations[0]) == pytest.approx({"u*u_x": -1.0, "u_xx": 0.3}, rel=1e-3)


def test_several_experiments_are_taken_together():
    each = [made.solved(lambda u: [0.2 * made.d(u, 2) - u**3], made.start(seed))[0] for seed in (1, 2)]

    found = discover_pde([{"u": u} for u in each], AXES)

    assert terms(found.equations[0]) == pytest.approx({"u_xx": 0.2, "u**3": -1.0}, rel=1e-4)


def test_a_field_at_rest_may_carry_another():
    u = made.solved(lambda u: [0.2 * made.d(u, 2) - V * u], made.start(1))[0]
    fields = {"u": u, "V": np.broadcast_to(V[:, None], u.shape)}

    found = discover_pde(fields, AXES, targets=["u"])

    assert terms(found.equations[0]) == pytest.approx({"u_xx": 0.2, "V*u": -1.0}, rel=1e-3)


V = 1 + 0.5 * np.cos(2 * np.pi * made.X / 20)


def test_a_wave_has_second_order_in_time():
    k = 2 * np.pi * np.arange(1, 5)[:, None, None] / 20
    size = np.random.default_rng(0).normal(size=(4, 1, 1))
    u = (size * np.sin(k * made.X[:, None] + size) * np.cos(1.5 * k * made.T)).sum(0)

    found = discover_pde({"u": made.with_noise(u, 0.01)}, AXES, order=2)

    assert found.targets == ("u_tt",)
    assert terms(found.equations[0]) == pytest.approx({"u_xx": 2.25}, rel=1e-2)


def test_two_fields_have_two_equations():
    u, v = made.solved(lambda u, v: [-0.5 * made.d(v, 2), 0.5 * made.d(u, 2)], made.start(1), made.start(2))

    found = discover_pde({"u": u, "v": v}, AXES)

    assert [terms(e) for e in found.equations] == [{"v_xx": -0.5}, {"u_xx": 0.5}]


def test_a_square_of_a_slope_is_found():
    u = made.solved(lambda u: [0.5 * made.d(u, 2) + 0.7 * made.d(u) ** 2], made.start())[0]

    found = discover_pde({"u": u}, AXES)

    assert terms(found.equations[0]) == pytest.approx({"u_xx": 0.5, "u_x**2": 0.7}, rel=1e-3)


def test_the_strong_form_finds_clean_equations(burgers):
    found = discover_pde({"u": burgers}, AXES, form="strong")

    assert terms(found.equations[0]) == pytest.approx({"u*u_x": -1.0, "u_xx": 0.3}, rel=1e-2)


def test_constants_have_standard_errors_that_cover_the_truth(burgers):
    found = discover_pde({"u": made.with_noise(burgers, 0.1, seed=3)}, AXES)
    (constants,) = found.constants

    assert len(constants) == len(found.equations[0].constants)
    for constant, truth in zip(constants, (0.3,), strict=False):
        assert abs(abs(constant.value) - truth) < 5 * constant.standard_error < truth


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.0, 0.01])
def test_a_function_of_the_field_is_found(level):
    u = made.solved(lambda u: [0.3 * made.d(u, 2) + np.sin(2 * u)], made.start(), times=T_SHORT)[0]

    found = discover_pde({"u": made.with_noise(u, level)}, {"x": made.X, "t": T_SHORT})

    assert found.equations[0].matches("0.3*u_xx + sin(2*u)", box=(-1.5, 1.5), tolerance=0.05)


T_SHORT = np.linspace(0, 2, 81)


def bad(message, kind, fields, axes=AXES, **options):
    with pytest.raises(kind, match=message) as caught:
        discover_pde(fields, axes, **options)
    assert "\n" not in str(caught.value)


def test_bad_input_is_refused_in_a_sentence(burgers):
    u = {"u": burgers}
    hole = burgers.copy()
    hole[0, 0] = np.nan
    bad("but the axes have x: 96", InvalidArgument, {"u": burgers[:-1]})
    bad("1 NaN", NotFinite, {"u": hole})
    bad("is complex", InvalidArgument, {"u": burgers + 1j})
    bad("at rest", InvalidArgument, {"u": np.broadcast_to(burgers[:, :1], burgers.shape)})
    bad("too few", InvalidArgument, {"u": burgers[:, :5]}, {"x": made.X, "t": made.T[:5]})
    bad("at rest", InvalidArgument, {"u": np.ones_like(burgers)})
    bad("nothing but NaN", NotFinite, {"u": burgers * np.nan}, masked=True)
    bad("axis x must hold numbers", WrongType, u, {"x": made.X.astype(str), "t": made.T})
    bad("rise", InvalidArgument, u, {"x": made.X[::-1], "t": made.T})
    bad("`axes`", WrongType, u, [made.X, made.T])
    bad("`axes`", InvalidArgument, u, None)
    bad("no axis named 'time'", UnknownName, u, time="time")
    bad("`order`", InvalidArgument, u, order=3)
    bad("no form named", UnknownName, u, form="string")
    bad("no field named 'w'", UnknownName, u, targets=["w"])
    bad("underscore", InvalidArgument, {"u_1": burgers})
    bad("`settings`", WrongType, u, settings={})
    bad("`fields`", WrongType, burgers)
    checkers = (-1.0) ** np.add.outer(np.arange(96), np.arange(81)) * (1 + 0.1 * burgers)
    bad("too coarse", InvalidArgument, {"u": checkers})


def test_a_field_holds_time_last_and_sees_what_is_periodic(burgers):
    field = Field({"u": burgers.T}, {"t": made.T, "x": made.X})

    assert tuple(field.axes) == ("x", "t")
    assert field.experiments[0]["u"].shape == (96, 81)
    assert field.periodic == {"x"}
    assert Field({"u": burgers}, AXES, periodic=False).periodic == frozenset()


def test_a_simulation_follows_the_data(burgers, found_burgers):
    found = found_burgers

    simulated = found.simulate({"u": burgers[:, 0]}, made.T)["u"]

    assert np.abs(simulated - burgers).max() < 1e-3
    finer = np.linspace(0, 20, 192, endpoint=False)
    again = found.simulate(np.interp(finer, made.X, burgers[:, 40], period=20), made.T[:5], axes={"x": finer})
    assert again["u"].shape == (192, 5)
    with pytest.raises(InvalidArgument, match="`start`"):
        found.simulate(burgers[:-1, 0], made.T)
    with pytest.raises(NotFinite, match="`start` holds NaN"):
        found.simulate(np.nan * burgers[:, 0], made.T)
    with pytest.raises(InvalidArgument, match="`times`"):
        found.simulate(burgers[:, 0], made.T[::-1])


def test_a_simulation_that_blows_up_is_nan_from_there_on():
    u = made.solved(lambda u: [0.1 * made.d(u, 2) + u**2], made.start(size=0.3), times=T_SHORT)[0]
    found = discover_pde({"u": u}, {"x": made.X, "t": T_SHORT})

    simulated = found.simulate(np.full(96, 2.0), np.linspace(0, 1, 21))["u"]

    assert np.isfinite(simulated[:, :5]).all()
    assert np.isnan(simulated[:, -1]).all()


def test_constants_are_refined_through_the_motion():
    x, t = np.linspace(0, 10, 24, endpoint=False), np.linspace(0, 4, 31)
    waves = (np.cos(k * (2 * np.pi / 10) * x + k) * 0.8**k for k in (1, 2, 3))
    decays = (np.exp(-0.317 * (2 * np.pi * k / 10) ** 2 * t) for k in (1, 2, 3))
    u = sum(w[:, None] * d for w, d in zip(waves, decays, strict=True))
    settings = FieldSettings(start_waves=12, motion_steps=3)
    found = discover_pde({"u": made.with_noise(u, 0.1)}, {"x": x, "t": t}, settings=settings)

    refined = found.refined()

    (before,), (after,) = found.constants[0], refined.constants[0]
    assert after.standard_error < before.standard_error / 2
    assert abs(after.value - 0.317) < 3 * after.standard_error
    assert refined.found.best.equations == refined.equations


def test_motion_that_can_not_be_followed_leaves_constants_as_they_are(burgers):
    found = discover_pde({"u": made.with_noise(burgers, 0.2)}, AXES)

    assert found.refined(seconds=1e-9) is found
    with pytest.raises(InvalidArgument, match="candidates"):
        found.refined(candidates=0)


def test_a_field_that_is_larger_than_allowed_is_seen_through_its_liveliest_box(tmp_path):
    x, t = np.linspace(0, 20, 160), np.linspace(0, 4, 160)
    u = np.lib.format.open_memmap(tmp_path / "u.npy", "w+", ">f8", (160, 160))
    u[:] = np.exp(-0.5 * (x[:, None] - 14) ** 2 / (1 + t)) / np.sqrt(1 + t)
    settings = FieldSettings(max_values=6400, boxes=9)

    found = discover_pde({"u": u}, {"x": x, "t": t}, settings=settings)

    assert found.data.shape == (80, 80)
    assert found.data.axes["x"][0] > 9
    assert found.equations[0].matches("0.5*u_xx", tolerance=1e-3)


def test_latex_has_partial_derivatives(found_burgers):
    found = found_burgers

    assert found.latex().startswith(r"\frac{\partial u}{\partial t} = ")
    assert r"\frac{\partial^{2} u}{\partial x^{2}}" in found.latex()
