"""The page of results on constants that vary says what its JSON files hold."""

import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).parents[3]
SPEC = importlib.util.spec_from_file_location("groups_page", ROOT / "benchmarks" / "groups" / "page.py")
page = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(page)


def test_the_committed_page_is_that_of_the_committed_files():
    folder = ROOT / "results" / "groups"

    assert (folder / "README.md").read_text() == page.page(folder)


def test_every_trial_counts_and_the_worst_error_is_shown(tmp_path):
    seen = {"field": "burgers", "varies": "t", "noise": 0.01, "equation": "u_t = u_xx", "cpu_seconds": 3.0}
    trials = [{**seen, "terms_right": True, "error": 1e-8}, {**seen, "terms_right": False, "error": 2e-3}]
    (tmp_path / "parametric.json").write_text(json.dumps({"trials": trials}))

    text = page.page(tmp_path)

    assert "| burgers | t | 1 % | 1 of 2 | 2.0e-03 | 3e-5 | `u_t = u_xx` | 3 |" in text
    assert "Many groups" not in text
