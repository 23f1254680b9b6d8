"""Encoders: what reads latents out of images, series or anything else, before an equation."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from eqlearn.errors import InvalidArgument, WrongType
from eqlearn.latent.images import ImageEncoder
from eqlearn.latent.motion.series import SeriesEncoder
from eqlearn.validation.options import checked_choice, enter


@runtime_checkable
class Encoder(Protocol):
    """Maps its input `(rows, ...)` to latents `(rows, n)`; any `nn.Module` that does so will do.

    One that holds a population of members gives `(members, rows, n)` and has `member(index)`.
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


def read_latents(encoder: nn.Module, x: Tensor) -> Tensor:
    """The latents of `x`; an error says why, where they can't be the inputs of an equation."""
    z = encoder(x)
    what = f"`encoder` {type(encoder).__name__} gives"
    if not isinstance(z, Tensor):
        raise WrongType(f"{what} a {type(z).__name__}; it must give a tensor (rows, latents)")
    if z.dim() < 2 or z.shape[-2] != len(x):
        raise InvalidArgument(
            f"{what} shape {tuple(z.shape)} for {len(x)} rows; it must give (rows, latents)"
        )
    if not bool(torch.isfinite(z).all()):
        raise InvalidArgument(f"{what} NaN or infinity; look at its input, or at the training so far")
    return z


def member_of(module: nn.Module, index: int) -> nn.Module:
    """A member of a population as a module of its own (a copy); a module without members is its only one."""
    if getattr(module, "members", None) is not None:
        return module.member(index)  # type: ignore[no-any-return, operator]
    if index != 0:
        raise InvalidArgument(
            f"{type(module).__name__} has no members, so there is only member 0, not {index}"
        )
    return deepcopy(module)
