"""From random weights to a sparse support: L0.5 by re-weighted least squares, or hard-concrete L0 by Adam."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from eqlearn.nn.sparse import counter_noise, open_probability, sampled, settled
from eqlearn.numerics.budget import never
from eqlearn.search.networks.fit import Samples, levenberg_marquardt
from eqlearn.search.networks.population import Population
from eqlearn.validation.options import tuned
from eqlearn.validation.table import some_rows


@tuned
class Half:
    """L0.5 as a re-weighted ridge inside Levenberg-Marquardt: λ|w|^½ ≈ λ w²/(w₀² + ε²)^¾.

    λ and ε fall geometrically, so that the last optimum is the truth and not its shrunken neighbour.
    """

    warm_steps: int = 20
    ridge: float = 1e-4
    steps: int = 60
    penalty: tuple[float, float] = (1e-2, 1e-5)
    width: tuple[float, float] = (0.5, 1e-2)
    # Fractions of the way at which weights below a size leave: what is lost by then does not come back, and
    # the smaller the networks, the faster the rest of the way.
    drops: tuple[tuple[float, float], ...] = ((0.5, 2e-3), (0.75, 5e-3), (1.0, 1e-2))

    def __call__(
        self,
        population: Population,
        theta: Tensor,
        samples: Samples,
        *,
        seed: int,
        stop: Callable[[], bool] = never,
    ) -> tuple[Population, Tensor]:
        """The networks with the weights that are left."""
        fit = partial(levenberg_marquardt, samples=samples, guarded=True, stop=stop)
        theta, _ = fit(
            population, theta, steps=self.warm_steps, penalty=lambda w, step: torch.full_like(w, self.ridge)
        )
        done = 0
        for fraction, size in self.drops:
            begin, done = done, round(fraction * self.steps)
            theta, _ = fit(
                population, theta, steps=done - begin, penalty=partial(self._coefficient, begin=begin)
            )
            population, theta = population.restrict(theta, theta.abs() > size)
        return population, theta

    def _coefficient(self, theta: Tensor, step: int, begin: int = 0) -> Tensor:
        t = (begin + step) / max(1, self.steps - 1)
        (high, low), (wide, narrow) = self.penalty, self.width
        strength, width = high * (low / high) ** t, wide * (narrow / wide) ** t
        coefficient: Tensor = strength / (theta.square() + width**2) ** 0.75
        return coefficient


@tuned
class HardConcreteL0:
    """Relaxed L0: every weight has a stochastic gate; Adam moves both; the gates that stay open remain.

    The penalty rises after the share `free` of the steps, over the share `ramp`. The loss is log(1 + NMSE),
    whose gradient is alive both far from the target and near it.
    """

    steps: int = 800
    free: float = 0.2
    ramp: float = 0.3
    penalty: float = 2e-2
    lr: float = 2e-2
    gate_lr: float = 4e-2
    rows: int = 256

    def __call__(
        self,
        population: Population,
        theta: Tensor,
        samples: Samples,
        *,
        seed: int,
        stop: Callable[[], bool] = never,
    ) -> tuple[Population, Tensor]:
        """The networks with the weights whose gates stayed open."""
        some = torch.as_tensor(some_rows(samples.rows, self.rows))
        x, y = samples.x[:, some].float(), samples.y[..., some].float()
        row_weight = torch.ones(len(some)) if samples.weight is None else samples.weight[some].float()
        weight = theta.float().requires_grad_()
        log_alpha = torch.zeros_like(weight).requires_grad_()
        optimiser = torch.optim.Adam(
            [{"params": [weight], "lr": self.lr}, {"params": [log_alpha], "lr": self.gate_lr}], foreach=True
        )
        seeds = seed * 4099 + torch.arange(population.members)
        alive = ~population.padding
        for step in range(self.steps):
            if stop():
                break
            gate = sampled(log_alpha, counter_noise(seeds, torch.tensor(step), theta.shape[1]).float())
            residual = population.evaluate(weight * gate * alive, x, guarded=True) - y
            error = (residual.square() * row_weight).mean(dim=(1, 2))
            ramp = min(1.0, max(0.0, step / self.steps - self.free) / self.ramp)
            cost = torch.log1p(error) + ramp * self.penalty * (open_probability(log_alpha) * alive).sum(dim=1)
            fine = torch.isfinite(cost)
            weight_grad, gate_grad = torch.autograd.grad(
                torch.where(fine, cost, 0.0).sum(), [weight, log_alpha]
            )
            weight.grad, log_alpha.grad = _clipped(weight_grad), _clipped(gate_grad)
            optimiser.step()
        with torch.no_grad():
            best = (weight * settled(log_alpha) * alive).double()
        best = torch.where(torch.isfinite(best), best, 0.0)
        return population.restrict(best, best != 0)


def _clipped(gradient: Tensor) -> Tensor:
    """Each member's gradient, at most of length 1; a member without a finite gradient stands still."""
    gradient = torch.where(torch.isfinite(gradient).all(dim=1, keepdim=True), gradient, 0.0)
    length: Tensor = gradient.norm(dim=1, keepdim=True)
    return gradient / length.clamp(min=1.0)
