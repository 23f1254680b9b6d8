"""Counting: what goes into a table is what the trials say."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from eqlearn import errors
from eqlearn.paper.benchmark import TARGETS, Condition, trials
from eqlearn.paper.ledger import Ledger, read_ledger
from eqlearn.paper.pages.dynamics import times_smaller
from eqlearn.paper.rates import benchmark_table, interval, suite_table, summary
from eqlearn.paper.style import table
from eqlearn.paper.suites import find_suite, suites
from eqlearn.training import presets
from eqlearn.training.members import Failure
from eqlearn.training.presets import PRESETS
from eqlearn.training.state import restart_seed


def trial(tier, **more):
    return {"tier": tier, "seconds": 1.0, "restarts": 10, "equation": "x", **more}


@pytest.mark.parametrize(("successes", "count"), [(0, 20), (3, 20), (20, 20)])
def test_the_interval_holds_the_rates_that_do_not_contradict_the_count(successes, count):
    low, high = interval(successes, count)

    assert 0 <= low <= successes / count <= high <= 1
    if successes:
        assert binom.sf(successes - 1, count, low) == pytest.approx(0.025)
    if successes < count:
        assert binom.cdf(successes, count, high) == pytest.approx(0.025)


def test_no_trial_says_nothing_about_a_rate():
    assert interval(0, 0) == (0.0, 1.0)


def test_a_table_has_a_column_for_each_head():
    assert table(("a", "b"), [(1, "x"), ("", 2)]) == "| a | b |\n|---|---|\n| 1 | x |\n|  | 2 |"


def test_every_trial_is_in_the_denominator():
    counted = summary([trial("exact"), trial("symbolic"), trial("paper"), trial("wrong")])

    assert (counted["trials"], counted["exact"], counted["symbolic"], counted["paper"]) == (4, 1, 2, 3)


def test_tables_hold_the_counts():
    ledger = {
        "trials": {
            "a": trial("exact", function="x", problem="P|1"),
            "b": trial("wrong", function="x", problem="P|1"),
        }
    }

    assert "**1/2**" in benchmark_table(ledger, {"x": 0.6})
    assert "1 of 2 trials" in suite_table(ledger)


def test_a_ledger_goes_on_where_it_was(tmp_path):
    first = Ledger(tmp_path / "a.json", {"condition": "c"})
    first.add("x 0", trial("exact", extrapolation_error=float("inf")))

    again = Ledger(tmp_path / "a.json", {"condition": "c"})
    again.add("x 1", trial("wrong"))

    assert list(read_ledger(tmp_path / "a.json")["trials"]) == ["x 0", "x 1"]
    assert again.trials["x 0"]["extrapolation_error"] is None


def test_a_ledger_of_other_settings_or_of_nonsense_is_refused(tmp_path):
    Ledger(tmp_path / "a.json", {"condition": "c"}).add("x 0", trial("exact"))
    (tmp_path / "b.json").write_text("{")
    (tmp_path / "c.json").write_text(json.dumps([1]))

    with pytest.raises(errors.InvalidFile, match="other settings"):
        Ledger(tmp_path / "a.json", {"condition": "d"})
    for name in ("b.json", "c.json"):
        with pytest.raises(errors.InvalidFile):
            Ledger(tmp_path / name, {})


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_a_target_s_data_are_its_formula_plus_noise(target):
    X, clean = target.data(3, 0.0)
    _, noisy = target.data(3, 0.1)

    assert abs(X).max() <= 1
    assert (clean == target.truth(X)).all()
    assert 0.05 < (noisy - clean).std() / clean.std() < 0.2


def test_a_modern_trial_is_judged():
    (record,) = trials(TARGETS[1], Condition(), [7])

    assert record["tier"] == "exact"
    assert record["seed"] == 7
    assert record["extrapolation_error"] < 1e-9


def test_faithful_trials_train_all_seeds_together_and_count_each(monkeypatch):
    from eqlearn.paper import benchmark
    from eqlearn.training.schedule import Phase

    short = (Phase(name="short", steps=20, lr=1e-2, penalty=5e-3, prune_below=0.01),)
    monkeypatch.setattr(benchmark, "PRESETS", {"paper": replace(PRESETS["paper"], schedule=short)})

    records = list(trials(TARGETS[0], Condition(preset="paper"), [0, 1, 2]))

    assert [r["seed"] for r in records] == [0, 1, 2]
    assert {r["tier"] for r in records} <= {"exact", "symbolic", "paper", "wrong"}


@pytest.mark.parametrize(
    "problem", [p for s in suites().values() for p in s], ids=lambda p: f"{p.suite}:{p.name}"
)
def test_every_problem_has_finite_data_for_a_seed(problem):
    X, y = problem.data(0)

    assert len(y) > 0.5 * problem.rows
    assert X.shape[1] == len(problem.ranges)


def test_noise_is_a_part_of_the_root_mean_square():
    problem = find_suite("feynman")[0]
    X, y = problem.data(3)
    again, noisy = problem.data(3, 0.1)

    assert np.array_equal(X, again)
    assert np.std(noisy - y) == pytest.approx(0.1 * np.sqrt(np.mean(y**2)), rel=0.1)


def test_an_unknown_suite_is_named():
    with pytest.raises(errors.UnknownName, match="nguyen"):
        find_suite("nguyenn")


def test_what_is_not_finite_is_null_at_any_depth(tmp_path):
    Ledger(tmp_path / "a.json", {}).add("x 0", {"error": float("inf"), "heads": [{"error": float("nan")}]})

    assert "NaN" not in (tmp_path / "a.json").read_text()
    assert read_ledger(tmp_path / "a.json")["trials"]["x 0"] == {"error": None, "heads": [{"error": None}]}


def test_explosions_count_against_whoever_explodes():
    ours = [{"seed": 0, "far_error": None}, {"seed": 1, "far_error": 0.1}, {"seed": 2, "far_error": 0.1}]
    others = {0: {"far_error": 1.0}, 1: {"far_error": 1.0}, 2: {"far_error": None}}

    assert times_smaller(ours, others) == "10 (at least 0)"


def test_trials_may_share_one_data_set():
    target = TARGETS[2]
    shared, own = Condition("released", one_set=3), Condition("released")

    assert shared.name == "released-half-set3"
    np.testing.assert_array_equal(shared.data(target, 7)[0], shared.data(target, 8)[0])
    np.testing.assert_array_equal(shared.data(target, 7)[0], own.data(target, 3)[0])
    assert not np.array_equal(own.data(target, 7)[0], own.data(target, 8)[0])


def test_a_recipe_may_have_another_weight(monkeypatch):
    weights = []

    def watched(preset, *data, **options):
        weights.extend(phase.penalty for phase in preset.schedule)
        raise KeyboardInterrupt

    monkeypatch.setattr("eqlearn.paper.benchmark.train_population", watched)
    condition = Condition("released", weight=0.25)
    with pytest.raises(KeyboardInterrupt):
        list(trials(TARGETS[0], condition, [0]))

    assert condition.name == "released-half-lambda0.25"
    assert set(weights) == {0.0, 0.25}


@pytest.mark.slow
@pytest.mark.parametrize("penalty", ["half", "l0"])
@pytest.mark.parametrize("recipe", ["paper", "released"])
def test_each_recipe_ends_and_begins_a_start_again_whose_loss_is_not_finite(recipe, penalty, monkeypatch):
    name, calls, train_once = recipe if penalty == "half" else f"{recipe}-l0", [], presets._trained
    brief = tuple(replace(phase, steps=3) for phase in PRESETS[name].schedule)
    monkeypatch.setitem(PRESETS, name, replace(PRESETS[name], schedule=brief))

    def once_failing(preset, x, target, seeds, **tell):
        calls.append(list(seeds))
        failures = (Failure(1, brief[0].name, 0),) if len(calls) == 1 else ()
        return replace(train_once(preset, x, target, seeds, **tell), failures=failures)

    monkeypatch.setattr(presets, "_trained", once_failing)
    found = list(trials(TARGETS[0], Condition(recipe, penalty), [3, 4]))

    assert calls == [[3, 4], [restart_seed(4, 1)]]
    assert [trial["restarts"] for trial in found] == [1, 2]
    assert all(trial["equation"] for trial in found)
