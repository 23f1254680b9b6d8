"""The report page of a law behind encoders: one HTML file that loads nothing from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import zip_longest
from typing import Any

import numpy as np

from eqlearn.errors import counted, listed
from eqlearn.latent.settings import LATENT
from eqlearn.report.charts import Frame, around, figure
from eqlearn.report.page import LARGE_FORMULA, code_block, facts_list, filled, typeset
from eqlearn.report.summary import constants_table, percent
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.printing import printable

WIDTH, HEIGHT = 440.0, 320.0  # of one of two charts in a row
# Sharper curves than this would not be seen.
POINTS = 400
ENDINGS = {
    "interrupted": " It was interrupted.",
    "out of time": " Time was short, so that some of it was cut.",
}


def latent_page(found: Any) -> str:
    """The page of a `FoundLatent` as text. Every name is escaped, and there is no script."""
    targets, several = found.targets, len(found.targets) > 1
    parts = {
        "title": escape(str(found)[:120]),
        "source": escape(
            f"{listed(targets)} from {listed(found.equation.variables)} · {found.seconds:.0f} s"
        ),
        "heading": "The equations" if several else "The equation",
        "formulas": _formulas(found.equations, targets),
        "verdict": escape(_verdict(found)),
        "verdict_class": "close" if _as_good(found) else "none",
        "checks": f'<p class="lead">{escape(agreement_text(*found.agreement))}</p>',
        "facts": _facts(found),
        "constants": _constants(found),
        "gauge": _gauge(found),
        "figures": _grid([*_bends(found), *_fits(found)]),
        "equivalent": _equivalent(found),
        "front": _front(found),
        "training": escape(_training(found)),
        "curves": _curves(found),
        "use": _use(found),
    }
    return filled(("found.html", "latent.html"), parts)


def agreement_text(agreed: int, starts: int) -> str:
    """What it means that so many of the starts came to a law."""
    if starts < 2:
        return (
            "There was one start only, or time to compare no more than one: nothing confirms the law. "
            "Search again with more seconds, or with another seed."
        )
    said = f"{agreed} of {starts} independent starts came to this law."
    if agreed == starts:
        return said
    return f"{said} The others came to laws that fit their latents as well: take it with care."


def _as_good(found: Any) -> bool:
    """Whether the law leaves no more than the head did, give or take what the search itself allows."""
    return bool(found.error <= LATENT.close * found.head_error)


def _verdict(found: Any) -> str:
    left = f"{percent(found.error)} of the variance of {listed(found.targets)}"
    if _as_good(found):
        return (
            f"The law explains the data as well as a smooth network in its place does: it leaves {left}, "
            f"the network {percent(found.head_error)}."
        )
    return (
        f"The law leaves {left}, and a smooth network in its place only {percent(found.head_error)}: there "
        "is more in the data than it says, or it was not trained for long enough."
    )


def _facts(found: Any) -> str:
    facts = {
        "variance left": percent(found.error),
        "on rows held back": percent(found.held_error),
        "by a network": percent(found.head_error),
        "starts that agree": "{} of {}".format(*found.agreement),
        "complexity": counted(sum(e.complexity for e in found.equations), "node"),
        "fitted constants": str(sum(len(c) for c in found.constants)),
        "search": f"{found.seconds:.0f} s",
    }
    return facts_list(facts)


def _formulas(equations: Sequence[Equation], targets: Sequence[str]) -> str:
    size = " small" if max(e.complexity for e in equations) > LARGE_FORMULA else ""
    return "".join(
        f'<div class="formula{size}" tabindex="0" role="region" '
        f'aria-label="The equation of {escape(target)}">{typeset(equation, target)}</div>'
        for equation, target in zip(equations, targets, strict=True)
    )


def _constants(found: Any) -> str:
    table = constants_table(found.targets, found.constants)
    if not any(found.constants):
        return table
    return (
        f'{table}<p class="note">Standard errors are with the encoders free to bend their latents; they '
        "assume that the form is right and that errors are independent.</p>"
    )


# --- drawings ---------------------------------------------------------------------------------------------


def _grid(figures: Sequence[str]) -> str:
    """Two figures a row."""
    rows = zip_longest(figures[::2], figures[1::2], fillvalue="")
    return "".join(f'<div class="pair">{a}{b}</div>' for a, b in rows)


def _series(found: Any, name: str) -> list[np.ndarray]:
    return [np.asarray(values, dtype=float) for values in found.shown.get(name, ())]


def _bends(found: Any) -> list[str]:
    """Each latent in the canonical gauge against the encoder's own output: the bend that was learned."""
    figures = []
    shown = zip(found.shown.get("names", ()), _series(found, "raw"), _series(found, "latents"), strict=True)
    for name, raw, latent in shown:
        frame = Frame(around(raw), around(latent), width=WIDTH, height=HEIGHT, label="output of the encoder")
        line = ""
        if (gauge := found.gauge.get(name)) is not None:
            ends = np.linspace(*frame.x, 100)
            line = frame.line(ends, gauge.scale * ends + gauge.shift)
        words = f"{name} in the equation's gauge against the encoder's output"
        figures.append(
            figure(
                f"{name}, as in the equation, against what its encoder gives",
                frame.svg(frame.dots(raw, latent, 2.4) + line, words),
                "card",
            )
        )
    return figures


