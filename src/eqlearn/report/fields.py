"""The report page of a search for partial differential equations: formulas, constants, pictures of fields."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
from PIL import Image

from eqlearn.fields.found import FoundPDE
from eqlearn.report.mathml import mathml

# Pictures are at most this many points wide and high.
WIDEST = 400
# Of the hidden parameters, those of so many experiments are shown.
SHOWN = 50
BLUE, WHITE, RED = np.array([33, 102, 172]), np.array([247, 247, 247]), np.array([178, 24, 43])


def field_page(found: FoundPDE) -> str:
    """One HTML file that needs no other: each field, its simulation from the first time, the difference."""
    formulas = "".join(
        f'<div class="formula">{mathml(e, t)}</div>'
        for t, e in zip(found.targets, found.equations, strict=True)
    )
    words = f"{escape(', '.join(found.unexplained))}: the data hold more than this equation"
    missed = f"<p><strong>{words}.</strong></p>" if found.unexplained else ""
    noise = ", ".join(f"{escape(n)} {v:.3g}" for n, v in found.noise.items())
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>Equations of fields</title><style>"
        "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
        "math{font-size:1.3em}table{border-collapse:collapse}td,th{padding:.2rem .8rem;text-align:left}"
        "figure{display:inline-block;margin:.5rem;width:17rem}img{image-rendering:pixelated;width:17rem;height:13rem}"
        "</style><body><h1>Equations of fields</h1>"
        f"{formulas}{missed}{_constants(found)}{_latents(found)}<p>Noise at most: {noise}.</p>"
        f"{_pictures(found)}{_front(found)}"
        "</body></html>"
    )


def _constants(found: FoundPDE) -> str:
    rows = [
        (escape(t), f"{c.value:.6g}", f"{c.standard_error:.2g}")
        for t, constants in zip(found.targets, found.constants, strict=True)
        for c in constants
    ]
    return _table(("equation", "constant", "standard error"), rows) if rows else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{''.join(f'<th>{name}</th>' for name in head)}</tr>{lines}</table>"


def _latents(found: FoundPDE) -> str:
    """The hidden parameters of the first experiments."""
    if not found.readers:
        return ""
    head = [text for r in found.readers for text in (escape(r.name), "standard error")]
    pairs = list(zip(found.latents, found.latent_errors, strict=True))[:SHOWN]
    rows = (
        (f"{k}", *(text for v, e in zip(*pair, strict=True) for text in (f"{v:.6g}", f"{e:.2g}")))
        for k, pair in enumerate(pairs, 1)
    )
    return f"<h2>Hidden parameters</h2>{_table(('experiment', *head), rows)}"


def _front(found: FoundPDE) -> str:
    front = found.found.front
    rows = ((f"{c.complexity}", f"{c.training_error:.2g}", f"<code>{escape(str(c))}</code>") for c in front)
    return f"<h2>Shorter and longer</h2>{_table(('nodes', 'misses', ''), rows)}"


def _pictures(found: FoundPDE) -> str:
    """The first experiment over time along the first axis of space, and what the equations make of its
    start."""
    if len(found.targets) < len(found.data.names) or found.data.masked:
        return ""
    observed = found.data.experiments[0]
    times = found.data.axes[found.data.time]
    moving = {n: np.gradient(v, times, axis=-1)[..., 0] for n, v in observed.items()}
    start = {n: v[..., 0] for n, v in observed.items()}
    simulated = found.simulate(start, times, rates=moving, latents=found.latents[0].tolist())
    parts = []
    for name, values in observed.items():
        size = float(np.abs(values).max()) or 1.0
        three = {"observed": values, "simulated": simulated[name], "difference": simulated[name] - values}
        parts += [_figure(f"{name}, {what}", _plane(v), size) for what, v in three.items()]
    words = f"Across: time. Down: {escape(found.data.space[0])}."
    return f"<h2>Observed and simulated</h2><p>{words}</p>{''.join(parts)}"


def _plane(values: np.ndarray) -> np.ndarray:
    """Along the first axis of space and time, through the middle of the others."""
    middle = tuple(n // 2 for n in values.shape[1:-1])
    return np.asarray(values[(slice(None), *middle)])


def _figure(title: str, values: np.ndarray, size: float) -> str:
    steps = [max(1, -(-n // WIDEST)) for n in values.shape]
    image = base64.b64encode(png(values[:: steps[0], :: steps[1]] / size)).decode()
    return (
        f"<figure><img alt='{escape(title)}' src='data:image/png;base64,{image}'>"
        f"<figcaption>{escape(title)}: blue {-size:.3g}, white 0, red {size:.3g}</figcaption></figure>"
    )


def png(values: np.ndarray) -> bytes:
    """A picture of numbers from -1 (blue) to 1 (red); grey where there are none."""
    clipped = np.clip(np.nan_to_num(values), -1, 1)[..., None]
    colours = np.where(clipped < 0, WHITE + (WHITE - BLUE) * clipped, WHITE + (RED - WHITE) * clipped)
    colours[~np.isfinite(values)] = 160
    file = io.BytesIO()
    Image.fromarray(colours.astype(np.uint8)).save(file, "PNG")
    return file.getvalue()
