"""What a search came to, in plain sentences: an exact law, a close one, or none."""

from __future__ import annotations

import math

from eqlearn.report.record import RunRecord
from eqlearn.words import listed

# Leaving less than this fraction of the spread, an equation is worth calling close.
CLOSE = 0.01


def grade(record: RunRecord) -> str:
    """ "exact", "close" or "none"."""
    if record.best.exact:
        return "exact"
    # Motion is simulated, so that errors add up.
    bound = 2 * CLOSE if "form" in record.data else CLOSE
    return "close" if record.best.training_error < bound else "none"


def verdict(record: RunRecord) -> str:
    """Whether an exact law was found and, if not, how much is left over."""
    best, names = record.best, listed(record.targets)
    if "form" in record.data:
        return _verdict_on_motion(record)
    if not any(e.expr.free_symbols for e in best.equations):
        if best.exact:
            return f"There is nothing to explain: {names} did not vary in the training rows."
        if record.ended == "out of time":
            return (
                f"The time was too short to find an equation for {names} that is better than a constant; "
                "give it more seconds."
            )
        return f"No law was found: no equation describes {names} better than a constant does."
    if best.exact:
        return f"An exact law was found: it gives {names} in the training rows to rounding error."
    level = listed([f"±{short(n)}" for n in record.noise])
    left = f"{percent(best.training_error)} of the spread of {names} unexplained (noise of {level})"
    one = len(record.targets) == 1
    if grade(record) == "close":
        close = "this one comes close: it leaves" if one else "these come close: they leave"
        return f"No exact law was found, but {close} {left}."
    return f"No exact law was found: {'this equation leaves' if one else 'these equations leave'} {left}."


def _verdict_on_motion(record: RunRecord) -> str:
    """The same of equations of motion, which are judged by simulation."""
    best = record.best
    states = listed(record.inputs[: len(record.targets)])
    over = f"simulated over {record.data.get('horizon')} steps at a time"
    if best.exact:
        return f"Exact equations of motion were found: {over}, they give {states} to rounding error."
    if not math.isfinite(best.training_error):
        return f"No equations of motion were found: {over}, these diverge."
    left = f"{percent(best.training_error)} of the spread of {states}"
    level = listed([f"±{short(n)}" for n in record.noise])
    close = "comes close" if grade(record) == "close" else "does not come close"
    return f"No exact law was found; this one {close}: {over}, it leaves {left} (noise of {level})."


def checks(record: RunRecord) -> str:
    """What rows that the search did not see say about it; nothing if there were none."""
    best, sentences = record.best, []
    if not math.isnan(best.validation_error):
        error = percent(best.validation_error)
        sentences.append(f"On {best.held_out_rows} rows held out from the search the error is {error}.")
    if not math.isnan(best.extrapolation_error):
        sentences.append(f"Outside the training range it is {percent(best.extrapolation_error)}.")
    return " ".join(sentences)


def unseen_errors(record: RunRecord) -> dict[str, str]:
    """The errors on rows that the search did not see, where the front has them: a heading, and the
    candidate's field."""
    fields = {"held out": "validation_error", "beyond": "extrapolation_error"}
    return {h: f for h, f in fields.items() if not all(math.isnan(getattr(c, f)) for c in record.front)}


def percent(fraction: float) -> str:
    """A fraction of the spread in per cent, with as many digits as matter."""
    if math.isnan(fraction):
        return "-"
    if math.isinf(fraction):
        return "undefined"
    value = float(f"{100 * fraction:.3g}")
    if 0 < value < 1e-4:
        return f"{value:.0e} %"
    # Three digits from 10 % on, two below.
    decimals = (1 if value < 10 else 2) - math.floor(math.log10(value)) if value > 0 else 0
    return f"{value:.{max(0, decimals)}f} %"


def short(value: float) -> str:
    """Three significant digits."""
    return f"{value:.3g}"
