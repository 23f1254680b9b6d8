"""The results of MNIST arithmetic in Markdown, the paper's value beside each of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from eqlearn.paper.style import table

Trials = Sequence[Mapping[str, Any]]

# Tables "MNIST Arithmetic Expected and Extracted Equations" and "Generalization Results", and their text.
PAPER_FIGURES = {
    ("train", "accuracy"): "89.7 %",
    ("test", "accuracy"): "90.2 %",
    ("train", "mean_absolute_error"): "0.307",
    ("test", "mean_absolute_error"): "0.315",
    ("train", "correlation"): "0.985",
    ("test", "correlation"): "0.988",
    ("", "asymmetry"): "0.39 %",
}
PAPER_GENERALISATION = {  # (sums below 15, sums from 15 on)
    ("eql", "train"): ("92 %", "87 %"),
    ("relu", "train"): ("93 %", "0.8 %"),
    ("eql", "test"): ("91 %", "83 %"),
    ("relu", "test"): ("92 %", "0.6 %"),
}
PAPER_EQUATIONS = (
    ("Trial 1", "-1.809*z_1 - 1.802*z_2 + 9"),
    ("Trial 2", "1.565*z_1 + 1.558*z_2 + 9"),
    ("Trial 3, latent not linear in the digit", "-4.64*sin(2.22*z_1) - 4.63*sin(2.21*z_2) + 9"),
    ("trained on sums below 15", "-1.56*z_1 - 1.56*z_2 + 8.66"),
)
_IMAGES = {"mnist": "MNIST", "digits": "scikit-learn's 8 x 8 digits, 1,437 to train on"}
NETWORKS = {"eql": "EQL", "relu": "ReLU"}


def _share(value: float | None, digits: int = 1) -> str:
    return "none there" if value is None else f"{100 * value:.{digits}f} %"


_ROWS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("accuracy of the rounded result", "accuracy", _share),
    ("mean absolute error", "mean_absolute_error", "{:.3f}".format),
    ("correlation of latent and digit, its size", "correlation", lambda value: f"{abs(value):.4f}"),
)


def finished(trials: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The trials that came to an end; others have a reason in place of figures."""
    return [trial for trial in trials if not trial.get("failure")]


def condition_page(condition: Mapping[str, Any], started: Trials, others: Mapping[str, Trials]) -> str:
    """One condition: what it is, its figures with the paper's beside them, then every trial's equation.

    `others` are the trials of all networks that were trained under the same bound, by network.
    """
    trials = finished(started)
    failed = [f"seed {trial['seed']}: {trial['failure']}" for trial in started if trial.get("failure")]
    failures = f"Came to nothing: {'; '.join(failed)}."
    if not trials:
        return failures
    parts = [_heading(condition, trials), *([failures] if failed else []), _figures(condition, trials)]
    if condition["below"] is not None:
        parts.append(generalisation_table(condition, others))
    if condition["network"] == "eql":
        parts.append(_equations(trials, len(started)))
        if any("search" in trial for trial in trials):
            parts.append(_searches(trials))
        if _is_the_papers(condition):
            parts.append(paper_equations())
    return "\n\n".join(parts)


def _heading(condition: Mapping[str, Any], trials: Trials) -> str:
    after = "an equation" if condition["network"] == "eql" else "a ReLU network (2 layers of 50)"
    bound = (
        "" if condition["below"] is None else f", and only pairs with a result below {condition['below']:g}"
    )
    return (
        f"Two images, one encoder that gives each a latent number, and {after} in the two numbers. All that "
        f"is told in training is the result of {condition['formula']}{bound}. Images: "
        f"{_IMAGES[condition['dataset']]}. Figures are over {trials[0]['test']['pairs']:,} random pairs of "
        "training images, and as many of test images."
    )


def _is_the_papers(condition: Mapping[str, Any]) -> bool:
    return bool(condition["formula"] == "a+b" and condition["dataset"] == "mnist")


