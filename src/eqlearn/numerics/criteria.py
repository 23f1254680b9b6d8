"""Every score and every tolerance, each once, with its reason.

Scores are in nats: half the deviance of the data, plus the cost of describing the formula. What a parameter
costs depends on what is known beforehand:

- `information_criterion`: log n; half of it for the value (Schwarz 1978), half for its place among those that
  might be there (the extended criterion of Chen & Chen 2008). With `placed=False`, for the value alone: in a
  quotient of two whole polynomials every place is taken.
- `akaike`: 1. It asks only which sums may predict well (Akaike 1974); what predicts best is measured later.
- `match_score`: 2½ log n an atom and log n an input. An atom of a large library also has a place in it and an
  inner constant.
- `description_length`: its digits down to its standard error, at least ½ log n. It makes the last choice.
"""

from __future__ import annotations

import math

import numpy as np

# --- When is a fit exact? All are relative to the target's spread, its variance where squares are compared.

# A root-mean-square error below this is rounding, not misfit: float64 resolves 1e-16, and evaluating a
# formula costs a few digits. The one for formulas in the user's units.
EXACT_ERROR = 1e-10
# The same of a mean squared error.
EXACT_LOSS = 1e-20
# Where a fit ends: below exact, so that what is exact can be recognised with digits to spare.
ENOUGH_LOSS = EXACT_LOSS * 1e-6
# A squared error that only an exact law leaves: polynomials come to 1e-22 of smooth functions.
EXACT_SHARE = 1e-24
# The same of sums of library functions on few rows.
EXACT_MATCH = 1e-22
# What a target in the span of a few functions leaves there, of its variance: differences of sums of squares.
EXACT_SPAN = 1e-11
# The same of small least-squares problems through their normal equations, which lose half of the digits; what
# passes is solved again with all of them.
EXACT_AFFINE = 1e-9
# Keys of values of length one that are this near to each other belong to the same values: what is undone on a
# target may lose half of its digits on the way.
SAME_KEY = 1e-7
# A constant that is read back from a formula has lost no more digits than these.
SAME_CONSTANT = 1e-9
# What products of unit vectors leave of nothing.
MATCH_ROUNDING = 1e-13
# The square of what sums of numbers about 1 are rounded to, for targets about a large mean.
SUM_ROUNDING = 1e-29
# Splines of one variable beside columns: directions below this part of the largest are relations among them.
FREE_SPLINES = 1e-9
# A singular value below this part of the largest is a relation that holds to rounding; those of a smooth
# function fall gradually, so there must be a gap to the next, too.
NULL_SINGULAR, NULL_GAP = 1e-11, 1e-3
# A quotient that is exact leaves no more than this part of the target's square.
EXACT_QUOTIENT = 1e-12
# Simulated motion: the error of an integrator that is never seen, and the largest error of a simulation that
# counts as exact: observations come out of an integrator, too, or are rounded, and that accumulates along it.
MOTION_TOLERANCE = 1e-9
EXACT_MOTION = 1e-6
# Noise never leaves as little as this of a sum that was chosen among many; exact values do.
EXACT_WEAK = 1e-8
# What is left of a test function one step before its end: sums over its support are integrals to rounding.
VANISHED = 1e-10
# A simulated field that is this many times as large as its start has diverged.
DIVERGED = 1e6
# A smaller move of a start or a constant, relative to the state's spread or to itself, is rounding.
MOTION_ROUNDING = 1e-13

# --- When is something nothing?

