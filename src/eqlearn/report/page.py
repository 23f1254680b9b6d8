"""The report page: one HTML file with everything about a run, which loads nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import eqlearn
from eqlearn.errors import counted
from eqlearn.nn.eql import EQL
from eqlearn.report.drawings import diagram, network_svg
from eqlearn.report.groups import groups_section
from eqlearn.report.mathml import mathml
from eqlearn.report.motion import Motion, motion_figures
from eqlearn.report.payload import LONGEST, OUTSIDE, Sample, embedded, payload
from eqlearn.report.record import RunRecord
from eqlearn.report.summary import checks, constants_table, grade, percent, unseen_errors, verdict
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.languages import EXPORTS, function_names, source
from eqlearn.symbolic.printing import printable

# A browser can't wrap a typeset formula, so longer ones are given as text.
LARGE_FORMULA, LONG_FORMULA = 16, 60
LONG_TEXT = 600

ENDINGS = {
    "exact": "It ended because an exact formula was found.",
    "out of time": "It ended because its time was up.",
    "out of restarts": "It ended because all restarts it was given were used.",
    "no further gain": "It ended because further rounds brought no better description.",
    "interrupted": "It was interrupted.",
}


def page(record: RunRecord, sample: Sample, network: EQL | None, motion: Motion | None = None) -> str:
    """The page as text, with the `motion` of a search for dynamics.

    Every name is escaped, and no script may run but the one that ships with the package.
    """
    script = template_text("drawings.js") + template_text("page.js")
    rows_outside = int((sample.part == OUTSIDE).sum())
    parts = {
        "script": script, "script_source": f"script-src '{source_hash(script)}'; ",
        "title": escape(f"{record.targets[0]} = {record.best.equation}"[:120]),
        "source": escape(_source(record)),
        "heading": "The equation" if len(record.targets) == 1 else "The equations",
        "formulas": "".join(_formula(record, k) for k in range(len(record.targets))),
        "verdict": escape(verdict(record)), "verdict_class": grade(record),
        "checks": f'<p class="lead">{escape(checks(record))}</p>' if checks(record) else "",
        "facts": _facts(record),
        "constants": constants_table(record.targets, record.best.constants),
        "motion": groups_section(record, sample) if motion is None else _motion(record, motion),
        "front_heads": "".join(f'<th scope="col" class="number">{h}</th>' for h in unseen_errors(record)),
        "front_rows": "".join(_row(record, i) for i in range(len(record.front))),
        "beyond_note": escape(_beyond(record, rows_outside)),
        "network": _network(record, network),
        "search": escape(_search(record)),
        "improvements": _improvements(record),
        "use": _use(record, network),
        "settings": _settings(record),
        "data": embedded(payload(record, sample)),
    }  # fmt: skip
    return filled(("found.html", "page.html"), parts)


def filled(
    templates: Sequence[str], parts: Mapping[str, str], room: str = "eqlearn.report", style: str = ""
) -> str:
    """Templates of a room with their parts, after the head that all pages share, and `style` after the one
    that they share. No script may run unless the parts have a `script_source`."""
    style = template_text("page.css") + style
    own = {"style": style, "style_hash": source_hash(style), "version": escape(eqlearn.__version__)}
    whole = {"script_source": "", **parts, **own}
    text = template_text("head.html") + "".join(template_text(name, room) for name in templates)
    # In one pass, so that what is filled in is never taken for a place to fill.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: whole[place[1]], text)


def template_text(name: str, room: str = "eqlearn.report") -> str:
    """A file of a room's templates."""
    return (files(room) / "template" / name).read_text(encoding="utf-8")


