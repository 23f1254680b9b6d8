"""Ten laws of physics, each with constants that all groups share and constants that vary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eqlearn import Equation

GROUPS, ROWS, NOISE = 20, 30, 0.01


@dataclass(frozen=True)
class Law:
    """A formula in columns (with their ranges), shared constants (with their values) and varying ones (with
    the ranges that each group's value is drawn from)."""

    name: str
    formula: str
    columns: dict[str, tuple[float, float]]
    shared: dict[str, float]
    varying: dict[str, tuple[float, float]]

    def draw(self, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Columns, noisy target, group of each row, and the varying constants `(groups, constants)`."""
        rng = np.random.default_rng([seed, sum(map(ord, self.name))])
        edges = np.array(list(self.varying.values()))
        constants = rng.uniform(edges[:, 0], edges[:, 1], (GROUPS, len(edges)))
        groups = np.arange(GROUPS).repeat(ROWS)
        ranges = np.array(list(self.columns.values()))
        X = rng.uniform(ranges[:, 0], ranges[:, 1], (len(groups), len(ranges)))
        fixed = np.broadcast_to(list(self.shared.values()), (len(groups), len(self.shared)))
        names = [*self.columns, *self.shared, *self.varying]
        clean = Equation.parse(self.formula, names)(np.column_stack([X, fixed, constants[groups]]))
        return X, clean + NOISE * clean.std() * rng.normal(size=len(clean)), groups, constants

    def truth(self, constants: np.ndarray) -> Equation:
        """The law of one group, with its constants."""
        import sympy as sp

        names = [*self.columns, *self.shared, *self.varying]
        numbers = {**self.shared, **dict(zip(self.varying, constants.tolist(), strict=True))}
        values = {sp.Symbol(name, real=True): sp.Float(value, 17) for name, value in numbers.items()}
        return Equation(Equation.parse(self.formula, names).expr.xreplace(values), list(self.columns))


LAWS = (
    Law("decay", "a*exp(-k*t)", {"t": (0, 4)}, {"k": 0.62}, {"a": (0.8, 4)}),
    Law("enzyme", "v*s/(k + s)", {"s": (0.2, 6)}, {"k": 1.37}, {"v": (0.5, 3)}),
    Law("arrhenius", "a*exp(-e/T)", {"T": (0.6, 2)}, {"a": 5.2}, {"e": (0.7, 2.5)}),
    Law("battery", "e - r*i", {"i": (0, 3)}, {"e": 1.53}, {"r": (0.05, 0.4)}),
    Law("damped", "a*exp(-d*t)*cos(w*t)", {"t": (0, 5)}, {"d": 0.31, "w": 2.2}, {"a": (0.5, 2)}),
    Law("langmuir", "q*k*p/(1 + k*p)", {"p": (0.1, 5)}, {"q": 2.8}, {"k": (0.3, 3)}),
    Law("polytropic", "c*V**(-n)", {"V": (0.5, 3)}, {"c": 1.9}, {"n": (1.05, 1.7)}),
    Law("throw", "h + v*t - g*t**2/2", {"t": (0, 2)}, {"g": 9.81}, {"h": (0, 3), "v": (3, 12)}),
    Law("drag", "b*u + c*u**2", {"u": (0.2, 5)}, {"b": 0.73}, {"c": (0.2, 1.2)}),
    Law("heating", "T + p*(1 - exp(-k*t))", {"t": (0, 5)}, {"T": 20.4}, {"p": (5, 30), "k": (0.4, 1.5)}),
)  # fmt: skip
