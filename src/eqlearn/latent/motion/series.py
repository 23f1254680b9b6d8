"""The dynamics encoder: convolutions that read a whole series and give the latents hidden in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from eqlearn.errors import InvalidArgument
from eqlearn.nn.eql import member_seeds
from eqlearn.validation.options import check_place, check_single, checked_choice

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "tanh": torch.tanh, "silu": F.silu}


@dataclass(frozen=True, kw_only=True)
class EncoderShape:
    """How wide and deep an encoder is; the defaults are the paper's.

    `stride` is that of the first convolution. With `own_scale` each series is read a second time, divided
    by its own size: what does not depend on how large a motion is can be read there. `affine` lets the batch
    normalisation learn a scale and a shift, as the released code does; `epsilon` is added to its variance.
    With `padding` "same", convolutions leave as many times as they read.
    """

    filters: int = 16
    width: int = 5
    convolutions: int = 2
    hidden: tuple[int, ...] = (16,)
    stride: int = 1
    activation: str = "relu"
    own_scale: bool = False
    affine: bool = False
    padding: Literal["valid", "same"] = "valid"
    epsilon: float = 1e-12

    def __post_init__(self) -> None:
        checked_choice("`activation`", self.activation, ACTIVATIONS)
        checked_choice("`padding`", self.padding, ("valid", "same"))
        if self.padding == "same" and self.stride > 1:
            raise InvalidArgument(f"`padding`='same' needs a `stride` of 1, got {self.stride}")
        sizes = (self.filters, self.width, self.convolutions, self.stride, *self.hidden)
        if min(sizes) < 1:
            raise InvalidArgument(f"every size of an encoder must be at least 1, got {self}")

    @classmethod
    def suited(cls, times: int) -> EncoderShape:
        """A shape for series of so many times, of any size."""
        stride, width = max(1, min(5, times // 20)), max(1, min(5, (times + 1) // 2))
        return cls(stride=stride, width=width, own_scale=True, activation="silu")

    def times(self, times: int) -> int:
        """How many places in time the last convolution gives."""
        if self.padding == "same":
            return times
        for layer in range(self.convolutions):
            times = (times - self.width) // (self.stride if layer == 0 else 1) + 1
        return times


PAPER_ENCODER = EncoderShape()
MOMENTUM = 0.01  # of the running means of a normalisation


class Standardised(nn.Module):
    """Batch normalisation to standard deviation ½, the range that an equation's units expect.

    In `eval()` it uses running means, or those that `take_statistics_` computed from the whole training set.
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, features: int, *, members: int | None, affine: bool, epsilon: float = 1e-12) -> None:
        super().__init__()
        self.members = members
        self.epsilon = epsilon
        lead = members or 1
        self.gain = nn.Parameter(torch.ones(lead, 1, features)) if affine else None
        self.offset = nn.Parameter(torch.zeros(lead, 1, features)) if affine else None
        self.register_buffer("mean", torch.zeros(lead, 1, features))
        self.register_buffer("variance", torch.ones(lead, 1, features))

    @torch.no_grad()
    def rest_(self) -> None:
        """Reduces it to the factor ½, for inputs that are standardised already."""
        self.mean.zero_()
        self.variance.fill_(1.0)
        if self.gain is not None and self.offset is not None:
            self.gain.fill_(1.0)
            self.offset.zero_()

    def forward(self, h: Float[Tensor, "lead batch features"]) -> Float[Tensor, "lead batch features"]:
        mean, variance = self.mean, self.variance
        if self.training:
            mean, variance = h.mean(dim=1, keepdim=True), h.var(dim=1, keepdim=True, unbiased=False)
            with torch.no_grad():
                self.mean.lerp_(mean, MOMENTUM)
                self.variance.lerp_(variance, MOMENTUM)
        h = (h - mean) / (variance + self.epsilon).sqrt()
        if self.gain is not None and self.offset is not None:
            h = self.gain * h + self.offset
        return 0.5 * h


