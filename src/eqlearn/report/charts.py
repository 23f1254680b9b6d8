"""Charts as SVG drawings, which need no script: a frame, dots and lines in it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np

LEFT, RIGHT, TOP, BOTTOM = 62.0, 12.0, 12.0, 30.0


@dataclass(frozen=True)
class Frame:
    """A chart's area: the ranges of both axes, its size, and what stands below it, if anything.

    With `logarithmic`, heights are powers of ten: the range of `y` and all values are logarithms.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    width: float = 900.0
    height: float = 190.0
    label: str = ""
    logarithmic: bool = False

    @property
    def bottom(self) -> float:
        return self.height - BOTTOM - (18.0 if self.label else 0.0)

    def across(self, values: np.ndarray) -> np.ndarray:
        low, high = self.x
        return np.asarray(LEFT + (self.width - LEFT - RIGHT) * (values - low) / (high - low))

    def up(self, values: np.ndarray) -> np.ndarray:
        low, high = self.y
        return np.asarray(TOP + (self.bottom - TOP) * (high - values) / (high - low))

    def dots(self, x: np.ndarray, y: np.ndarray, radius: float = 3.0) -> str:
        places = zip(self.across(x), self.up(y), strict=True)
        return "".join(f'<circle class="point" cx="{a:.1f}" cy="{b:.1f}" r="{radius:g}"/>' for a, b in places)

    def line(self, x: np.ndarray, y: np.ndarray, kind: str = "curve") -> str:
        """One path for each stretch that is finite and inside the frame."""
        low, high = self.y
        inside = np.isfinite(y) & (y >= low) & (y <= high)
        paths: list[list[str]] = [[]]
        for a, b, here in zip(self.across(x), self.up(y), inside, strict=True):
            if here:
                paths[-1].append(f"{a:.1f},{b:.1f}")
            elif paths[-1]:
                paths.append([])
        joined = ["M" + "L".join(points) for points in paths if len(points) > 1]
        return "".join(f'<path class="{kind}" d="{path}"/>' for path in joined)

    def svg(self, inside: str, words: str) -> str:
        """The chart with its ticks; `words` say what it shows to those who can't see it."""
        marks = "".join(self._mark(value) for value in self._heights())
        below = "".join(self._below(value) for value in ticks(*self.x))
        label = (
            f'<text x="{(LEFT + self.width - RIGHT) / 2:g}" y="{self.height - 6:g}" text-anchor="middle">'
            f"{escape(self.label)}</text>"
            if self.label
            else ""
        )
        return (
            f'<svg viewBox="0 0 {self.width:g} {self.height:g}" role="img" aria-label="{escape(words)}">'
            f"{marks}{below}{label}{inside}</svg>"
        )

    def _heights(self) -> list[float]:
        if not self.logarithmic:
            return ticks(*self.y)
        return [float(v) for v in ticks(*self.y) if float(v).is_integer()]

    def _mark(self, value: float) -> str:
        at = float(self.up(np.array(value)))
        text = f"{10.0**value:.6g}" if self.logarithmic else f"{value:.6g}"
        return (
            f'<line class="grid" x1="{LEFT:g}" x2="{self.width - RIGHT:g}" y1="{at:.1f}" y2="{at:.1f}"/>'
            f'<text x="{LEFT - 8:g}" y="{at:.1f}" dy="0.35em" text-anchor="end">{text}</text>'
        )

    def _below(self, value: float) -> str:
        at = float(self.across(np.array(value)))
        return f'<text x="{at:.1f}" y="{self.bottom + 22:g}" text-anchor="middle">{value:.6g}</text>'


def figure(caption: str, chart: str, kind: str = "card wide") -> str:
    """A chart with its caption above."""
    return (
        f'<figure class="{kind}"><figcaption>{escape(caption)}</figcaption><div class="chart">{chart}</div>'
        "</figure>"
    )


def around(values: np.ndarray, part: float = 0.06) -> tuple[float, float]:
    """The range of some values and a little more."""
    low, high = float(np.min(values)), float(np.max(values))
    margin = part * (high - low) or 1.0
    return low - margin, high + margin


def ticks(low: float, high: float) -> list[float]:
    """About four round numbers inside the range."""
    rough = (high - low) / 4
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(float(power * m) for m in (1, 2, 5, 10) if power * m >= rough)
    first = int(np.ceil(low / step - 1e-9))
    return [n * step for n in range(first, int(np.floor(high / step + 1e-9)) + 1)]