def _figures(condition: Mapping[str, Any], trials: Trials) -> str:
    beside = _is_the_papers(condition) and condition["below"] is None and condition["network"] == "eql"
    rows: list[tuple[str, ...]] = []

    def add(label: str, key: str, split: str, values: list[float], tell: Callable[[float], str]) -> None:
        known = [PAPER_FIGURES.get((split, key), "")] if beside else []
        each = ", ".join(tell(value) for value in values)
        rows.append((label, split, *known, f"**{tell(fmean(map(abs, values)))}**", each))

    for label, key, tell in _ROWS:
        for split in ("train", "test"):
            add(label, key, split, [trial[split][key] for trial in trials], tell)
    if condition["network"] == "eql":
        apart = [trial["asymmetry"] for trial in trials if trial["asymmetry"] is not None]
        if apart:
            label = "coefficients of the two latents differ by"
            add(label, "asymmetry", "", apart, lambda value: _share(value, 3))
    seconds = [trial["seconds"] for trial in trials if not trial["resumed"]]
    if seconds:
        add("seconds of a trial (those not interrupted)", "seconds", "", seconds, "{:.0f}".format)
    return table(("figure", "images", *(["paper"] if beside else []), "mean", "each seed"), rows)


def _equations(trials: Trials, started: int) -> str:
    right = sum(bool(trial["right_form"]) for trial in trials)
    line, digit = "expected from the encoder's straight line", "in units of the digit"
    rows = []
    for trial in trials:
        found, awaited = (f"`{_clipped(trial[key])}`" for key in ("equation", "expected"))
        digits = "another law" if trial["in_digits"] is None else f"`{trial['in_digits']}`"
        rows.append((trial["seed"], found, awaited, digits, f"{trial['composed_error']:.3f}"))
    parts = [
        f"Right equations: **{right} of {started}**. One is right if it is the operation, to a hundredth of "
        "the results' spread, once unit and zero of the latent are changed, the same way for both images.",
        table(("seed", "equation found", line, digit, "error at the median latents"), rows),
        "The expected equation is the operation on the straight line through digit against latent. The last "
        "column composes latent map and equation: the mean error of the equation for the median latent of "
        "each digit beside that of a five; it is small also where a latent is not linear in the digit and "
        "the equation undoes its bend.",
    ]
    return "\n\n".join(parts)


def _searches(trials: Trials) -> str:
    """What is told of each search beside its law."""
    text = (
        "How the law was found: by one call of `discover_latent`, which is told nothing of its form. A seed "
        "has several starts, each an encoder with a smooth network behind it; counted are those that come to "
        "the same law. The variance left is that part of the results' variance, on pairs of training images "
        "that were set aside. *Equivalent* are laws that no data could tell from it, since a bend of the "
        "latent makes one of the other; the one found is the simplest. CPU seconds are those of the search."
    )
    rows = []
    for trial in trials:
        search = trial["search"]
        agreed = f"{search['agreed']} of {search['starts']}"
        left = f"{search['held_error']:.2g} ({search['head_error']:.2g})"
        others = ", ".join(f"`{_clipped(law)}`" for law in search["equivalent"]) or "none"
        seconds = f"{search['cpu_seconds']:.0f}"
        rows.append((trial["seed"], agreed, left, others, seconds, search["threads"]))
    heads = ("seed", "starts that agree", "variance left (by the network)", "equivalent", "CPU seconds")
    return f"{text}\n\n{table((*heads, 'threads'), rows)}"


def generalisation_table(condition: Mapping[str, Any], trials: Mapping[str, Trials]) -> str:
    """Trained on results below a bound only: the accuracy below and above, for each network."""
    bound = condition["below"]
    beside = _is_the_papers(condition) and bound == 15
    paper = ["paper"] if beside else []
    rows = []
    for split in ("train", "test"):
        for network, group in trials.items():
            cells: list[str] = []
            for side, key in enumerate(("accuracy_below_bound", "accuracy_from_bound")):
                values = [t[split][key] for t in finished(group) if t[split][key] is not None]
                cells += [PAPER_GENERALISATION[network, split][side]] if beside else []
                cells.append(f"**{_share(fmean(values) if values else None)}**")
            rows.append((split, NETWORKS[network], *cells))
    heads = ("images", "after the encoder", *paper, f"result < {bound:g}", *paper, f"result >= {bound:g}")
    return table(heads, rows)


def paper_equations() -> str:
    """The equations that the paper prints."""
    return table(("the paper's", "equation"), [(name, f"`{text}`") for name, text in PAPER_EQUATIONS])


def _clipped(text: str) -> str:
    return text if len(text) <= 120 else text[:117] + "..."
