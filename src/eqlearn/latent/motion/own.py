"""An encoder of one's own before a cell: its latents standardised, and put on a straight line."""

from __future__ import annotations

from copy import deepcopy

import torch
from jaxtyping import Float
from torch import Tensor, nn

from eqlearn.errors import InvalidArgument
from eqlearn.latent.encoder import check_encoder, in_precision_of, member_of, read_latents
from eqlearn.latent.images import take_statistics_
from eqlearn.latent.motion.series import SeriesEncoder, Standardised
from eqlearn.numerics.least_squares import linear_fit
from eqlearn.training.state import at_rest
from eqlearn.validation.options import check_place, check_single


class OwnEncoder(nn.Module):
    """Series `(batch, time, states)` to latents `(batch, latents)` by any `encoder`, as `SeriesEncoder` does:
    what is observed is divided by `scales` before it, and its latents are standardised after it.

    Then comes a straight line, `slope` and `offset`, which is the identity until `solve_readout_` sets it; it
    is what least squares can change of a network that is not known. It is trained only after `free_`.
    """

    scales: Tensor

    def __init__(self, encoder: nn.Module, latents: int, *, scales: Tensor) -> None:
        super().__init__()
        self.encoder = encoder
        self.latents = latents
        members = getattr(encoder, "members", None)
        self.members: int | None = members
        self.register_buffer("scales", scales.clone())
        self.norm = Standardised(latents, members=members, affine=False)
        self.slope = nn.Parameter(torch.eye(latents).repeat(members or 1, 1, 1), requires_grad=False)
        self.offset = nn.Parameter(torch.zeros(members or 1, 1, latents), requires_grad=False)

    def forward(self, x: Float[Tensor, "batch time states"]) -> Float[Tensor, "*members batch latents"]:
        z = torch.baddbmm(self.offset, self.norm(self.raw(x)), self.slope).to(x.dtype)
        return z[0] if self.members is None else z

    def raw(self, x: Float[Tensor, "batch time states"]) -> Float[Tensor, "lead batch latents"]:
        """The latents as the encoder gives them."""
        z = read_latents(self.encoder, self._scaled(x), finite=False).to(self.scales.dtype)
        return z[None] if self.members is None else z

    def _scaled(self, x: Tensor) -> Tensor:
        """What the encoder sees, in the precision of its weights."""
        return in_precision_of(self.encoder, x / self.scales)

    def free_(self) -> None:
        """Lets the line be trained with the encoder."""
        self.slope.requires_grad_(True)
        self.offset.requires_grad_(True)

    @torch.no_grad()
    def take_statistics_(self, x: Float[Tensor, "series time states"], batch: int = 1_000) -> None:
        """Sets means and deviations of all normalisations, the encoder's too, to those of these series."""
        take_statistics_(self.encoder, self._scaled(x), batch)
        with at_rest(self):
            raw = torch.cat([self.raw(piece) for piece in x.split(batch)], dim=1)
        self.norm.mean.copy_(raw.mean(dim=1, keepdim=True))
        self.norm.variance.copy_(raw.var(dim=1, keepdim=True, unbiased=False))

    @torch.no_grad()
    def solve_readout_(
        self, x: Float[Tensor, "series time states"], z: Float[Tensor, "series latents"], batch: int = 1_000
    ) -> None:
        """Sets the line to the least-squares one for these latents, with the statistics of these series."""
        check_single("read-out", self.members)
        self.take_statistics_(x, batch)
        with at_rest(self):
            h = torch.cat([self.norm(self.raw(piece))[0] for piece in x.split(batch)]).double()
        columns = torch.cat([h, torch.ones_like(h[:, :1])], dim=1).mT
        lines = torch.stack([linear_fit(columns, one.double()) for one in z.unbind(dim=1)], dim=1)
        self.slope.copy_(lines[:-1])
        self.offset.copy_(lines[-1])
        self.free_()

    @torch.no_grad()
    def calibrate_(
        self, x: Float[Tensor, "series time states"], z: Float[Tensor, "series latents"], batch: int = 1_000
    ) -> None:
        """Shifts and stretches each latent so that on these series, which the encoder was not fitted to, it
        is `z` on average, large or small."""
        check_single("read-out", self.members)
        with at_rest(self):
            now = torch.cat([self(piece) for piece in x.split(batch)]).double()
        about, mean = now.mean(dim=0), z.double().mean(dim=0)
        away = now - about
        slope = (away * (z.double() - mean)).sum(dim=0) / away.square().sum(dim=0).clamp(min=1e-30)
        self.slope.mul_(slope)
        self.offset.copy_(slope * (self.offset - about) + mean)

    def member(self, index: int) -> OwnEncoder:
        """One encoder of the population, as an encoder of its own (a copy)."""
        check_place("member", index, self.members or 0)
        alone, one = member_of(self.encoder, index), slice(index, index + 1 or None)
        single = OwnEncoder(alone, self.latents, scales=self.scales)
        if self.slope.requires_grad:
            single.free_()
        with torch.no_grad():
            for mine, ours in zip(
                (single.slope, single.offset, single.norm.mean, single.norm.variance),
                (self.slope, self.offset, self.norm.mean, self.norm.variance),
                strict=True,
            ):
                mine.copy_(ours[one])
        return single.train(self.training)


def fitted_in(
    encoder: nn.Module, x: Float[Tensor, "series time states"], scales: Tensor
) -> SeriesEncoder | OwnEncoder:
    """A copy of an encoder that stands before a cell; refuses, in a sentence, what can't be trained there."""
    name = type(encoder).__name__
    if isinstance(encoder, SeriesEncoder | OwnEncoder):
        check_encoder(name, encoder, x)
        return deepcopy(encoder)
    latents = check_encoder(name, encoder, x / scales)
    return OwnEncoder(deepcopy(encoder), latents, scales=scales)


def drawn_anew(encoder: SeriesEncoder | OwnEncoder, seed: int) -> SeriesEncoder | OwnEncoder:
    """A copy of an encoder that starts from other weights: those its parts draw in `reset_parameters`."""
    again = deepcopy(encoder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for part in (again.encoder if isinstance(again, OwnEncoder) else again).modules():
            draw = getattr(part, "reset_parameters", None) or getattr(part, "_reset_parameters", None)
            if callable(draw):
                draw()
            elif any(True for _ in part.parameters(recurse=False)):
                raise InvalidArgument(
                    f"{type(part).__name__} in `encoder` has no `reset_parameters()`, so that it can't start "
                    "anew for each of the `members`; give it one, or set `members=1`"
                )
    return again


def with_latents(encoder: SeriesEncoder | OwnEncoder, count: int) -> SeriesEncoder | OwnEncoder:
    """A copy of an encoder whose read-out gives so many latents; which, `solve_readout_` decides."""
    again = deepcopy(encoder)
    if count == again.latents:
        return again
    if isinstance(again, OwnEncoder):
        again.slope = nn.Parameter(again.slope[..., :count].detach(), requires_grad=False)
        again.offset = nn.Parameter(again.offset[..., :count].detach(), requires_grad=False)
    else:
        again.weights[-1] = nn.Parameter(again.weights[-1][:, :count].detach())
        again.biases[-1] = nn.Parameter(again.biases[-1][:, :count].detach())
        again.norm = Standardised(count, members=None, affine=False).to(again.weights[-1])
    again.latents = count
    return again
