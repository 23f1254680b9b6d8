"""The page of the live view: one HTML file with its script and style, which gets its data from the server."""

from __future__ import annotations

from typing import NamedTuple

from eqlearn.live.settings import LIMITS, Limits
from eqlearn.report.page import filled, source_hash, template_text
from eqlearn.report.payload import embedded

ROOM = "eqlearn.live"


class Page(NamedTuple):
    """HTML, and the policy that goes with it: what it may load, and from where."""

    html: str
    policy: str


def live_page(limits: Limits = LIMITS) -> Page:
    """The page, which holds nothing of any run: it asks for them by its token."""
    script = template_text("drawings.js") + template_text("live.js", ROOM)
    style = template_text("live.css", ROOM)
    allowed = f"script-src '{source_hash(script)}'; connect-src 'self'; "
    settings = {"largest": limits.largest_table}
    parts = {
        "title": "eqlearn: live view", "source": "live view", "script": script, "script_source": allowed,
        "settings": embedded(settings),
    }  # fmt: skip
    html = filled(("live.html",), parts, ROOM, style)
    styles = source_hash(template_text("page.css") + style)
    policy = f"default-src 'none'; style-src '{styles}'; {allowed}base-uri 'none'; form-action 'none'"
    return Page(html, f"{policy}; frame-ancestors 'none'")
