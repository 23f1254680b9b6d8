"""The report page of a film: the law, the film beside its reconstruction and the law's forecast, and
charts."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from eqlearn.errors import counted, listed
from eqlearn.report.charts import Frame, around
from eqlearn.report.page import ENDINGS, LARGE_FORMULA, facts_list, filled, typeset
from eqlearn.report.summary import constants_table, percent

# Frames of a film that moves on the page, and pixels of one picture across.
SHOWN, ACROSS, GAP = 150, 220, 6
FILMS = 3
STYLE = ".moving{image-rendering:pixelated;max-width:100%}"


def film_page(found: Any) -> str:
    """The page of a `FoundFilm` as text. Every name is escaped, and there is no script."""
    parts = {
        "title": escape(str(found)[:120]),
        "source": escape(
            f"{listed(found.targets)} from {counted(len(found.frames), 'film')} · {found.seconds:.0f} s"
        ),
        "heading": "The law of motion",
        "formulas": "".join(_formula(e, t) for e, t in zip(found.equations, found.targets, strict=True)),
        "verdict": escape(_verdict(found)),
        "verdict_class": "none" if found.unexplained else "close",
        "checks": "",
        "facts": _facts(found),
        "constants": constants_table(("law",), (found.constants,)),
        "moving": "".join(_moving(found, k) for k in range(min(FILMS, len(found.frames)))),
        "tracks": "".join(_tracks(found, k) for k in range(min(FILMS, len(found.frames)))),
        "gauge": escape(_gauge(found)),
        "front": _front(found),
        "script_source": "img-src data:; ",  # pictures that are in the page itself
    }
    return filled(("found.html", "film.html"), parts, style=STYLE)


def _formula(equation: Any, target: str) -> str:
    size = " small" if equation.complexity > LARGE_FORMULA else ""
    return f'<div class="formula{size}" role="region" aria-label="The law">{typeset(equation, target)}</div>'


def _verdict(found: Any) -> str:
    missed = f"Simulated over whole films it misses the coordinates by {percent(found.error)} of their spread"
    if found.unexplained:
        return f"This is no law of the film: {missed[0].lower()}{missed[1:]}."
    part = percent(1 - found.trained)
    ahead = percent(found.ahead)
    return f"{missed}, and fitted to the rest it foretells the last {part} of every film within {ahead}."


def _facts(found: Any) -> str:
    return facts_list({
        "missed": percent(found.error), "missed of what it foretold": percent(found.ahead),
        "coordinates": str(len(found.names)), "order": str(found.order),
        "frames a second": f"{found.fps:.6g}", "fits": str(found.tried), "search": f"{found.seconds:.0f} s",
    })  # fmt: skip


def _moving(found: Any, film: int) -> str:
    """The film, what the networks make of it, and what the law does, side by side and moving."""
    seen, moved = found.pictures(film)
    some = np.arange(0, len(seen), max(1, -(-len(seen) // SHOWN)))
    panels = [found.frames[film][some], seen[some], moved[some]]
    image = base64.b64encode(animated(panels, found.fps / (some[1] - some[0]))).decode()
    words = f"film {film + 1}: as it is, through encoder and decoder, and as the law moves it from its start"
    return (
        f'<figure class="card"><figcaption>{escape(words.capitalize())}</figcaption>'
        f'<img class="moving" alt="{escape(words)}" '
        f'src="data:image/gif;base64,{image}"></figure>'
    )


def animated(panels: Sequence[np.ndarray], fps: float | int) -> bytes:
    """A GIF of films `(frames, height, width, colours)` side by side."""
    from PIL import Image

    low, high = (float(f(panels[0])) for f in (np.min, np.max))
    factor = max(1, ACROSS // panels[0].shape[2])
    grey = [np.clip((p.mean(axis=3) - low) / ((high - low) or 1.0), 0, 1) for p in panels]
    large = [np.kron(p, np.ones((1, factor, factor))) for p in grey]
    gap = np.ones((len(large[0]), large[0].shape[1], GAP))
    rows = np.concatenate([x for p in large for x in (p, gap)][:-1], axis=2)
    images = [Image.fromarray((255 * row).astype(np.uint8)) for row in rows]
    file = io.BytesIO()
    images[0].save(
        file,
        format="GIF",
        save_all=True,
        append_images=images[1:],
        duration=max(20, round(1000 / fps)),
        loop=0,
    )
    return file.getvalue()


def _tracks(found: Any, film: int) -> str:
    """The coordinate that was read off a film and the law's, over time."""
    count = len(found.names)
    times = np.arange(len(found.measured[film])) / found.fps
    motion, figures = found.motion, []
    law = motion.read(found.states[film][:, :count])
    for k, name in enumerate(found.names):
        measured = found.measured[film][:, k]
        frame = Frame((0.0, float(times[-1])), around(np.concatenate([measured, law[:, k]])), label="seconds")
        drawn = frame.dots(times, measured, 1.8) + frame.line(times, law[:, k])
        words = (
            f"{name} of film {film + 1}: read off the pictures (dots), and by the law from its start (line)"
        )
        figures.append(
            f'<figure class="card wide"><figcaption>{escape(words)}</figcaption>'
            f'<div class="chart">{frame.svg(drawn, words)}</div></figure>'
        )
    return "".join(figures)


def _gauge(found: Any) -> str:
    if found.motion.structure.scaled:
        return (
            "A film tells no units. This law does: its function has an argument without a unit (an angle is "
            "in radians), so zero and unit of the coordinate are those in which the law is as short as this."
        )
    return (
        "A film tells no units. Where a law leaves the unit of its coordinate open, that unit is chosen "
        "which makes a factor one, or else the coordinate's own spread; zero is where the law is shortest."
    )


def _front(found: Any) -> str:
    rows = "".join(
        f"<tr><td>{''.join(typeset(e, t) for e, t in zip(c.equations, found.targets, strict=False))}</td>"
        f'<td class="number">{c.complexity}</td><td class="number">{escape(percent(c.training_error))}</td>'
        f'<td class="number">{escape(percent(c.validation_error))}</td></tr>'
        for c in found.front
    )
    heads = "".join(f'<th scope="col" class="number">{h}</th>' for h in ("size", "missed", "missed ahead"))
    said = f"{counted(found.tried, 'fit')} in {found.seconds:.0f} s. {ENDINGS.get(found.ended, '')}"
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Laws"><table class="plain"><thead><tr>'
        f'<th scope="col">law</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
        f'<p class="note">{escape(said)}</p>'
    )
