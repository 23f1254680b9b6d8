"""The paper on one page: made from ledgers alone, and the committed page is what they say."""

import json
import re
import shutil
from pathlib import Path

import pytest

from eqlearn.paper.pages.headlines import headlines
from eqlearn.paper.pages.whole import paper_page, read_ledgers

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture
def results(tmp_path):
    """A copy of the committed results that a test may change."""
    return Path(shutil.copytree(RESULTS, tmp_path / "results"))


def change(path, edit):
    ledger = json.loads(path.read_text(encoding="utf-8"))
    edit(ledger["trials"])
    path.write_text(json.dumps(ledger), encoding="utf-8")


def test_the_committed_page_is_what_the_committed_files_say():
    assert (RESULTS / "README.md").read_text(encoding="utf-8") == paper_page(RESULTS)


def test_every_file_of_results_is_named_on_the_page():
    page = paper_page(RESULTS)

    assert all(f"]({name}.json)" in page for name in read_ledgers(RESULTS))


@pytest.mark.parametrize(
    ("file", "edit", "row"),
    [
        ("benchmark/modern-half.json", {"tier": "wrong"}, "right equation, ten functions, L0.5"),
        ("kinematics/modern.json", {"right": False}, "kinematics: seeds with the right equations"),
        ("mnist/modern.json", {"right_form": False}, "MNIST: seeds whose equation is the sum"),
    ],
)
def test_a_trial_that_fails_changes_the_page(results, file, edit, row):
    def told():
        return next(line for line in headlines(read_ledgers(results)).splitlines() if row in line)

    before = told()
    change(results / file, lambda trials: next(iter(trials.values())).update(edit))

    successes = [int(re.search(r"\*\*(\d+)(/| of )", line)[1]) for line in (before, told())]
    assert successes[1] == successes[0] - 1
    assert paper_page(results) != (RESULTS / "README.md").read_text(encoding="utf-8")


def test_an_error_of_one_trial_moves_the_mean_on_the_page(results):
    def worse(trials):
        next(iter(trials.values()))["test"]["mean_absolute_error"] += 0.5

    old = headlines(read_ledgers(results))
    change(results / "mnist/modern.json", worse)

    assert headlines(read_ledgers(results)) != old


def test_what_was_not_run_has_no_row(results):
    shutil.rmtree(results / "mnist")

    page = paper_page(results)

    assert "MNIST" not in page
    assert "## Kinematics" in page


def test_what_was_not_run_is_said(results):
    def missing():
        return next((line for line in paper_page(results).splitlines() if "Not run yet" in line), "")

    assert "`oscillator/modern`" not in missing()

    (results / "oscillator/modern.json").unlink()

    assert "`oscillator/modern`" in missing()


def test_a_picture_that_is_not_there_is_not_shown(results):
    (results / "kinematics/modern.png").unlink()

    assert "(kinematics/modern.png)" not in paper_page(results)
    assert "(oscillator/modern.png)" in paper_page(results)


def test_a_trial_under_way_is_no_ledger(results):
    folder = results / "oscillator/some-3"
    folder.mkdir()
    (folder / "journal.json").write_text('{"format": "eqlearn-dynamics-journal"}', encoding="utf-8")

    assert paper_page(results) == paper_page(RESULTS)


def test_a_model_beside_the_results_is_no_ledger(results):
    folder = results / "mnist/models/some"
    folder.mkdir(parents=True)
    (folder / "notes.json").write_text("{}", encoding="utf-8")

    assert paper_page(results) == paper_page(RESULTS)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"trials": '])
def test_a_file_that_is_no_ledger_is_named(results, text):
    from eqlearn.errors import InvalidFile

    (results / "benchmark/broken.json").write_text(text, encoding="utf-8")

    with pytest.raises(InvalidFile, match=r"broken\.json"):
        paper_page(results)


def test_peers_stand_beside_ours_set_by_set(results):
    made = json.loads((results / "benchmark/modern-half.json").read_text(encoding="utf-8"))
    tiers = {"eqlearn": ("exact", "symbolic"), "gplearn": ("paper", "wrong")}
    trials = {
        f"{system} {suite} {seed}": {"system": system, "suite": suite, "seed": seed, "tier": tier}
        for system in tiers
        for suite in ("kim", "physics")
        for seed, tier in enumerate(tiers[system])
    }
    (results / "peers").mkdir(exist_ok=True)
    whole = {**made, "settings": {"seconds": 10.0, "peers": {}}, "trials": trials}
    (results / "peers/peers.json").write_text(json.dumps(whole), encoding="utf-8")

    page = paper_page(results)

    assert "eqlearn and its peers, 10 CPU seconds" in page
    assert "| eqlearn | 2/2 (0.16 to 1.00) | 2/2 (0.16 to 1.00) | 4/4 (0.40 to 1.00) |" in page
    assert "| gplearn | 0/2 (0.00 to 0.84) | 0/2 (0.00 to 0.84) | 0/4 (0.00 to 0.60) |" in page


def test_a_system_whose_seeds_all_failed_has_a_row(results):
    def fail(trials):
        for trial in trials.values():
            trial["failure"] = "diverged"

    change(results / "kinematics/modern.json", fail)

    assert "kinematics: seeds with the right equations | one shown | **0 of 5**" in re.sub(
        r"equations \| [^|]+ \|", "equations | one shown |", headlines(read_ledgers(results))
    )


def test_a_ledger_of_other_functions_has_no_row_of_the_ten(results):
    def only(trials):
        for key in [k for k in trials if not k.startswith("exp(x)")]:
            del trials[key]

    change(results / "benchmark/modern-half.json", only)

    assert "right equation, ten functions, L0.5" not in headlines(read_ledgers(results))


def test_a_strategy_that_delivers_is_told_on_the_page(results):
    folder = results / "ablation"
    shutil.rmtree(folder, ignore_errors=True)
    assert "each strategy off" not in paper_page(results)
    trial = {
        "source": "suites", "problem": "P-1", "method": "sums", "fresh_error": 0.0, "cpu_seconds": 1.0,
        "same": False,
    }  # fmt: skip
    trials = {
        "a": {**trial, "variant": "all", "tier": "exact"},
        "b": {**trial, "variant": "sums", "tier": "wrong"},
    }
    like = json.loads((results / "timing" / "timing.json").read_text(encoding="utf-8"))
    folder.mkdir()
    (folder / "report.json").write_text(
        json.dumps({**like, "settings": {"seeds": "report", "networks": 8}, "trials": trials}),
        encoding="utf-8",
    )

    page = paper_page(results)

    assert "## Beyond the paper: each strategy off, formulas of report" in page
    assert "| sums | 1/1 | 0/1 | 1 | 0 | 1 | 0, 0 | 1.00 | 1.00 |" in page
