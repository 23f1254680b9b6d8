"""The comparison with other systems: its protocol, its reading of their formulas, its counts and its page."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from eqlearn import Equation, judge
from eqlearn.paper.ledger import Ledger
from eqlearn.paper.suites import Problem

PEERS = Path(__file__).parent.parent / "benchmarks" / "peers"
sys.path.append(str(PEERS))
conversion, page, problems, run, trial = map(
    importlib.import_module, ("conversion", "page", "problems", "run", "trial")
)

PARABOLA = Problem("paper", "parabola", "x**2", {"x": (-1.0, 1.0)}, 50)
X = np.random.default_rng(0).uniform(0.5, 2.0, size=(50, 2))


@pytest.fixture
def outcome(tmp_path):
    """The record of a trial with a worker whose `solve` has this body."""

    def measured(body, *, system="eqlearn", seconds=5.0, python=sys.executable):
        lines = [
            f"import os, signal, sys, time; sys.path.insert(0, {str(PEERS)!r})",
            "from protocol import OutOfTime, serve",
            "def solve(task, desk):",
            *(f"    {line}" for line in body.splitlines()),
            "serve(solve)",
        ]
        worker = tmp_path / "worker.py"
        worker.write_text("\n".join(lines))
        return trial.measured(trial.Trial(trial.System(system, Path(python), worker), PARABOLA, 0, seconds))

    return measured


# --- the protocol ----------------------------------------------------------------------------------------


def test_the_last_answer_counts(outcome):
    record = outcome("desk.answer('x**2'); desk.answer('x**3'); return 'done'")

    assert (record["equation"], record["tier"], record["ended"]) == ("x**3", "wrong", "done")


def test_the_time_is_that_of_the_first_of_the_right_answers(outcome):
    spin = "while desk.spent() < {}: pass\n"
    body = "desk.answer('x')\n" + spin.format(0.1) + "desk.answer('x**2')\n"
    body += spin.format(0.3) + "desk.answer('1.0*x**2'); return 'done'"

    record = outcome(body)

    assert 0.1 <= record["cpu_to_right"] < 0.3 <= record["cpu"]


def test_a_right_answer_that_is_given_up_again_is_not_counted_from_its_first_time(outcome):
    body = "desk.answer('x**2'); desk.answer('x')\nwhile desk.spent() < 0.1: pass\n"

    record = outcome(body + "desk.answer('x**2'); return 'done'")

    assert record["cpu_to_right"] >= 0.1


def test_what_a_worker_prints_does_not_come_between_its_answers(outcome):
    record = outcome("print('hello'); os.system('echo hello'); desk.answer('x**2'); return 'done'")

    assert (record["tier"], record["failure"]) == ("exact", None)


def test_the_worker_sees_the_problem_s_own_data(outcome):
    body = "right = all(abs(x[0]**2 - y) < 1e-12 for x, y in zip(task.X, task.y))\n"

    record = outcome(
        body + "desk.answer('x**2' if right and task.variables == ['x'] else 'x'); return 'done'"
    )

    assert record["tier"] == "exact"


@pytest.mark.parametrize(
    "loop",
    [
        "while True: pass",
        "while True:\n    try:\n        int('x')\n    except Exception: pass",
        "try:\n    while True: pass\nexcept: pass\nwhile True: pass",
    ],
)
def test_an_endless_worker_is_stopped_when_its_cpu_seconds_are_spent(outcome, loop):
    record = outcome("desk.answer('x**2')\n" + loop, seconds=0.3)

    assert (record["ended"], record["tier"]) == ("out of time", "exact")


def test_memory_is_the_worker_s_own(outcome):
    small = outcome("desk.answer('x'); return 'done'")
    large = outcome("block = b'x' * 200_000_000; desk.answer('x'); return 'done'")

    assert small["memory"] < 100e6 < 200e6 < large["memory"]


# --- failures --------------------------------------------------------------------------------------------


def test_an_exception_is_a_failure_with_its_reason(outcome):
    record = outcome("raise ValueError('no luck')")

    assert (record["tier"], record["failure"]) == ("wrong", "ValueError: no luck")


def test_a_killed_worker_is_a_failure_and_keeps_its_answer(outcome):
    record = outcome("desk.answer('x**2'); os.kill(os.getpid(), signal.SIGKILL)")

    assert (record["tier"], record["failure"]) == ("exact", "killed by SIGKILL")


def test_an_answer_after_the_budget_does_not_count(outcome):
    late = "signal.setitimer(signal.ITIMER_PROF, 0)\nwhile desk.spent() < 0.4: pass\n"

    record = outcome(late + "desk.answer('x**2'); return 'done'", seconds=0.2)

    assert (record["tier"], record["failure"]) == ("wrong", "its first answer came after the budget")


def test_a_failed_attempt_is_the_reason_where_there_is_no_answer(outcome):
    record = outcome("desk.failed('diverged'); return 'done'")

    assert (record["failed_attempts"], record["failure"]) == (1, "no answer: diverged")


@pytest.mark.parametrize("answer", ["x + nan", "foo(x)", "x +", "__import__('os')"])
@pytest.mark.parametrize("system", ["eqlearn", "gplearn", "operon", "kan"])
def test_an_answer_that_can_not_be_read_is_a_failure(outcome, answer, system):
    record = outcome(f"desk.answer({answer!r}); return 'done'", system=system)

    assert record["tier"] == "wrong"
    assert record["failure"].startswith("an answer that can't be read")


def test_an_unreadable_answer_before_a_right_one_takes_nothing_from_it(outcome):
    record = outcome("desk.answer('x + nan'); desk.answer('x**2'); return 'done'")

    assert (record["tier"], record["failure"]) == ("exact", None)


def test_an_interpreter_that_is_not_there_is_a_failure(outcome):
    record = outcome("return 'done'", python="/nowhere/python")

    assert record["failure"].startswith("could not be started")


# --- reading the peers' formulas ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("system", "text", "says"),
    [
        ("eqlearn", "x**2 + 0.5*y", "x**2 + 0.5*y"),
        ("gplearn", "add(mul(x, x), mul(0.5, y))", "x**2 + 0.5*y"),
        ("gplearn", "sub(div(x, y), square(add(x, -0.25)))", "x/y - (x-0.25)**2"),
        ("gplearn", "exp(sin(cos(tanh(x))))", "exp(sin(cos(tanh(x))))"),
        ("gplearn", "pow(x, sub(y, 1.5))", "x**(y-1.5)"),
        ("gplearn", "log(sqrt(x))", "log(x)/2"),
        ("gplearn", "sqrt(sub(0.0, x))", "sqrt(x)"),
        ("operon", "(0.5 + ((-2.0) * (((1.0 * x) ^ 2) - sin((6.25 * y)))))", "0.5 - 2*(x**2 - sin(6.25*y))"),
        ("operon", "((x ^ y) / sqrt(x))", "x**y/sqrt(x)"),
        (
            "kan",
            "0.01*(1.0 - 9.5*x)**2 + 1.5*sin(6.25*y + 9.0) - 2.5e-14",
            "0.01*(1-9.5*x)**2+1.5*sin(6.25*y+9)",
        ),
        ("kan", "1.5*sqrt(1.0 + x) + tanh(y)", "1.5*sqrt(1+x) + tanh(y)"),
    ],
)
def test_each_system_s_way_of_writing_is_read(system, text, says):
    read = conversion.equation(system, text, ("x", "y"), X)

    assert read.matches(says, box=(0.5, 2.0))


def test_a_magnitude_stays_one_where_the_data_have_both_signs():
    read = conversion.equation("gplearn", "sqrt(x)", ("x",), np.array([[-1.0], [1.0]]))

    assert read.matches("sqrt(abs(x))")


# --- the verdict -------------------------------------------------------------------------------------------

SAMPLE = PARABOLA.data(0)[0]


@pytest.mark.parametrize("text", ["x**2", "3.4e-8 + 1.0000001*x**2", "(x + 1e-5)**2 - 1e-7*sin(x)"])
def test_the_dust_of_a_fit_does_not_count_against_a_formula(text):
    assert trial.verdict(Equation.parse(text, ["x"]), PARABOLA, SAMPLE)[0] in ("symbolic", "exact")


@pytest.mark.parametrize("text", ["1.01*x**2", "x**2 + 0.01", "x**2 + 0.1*x", "x**4", "1 - cos(1.4142*x)"])
def test_what_only_fits_is_not_the_equation(text):
    assert trial.verdict(Equation.parse(text, ["x"]), PARABOLA, SAMPLE)[0] not in ("symbolic", "exact")


def test_the_extrapolation_error_is_measured_outside_the_training_range():
    inside_only = Equation.parse("(x + abs(x) - 1 - abs(x - 1))*0 + x**2 + (abs(x-1) + x - 1)**2", ["x"])

    assert trial.extrapolation_error(inside_only, PARABOLA) > 0.1
    assert trial.extrapolation_error(PARABOLA.truth, PARABOLA) == 0


def test_a_formula_without_values_outside_has_an_infinite_error():
    assert trial.extrapolation_error(Equation.parse("sqrt(1 - x)", ["x"]), PARABOLA) == np.inf


# --- the problems ------------------------------------------------------------------------------------------

PROBLEMS = problems.problems()


def test_the_problems_are_the_paper_s_and_at_least_twenty_others():
    paper = [p for p in PROBLEMS if p.suite == "paper"]

    assert len(paper) == 13
    assert len(PROBLEMS) - len(paper) >= 20
    assert len({p.name for p in PROBLEMS}) == len(PROBLEMS)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_a_problem_has_values_inside_and_outside_its_ranges(problem):
    data, target = problem.data(0)
    beyond, truth = problems.outside(problem)

    assert len(target) == problem.rows
    assert np.ptp(target) > 0
    assert len(truth) >= 100
    assert np.all(np.abs(truth) < 1e3 * np.abs(target).max())
    assert np.any((beyond < data.min(axis=0)) | (beyond > data.max(axis=0)))


@pytest.mark.parametrize("problem", [p for p in PROBLEMS if p.suite == "physics"], ids=lambda p: p.name)
def test_the_judge_knows_each_law_when_it_sees_it(problem):
    assert judge(problem.truth, problem.truth, problem.ranges).tier == "exact"


@pytest.mark.parametrize(("edges", "wider"), [((-1, 1), (-2, 2)), ((1, 5), (0.5, 10)), ((-3, 1), (-5, 3))])
def test_ranges_double_and_positive_ones_stay_positive(edges, wider):
    assert problems.stretched(*edges) == wider


# --- the ledger and the page -------------------------------------------------------------------------------


def made_up(system, problem, seed, cpu_to_right, failure=None):
    return {
        "system": system, "suite": "paper", "problem": problem, "seed": seed,
        "tier": "wrong" if cpu_to_right is None else "exact", "reason": "", "equation": "x", "complexity": 3,
        "extrapolation_error": None if failure else 0.25, "cpu": 9.0, "cpu_to_right": cpu_to_right,
        "memory": 2e8, "wall": 10.0, "ended": "done", "failed_attempts": 0, "failure": failure,
    }  # fmt: skip


@pytest.fixture
def ledger():
    trials = [
        made_up("eqlearn", "one", 0, 1.5),
        made_up("eqlearn", "two", 0, None),
        made_up("operon", "one", 0, 2.5),
        made_up("operon", "two", 0, 3.5),
        made_up("kan", "one", 0, None, "no answer in time"),
        made_up("kan", "two", 0, None, "no answer in time"),
    ]
    return {
        "settings": {"seconds": 10.0, "grace": 1.1, "peers": {"pyoperon": "9.9"}},
        "environment": {
            "eqlearn": "0", "python": "3", "platform": "here", "processors": 2, "started": "today",
        },
        "command": "python benchmarks/peers/run.py", "trials": dict(enumerate(trials)),
    }  # fmt: skip


def test_the_page_counts_every_trial_started(ledger):
    lines = page.write_page(ledger).splitlines()

    assert next(li for li in lines if li.startswith("| eqlearn")).startswith("| eqlearn | **1/2** |")
    assert next(li for li in lines if li.startswith("| pyoperon")).startswith("| pyoperon | **2/2** |")
    assert next(li for li in lines if li.startswith("| pykan")).endswith("| 2 |")


def test_the_page_says_where_a_peer_wins(ledger):
    text = page.write_page(ledger)

    assert "* `two`: pyoperon" in text
    assert "* `one`:" not in text


def test_the_page_gives_the_reasons_of_failures(ledger):
    assert "* pykan, 2 times: no answer in time" in page.write_page(ledger)


def test_the_page_names_versions_and_command(ledger):
    assert {"pyoperon 9.9.", "`python benchmarks/peers/run.py`,"} <= {
        part for line in page.write_page(ledger).splitlines() for part in (line[-13:], line[:33])
    }


def test_the_picture_rises_where_equations_become_right(ledger):
    lines = {li.get_label().split(",")[0]: li for li in page.draw(ledger).axes[0].lines}

    assert list(lines["pyoperon"].get_xdata()) == [0.0, 2.5, 3.5, 10.0]
    assert list(lines["pyoperon"].get_ydata()) == [0.0, 0.5, 1.0, 1.0]
    assert max(lines["pykan"].get_ydata()) == 0


def test_a_stopped_comparison_goes_on_where_it_was(tmp_path, capsys):
    worker = tmp_path / "worker.py"
    system = trial.System("eqlearn", Path("/nowhere/python"), worker)
    trials = [trial.Trial(system, PARABOLA, seed, 1.0) for seed in range(3)]
    path = tmp_path / "peers.json"

    run.compare(trials[:2], Ledger(path, {}), 1)
    run.compare(trials, Ledger(path, {}), 2)

    assert list(json.loads(path.read_text())["trials"]) == [t.key for t in trials]
    assert "1/1 wrong" in capsys.readouterr().out


def test_the_page_keeps_to_the_order_of_problems_and_systems():
    entries = [("kan", "x**2"), ("eqlearn", "x**2"), ("operon", "x"), ("eqlearn", "x")]
    ledger = {"trials": {f"{s} {p} 0": made_up(s, p, 0, None) for s, p in entries}}

    assert list(run.arranged(ledger)["trials"]) == [
        "eqlearn x 0",
        "operon x 0",
        "eqlearn x**2 0",
        "kan x**2 0",
    ]


def test_a_problem_that_is_not_there_is_named():
    with pytest.raises(SystemExit, match="Culomb"):
        run.wanted("Culomb", ["Coulomb"])
