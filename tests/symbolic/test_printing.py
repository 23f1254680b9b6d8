"""Text for a terminal."""

import pytest

from eqlearn.symbolic.printing import printable


@pytest.mark.parametrize("text", ["\x1b[2Jx", "a\nb", "\x9b31m", "\u202eevil"])
def test_nothing_that_a_terminal_obeys_is_printed(text):
    assert printable(printable(text)) == printable(text)
    assert printable(text).isprintable()


@pytest.mark.parametrize("text", ["2.5*x + sin(y)", "`[red]x`", "Größe·π", ""])
def test_what_can_be_printed_stays_as_it_is(text):
    assert printable(text) == text