# A coefficient below this part of the largest, in an exact fit, is rounding.
NO_COEFFICIENT = 1e-7
# The same of a term in an exact match, and of a power in a product: on few rows they have fewer digits.
NO_TERM = 1e-6
# A library function that keeps less than this part of itself beside the others adds rounding, not shape.
DISTINCT = 1e-6
# A direction of columns of size 1 that holds less than this part of the largest is a relation among them.
DEPENDENT = 1e-12
# Noise below this part of a column's square changes no digit that matters, and neither does what is left of
# it without noise; products of unit vectors leave this much of nothing once noise has been taken off them.
NO_NOISE, NOTHING_LEFT = 1e-9, 1e-13
# Parameters of experiments that differ by less than this part of their spread are one: R² is above .9999.
SAME_PARAMETER = 1e-2
# The squared sine of their angle below which library functions have one direction.
PARALLEL = 1e-9
# Of a target, what splines make up for but for this part is no column of its own beside them.
MADE_UP_FOR = 1e-6
# A relative difference of errors below this says nothing about which fit is the better one.
SAME_ERROR = 1e-6
# A constant that moves a formula by less than this part of the target's spread is rounding.
NEGLIGIBLE = 1e-9
# The least part of a target's largest value that is taken for its spread.
FLATTEST = 1e-5
# Directions whose singular value is at most this part of the largest are left free by the data; sums of
# squares lose half of the digits, so more of them can't be distinguished from free ones.
FREE, FREE_IN_SQUARES = 1e-7, 3e-6
# A constant is loose if it has more than this part in a direction that is free.
LOOSE = 1e-3


# --- When is something worth a look?

# Fits of more parameters than this part of the observations are not believed: anything could be fitted.
CREDIBLE = 0.75
# A quotient, and a profiled function, that leave more than these parts of the target's variance are no start.
WORTHLESS_QUOTIENT, WORTHLESS_PROFILE = 0.1, 1e-2
# With fewer rows for each constant, leaving one out says little about prediction.
ROWS_PER_CONSTANT = 5
# A row that alone determines a constant can't be predicted; its residual counts this many times.
MAX_LEVERAGE_FACTOR = 1e3
# Odds of a thousand to one: the best of the hundreds of formulas in a search predicts better by chance too.
DECISIVE = math.log(1_000)
# A nat is not worth more than a bare mention, three are strong evidence (Kass & Raftery 1995): of laws nearer
# than the first, the shorter; those nearer than the second are compared by what costs more.
AS_GOOD, STRONG = 1.0, 3.0
# Misfit is more than chance beyond four standard deviations of what noise adds to a mean square, and more
# than a grid's or a solver's own beyond ten times that.
CHANCE_DEVIATIONS, FLOORS = 4.0, 10.0
# Noise explains its own structure as often as this; residuals with more structure are not taken for noise.
NO_NOISE_CHANCE = 0.02
# What is left below this part of the spread may be rounding of the data.
LEAST_NOISE = 1e-6
# A constant may move to a simple number by three standard errors, and by rounding or an integrator's error
# in any case; all constants at once by five, since where they correlate each alone seems surer than it is.
SNAP_ERRORS, SNAP_ROUNDING, MAX_SNAP_ERRORS = 3.0, 1e-5, 5.0
# Bits by which a root is rarer in laws than a fraction that takes as many to write.
RARE_ROOT = 3.0
# A constant that equals a fraction to rounding is that fraction unless one so near is as likely as this.
BY_CHANCE = 1e-3
# A function costs as much as the choice of one out of this number, whatever the table of functions holds:
# lengths of different runs stay comparable, and registering a function makes no other formula dearer.
FUNCTION_CHOICES = 12
# Sixteen digits, all that float64 holds.
MAX_DIGITS = 16 * math.log(10)


def chance_deviations(places: int) -> float:
    """How many standard deviations from zero the largest of so many chance values may be: sqrt(2 log places)
    is about the largest one, and one more is seldom exceeded."""
    return math.sqrt(2 * math.log(max(places, 2))) + 1


def credible(parameters: int, observations: int) -> bool:
    """Whether the observations outnumber the parameters by enough."""
    return parameters <= CREDIBLE * observations


def information_criterion(
    observations: int, loss: float, parameters: int, *, placed: bool = True, places: int | None = None
) -> float:
    """Half the deviance of normal residuals of this mean square, and the price of the parameters; with
    `placed`, also of their places: each among so many `places`, where that is known."""
    price = (1.0 if placed else 0.5) * math.log(observations)
    if places is not None:
        price = 0.5 * math.log(observations) + math.log(places)
    return 0.5 * observations * math.log(max(loss, EXACT_LOSS)) + parameters * price


def akaike(observations: int, loss: float, parameters: int) -> float:
    """Half of Akaike's information criterion."""
    return 0.5 * observations * math.log(max(loss, 1e-300)) + parameters


