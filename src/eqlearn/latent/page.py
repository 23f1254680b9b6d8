"""The report page of a law behind encoders: one HTML file that loads nothing from elsewhere."""

from __future__ import annotations

from typing import Any


def latent_page(found: Any) -> str:
    """The page as text."""
    return f"<!doctype html><title>{found}</title>"
