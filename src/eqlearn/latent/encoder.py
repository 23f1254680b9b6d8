"""Encoders: what reads latents out of images, series or anything else, before an equation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from eqlearn.errors import EqlearnError, InvalidArgument, WrongType
from eqlearn.latent.images import ImageEncoder
from eqlearn.latent.motion.series import SeriesEncoder
from eqlearn.training.members import count_members
from eqlearn.training.state import at_rest
from eqlearn.validation.options import checked_choice, enter


@runtime_checkable
class Encoder(Protocol):
    """Maps its input `(rows, ...)` to latents `(rows, n)`; any `nn.Module` that does so will do.

    One that holds a population gives `(members, rows, n)`, and has `members` and `member(index)`.
    """

    def __call__(self, x: Tensor, /) -> Tensor: ...


# Encoders by name, for settings that are data: a name and the arguments to build it with.
ENCODERS: dict[str, Callable[..., nn.Module]] = {"image": ImageEncoder, "series": SeriesEncoder}


def register_encoder(name: str, build: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    """Makes an encoder known by its name, for `make_encoder(name, ...)`: a class, or a function that gives a
    module."""
    if not callable(build):
        raise WrongType(f"`build` must be a class or a function that gives a module, got {build!r}")
    return enter("an encoder", name, build, ENCODERS)


def make_encoder(name: str, *arguments: Any, **options: Any) -> nn.Module:
    """A fresh encoder of that name, built with these arguments."""
    return ENCODERS[checked_choice("encoder", name, ENCODERS)](*arguments, **options)


def read_latents(encoder: nn.Module, x: Tensor, name: str | None = None, *, finite: bool = True) -> Tensor:
    """The latents of `x`; an error says why, where they can't be the inputs of an equation: of the encoder of
    that `name`, or its class. In training, which looks after what diverges itself, they need not be `finite`.
    """
    z = encoder(x)
    what = f"encoder {name or type(encoder).__name__!r} gives"
    if not isinstance(z, Tensor):
        raise WrongType(f"{what} a {type(z).__name__}; it must give a tensor (rows, latents)")
    members = getattr(encoder, "members", None)
    axes, lead = (2, ()) if members is None else (3, (members,))
    if z.dim() != axes or tuple(z.shape[:-1]) != (*lead, len(x)) or z.shape[-1] == 0:
        wanted = "(rows, latents)" if members is None else f"(members, rows, latents), of {members} members"
        raise InvalidArgument(f"{what} shape {tuple(z.shape)} for {len(x)} rows; it must give {wanted}")
    if not z.is_floating_point():
        raise WrongType(f"{what} {z.dtype}; it must give a tensor of floating-point numbers")
    if finite and not bool(torch.isfinite(z).all()):
        raise InvalidArgument(f"{what} NaN or infinity; look at its input, or at the training so far")
    return z


def check_encoder(name: str, encoder: nn.Module, x: Tensor) -> int:
    """How many latents an encoder gives for these rows of its input; refuses, in a sentence, one that can't
    be trained before an equation: one that can't read `x`, or gives what is no latent, the same for all rows,
    or without a gradient. `name` is what the message calls it.

    It is asked in `eval()`, in the precision of its weights, and left as it was.
    """
    what = f"encoder {name!r}"
    if not isinstance(encoder, nn.Module):
        raise WrongType(f"{what} must be an nn.Module from (rows, ...) to (rows, latents), got {encoder!r}")
    x = in_precision_of(encoder, x)
    weights = [p for p in encoder.parameters() if p.requires_grad]
    with at_rest(encoder), torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        try:
            z = read_latents(encoder, x, name)
        except EqlearnError:
            raise
        except (RuntimeError, TypeError, ValueError, LookupError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise InvalidArgument(
                f"{what} can't read a {x.dtype} input of shape {tuple(x.shape)}: {reason}"
            ) from error
        _check_spread(what, z.detach())
        slopes: Sequence[Tensor | None] = []
        if z.requires_grad and weights:
            along = torch.randn(z.shape, generator=torch.Generator().manual_seed(0)).to(z)
            slopes = torch.autograd.grad((z * along).sum(), weights, allow_unused=True)
    if not any(slope is not None and bool(slope.any()) for slope in slopes):
        raise InvalidArgument(
            f"{what} gives latents without a gradient, so that it can't be trained; it must have parameters "
            "that are not frozen, and lead to them without `detach`, `no_grad`, rounding or `argmax`"
        )
    return z.shape[-1]


def in_precision_of(encoder: nn.Module, x: Tensor) -> Tensor:
    """The input in the precision of the encoder's weights; whole numbers, such as bytes, as they are."""
    dtype = next((p.dtype for p in encoder.parameters() if p.is_floating_point()), x.dtype)
    return x.to(dtype) if x.is_floating_point() else x


def _check_spread(what: str, z: Tensor) -> None:
    """Refuses latents that are all the same for all rows, up to rounding."""
    spread, size = z.amax(dim=-2) - z.amin(dim=-2), z.abs().amax(dim=-2)
    if z.shape[-2] > 1 and bool((spread <= 8 * torch.finfo(z.dtype).eps * size).all()):
        raise InvalidArgument(
            f"{what} gives the same latent for all {z.shape[-2]} rows, from which nothing can be told "
            "apart; look at its input's scale, or start it from other weights"
        )


def member_of(module: nn.Module, index: int) -> nn.Module:
    """A member of a population as a module of its own (a copy); a module without members is the same for all
    of them."""
    if getattr(module, "members", None) is None:
        if count_members(module) is not None:
            raise InvalidArgument(
                f"{type(module).__name__} holds parts with `members`, but has none itself; give it `members` "
                "and a method `member(index)` that takes one out of every part"
            )
        return deepcopy(module)
    if not callable(getattr(module, "member", None)):
        raise WrongType(f"{type(module).__name__} has `members`, but no method `member(index)`; give it one")
    return module.member(index)  # type: ignore[no-any-return, operator]
