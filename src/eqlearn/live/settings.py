"""What a live view allows, as one frozen object."""

from __future__ import annotations

from eqlearn.validation.options import tuned


@tuned
class Limits:
    """Bounds on what a page may ask for: bytes of a table and of any other request, tables that are kept,
    searches at the same time, seconds of a search, and seconds to wait for a request or a search's end."""

    largest_table: int = 32 * 2**20
    largest_request: int = 2**20  # names of ten thousand columns
    most_tables: int = 8
    most_searches: int = 4  # each takes a processor
    longest_search: float = 7 * 24 * 3600.0
    patience: float = 20.0


LIMITS = Limits()
