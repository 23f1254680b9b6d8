"""Each strategy off, one at a time: what is counted, and what need not be run twice."""

import json

import pytest

from eqlearn import Candidate, Equation, Progress
from eqlearn.cli import main
from eqlearn.paper.ablation import (
    ALL,
    NETWORKS,
    STRATEGIES,
    VARIANTS,
    Counted,
    Trial,
    ablation_table,
    compared,
    run,
    spaced,
    trials,
)
from eqlearn.paper.ledger import Ledger
from eqlearn.paper.suites import Problem, suites

LINE = Problem("random", "line", "2*x1 + 3*x2 - 1", {"x1": (-1.0, 1.0), "x2": (0.0, 1.0)}, 40)
BELL = Problem("random", "bell", "exp(-x1**2)/(1 + x1)", {"x1": (0.0, 1.0)}, 30)


def record(problem, variant, tier, method="linear", error=0.0, seconds=1.0, source="suites"):
    return {
        "problem": problem, "variant": variant, "tier": tier, "method": method, "fresh_error": error,
        "cpu_seconds": seconds, "source": source, "same": False,
    }  # fmt: skip


RECORDS = [
    record("kept", ALL, "exact", "linear", seconds=1.0),
    record("kept", "sums", "symbolic", "linear", seconds=0.5),
    record("lost", ALL, "exact", "sums", seconds=3.0),
    record("lost", "sums", "wrong", NETWORKS, error=0.3, seconds=1.5),
    record("gained", ALL, "paper", NETWORKS, error=0.1),
    record("gained", "sums", "exact", "products"),
    record("nearer", ALL, "wrong", NETWORKS, error=0.1),
    record("nearer", "sums", "wrong", NETWORKS, error=0.2),
    record("equal", ALL, "wrong", NETWORKS, error=0.1),
    record("equal", "sums", "wrong", NETWORKS, error=0.101),
    record("no number", ALL, "wrong", NETWORKS, error=None, source="random"),
    record("no number", "sums", "wrong", NETWORKS, error=0.5, source="random"),
    record("not yet", ALL, "exact", "sums"),
]


def test_a_strategy_is_counted_by_what_is_lost_gained_and_delivered_without_it():
    (sums,) = compared(RECORDS)

    assert sums.strategy == "sums"
    assert len(sums.pairs) == 6  # "not yet" has no second trial
    assert sums.found == (2, 2)
    assert (sums.lost, sums.gained) == (["lost"], ["gained"])
    assert sums.delivered == 1
    assert sums.closer == (1, 1)
    assert sums.cpu_seconds == (pytest.approx(8 / 6), pytest.approx(6 / 6))


def test_the_table_names_what_was_lost_and_gained_and_shows_each_source():
    table = ablation_table({"trials": dict(enumerate(RECORDS))})

    assert "| sums | 2/6 | 2/6 | 1 | 1 | 1 | 1, 1 | 1.33 | 1.00 |" in table
    assert "* without sums, lost: lost\n* without sums, gained: gained" in table
    assert "**Random**: 1 formulas, 0 found by the whole search" in table
    assert "No trial was lost or gained." in ablation_table({"trials": {"a": RECORDS[0], "b": RECORDS[1]}})


def test_a_strategy_that_the_search_does_not_come_to_need_not_be_switched_off():
    trial = Trial(LINE)

    records = dict(trials(trial, {}))
    really = run(trial, "sums")

    assert list(records) == list(VARIANTS)
    assert [v for v, r in records.items() if not r["same"]] == [ALL, "linear"]
    assert records[ALL]["method"] == "linear"
    told = ("tier", "equation", "method", "restarts", "rounds", "ended", "fresh_error")
    assert {k: really[k] for k in told} == {k: records["sums"][k] for k in told}


def test_a_strategy_that_is_off_delivers_nothing():
    found = run(Trial(LINE), "linear")

    assert found["method"] != "linear"
    assert found["tier"] == "exact"  # others find a line, too


