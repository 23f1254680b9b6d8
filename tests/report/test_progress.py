"""The display of a search: alive in a terminal, plain lines elsewhere, names never markup."""

import io
import sys
import types

import pytest
from rich.console import Console

from eqlearn.report.progress import show_progress
from eqlearn.search.candidate import Candidate
from eqlearn.search.search import Progress
from eqlearn.symbolic.equation import Equation


def report(number=1, text="2.0*x", error=0.5, names=("x",)):
    best = Candidate((Equation.parse(text, names),), error, 0.0, error < 1e-10)
    return Progress(number, 16 * number, 0.5 * number, best)


def shown(reports, *, terminal=False, **options):
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120)
    with show_progress(console=console, **options) as show:
        for each in reports:
            show(each)
    return console.file.getvalue()


def test_each_new_best_equation_is_a_line():
    out = shown([report(1), report(2), report(3, "3.0*x", 1e-12)], target="force")

    assert out.count("\n") == 2
    assert "3 rounds · 48 restarts" in out
    assert "force = 3.0*x   exact" in out


def test_a_line_says_how_good_the_equation_is():
    assert "error 0.5 of the spread" in shown([report()])


def test_a_terminal_sees_the_equation_and_the_budget():
    out = shown([report()], terminal=True, seconds=30.0)

    assert "y = 2.0*x" in out
    assert "of 30 s" in out


def test_a_terminal_is_left_clean():
    out = shown([report()], terminal=True)

    assert out.rstrip("\x1b[?25h\n").endswith("\x1b[2K")  # the last thing is that lines are erased


@pytest.mark.parametrize("terminal", [False, True])
def test_markup_in_a_name_is_shown_and_not_obeyed(terminal):
    out = shown([report(text="2.0*`[red]x[/red]`", names=("[red]x[/red]",))], terminal=terminal)

    assert "[red]x[/red]" in out


@pytest.mark.parametrize("name", ["x\x1b[2J", "x\ny", "\x9b31mx", "\u202ex"])
def test_what_a_terminal_would_obey_in_a_name_is_shown_escaped(name):
    out = shown([report(text=f"2.0*`{name}`", names=(name,))], target=name)

    assert out.count("\n") == 1
    assert out.rstrip("\n").isprintable()
    assert out.count(repr(name)[1:-1]) == 2


def test_a_terminal_that_is_kept_up_to_date_gets_names_escaped():
    out = shown([report(text="2.0*`x\x1b[2Jz`", names=("x\x1b[2Jz",))], terminal=True)

    assert r"x\x1b[2Jz" in out
    assert "x\x1b[2Jz" not in out


def test_a_long_equation_does_not_break_a_line_of_a_log():
    long = " + ".join(f"{k}.5*sin({k}.5*x)" for k in range(1, 20))

    assert shown([report(text=long)]).count("\n") == 1


def test_a_notebook_shows_one_line_that_changes_without_widgets(monkeypatch):
    shown_html = []

    class Handle:
        def update(self, page):
            shown_html.append(page)

    fake = types.ModuleType("IPython.display")
    fake.HTML = str
    fake.display = lambda page, display_id: Handle()
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    console = Console(file=io.StringIO(), force_jupyter=True)

    with show_progress(30.0, "<b>y</b>", console) as show:
        show(report(1))
        show(report(2, "3.0*x", 1e-12))

    assert len(shown_html) == 2
    assert "&lt;b&gt;y&lt;/b&gt; = 3.0*x   exact" in shown_html[-1]
    assert "of 30 s" in shown_html[-1]
