"""Latents as an encoder might give them, of quantities that are known, and the laws behind them."""

import torch
from torch import nn

from eqlearn.latent.comparison.compare import Choice
from eqlearn.latent.comparison.served import serve, served_again
from eqlearn.latent.joint import compare_on
from eqlearn.latent.warm_start import Encoders
from eqlearn.validation.latents import Batch, LatentData

BENDS = {
    "straight": lambda q: q,
    "log": torch.log,
    "cube": lambda q: q**3,
    "turned": lambda q: -torch.sqrt(q),
}


def uniform(rows, low, high, seed):
    draw = torch.rand(rows, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return low + (high - low) * draw


def made_batch(latents, columns, y):
    """Rows whose inputs are the latents themselves, `(rows,)` or `(rows, n)` each."""
    inputs = {name: (z if z.dim() == 2 else z[:, None]).float() for name, z in latents.items()}
    table = torch.stack(list(columns.values()), dim=1) if columns else torch.zeros(len(y), 0).double()
    return Batch(inputs, table, y if y.dim() == 2 else y[:, None])


def idle_encoders(latents, shared=False):
    """Encoders that give their input as it is; one for all of them if `shared`."""
    one = nn.Identity()
    modules = {name: one if shared else nn.Identity() for name in latents}
    sizes = {name: 1 if z.dim() == 1 else z.shape[1] for name, z in latents.items()}
    return Encoders(modules, sizes).eval()


def made_comparison(latents, columns, y, *, shared=False, slots=None):
    """What structures are compared on, and its bases, for latents by name."""
    encoders = idle_encoders(latents, shared)
    return compare_on(encoders, made_batch(latents, columns, y), slots or [1] * len(encoders.encoders))


def fitted_choice(latents, columns, y, *trees, shared=False, slots=None):
    """A law of these structures, fitted as far as it goes."""
    data, bases = made_comparison(latents, columns, y, shared=shared, slots=slots)
    (fit,) = served_again(data, serve(data.some(200), [trees], starts=6, steps=15))
    return Choice(fit, data, tuple(bases), tuple(columns))


def made_data(latents, columns, y):
    batch = made_batch(latents, columns, y)
    held = len(y) // 5
    return LatentData(batch[slice(held, None)], batch[slice(0, held)], tuple(columns))