def _fits(found: Any) -> list[str]:
    """What the model predicts against what was measured."""
    figures = []
    shown = zip(found.targets, _series(found, "predicted"), _series(found, "true"), strict=True)
    for target, predicted, true in shown:
        finite = np.isfinite(predicted)
        both = around(np.concatenate([true, predicted[finite]]))
        frame = Frame(both, both, width=WIDTH, height=HEIGHT, label=f"{target}, measured")
        ends = np.array(both)
        drawn = frame.line(ends, ends, "ideal") + frame.dots(true[finite], predicted[finite], 2.4)
        figures.append(
            figure(
                f"{target}, by the equation, against {target} as measured",
                frame.svg(drawn, f"{target} predicted and measured"),
                "card",
            )
        )
    return figures


def _stretches(history: Sequence[Mapping[str, Any]]) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """The trainings one after the other: stage, steps and errors. A stage with several laws has several."""
    found: list[tuple[str, list[float], list[float]]] = []
    before: tuple[str, float] = ("", math.inf)
    for record in history:
        stage, step = str(record["stage"]), float(record["step"])
        if stage != before[0] or step <= before[1]:
            found.append((stage, [], []))
        found[-1][1].append(step)
        found[-1][2].append(float(record["error"]))
        before = (stage, step)
    return [(stage, np.array(steps), np.array(errors)) for stage, steps, errors in found]


def _curves(found: Any) -> str:
    """The error of each training by step, one after the other, on a logarithmic scale."""
    stretches = _stretches(found.history)
    logs = [np.log10(np.where(errors > 0, errors, np.nan)) for _, _, errors in stretches]
    values = np.concatenate([*logs, [math.log10(found.head_error)] if found.head_error > 0 else []])
    values = values[np.isfinite(values)]
    if not stretches or not len(values):
        return ""
    ends = np.cumsum([float(steps[-1]) for _, steps, _ in stretches])
    heights = (math.floor(values.min()) - 0.2, math.ceil(values.max()) + 0.8)  # stages are named at the top
    frame = Frame((0.0, float(ends[-1])), heights, height=300.0, label="step", logarithmic=True)
    drawn, last = [], ""
    for (stage, steps, _), log, end in zip(stretches, logs, ends, strict=True):
        begin = end - steps[-1]
        some = np.unique(np.linspace(0, len(steps) - 1, min(POINTS, len(steps))).round().astype(int))
        if begin > 0:
            drawn.append(frame.line(np.array([begin, begin]), np.array(frame.y), "grid"))
        drawn.append(frame.line(begin + steps[some], log[some], "stairs"))
        if stage != last:
            x, last = float(frame.across(np.array(begin))) + 5, stage
            drawn.append(f'<text x="{x:.1f}" y="24">{escape(stage)}</text>')
    if found.head_error > 0:
        drawn.append(frame.line(np.array(frame.x), np.full(2, math.log10(found.head_error)), "curve"))
    chart = frame.svg("".join(drawn), "error of each training by step, on a logarithmic scale")
    legend = (
        '<ul class="legend"><li><i></i>error of a batch</li>'
        '<li><i class="picked"></i>what the network in the equation’s place left in the end</li></ul>'
    )
    return figure("Error by step, part of the variance", chart) + legend


