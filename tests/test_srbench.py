"""The adapter keeps SRBench's contract, its layout is read, and its protocol runs and resumes here."""

import gzip
import importlib
import importlib.util
import inspect
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sympy as sp
import yaml
from sklearn.base import clone, is_regressor

from eqlearn import EqlearnError, InvalidFile

SRBENCH = Path(__file__).parent.parent / "benchmarks" / "srbench"
sys.path.append(str(SRBENCH))
layout, regressor = map(importlib.import_module, ("layout", "regressor"))
# Not by its name: the comparison with peers has a `run`, too.
_spec = importlib.util.spec_from_file_location("srbench_run", SRBENCH / "run.py")
run = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(run)

METADATA = """\
# made up
dataset: {name}
description: |
    A made-up law, for a test.

    F = {formula}

    mu in [1.0,5.0]
publication: Somebody: a title with a colon
task: {task}
features:
  - name: mu
"""


@pytest.fixture
def write(tmp_path):
    """Writes a data set in SRBench's layout."""

    def write(name="made_up", formula="mu*Nn + 0.5", task="regression", rows=80, table=None):
        rng = np.random.default_rng(0)
        if table is None:
            table = pd.DataFrame(rng.uniform(1, 5, (rows, 2)), columns=["mu", "Nn"])
            table["target"] = table["mu"] * table["Nn"] + 0.5
        folder = tmp_path / "data" / name
        folder.mkdir(parents=True)
        table.to_csv(folder / f"{name}.tsv.gz", sep="\t", index=False)
        (folder / "metadata.yaml").write_text(METADATA.format(name=name, formula=formula, task=task))
        return folder

    return write


# --- the adapter -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    X = pd.DataFrame(np.random.default_rng(1).uniform(1, 3, (60, 2)), columns=["mass", "speed"])
    return X, (0.5 * X["mass"] * X["speed"] ** 2 + 0.1 * np.sin(9 * X["mass"])).to_numpy()


@pytest.fixture(scope="module", params=["a frame", "an array"])
def fitted(table, request):
    X, y = table
    est = clone(regressor.est).set_params(seconds=2.0)
    est.random_state = 860  # as SRBench sets it
    return est.fit(X if request.param == "a frame" else X.to_numpy(), y)


def test_the_estimator_is_a_regressor_that_knows_its_limit():
    assert is_regressor(regressor.est)
    assert regressor.est.seconds < 3600
    assert hasattr(regressor.est, "random_state")
    assert "X" in inspect.signature(regressor.model).parameters


def test_test_params_are_parameters():
    clone(regressor.est).set_params(**regressor.eval_kwargs["test_params"])


def test_the_model_is_text_for_sympy_in_the_columns_own_names(fitted, table):
    X, _ = table
    text = regressor.model(fitted, X)
    symbols = {name: sp.Symbol(name) for name in X.columns}

    expr = sp.parse_expr(text, local_dict=symbols)

    assert expr.free_symbols <= set(symbols.values())
    values = sp.lambdify(list(symbols.values()), expr)(*X.to_numpy().T)
    X = X if hasattr(fitted, "feature_names_in_") else X.to_numpy()
    np.testing.assert_allclose(values, fitted.predict(X), rtol=1e-9)


def test_a_model_without_data_has_the_names_of_the_search(fitted):
    assert sp.parse_expr(regressor.model(fitted)).free_symbols


def test_the_population_is_of_regressors_with_models(fitted, table):
    X, y = table
    population = regressor.get_population(fitted)
    given = X if hasattr(fitted, "feature_names_in_") else X.to_numpy()

    assert 1 <= len(population) <= 100
    for row in population:
        assert is_regressor(row)
        assert row.predict(given).shape == y.shape
        assert isinstance(regressor.model(row, X), str)
        assert regressor.complexity(row) >= 1
    best = regressor.get_best_solution(fitted)
    assert regressor.model(best, X) in {regressor.model(row, X) for row in population}


def test_the_metadata_have_what_is_asked_for():
    about = yaml.safe_load((SRBENCH / "metadata.yml").read_text())

    assert {"authors", "email", "name", "description", "url"} <= about.keys()
    assert yaml.safe_load((SRBENCH / "environment.yml").read_text())["dependencies"]


