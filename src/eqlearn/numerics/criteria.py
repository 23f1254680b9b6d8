"""Every score and every tolerance, each once, with its reason."""

from __future__ import annotations

import math

# Below this mean squared error, relative to the target's variance, a fit is exact in float64.
EXACT_LOSS = 1e-20
# A squared error below this fraction of the target's variance is rounding; polynomials come to 1e-22 of
# smooth functions.
EXACT_SHARE = 1e-24
# What products of unit vectors leave of nothing.
MATCH_ROUNDING = 1e-13


def match_score(
    error: float, rows: int, atoms: int, inputs: int = 0, *, floor: float = MATCH_ROUNDING
) -> float:
    """Half the deviance, and a price for each atom (its coefficient, place and inner constant) and input; an
    error below `floor` is rounding."""
    return 0.5 * rows * math.log(max(error, floor)) + (2.5 * atoms + inputs) * math.log(rows + 20)


# An error below this fraction of the spread is rounding, not misfit: float64 resolves 1e-16, and evaluating
# a formula costs a few digits.
EXACT_ERROR = 1e-10


def constant_cost(value: float, standard_error: float, rows: int) -> float:
    """Nats to tell a fitted constant as precisely as the data know it: its digits down to the error."""
    digits = math.log1p(abs(value) / standard_error) if standard_error > 0 else MOST_DIGITS
    return max(0.5 * math.log(rows), min(digits, MOST_DIGITS))


# Sixteen digits, all that float64 holds.
MOST_DIGITS = 16 * math.log(10)


def description_length(rows: int, error: float, numbers: float, nodes: int, symbols: int) -> float:
    """Nats to tell the data given the equation, and the equation.

    `error` is relative to the spread, `numbers` what all constants cost, `nodes` and `symbols` are the size
    and the alphabet of the formula.
    """
    return rows * math.log(max(error, EXACT_ERROR)) + numbers + nodes * math.log(max(symbols, 2))


def prediction_length(rows: int, error: float, structure: float) -> float:
    """Nats to tell each row given all the others, and the structure of the equation.

    `error` is what rows are missed by when they are left out, relative to the spread. No constant is told:
    rows that did not serve to fit it show its worth.
    """
    return rows * math.log(max(error, EXACT_ERROR)) + structure


# Odds of a thousand to one: the best of the hundreds of formulas in a search predicts better by chance too.
DECISIVE = math.log(1_000)

# A function costs as much to tell as one of these many, whatever the table of functions holds: lengths of
# different runs stay comparable, and a function that is merely known makes no other formula dearer.
FUNCTION_CHOICES = 12
