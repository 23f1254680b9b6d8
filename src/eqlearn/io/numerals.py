"""How a text file writes its numbers: the decimal mark and what separates thousands, told from its fields."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

# What spreadsheets and instruments write where there is no number, errors of formulas among them.
MISSING = (
    "", "NA", "N/A", "#N/A", "na", "n/a", "n.a.", "nan", "NaN", "NAN", "NULL", "null", "None", "-", "--", "?",
    "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!",
)  # fmt: skip
# These separate thousands and are never a decimal mark: spaces of several widths, apostrophes.
GROUPERS = " \u00a0\u2009\u202f'\u2019"
_MARKED = re.compile(rf"[-+]?\d[\d.,{GROUPERS}]*(?:[eE][-+]?\d+)?")
_GROUPED = re.compile(rf"[-+]?[1-9]\d{{0,2}}([.,{GROUPERS}])\d{{3}}(?:\1\d{{3}})*(?:(?!\1)([.,])\d*)?")
_DATE = re.compile(
    r"\d{4}([-/.])\d{1,2}\1\d{1,2}(?!\d).*|\d{1,2}([-/.])\d{1,2}\2\d{2,4}(?!\d).*|\d{1,2}:\d{2}(:\d{2}.*)?"
    r"|\d{1,2}[- ][A-Za-z]{3,9}\.?[- ]\d{2,4}.*"
)
_WITH_UNIT = re.compile(r"[-+]?\d[\d.,]*\s*[^\W\d_]\S*|[-+]?\d[\d.,]*\s*[%°€$£]\S*|[€$£]\s*\d[\d.,]*")


@dataclass(frozen=True)
class Numerals:
    """The decimal mark and the characters that separate thousands; `doubtful` is a number that may mean two,
    such as 1,234, where no other field tells which."""

    decimal: str = "."
    thousands: str = ""
    doubtful: str = ""

    @staticmethod
    def of(fields: Iterable[str], *, comma: bool = False) -> Numerals:
        """From fields of the file; `comma` says that a decimal comma is likely, as between semicolons.

        1,5 and 0,250 tell a decimal comma, 1,234.5 and 1,234,567 a comma between thousands, 1,234 neither.
        """
        decimals, separators, doubtful = set(), set(), {}
        for field in fields:
            text = _plain(field)
            if not _MARKED.fullmatch(text):
                continue
            marks = [c for c in text if c in ".,"]
            grouped = _GROUPED.fullmatch(text)
            if grouped is None:
                if len(marks) == 1:
                    decimals.add(marks[0])
            elif grouped[1] not in ".,":
                separators.add(grouped[1])
                decimals |= {grouped[2]} - {None}
            elif grouped[2] is not None:
                separators.add(grouped[1])
                decimals.add(grouped[2])
            elif len(marks) > 1:
                separators.add(grouped[1])
            else:
                doubtful[marks[0]] = text
        return _decided(decimals, separators, doubtful, comma)

    def value(self, field: str) -> float | None:
        """The number, NaN where it is missing, or None where the field holds no number."""
        text = _plain(field)
        if text in MISSING:
            return math.nan
        if any(c in text for c in self.thousands):
            grouped = _GROUPED.fullmatch(text)
            if grouped is None or grouped[1] not in self.thousands or grouped[2] not in (None, self.decimal):
                return None
            text = text.replace(grouped[1], "")
        if self.decimal != ".":
            if "." in text:
                return None
            text = text.replace(self.decimal, ".")
        try:
            return None if "_" in text else float(text)
        except ValueError:
            return None

    def is_number(self, field: str) -> bool:
        return self.value(field) is not None

    @property
    def words(self) -> str:
        """How numbers are written, as part of a note; "" for the plain way."""
        marks = ["decimal commas"] if self.decimal == "," else []
        if self.thousands:
            named = {".": "points", ",": "commas", "'": "apostrophes", "\u2019": "apostrophes"}
            kinds = sorted({named.get(c, "spaces") for c in self.thousands})
            marks.append(f"{' or '.join(kinds)} between thousands")
        return " and ".join(marks)


def _decided(decimals: set[str], separators: set[str], doubtful: dict[str, str], comma: bool) -> Numerals:
    groups = "".join(sorted(separators - set(".,")))
    marks = separators & set(".,")
    if len(decimals) == 1:
        (decimal,) = decimals
        other = "," if decimal == "." else "."
        return Numerals(decimal, groups + (other if other in marks or other in doubtful else ""))
    if not decimals and len(marks) == 1:
        (mark,) = marks
        return Numerals("," if mark == "." else ".", groups + mark)
    if not decimals and not marks and set(doubtful) == {","} and not comma:
        return Numerals(".", groups, doubtful[","])
    return Numerals("," if comma and (decimals or "," in doubtful) else ".", groups)


def _plain(field: str) -> str:
    return field.strip().replace("\u2212", "-")  # the minus sign of typesetters


def nature(field: str) -> str:
    """What a field that holds no number holds: "dates", "numbers with a unit" or "text"."""
    text = field.strip()
    if _DATE.fullmatch(text):
        return "dates"
    return "numbers with a unit" if _WITH_UNIT.fullmatch(text) else "text"