# --- words ------------------------------------------------------------------------------------------------


def _gauge(found: Any) -> str:
    lines = [
        f"{escape(name)} ≈ {gauge.scale:.4g} · output {'+' if gauge.shift >= 0 else '−'} "
        f"{abs(gauge.shift):.4g} (correlation {gauge.correlation or math.nan:.4f})"
        for name, gauge in found.gauge.items()
    ]
    return (
        "No one tells an encoder in which units to speak, so each latent is bent to what makes the law "
        "short: dots are the latent in the equation against the encoder’s own output, the line is the "
        f"nearest straight one: {'; '.join(lines)}. Near a straight line, the encoder speaks the law’s "
        "language up to zero and unit; a curve is a bend that was taken out."
    )


def _equivalent(found: Any) -> str:
    if not found.equivalent:
        return (
            '<p class="lead">No other law on the short list is this one under a bend of its latents. Where '
            "the equation leaves the sign, zero or unit of a latent free, they are conventions.</p>"
        )
    return (
        '<p class="lead">On these rows each of these laws gives what the one above gives, but for a small '
        "part of the error that is left, once its latents are bent; and an encoder is free to bend them. The "
        "data can’t decide between them; the shortest is given. A tilde leaves out a factor and an offset "
        "of the target, and factors of columns.</p>"
        f"{_table(('law',), [(_cells(e, found.targets),) for e in found.equivalent])}"
    )


def _front(found: Any) -> str:
    rows = [
        (_cells(c.equations, found.targets), str(c.complexity), escape(percent(c.error))) for c in found.front
    ]
    return _table(("law", "size", "variance left"), rows)


def _cells(equations: Sequence[Equation], targets: Sequence[str]) -> str:
    """Structures, which give their target up to a factor and an offset: with a tilde."""
    cells = [typeset(e, t) for e, t in zip(equations, targets, strict=True)]
    cells = [cell.replace("<mo>=</mo>", "<mo>∼</mo>", 1) for cell in cells]
    return "".join(f'<div class="cell">{cell}</div>' for cell in cells)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column holds formulas and whose others hold numbers."""
    first, *others = heads
    top = "".join(f'<th scope="col" class="number">{h}</th>' for h in others)
    body = "".join(
        f"<tr><td>{formula}</td>" + "".join(f'<td class="number">{n}</td>' for n in numbers) + "</tr>"
        for formula, *numbers in rows
    )
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Laws"><table class="plain">'
        f'<thead><tr><th scope="col">{first}</th>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _training(found: Any) -> str:
    names = [stage for stage, _, _ in _stretches(found.history)]
    starts = len({name for name in names if name.startswith("warm start")})
    lists = names.count("short list")
    said = f"It took {counted(starts, 'warm start')}"
    said += f", {counted(lists, 'training')} of laws on the short list" if lists else ""
    return f"{said} and the refinement of the law, in {found.seconds:.0f} s.{ENDINGS.get(found.ended, '')}"


def _use(found: Any) -> str:
    network = found.network
    if network is None:
        return code_block(
            "In Python", 'import eqlearn\n\nfound = eqlearn.load("FOLDER")  # what `save` wrote'
        )
    inputs = ", ".join(f'"{printable(name)}": ...' for name in network.encoders.names)
    columns = ", ".join(f'"{printable(name)}": ...' for name in network.columns)
    call = f"{{{inputs}}}" + (f", {{{columns}}}" if columns else "")
    lines = [
        "import eqlearn",
        "",
        f'found = eqlearn.load("FOLDER", encoders={{{inputs}}})  # what `found.save("FOLDER")` wrote',
        f"found.model({call})  # from inputs to {printable(listed(found.targets))}, a torch module",
        f'found.latent("{printable(network.encoders.names[0])}", ...)  # in the gauge of the equation',
    ]
    return code_block("In Python", "\n".join(lines))
