import pytest

from eqlearn import InvalidArgument
from eqlearn.search.knowledge.unknowns import read_formula

COLUMNS = ("a", "b", "in mm")


def test_calls_are_parts_and_other_names_constants():
    written = read_formula("template", "y = k*f(a, b)*exp(-g(`in mm`)) + a*pi", COLUMNS, functions=True)

    assert [(p.symbol.name, p.columns) for p in written.functions] == [
        ("f(a, b)", ("a", "b")),
        ("g(in mm)", ("in mm",)),
    ]
    assert [p.symbol.name for p in written.constants] == ["k"]
    assert {s.name for s in written.expr.free_symbols} == {"a", "k", "f(a, b)", "g(in mm)"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f(a, d)", "'d', which is no column"),
        ("f(a) + f(b)", "twice"),
        ("f(a, a)", "twice"),
        ("a + b", "no unknown part"),
        ("f(a) +* b", "can't be read"),
        ("f(a", "can't be read"),
        ("f(a) - f(a)", "twice"),
        ("f(2*a)", "can't be read"),
        ("0*f(a)", "cancels"),
        ("__import__(a)()", "can't be read"),
    ],
)
def test_a_template_that_is_none_is_refused(text, message):
    with pytest.raises(InvalidArgument, match=message):
        read_formula("template", text, COLUMNS, functions=True)


def test_a_guess_has_no_unknown_functions():
    with pytest.raises(InvalidArgument, match="'f' at place 0 is not a function"):
        read_formula("start", "f(a)", COLUMNS, functions=False)
