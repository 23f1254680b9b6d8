"""The README's code runs, and prints what it says."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_every_block_runs_after_the_ones_before_it(capsys, unchecked_types):
    names: dict[str, object] = {}
    for block in BLOCKS:
        exec(compile(block, str(README), "exec"), names)

    printed = capsys.readouterr().out
    assert printed.startswith("x1**2 + sin(2*pi*x2)\n")


def test_the_first_screen_shows_code():
    text = README.read_text(encoding="utf-8")

    assert text.index("```python") < 1500


@pytest.mark.parametrize("name", ["make demo", "make test"])
def test_the_two_commands_are_named(name):
    assert name in README.read_text(encoding="utf-8")
