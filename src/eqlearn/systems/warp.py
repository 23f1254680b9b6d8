"""Images a little turned, stretched and moved, so that an encoder learns what a digit is, not its pixels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from eqlearn.errors import InvalidArgument


@dataclass(frozen=True)
class Warp:
    """The most that an image is warped: turned by `degrees` both ways, its axes stretched and slanted by a
    share `stretch`, moved by `shift` pixels."""

    degrees: float = 0.0
    stretch: float = 0.0
    shift: float = 0.0

    def __post_init__(self) -> None:
        if min(self.degrees, self.stretch, self.shift) < 0 or not self.stretch < 0.5:
            raise InvalidArgument(
                f"a warp's `degrees`, `stretch` (below 0.5) and `shift` must not be negative; got {self}"
            )

    def __call__(
        self, images: Shaped[Tensor, "rows height width"], generator: torch.Generator
    ) -> Float[Tensor, "rows height width"]:
        """Each image warped by amounts of its own, drawn evenly; black comes in."""

        def drawn(*shape: int) -> Tensor:
            return 2 * torch.rand(len(images), *shape, generator=generator) - 1

        angle = math.radians(self.degrees) * drawn()
        turn = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], dim=-1).view(-1, 2, 2)
        linear = turn @ (torch.eye(2) + self.stretch * drawn(2, 2))
        # The grid runs from -1 to 1 over the image.
        sides = torch.tensor([images.shape[2], images.shape[1]])
        moved = 2 * self.shift / sides * drawn(2)
        plane = images[:, None].float()
        amounts = torch.cat([linear, moved[:, :, None]], dim=2).to(plane.device)
        grid = nn.functional.affine_grid(amounts, list(plane.shape), align_corners=False)
        return nn.functional.grid_sample(plane, grid, align_corners=False)[:, 0]
