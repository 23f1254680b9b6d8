"""A text with pictures as one HTML file that asks nothing of the network."""

from __future__ import annotations

import base64
import re
from html import escape
from importlib.resources import files
from pathlib import Path


def standalone_page(markdown: str, folder: Path) -> str:
    """The page of a Markdown text whose pictures lie in `folder`; the pictures go into the page.

    Raw HTML in the text is shown as it is written, not run.
    """
    from markdown_it import MarkdownIt

    body = MarkdownIt("js-default", {"linkify": False}).render(markdown)
    body = body.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>")
    body = re.sub(
        r'<img src="([^":]+\.png)"', lambda place: f'<img src="{_embedded(folder / place[1])}"', body
    )
    title = re.search(r"^# (.+)$", markdown, re.MULTILINE)
    style = (files("eqlearn.paper.pages") / "standalone.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title[1] if title else 'eqlearn')}</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )


def _embedded(picture: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(picture.read_bytes()).decode()}"