def source_hash(text: str) -> str:
    """How a Content-Security-Policy names a script or a style that is in the page itself."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _source(record: RunRecord) -> str:
    name = str(record.data.get("name", "")).strip("'").rpartition("/")[2]
    started = str(record.environment.get("started", "")).replace("T", " ")[:16]
    return f"{name} · {record.data.get('rows_read', '?')} rows · {started}"


def typeset(equation: Equation, target: str) -> str:
    """An equation as a formula, or as text where it is too long for one."""
    if equation.complexity <= LONG_FORMULA:
        return mathml(equation, target)
    text = f"{target} = {equation}"
    return f'<code class="long">{escape(text if len(text) <= LONG_TEXT else text[:LONG_TEXT] + " …")}</code>'


def _formula(record: RunRecord, output: int) -> str:
    equation = record.best.equations[output]
    formula = typeset(equation, record.targets[output])
    size = " small" if max(e.complexity for e in record.best.equations) > LARGE_FORMULA else ""
    return (
        f'<div class="formula{size}" data-formula-output="{output}" tabindex="0" role="region" '
        f'aria-label="The equation of {escape(record.targets[output])}">{formula}</div>'
        f'<p class="copies" data-output="{output}" role="group" aria-label="Copy the equation"></p>'
    )


def facts_list(facts: Mapping[str, str]) -> str:
    """Figures, each under its name; those that are not known are left out."""
    return "".join(f"<div><dt>{k}</dt><dd>{escape(v)}</dd></div>" for k, v in facts.items() if v != "-")


def _facts(record: RunRecord) -> str:
    best = record.best
    facts = {
        "error": percent(best.training_error),
        "held-out error": percent(best.validation_error),
        "extrapolation error": percent(best.extrapolation_error),
        "complexity": counted(best.complexity, "node"),
        "fitted constants": str(sum(len(c) for c in best.constants)),
        "networks tried": f"{record.restarts:,}",
        "search": f"{record.seconds:.1f} s",
    }
    return facts_list(facts)


def _row(record: RunRecord, index: int) -> str:
    candidate = record.front[index]
    formulas = "".join(
        f'<div class="cell" data-formula="{index}">{typeset(e, t)}</div>'
        for e, t in zip(candidate.equations, record.targets, strict=True)
    )
    chosen = index == record.pick
    badge = '<span class="badge">chosen</span>' if chosen else ""
    fields = {"error": "training_error", **unseen_errors(record)}
    texts = {h: percent(getattr(candidate, f)) for h, f in fields.items()}
    texts = {"nodes": str(candidate.complexity), **texts}
    numbers = "".join(f'<td class="number" data-label="{h}">{text}</td>' for h, text in texts.items())
    return (
        f'<tr data-index="{index}"><td><label><input type="radio" name="equation" value="{index}"'
        f'{" checked" if chosen else ""} aria-label="{escape(str(candidate)[:200])}">'
        f"<div>{formulas}</div>{badge}</label></td>{numbers}</tr>"
    )


def _beyond(record: RunRecord, rows_outside: int) -> str:
    others = (
        " The other inputs stay at the middle of their values, and what they add is taken out of the points."
        if len(record.inputs) > 1
        else ""
    )
    given = " Rows from outside that range are shown too." if rows_outside else ""
    return f"The line is what the equation says; the shaded range is what was measured.{others}{given}"


def _motion(record: RunRecord, motion: Motion) -> str:
    return (
        '<section aria-labelledby="motion"><h2 id="motion">The motion</h2>'
        '<p class="lead">Dots were observed. '
        "The line is what the equations make of the start of the series alone. Where a motion is chaotic, "
        "any error of the start grows until the line leaves the dots.</p>"
        f"{motion_figures(motion, record.best.equations)}</section>"
    )


def _network(record: RunRecord, network: EQL | None) -> str:
    if network is None and "form" in record.data:
        return (
            '<p class="lead">Each equation was read from networks of its own and then refitted by simulating '
            "the motion: there is no one network behind them.</p>"
        )
    if network is None and record.best.method == "groups":
        return (
            '<p class="lead">The structure was read from networks of single groups and then fitted to all of '
            "them: there is no one network behind it.</p>"
        )
    if network is None:
        return '<p class="lead">The chosen equation is a constant: there is no network behind it.</p>'
    graph = diagram(network, record.network_inputs, record.targets)
    return (
        '<p class="lead">The weights from which the chosen equation was read, before its constants were '
        "settled; all others are exactly zero. Inputs are scaled to lie near [−1, 1].</p>"
        '<div class="card scroll" tabindex="0" role="region" aria-label="Drawing of the network">'
        f'{network_svg(graph)}</div><ul class="legend"><li><i></i>positive weight</li>'
        '<li><i class="picked"></i>negative weight</li></ul>'
    )


def _search(record: RunRecord) -> str:
    failed = sum(record.failures.values())
    reasons = ", ".join(f"{n} {reason}" for reason, n in record.failures.items())
    came = f" {failed} came to nothing ({reasons})." if failed else ""
    if "form" in record.data:
        came += " Errors in the curve are of single steps at first, and of the motion once it is simulated."
    return (
        f"It started {counted(record.restarts, 'small network')} in {counted(record.rounds, 'round')} "
        f"and {record.seconds:.1f} s.{came} {ENDINGS.get(record.ended, '')}"
    )


def _improvements(record: RunRecord) -> str:
    return "".join(
        f"<li><code>{escape(step.equation[:LONG_TEXT])}</code><span>after "
        f"{counted(step.restarts, 'network')} · error {percent(step.error)} · "
        f"{counted(step.complexity, 'node')}</span></li>"
        for step in reversed(record.history)
        if step.equation
    )


def _use(record: RunRecord, network: EQL | None) -> str:
    more = ", ..." if len(record.inputs) > 3 else ""
    example = ", ".join(f'"{v}": ...' for v in record.inputs[:3]) + more
    read = 'equation = eqlearn.load("equation.json")  # read as data: nothing in it is run'
    load = ["import eqlearn", "", read, f"equation({{{example}}})"]
    for k, target in enumerate(record.targets[1:], 2):
        load.append(f'# of {printable(target)}: eqlearn.load("equation-{k}.json")')
    if network is not None:
        load += ["", 'network = eqlearn.load("network.safetensors")  # the weights, as a torch module']
    shell = ["eqlearn predict RUN new.csv", "eqlearn show RUN --as latex", "eqlearn report RUN"]
    blocks = {"Load it back, from the folder of this page": load, "On the command line": shell}
    names, equations = function_names(record.targets, record.inputs), record.best.equations
    short = sum(equation.complexity for equation in equations) <= LONGEST
    languages = {e.title: source(equations, names, e.name) for e in EXPORTS.values()} if short else {}
    rest = "".join(code_block(title, text.strip("\n")) for title, text in languages.items())
    if rest:
        rest = f"<details><summary>The formula in other languages</summary>{rest}</details>"
    return "".join(code_block(title, "\n".join(lines)) for title, lines in blocks.items()) + rest


def code_block(title: str, text: str) -> str:
    """Source code under a title."""
    return f'<div class="code"><h3>{escape(title)}</h3><pre tabindex="0">{escape(text)}</pre></div>'


def _settings(record: RunRecord) -> str:
    environment = {k: v for k, v in record.environment.items() if k != "packages"}
    packages = record.environment.get("packages")
    environment |= packages if isinstance(packages, Mapping) else {}
    # The parameters of the series have a file of their own, `parameters.csv`.
    data = {f"data {k}": v for k, v in record.data.items() if k != "parameters"}
    return _table({**record.settings, **data}) + _table(environment)


def _table(values: Mapping[str, Any]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(str(k).replace("_", " "))}</th><td>{_value(v)}</td></tr>'
        for k, v in values.items()
    )
    return f'<div class="card"><table class="settings">{rows}</table></div>'


def _value(value: Any) -> str:
    if value is None:
        return "–"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return escape(text[:1000])
