"""The regressor with groups."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from eqlearn import Constant, EQLRegressor, UnknownName, WrongType
from eqlearn.errors import InvalidArgument
from eqlearn.report.figures import constants_frame

RNG = np.random.default_rng(0)
G = pd.Series([f"s{i}" for i in range(6)], name="sample").repeat(12).reset_index(drop=True)
X = pd.DataFrame({"x": RNG.uniform(0.5, 3, len(G))})
K = dict(zip(G.unique(), RNG.uniform(1, 2, 6), strict=True))
Y = 3 * X["x"] + G.map(K)


@pytest.fixture(scope="module")
def model():
    return EQLRegressor().fit(X, Y, groups=G)


def test_the_equation_names_what_varies_and_the_table_has_its_values(model):
    assert str(model.equation_) == "c1[sample] + 3*x"
    assert model.constants_["sample"].tolist() == list(K)
    np.testing.assert_allclose(model.constants_["c1[sample]"], list(K.values()), rtol=1e-8)
    assert model.noise_ < 1e-9


def test_predictions_need_the_group_of_each_row(model):
    np.testing.assert_allclose(model.predict(X[:20], groups=G[:20]), Y[:20])
    np.testing.assert_allclose(model.predict(X[:1], groups="s0"), Y[:1])
    np.testing.assert_allclose(model.predict(X.assign(sample=G)[:20], groups="sample"), Y[:20])
    with pytest.raises(InvalidArgument, match="give `groups`"):
        model.predict(X)
    with pytest.raises(UnknownName, match=r"'s9'.*`new_group`"):
        model.predict(X[:1], groups=["s9"])
    with pytest.raises(UnknownName, match="`groups` names no column of `X`: 'nope'"):
        EQLRegressor().fit(X, Y, groups="nope")


def test_the_score_knows_the_groups(model):
    assert model.score(X, Y, groups=G) == pytest.approx(1.0)


def test_the_table_has_the_shared_constants_beside_those_that_vary(model):
    best = replace(model.found_.best, constants=((Constant(3.1, 0.2),),))

    frame = constants_frame(best, ["y"])

    assert list(frame.columns[1:]) == ["c1[sample]", "c1[sample] standard error", "c1", "c1 standard error"]
    assert frame["c1"].tolist() == [3.1] * 6


def test_a_new_group_is_fitted_to_its_rows(model, unchecked_types):
    known = pd.DataFrame({"x": [1.0, 2.0]})

    predicted = model.predict(pd.DataFrame({"x": [3.0]}), new_group=(known, [4.4, 7.4]))

    assert predicted.tolist() == pytest.approx([10.4])
    with pytest.raises(WrongType, match="`new_group` must be a pair"):
        model.predict(X[:1], new_group=3)
    with pytest.raises(InvalidArgument, match="`groups` can't be used with `new_group`"):
        model.predict(X[:1], new_group=(known, [4.4, 7.4]), groups=["s0"])
    with pytest.raises(InvalidArgument, match="`X` has no column 'x'"):
        model.predict(X[:1], new_group=(known.rename(columns={"x": "z"}), [4.4, 7.4]))


def test_the_order_of_rows_does_not_matter(model):
    order = RNG.permutation(len(G))

    shuffled = EQLRegressor().fit(X.iloc[order], Y.iloc[order], groups=G.iloc[order])

    assert str(shuffled.equation_) == str(model.equation_)


def test_figures_know_the_groups(model):
    assert model.plot("predictions").axes


def test_groups_can_t_be_used_with_a_preset():
    with pytest.raises(InvalidArgument, match="`groups` can't be used with the preset"):
        EQLRegressor(settings="paper", restarts=1).fit(X, Y, groups=G)


def test_a_column_that_varies_the_constants_is_told_by_name():
    frame = X.assign(t=np.linspace(1, 2, 6).repeat(12))

    model = EQLRegressor().fit(frame, frame["t"] * frame["x"] ** 2, varies="t")

    assert model.equation_.matches("t*x**2")
    np.testing.assert_allclose(model.predict(frame[:3]), (frame["t"] * frame["x"] ** 2)[:3])