def test_installing_without_a_source_says_what_is_missing():
    done = subprocess.run(
        ["bash", SRBENCH / "install.sh"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin"},
    )

    assert done.returncode != 0
    assert "EQLEARN_SOURCE: set it to" in done.stderr


# --- the layout ------------------------------------------------------------------------------------------


def test_a_data_set_is_read_with_its_truth(write):
    data = layout.read(write())

    assert (data.name, list(data.X), data.X.shape) == ("made_up", ["mu", "Nn"], (80, 2))
    assert str(data.truth) == "Nn*mu + 0.5"
    assert data.box["mu"] == (data.X["mu"].min(), data.X["mu"].max())


@pytest.mark.parametrize(
    ("formula", "read"),
    [("ln(mu)", "log(mu)"), ("arcsin (Nn/mu)", "asin(Nn/mu)"), ("x' = 20 - mu", "-mu + 20")],
)
def test_descriptions_have_spellings_of_their_own(write, formula, read):
    assert str(layout.read(write(formula=formula)).truth) == read


@pytest.mark.parametrize("formula", ["the sum of two parts", "mu*unheard_of", ""])
def test_a_set_without_a_readable_formula_has_no_truth_and_says_why(write, formula):
    data = layout.read(write(formula=formula))

    assert data.truth is None
    assert data.flaw


def test_a_description_without_an_equals_sign_has_no_formula(write):
    folder = write()
    (folder / "metadata.yaml").write_text("task: regression\ndescription: measured, not computed")

    assert "holds no formula" in layout.read(folder).flaw


def test_sets_for_classification_are_not_ours(write):
    assert layout.read(write(task="classification")) is None


def damage(folder, kind):
    table = folder / "made_up.tsv.gz"
    if kind == "no metadata":
        (folder / "metadata.yaml").unlink()
    elif kind == "bad metadata":
        (folder / "metadata.yaml").write_text("description: [1, 2\ntask: regression\n")
    elif kind == "no table":
        table.unlink()
    elif kind == "a pointer":
        table.write_text("version https://git-lfs.github.com/spec/v1\n")
    else:
        text = {"words": "a\ttarget\nred\t1\n" * 9, "no target": "a\tb\n" + "1\t2\n" * 9,
                "gaps": "a\ttarget\n" + "\t2\n" * 9, "two rows": "a\ttarget\n1\t2\n3\t4\n"}[kind]  # fmt: skip
        table.write_bytes(gzip.compress(text.encode()))


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("no metadata", "metadata.yaml can't be read"),
        ("bad metadata", "is not YAML"),
        ("no table", "there is no made_up.tsv.gz"),
        ("a pointer", "git lfs pull"),
        ("words", "is not a table of numbers"),
        ("no target", "no column named 'target'"),
        ("gaps", "missing or infinite"),
        ("two rows", "too little"),
    ],
)
def test_what_can_t_be_read_is_one_sentence(write, kind, sentence):
    folder = write()
    damage(folder, kind)

    with pytest.raises(InvalidFile, match=sentence) as raised:
        layout.read(folder)

    assert "\n" not in str(raised.value)


def test_a_split_has_three_quarters_and_noise_on_training_rows_only(write):
    data = layout.read(write(rows=4000))
    clean, noisy = layout.split(data, 860), layout.split(data, 860, target_noise=0.1, feature_noise=0.01)

    assert (len(clean.y), len(clean.y_test)) == (3000, 1000)
    assert clean.X.index.equals(noisy.X.index)
    np.testing.assert_array_equal(clean.y_test, noisy.y_test)
    np.testing.assert_array_equal(clean.X_test, noisy.X_test)
    size = np.sqrt(np.mean(clean.y**2))
    assert np.std(noisy.y - clean.y) == pytest.approx(0.1 * size, rel=0.05)
    for name in data.X:
        size = np.sqrt(np.mean(clean.X[name] ** 2))
        assert np.std(noisy.X[name] - clean.X[name]) == pytest.approx(0.01 * size, rel=0.05)


def test_large_tables_are_sampled(write):
    rows = layout.split(layout.read(write(rows=400)), 860, most_rows=100)

    assert (len(rows.y), len(rows.y_test), rows.X.index.is_unique) == (100, 100, True)


def test_a_constant_column_has_a_range_for_the_judge(write):
    table = pd.DataFrame({"mu": 2.0, "Nn": np.arange(9.0), "target": np.arange(9.0)})

    low, high = layout.read(write(table=table)).box["mu"]

    assert low < 2.0 < high


# --- the protocol ----------------------------------------------------------------------------------------


def test_the_seeds_are_srbench_s():
    assert run.seeds(4) == [23654, 15795, 860, 5390]


def test_a_run_is_judged_twice_and_goes_on_where_it_was(write, tmp_path, capsys):
    root = write().parent
    write("black_box", formula="whatever it may be")
    damage(write("made_up_2"), "no metadata")
    words = [str(root), "--trials", "1", "--seconds", "2", "--out", str(tmp_path / "out")]

    run.main(words)
    said = capsys.readouterr()
    (path,) = (tmp_path / "out").glob("*.json")
    first = path.read_text()
    run.main(words)

    assert path.read_text() == first
    trials = json.loads(first)["trials"]
    assert list(trials) == ["black_box 23654", "made_up 23654"]
    known, unknown = trials["made_up 23654"], trials["black_box 23654"]
    assert (known["tier"], known["srbench"], known["rows"]) == ("exact", True, 60)
    assert known["r2_test"] == pytest.approx(1.0)
    assert (unknown["tier"], unknown["srbench"]) == (None, None)
    assert "solved by SRBench's rule: 1 of 1" in said.out
    assert "above 0.999 on test rows: 2 of 2" in said.out
    assert said.err.count("left out:") == 1


def test_a_fit_that_fails_is_a_trial(write, monkeypatch):
    def fails(*_):
        raise EqlearnError("no such luck")

    monkeypatch.setattr(run.EQLRegressor, "fit", fails)
    record = run.measured(layout.read(write()), 860, 1.0, {})

    assert (record["failure"], record["tier"], record["srbench"]) == ("no such luck", "wrong", False)


def test_a_folder_without_data_sets_is_one_sentence(tmp_path):
    with pytest.raises(SystemExit, match="no data set for regression"):
        run.main([str(tmp_path), "--out", str(tmp_path / "out")])
