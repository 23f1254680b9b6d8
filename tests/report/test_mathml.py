from xml.dom import minidom

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqlearn.report.mathml import mathml, name_markup, number_markup
from eqlearn.symbolic.equation import Equation

VARIABLES = ["a", "b", "x1"]


def words(markup):
    """What a reader sees, left to right, without what is invisible."""
    tree = minidom.parseString(markup)

    def walk(node):
        if node.nodeType == node.TEXT_NODE:
            return node.data
        return "".join(map(walk, node.childNodes))

    return walk(tree).replace("\u2062", "").replace("\u2061", "").replace(" ", "")


def seen(text):
    return words(mathml(Equation.parse(text, VARIABLES), "y"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a**(3/2)", "y=a3/2"),
        ("1.5*a + b", "y=1.5a+b"),
        ("a - 2.5*b", "y=a−2.5b"),
        ("-a", "y=−a"),
        ("a*(b + 1)", "y=a(b+1)"),
        ("(a + b)**2", "y=(a+b)2"),
        ("(-a)**3", "y=−a3"),
        ("a/b", "y=ab"),
        ("sqrt(a)", "y=a"),
        ("abs(a)", "y=|a|"),
        ("sin(2*pi*a)", "y=sin(2πa)"),
        ("exp(-a)", "y=e−a"),
        ("log(a)**2", "y=log(a)2"),
        ("1.0e-7*a", "y=10−7a"),
        ("2.5e12*a", "y=2.5×1012a"),
        ("2*x1", "y=2x1"),
        ("(a**2 + 1)**b", "y=(a2+1)b"),
    ],
)
def test_formulas_are_written_as_they_are_read(text, expected):
    assert seen(text) == expected


def test_fractions_roots_and_powers_have_their_shapes():
    markup = mathml(Equation.parse("a/b + sqrt(a) + b**2", VARIABLES), "y")

    for shape in ("<mfrac>", "<msqrt>", "<msup>"):
        assert shape in markup


def test_each_constant_says_which_one_it_is():
    equation = Equation.parse("1.5*a - 0.25*sin(3.5*b) + 0.125", VARIABLES)
    tree = minidom.parseString(mathml(equation, "y"))

    places = {
        int(row.getAttribute("data-constant")): float(row.getElementsByTagName("mn")[0].firstChild.data)
        for row in tree.getElementsByTagName("mrow")
        if row.hasAttribute("data-constant")
    }

    assert [places[k] for k in sorted(places)] == [abs(c) for c in equation.constants]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("alpha", "α"), (r"$\alpha$", "α"), ("x1", "x1"), ("T_eff", "Teff"), ("λ", "λ"), ("my var", "myvar")],
)
def test_names_are_typeset(name, expected):
    assert words(f"<math>{name_markup(name)}</math>") == expected


@given(name=st.text(min_size=1).filter(lambda s: s.isprintable()))
def test_no_name_becomes_markup(name):
    tree = minidom.parseString(f"<math>{name_markup(name)}</math>")

    tags = {e.tagName for e in tree.getElementsByTagName("*")}
    assert tags <= {"math", "mi", "mn", "mo", "mtext", "mrow", "msub"}


@given(value=st.floats(min_value=1e-300, max_value=1e300))
def test_a_number_is_shown_to_its_digits(value):
    text = words(f"<math>{number_markup(value)}</math>").replace("−", "-")
    mantissa, ten, exponent = text.partition("×10")
    if not ten and text.startswith("10") and len(text) > 2 and not 9.995 <= value < 9999.5:
        mantissa, exponent = "1", text[2:]

    assert float(f"{mantissa}e{exponent or 0}") == pytest.approx(value, rel=1e-3)


def test_a_formula_for_machines_is_not_typeset():
    long = " + ".join(f"{i + 0.5}*a**{i}" for i in range(2, 200))

    assert len(mathml(Equation.parse(long, VARIABLES), "y")) < 500
