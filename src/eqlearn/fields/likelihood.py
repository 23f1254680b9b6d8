"""Laws that noise explains alike, told apart by generalised least squares."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from eqlearn.fields.terms import Jet, Order, Term
from eqlearn.fields.weak import WeakForm
from eqlearn.numerics.criteria import FREE


@dataclass(frozen=True, eq=False)
class Part:
    """The derivative of an `order` of a function of fields: integrals, and slopes by experiment and field."""

    order: Order
    values: np.ndarray
    slopes: list[list[np.ndarray | None]]


def is_heavy(form: WeakForm) -> bool:
    """Whether noise is a good part of a field's spread, so that its squares count."""
    pairs = zip(form.noise, form.field.spreads.values(), strict=True)
    return any(noise > form.settings.heavy * spread for noise, spread in pairs)


class Likelihood:
    """How likely what test functions miss is by the covariance that noise gives it (Bortz, Messenger & Dukic
    2023), with slopes of smoothed fields: noise that moves along with a field cancels, unlike in means."""

    def __init__(self, form: WeakForm, target: Term) -> None:
        self.form, settings = form, form.settings
        counts, every = [len(w.centres) for w in form.windows], range(len(form.field.experiments))
        share = min(1.0, settings.compared_rows / (len(every) * math.prod(counts))) ** (1 / len(counts))
        self.some = [np.linspace(0, c - 1, max(2, round(share * c))).round().astype(int) for c in counts]
        grid = np.ravel_multi_index(np.meshgrid(*self.some, indexing="ij"), counts).ravel()
        self.rows = np.concatenate([grid + e * math.prod(counts) for e in every])
        # Points as far apart as integrals of test functions allow.
        self.strides = [max(1, int(w.deviation / settings.points_per_deviation)) for w in form.windows]
        self.points = tuple(slice(None, None, s) for s in self.strides)
        still = (0,) * len(counts)
        self.smooth = [[form.jets(e, Jet(k, still)) for k in range(len(form.noise))] for e in every]
        self.heavy = is_heavy(form)
        self.target = self.part(target)

    def follows(self, term: Term) -> bool:
        """Whether it is known how noise moves a term: not where derivatives are taken at points."""
        field = self.form.field
        return not (term.factors or term.weight[1] or field.masked or len(field.space) > 2)

    def part(self, term: Term) -> Part:
        """A term; where noise is heavy, its squares are left out, by straight lines about smoothed fields."""
        slopes, lines = [], []  # of each experiment
        for experiment, smooth in zip(self.form.field.experiments, self.smooth, strict=True):
            each = [self._slope(smooth, term.powers, k) if p else None for k, p in enumerate(term.powers)]
            if self.heavy:
                whole = math.prod(u**p for u, p in zip(smooth, term.powers, strict=True))
                three = zip(each, experiment.values(), smooth, strict=True)
                lines.append(whole + sum(slope * (u - m) for slope, u, m in three if slope is not None))
            slopes.append([None if s is None else s[self.points] for s in each])
        values = self.form.integrated(lines, term.order) if self.heavy else self.form.column(term)
        return Part(term.order, values[self.rows], slopes)

    @staticmethod
    def _slope(fields: Sequence[np.ndarray], powers: Sequence[int], by: int) -> np.ndarray:
        lower = [p - (k == by) for k, p in enumerate(powers)]
        return np.asarray(powers[by] * math.prod(u**p for u, p in zip(fields, lower, strict=True)))

    def nats(self, parts: Sequence[Part], weights: Sequence[float], moves: np.ndarray | None = None) -> float:
        """Minus the logarithm of how likely what a law misses is as the noise that it holds. Where noise is
        not heavy, its constants are moved to where that is least: the weights, or what has these `moves`."""
        free = np.array([p.values for p in parts]).T if moves is None else moves[self.rows]
        every, signs = [*parts, self.target], [*(-w for w in weights), 1.0]
        missed = sum(s * p.values for s, p in zip(signs, every, strict=True))
        floor = self.form.settings.systematic_error**2 * float(np.mean(np.square(self.target.values)))
        white, volume = [], 0.0
        # Noise in the columns would move weights the wrong way.
        both = np.column_stack([*([] if self.heavy else free.T), missed])
        for e, part in enumerate(np.split(both, len(self.smooth))):
            covariance = self._covariance(every, signs, e) + floor * np.eye(len(part))
            if not np.isfinite(covariance.sum() + part.sum()):
                return math.inf
            factor = np.linalg.cholesky(covariance)
            volume += float(np.log(np.diag(factor)).sum())
            white.append(solve_triangular(factor, part, lower=True))
        *some, rest = np.concatenate(white).T
        if some:
            along = np.stack([s / max(float(np.linalg.norm(s)), 1e-300) for s in some], axis=1)
            rest = rest - along @ np.linalg.lstsq(along, rest, rcond=FREE)[0]
        return volume + 0.5 * float(rest @ rest)

    def _covariance(self, parts: Sequence[Part], signs: Sequence[float], experiment: int) -> np.ndarray:
        """What noise gives to products of rows of one experiment, `(rows, rows)`."""
        seen = list(zip(self.form.windows, self.some, self.strides, strict=True))
        weights = [
            [w.weights(n)[k][:, ::s] for n, (w, k, s) in zip(p.order, seen, strict=True)] for p in parts
        ]
        across = [functools.reduce(np.kron, each[:-1]) for each in weights]
        rows = math.prod(len(s) for s in self.some)
        found = np.zeros((rows, rows))
        for field, level in enumerate(self.form.noise):
            slopes = [p.slopes[experiment][field] for p in parts]
            known = [k for k, s in enumerate(slopes) if s is not None and level]
            lines = {k: signs[k] * np.asarray(slopes[k]).reshape(across[k].shape[1], -1) for k in known}
            for i, j in itertools.combinations_with_replacement(known, 2):
                spread = np.stack([(across[i] * both) @ across[j].T for both in (lines[i] * lines[j]).T])
                late = np.einsum("jt,kt->tjk", weights[i][-1], weights[j][-1])
                block = np.einsum("tab,tjk->ajbk", spread, late, optimize=True).reshape(rows, rows)
                found += level**2 * math.prod(self.strides) * (block if i == j else block + block.T)
        return found
