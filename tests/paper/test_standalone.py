"""A text with pictures as one HTML file."""

import base64
from html.parser import HTMLParser

import pytest

from eqlearn.paper.pages.standalone import standalone_page

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Seen(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data

    def of(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def test_pictures_are_inside_the_page(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part/curve.png").write_bytes(PNG)

    page = Seen(standalone_page("# Title\n\n![a curve](part/curve.png)\n", tmp_path))

    (picture,) = page.of("img")
    assert picture["alt"] == "a curve"
    assert base64.b64decode(picture["src"].removeprefix("data:image/png;base64,")) == PNG


def test_the_heading_is_the_title(tmp_path):
    assert "<title>One &amp; two</title>" in standalone_page("text\n\n# One & two\n", tmp_path)


def test_tables_may_scroll_and_keep_their_cells(tmp_path):
    page = Seen(standalone_page("| a | b |\n|---|---|\n| **1** | `x*y` |\n", tmp_path))

    assert {"class": "scroll"} in page.of("div")
    assert len(page.of("td")) == 2
    assert "x*y" in page.text


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", '<img src=x onerror="alert(1)">'])
def test_raw_html_is_shown_and_not_run(tmp_path, hostile):
    page = Seen(standalone_page(f"a name: {hostile}\n\n| {hostile} |\n|---|\n| `{hostile}` |\n", tmp_path))

    assert not page.of("script")
    assert not page.of("img")
    assert hostile in page.text


def test_a_link_that_would_run_code_is_no_link(tmp_path):
    page = Seen(standalone_page("[click](javascript:alert(1))", tmp_path))

    assert not page.of("a")


def test_the_page_asks_nothing_of_the_network(tmp_path):
    page = Seen(standalone_page("# Title\n\ntext with http://example.org in it\n", tmp_path))

    assert not page.of("link")
    assert not page.of("script")
    assert not [a for _, a in page.tags if "src" in a]


def test_a_picture_that_is_missing_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="gone"):
        standalone_page("![gone](gone.png)", tmp_path)
