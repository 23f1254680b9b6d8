"""The examples run, and each ends in a picture."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import eqlearn

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
# The others search for dynamics or train on images: tens of seconds each, even with `quick`.
SHORT = {"table", "inside_a_network", "custom_primitive"}


@pytest.mark.parametrize(
    "script",
    [pytest.param(s, id=s.stem, marks=() if s.stem in SHORT else pytest.mark.slow) for s in SCRIPTS],
)
def test_an_example_ends_in_a_picture(script, tmp_path, monkeypatch, unchecked_types):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setattr("eqlearn.core.primitives.PRIMITIVES", dict(eqlearn.PRIMITIVES))
    spec = importlib.util.spec_from_file_location(script.stem, script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    small = {"quick": True} if "quick" in inspect.signature(module.main).parameters else {}

    module.main(**small)

    picture = tmp_path / f"{script.stem}.png"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_every_example_is_listed():
    listed = re.findall(
        r"^\| \[`(\w+\.py)`\]", (EXAMPLES / "README.md").read_text(encoding="utf-8"), flags=re.M
    )

    assert sorted(listed) == [script.name for script in SCRIPTS]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_is_short(script):
    assert len(script.read_text(encoding="utf-8").splitlines()) <= 120
