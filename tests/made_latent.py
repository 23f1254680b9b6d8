"""A law behind an encoder, made by hand: what `discover_latent` gives, in no time."""

import torch
from torch import nn

from eqlearn import Equation, FoundLatent, Gauge, LatentCandidate, LatentModel
from eqlearn.latent.comparison.bend import Basis, Bend
from eqlearn.latent.comparison.served import Slot
from eqlearn.latent.warm_start import Encoders
from eqlearn.symbolic.expressions import fitted, real_symbol
from eqlearn.symbolic.parametric import Constant

HISTORY = tuple(
    {"stage": stage, "step": step, "error": 1 / (step + begin), "seconds": 0.1}
    for stage, begin in (("warm start 1", 0), ("warm start 2", 1), ("short list", 300), ("refinement", 600))
    for step in range(25, 325, 25)
)


def made_encoder():
    return nn.Linear(3, 1)


def made_found(latent="k", column="x", **changes):
    """`y = -2.5*k*x` behind a linear encoder, with everything that a report shows."""
    names = (latent, column)
    law = Equation(fitted(-2.5) * real_symbol(latent) * real_symbol(column), names)
    torch.manual_seed(0)
    bend = Bend(Basis.of_size(1, 10), torch.linspace(0, 1, 10, dtype=torch.float64)[None])
    network = LatentModel(
        Encoders({latent: made_encoder()}, {latent: 1}), [bend], [Slot(latent, 0, 0, 0)], [law], (column,)
    )
    rows = [float(i) / 20 for i in range(40)]
    shown = {"latents": [rows], "raw": [[r**2 for r in rows]], "names": [latent], "predicted": [rows]}
    fields = {
        "equations": (law,),
        "constants": ((Constant(-2.5, 0.01),),),
        "front": (LatentCandidate((law,), 3, 0.01),),
        "equivalent": ((law,),),
        "gauges": {latent: Gauge(0.5, 0.1, 0.97)},
        "agreement": (2, 2),
        "error": 1e-4,
        "held_error": 2e-4,
        "head_error": 1e-3,
        "seconds": 12.0,
        "ended": "complete",
        "history": HISTORY,
        "shown": {**shown, "true": [rows]},
        "network": network,
    }
    return FoundLatent(**{**fields, **changes})