def test_the_budget_counts_networks_after_the_last_strategy(monkeypatch):
    monkeypatch.setattr("eqlearn.paper.ablation.STRATEGIES", ("linear",))
    trial = Trial(BELL, noise=0.2, networks=1)

    with_networks, without = run(trial, ALL), run(trial, NETWORKS)

    assert (with_networks["rounds"], without["rounds"]) == (2, 1)
    assert with_networks["restarts"] > without["restarts"]
    assert (with_networks["ended"], without["ended"]) == ("out of restarts", "no further gain")
    assert without["method"] != NETWORKS


MEAN = Candidate((Equation.parse("0", ["x"]),), 1.0, 0.0, exact=False)


def test_the_budget_does_not_count_what_strategies_start():
    budget = Counted(strategies=2, networks=10)

    for number, restarts in ((1, 50), (2, 90), (3, 99)):
        budget(Progress(number, restarts, 0.0, MEAN))
    assert not budget.over
    with pytest.raises(KeyboardInterrupt):
        budget(Progress(4, 100, 0.0, MEAN))

    assert budget.over


def test_noise_is_drawn_for_the_seed_and_scaled_to_the_spread():
    (_, clean), (_, noisy) = Trial(LINE).data(), Trial(LINE, noise=0.1).data()

    assert (noisy == Trial(LINE, noise=0.1).data()[1]).all()
    assert 0.05 < (noisy - clean).std() / clean.std() < 0.15
    assert Trial(LINE, noise=0.1).name != Trial(LINE).name


def test_formulas_of_the_literature_are_taken_evenly():
    everything = [p for suite in suites().values() for p in suite]
    some = spaced(20)

    assert len(some) == len({p.name for p in some}) == 20
    assert len({p.suite for p in some}) > 5
    assert spaced(10_000) == everything
    assert spaced(0) == []
    assert len({p.name for p in everything}) == len(everything)  # names alone tell trials apart


def test_a_quick_look_is_counted_written_and_resumed(tmp_path, capsys):
    arguments = ["reproduce", "ablation", "--quick", "--only", "exp(x);random-2", "--out", str(tmp_path)]

    assert main(arguments) == 0
    first = (tmp_path / "development-quick.json").read_text()
    assert main(arguments) == 0

    assert (tmp_path / "development-quick.json").read_text() == first
    plain = json.loads(first)["trials"].values()
    assert len(plain) == 2 * len(VARIANTS)
    assert {r["source"] for r in plain} == {"suites", "random"}
    assert all(r["cpu_seconds"] > 0 for r in plain)
    table = (tmp_path / "development-quick.md").read_text()
    for strategy in (*STRATEGIES, NETWORKS):
        assert table.count(f"| {strategy} | ") == 3  # all, suites, random
    assert "**All trials**: 2 formulas, 2 found by the whole search" in table
    assert "no linear: exp(x)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--suites", "0", "--random", "0", "--noisy", "0"], "nothing to run"),
        (["--random", "1001"], "`--random` is at most 1000"),
        (["--noise", "0"], "need `--noise` above 0"),
        (["--only", "Nguyen-99"], "`--only` names 'Nguyen-99'"),
        (["--networks", "0"], "--networks"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_can_not_be_run_is_refused_in_a_sentence(tmp_path, capsys, words, says):
    assert main(["reproduce", "ablation", *words, "--out", str(tmp_path)]) == 2

    told = capsys.readouterr().err
    assert says in told
    assert "Traceback" not in told
    assert not list(tmp_path.iterdir())


def test_a_ledger_of_another_budget_is_refused(tmp_path, capsys):
    other = Ledger(tmp_path / "development.json", {"seeds": "development", "networks": 9})
    other.add("a", RECORDS[0])

    assert main(["reproduce", "ablation", "--networks", "10", "--out", str(tmp_path)]) == 2

    assert "was made with other settings" in capsys.readouterr().err
