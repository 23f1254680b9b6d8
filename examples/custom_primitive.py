"""A function of your own: softplus, and a diode's knee that is made of it."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from eqlearn import Primitive, discover, register

# Written once: `m` is torch on tensors and SymPy on symbols.
softplus = register(Primitive("softplus", 1, lambda m, g: m.log(1 + m.exp(g))))


def main() -> None:
    # A smooth knee: next to no current below it, a straight line above.
    voltage = np.linspace(-3, 3, 60)
    current = 2 * np.log(1 + np.exp(1.5 * voltage))

    with_it = discover(
        voltage, current, primitives="id square softplus", hidden_layers=1, restarts=40, variables=["v"]
    )
    without = discover(
        voltage, current, primitives="id square exp", hidden_layers=1, restarts=40, variables=["v"]
    )
    print(f"with softplus:    I = {with_it.best.equation}")
    print(f"without:          error {without.best.training_error:.1e} of the spread")

    wide = np.linspace(-5, 5, 200)
    figure, axes = plt.subplots(figsize=(5.5, 4), layout="constrained")
    axes.plot(voltage, current, "o", ms=3, color="tab:blue", label="measured")
    axes.plot(wide, with_it.best.equation(wide), color="tab:orange", label="with softplus")
    axes.plot(wide, without.best.equation(wide), "--", color="grey", label="without")
    axes.set(xlabel="voltage v", ylabel="current I", title="Beyond the data, the right function holds")
    axes.set_ylim(-5, 1.3 * float(with_it.best.equation(wide).max()))
    axes.legend()
    figure.savefig("custom_primitive.png", dpi=150)
    print(Path("custom_primitive.png").resolve())
    plt.close(figure)


if __name__ == "__main__":
    main()