def match_score(
    error: float, rows: int, atoms: int, inputs: int = 0, *, floor: float = MATCH_ROUNDING
) -> float:
    """Half the deviance, and a price for each atom (its coefficient, place and inner constant) and input; an
    error below `floor` is rounding. Few rows must not make atoms cheap, so twenty are added."""
    return 0.5 * rows * math.log(max(error, floor)) + (2.5 * atoms + inputs) * math.log(rows + 20)


def constant_cost(value: float, standard_error: float, rows: int) -> float:
    """Nats for a fitted constant, as precise as the data make it: its digits down to its standard error."""
    digits = math.log1p(abs(value) / standard_error) if standard_error > 0 else MAX_DIGITS
    return max(0.5 * math.log(rows), min(digits, MAX_DIGITS))


def description_length(rows: int, error: float, numbers: float, nodes: int | float, symbols: int) -> float:
    """Nats to describe the data given the equation, and the equation (minimum description length, Rissanen
    1978). `error` is relative to the spread, `numbers` is the cost of all constants, `nodes` and `symbols`
    are the size and the alphabet of the formula.
    """
    return rows * math.log(max(error, EXACT_ERROR)) + numbers + nodes * math.log(max(symbols, 2))


def prediction_length(rows: int, error: float, structure: float) -> float:
    """Nats to describe each row given all the others, and the structure of the equation.

    `error` is that of rows that are left out, relative to the spread. Constants cost nothing: rows that they
    were not fitted to show their worth.
    """
    return rows * math.log(max(error, EXACT_ERROR)) + structure


def varying_cost(values: np.ndarray, information: np.ndarray, rows: int) -> float:
    """Nats for constants `(groups, constants)` that have a value in each group, known as precisely as the
    groups' `information` `(groups, constants, constants)` says, which is from `rows` rows in all.

    They are told as members of a normal population, whose mean and spread are told first (random effects;
    the spread by moments, DerSimonian & Laird 1986). So a constant that does not vary costs hardly more than
    a common one, and one that varies its digits from the population's spread down to its standard error. The
    spread costs as much as any constant at least: so a common one is taken for varying in one of 150 cases.
    """
    groups, count = values.shape
    if not count:
        return 0.0
    diagonal = np.diagonal(information, axis1=1, axis2=2)
    size = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    alike = information / size[:, :, None] / size[:, None, :]  # scaled to a diagonal of 1
    if not np.isfinite(alike).all():
        return math.inf
    squares = np.diagonal(np.linalg.pinv(alike, hermitian=True), axis1=1, axis2=2) / size**2
    squares = np.where(diagonal > 0, np.clip(squares, 1e-120, 1e120), 1e120)
    total = (1 / squares).sum(axis=0)
    mean = (values / squares).sum(axis=0) / total
    excess = ((values - mean) ** 2 / squares).sum(axis=0) - (groups - 1)
    others = total - (1 / squares**2).sum(axis=0) / total  # nothing, where one group says it all
    spread = np.where(others > 0, np.maximum(excess, 0.0) / np.where(others > 0, others, 1.0), 0.0)
    mean = (values / (spread + squares)).sum(axis=0) / (1 / (spread + squares)).sum(axis=0)
    # Of the population's covariance T and the information F: log det(I + TF), and (T + 1/F)⁻¹ of distances,
    # with rows and columns scaled so that nothing overflows.
    ratio = spread * size**2
    seen = (np.eye(count) + ratio[:, :, None] * alike) / (1 + ratio)[:, :, None] + 1e-14 * np.eye(count)
    away = ((values - mean) * size)[:, :, None]
    digits = 0.5 * (np.log1p(ratio).sum(axis=1) + np.linalg.slogdet(seen)[1])
    misfit = 0.5 * (away * (alike @ np.linalg.solve(seen, away / (1 + ratio)[:, :, None]))).sum(axis=(1, 2))
    told = np.minimum(digits + misfit, count * MAX_DIGITS).sum()
    error = np.sqrt((spread + 1 / total) / groups)
    population = sum(constant_cost(m, e, rows) for m, e in zip(mean, error, strict=True))
    return float(told + population + 0.5 * count * math.log(rows))