class SeriesEncoder(nn.Module):
    """Series `(batch, time, states)` to latents `(batch, latents)`, or `(members, batch, latents)`.

    `scales` divides what is observed, per state or per time and state, so that a position of thousands and
    a velocity of tens both come near 1; it is never shifted. Each member is an encoder of its own.
    """

    scales: Tensor

    def __init__(
        self,
        states: int,
        times: int,
        latents: int = 1,
        *,
        shape: EncoderShape = PAPER_ENCODER,
        scales: Tensor | None = None,
        members: int | None = None,
        seed: int | Sequence[int] = 0,
    ) -> None:
        super().__init__()
        left = shape.times(times)
        if left < 1:
            raise InvalidArgument(f"`times`={times} is too short for {shape.convolutions} convolutions")
        self.times = times
        self.latents = latents
        self.members = members
        self.shape = shape
        self.register_buffer("scales", torch.ones(states) if scales is None else scales.clone())
        channels = [states * (1 + shape.own_scale), *[shape.filters] * shape.convolutions]
        dense = [shape.filters * left, *shape.hidden, latents]
        generators = [torch.Generator().manual_seed(s) for s in member_seeds(seed, members)]
        self.kernels = nn.ParameterList(
            _drawn((out, into, shape.width), generators) for into, out in pairwise(channels)
        )
        self.weights = nn.ParameterList(_drawn((out, into), generators) for into, out in pairwise(dense))
        biases = [*channels[1:], *dense[1:]]
        self.biases = nn.ParameterList(torch.zeros(len(generators), size) for size in biases)
        # The training loop looks for `members` on the module that holds a parameter: these lists.
        for held in (self.kernels, self.weights, self.biases):
            held.members = members  # type: ignore[assignment]
        self.norm = Standardised(latents, members=members, affine=shape.affine, epsilon=shape.epsilon)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draws all weights anew, by torch's own generator."""
        for weight in (*self.kernels, *self.weights):
            seeds = torch.randint(2**31, (len(weight),)).tolist()
            weight.copy_(_drawn(tuple(weight.shape[1:]), [torch.Generator().manual_seed(s) for s in seeds]))
        for bias in self.biases:
            bias.zero_()
        self.norm.rest_()

    def forward(self, x: Float[Tensor, "batch time states"]) -> Float[Tensor, "*members batch latents"]:
        z: Tensor = self.norm(self.raw(x))
        return z[0] if self.members is None else z

    def raw(self, x: Float[Tensor, "batch time states"]) -> Float[Tensor, "lead batch latents"]:
        """The latents before they are standardised."""
        return torch.baddbmm(self.biases[-1][:, None], self.features(x), self.weights[-1].mT)

    def features(self, x: Float[Tensor, "batch time states"]) -> Float[Tensor, "lead batch features"]:
        """What the last, linear layer sees."""
        if x.shape[1] != self.times:
            raise InvalidArgument(f"the encoder reads series of {self.times} times, got {x.shape[1]}")
        act = ACTIVATIONS[self.shape.activation]
        h = (x / self.scales).mT
        if self.shape.own_scale:
            size = h.square().mean(dim=(1, 2), keepdim=True).sqrt()
            h = torch.cat([h, h / size.clamp(min=1e-6)], dim=1)
        count, layout = len(self.kernels), torch.channels_last
        # As pictures of one row with channels last, member by member: three times as fast as in a group.
        series, read = h[:, :, None].contiguous(memory_format=layout), []
        for member in range(self.members or 1):
            h = series
            for layer, kernel in enumerate(self.kernels):
                weight = kernel[member][:, :, None].contiguous(memory_format=layout)
                stride, bias = (1, 1 if layer else self.shape.stride), self.biases[layer][member]
                h = act(F.conv2d(h, weight, bias, stride, self.shape.padding))
            if self.shape.hidden:  # its weights in the order of the memory
                weight = self.weights[0][member].unflatten(1, (h.shape[1], -1)).mT.flatten(1)
                h = act(torch.addmm(self.biases[count][member], h.permute(0, 2, 3, 1).flatten(1), weight.mT))
            read.append(h.flatten(1))
        h = torch.stack(read)
        for layer, weight in enumerate(list(self.weights)[1:-1], 1):
            h = act(torch.baddbmm(self.biases[count + layer][:, None], h, weight.mT))
        return h

    @torch.no_grad()
    def take_statistics_(self, x: Float[Tensor, "series time states"]) -> None:
        """Sets the means and deviations of the normalisation to those of these series, exactly."""
        raw = self.raw(x)
        self.norm.mean.copy_(raw.mean(dim=1, keepdim=True))
        self.norm.variance.copy_(raw.var(dim=1, keepdim=True, unbiased=False))

    @torch.no_grad()
    def solve_readout_(
        self, x: Float[Tensor, "series time states"], z: Float[Tensor, "series latents"], ridge: float = 1e-9
    ) -> None:
        """Sets the last layer to the least-squares one for these latents, and the normalisation to rest."""
        check_single("read-out", self.members)
        h = self.features(x)[0].double()
        design = torch.cat([h, torch.ones_like(h[:, :1])], dim=1)
        square = design.mT @ design / len(h)
        square += ridge * square.diagonal().mean() * torch.eye(len(square), dtype=square.dtype)
        solution = torch.linalg.solve(square, design.mT @ (2 * z.double()) / len(h))  # the norm halves
        self.weights[-1].copy_(solution[:-1].mT[None])
        self.biases[-1].copy_(solution[-1][None])
        self.norm.rest_()

    @torch.no_grad()
    def calibrate_(self, x: Float[Tensor, "series time states"], z: Float[Tensor, "series latents"]) -> None:
        """Shifts and stretches each latent so that on these series it is `z` on average, large or small.

        The series must not be those that the encoder was fitted to, which it matches too well.
        """
        check_single("read-out", self.members)
        raw = self.raw(x)[0].double()
        about, mean = raw.mean(dim=0), z.double().mean(dim=0)
        away = raw - about
        slope = (away * (z.double() - mean)).sum(dim=0) / away.square().sum(dim=0).clamp(min=1e-30)
        self.weights[-1].mul_(2 * slope[None, :, None])  # the norm halves
        self.biases[-1].copy_(2 * (slope * (self.biases[-1][0] - about) + mean)[None])
        self.norm.rest_()

    def member(self, index: int) -> SeriesEncoder:
        """One encoder of the population, as an encoder of its own (a copy)."""
        check_place("member", index, self.members or 0)
        single = SeriesEncoder(
            self.scales.shape[-1], self.times, self.latents, shape=self.shape, scales=self.scales
        ).to(self.weights[0])
        picked = {
            name: value if name == "scales" else value[index : index + 1 or None]
            for name, value in self.state_dict().items()
        }
        single.load_state_dict(picked)
        return single.train(self.training)


def _drawn(shape: tuple[int, ...], generators: Sequence[torch.Generator]) -> Tensor:
    """Weights uniform between ±√(6/(in + out)) (Glorot), each member from its own generator."""
    field = math.prod(shape[2:])
    bound = math.sqrt(6 / (shape[0] * field + shape[1] * field))
    return torch.stack([(2 * torch.rand(shape, generator=g) - 1) * bound for g in generators])
