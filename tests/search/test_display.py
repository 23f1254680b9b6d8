import html.parser

import numpy as np
import pytest

from eqlearn import EQLRegressor, Settings, discover
from eqlearn.search.candidate import Candidate
from eqlearn.search.display import front_html
from eqlearn.symbolic.equation import Equation

QUICK = Settings(networks=False, strategies=("linear",))


class Tags(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.opened, self.names = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.names.add(tag)
        if tag != "br":
            self.opened.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.names.add(tag)

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag


def candidates(name="x"):
    quoted = "`" + name.replace("`", "``") + "`"
    texts = ("2.0", f"1.5*{quoted}", f"{quoted}**2 + 1")
    return [Candidate((Equation.parse(t, (name,)),), 10.0**-k, 0.0, k == 2) for k, t in enumerate(texts)]


def test_the_front_is_a_table_with_the_chosen_equation_marked():
    front = candidates()

    text = front_html(front, front[2])

    assert text.count("<tr>") == 4
    assert text.count("●") == 1
    assert "exact" in text
    assert {"svg", "table", "polyline"} <= Tags(text).names


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "a&b", 'x"y', "`"])
def test_names_are_never_markup(name):
    front = candidates(name)

    tags = Tags(front_html(front, front[1], [name]))

    assert tags.opened == []
    assert "script" not in tags.names


def test_one_equation_needs_no_picture():
    front = candidates()[:1]

    assert "<svg" not in front_html(front, front[0])


def test_what_was_found_shows_itself_in_a_notebook():
    X = np.linspace(1, 3, 20)[:, None]
    found = discover(X, 2 * X[:, 0] + 1, settings=QUICK)
    model = EQLRegressor(settings=QUICK)
    before = model._repr_mimebundle_()

    model.fit(X, 2 * X[:, 0] + 1)

    assert "2*x + 1" in found._repr_html_()
    assert "2*x + 1" in model._repr_mimebundle_()["text/html"]
    assert set(model._repr_mimebundle_()) == set(before)
