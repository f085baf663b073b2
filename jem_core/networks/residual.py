"""The joint energy over noise levels: a residual network for g(u, sigma) and one difference per attribute.

Any K x 2 logits can be written as a shared part and K differences,

    f[k][1], f[k][0] = base / K + log sigmoid(d_k), base / K + log sigmoid(-d_k)

so that base = log p~_sigma(x) and P(y_k = 1 | x) = sigmoid(d_k). The two parts want different scales. With the
preconditioning of Karras et al. (EDM, 2022) carried over to an energy,

    base(x, sigma) = -|x|^2 / (2 (sigma^2 + s^2)) + (s / sigma) g(x / sqrt(sigma^2 + s^2), sigma)

the gradient of g plays EDM's F: D = x + sigma^2 grad log p~ has c_skip, c_out and c_in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jem_core.model import JointEnergyModel, check_level, check_levels
from jem_core.networks.second_order import Convolution, silu

SPREAD = 0.5  # s: of the data in [-1, 1]
EMBEDDING = 128  # of the noise level
HIDDEN = 256  # of the dense layers that look at the whole image
HEADS = 4  # of the attention


class ScaleAndShift(nn.Module):
    """Multiplies and shifts each channel by what the noise level says; begins as the identity."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(EMBEDDING, 2 * channels)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, h: Tensor, level: Tensor) -> Tensor:
        scale, shift = self.linear(level).view(len(h), 2, h.shape[1], *[1] * (h.ndim - 2)).unbind(1)
        return torch.addcmul(shift.to(h.dtype), h, (1 + scale).to(h.dtype))


class Block(nn.Module):
    """h + two convolutions, the noise level in between; the second begins at zero, the block as the identity."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = Convolution(channels, channels, 3, padding=1)
        self.modulate = ScaleAndShift(channels)
        self.second = Convolution(channels, channels, 3, padding=1)
        nn.init.zeros_(self.second.weight)
        nn.init.zeros_(cast(Tensor, self.second.bias))

    def forward(self, h: Tensor, level: Tensor) -> Tensor:
        return h + self.second(silu(self.modulate(self.first(silu(h)), level)))


class Attention(nn.Module):
    """Every place looks at every other: what a high noise level decides is layout, and layout is global.

    Written out, since the fused kernels have no second derivative and denoising differentiates a gradient.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.modulate = ScaleAndShift(channels)
        self.queries_keys_values = Convolution(channels, 3 * channels, 1)
        self.out = Convolution(channels, channels, 1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(cast(Tensor, self.out.bias))

    def forward(self, h: Tensor, level: Tensor) -> Tensor:
        n, channels, height, width = h.shape
        # Every place at unit length: without it products of queries and keys grow until training diverges.
        unit = h * torch.rsqrt(h.float().square().mean(dim=1, keepdim=True) + 1e-4).to(h.dtype)
        together = self.queries_keys_values(self.modulate(unit, level))
        q, k, v = together.view(n, 3, HEADS, channels // HEADS, height * width).unbind(1)
        weights = (q.transpose(-1, -2) @ k / (channels // HEADS) ** 0.5).softmax(dim=-1)
        seen = (v @ weights.transpose(-1, -2)).reshape(n, channels, height, width)
        return h + self.out(seen.contiguous(memory_format=torch.channels_last))


class Stage(nn.Module):
    """The blocks of one resolution, and the local energies that are read off them."""

    def __init__(self, channels: int, blocks: int, attention: bool) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(channels) for _ in range(blocks))
        self.attention = Attention(channels) if attention else None
        self.local = Convolution(channels, channels, 1)
        self.modulate = ScaleAndShift(channels)
        self.weight = nn.Parameter(torch.zeros(channels))

    def forward(self, h: Tensor, level: Tensor) -> tuple[Tensor, Tensor]:
        """The features, and this resolution's share of the energy, (N,)."""
        for block in self.blocks:
            h = block(h, level)
        if self.attention is not None:
            h = self.attention(h, level)
        local = silu(self.modulate(self.local(silu(h)), level))
        # Summed in the weights' own precision: thousands of terms in bfloat16 would round the energy away.
        return h, (local.sum(dim=(2, 3), dtype=level.dtype) * self.weight).sum(dim=1)


class Ascent(nn.Module):
    """One resolution of the way back up: the features of the way down, and what the coarser resolution knows."""

    def __init__(self, coarse: int, fine: int, blocks: int) -> None:
        super().__init__()
        self.carry = Convolution(coarse, fine, 1)
        self.stage = Stage(fine, blocks, attention=False)

    def forward(self, fine: Tensor, coarse: Tensor, level: Tensor) -> tuple[Tensor, Tensor]:
        return self.stage(fine + F.interpolate(self.carry(silu(coarse)), scale_factor=2.0), level)


class ResidualNet(nn.Module):
    """u (N, 3, S, S) of about unit spread and sigma (N,) to g (N,) and differences d (N, K).

    A residual convolutional encoder and, with `ascent` blocks per resolution, the way back up. Energies are local sums
    at every resolution and one dense part. On the way down a place knows its surroundings; on the way up it knows the
    whole, so that an eye can be unlikely beside the other one. No batch norm: an energy depends on its own image alone.
    """

    def __init__(
        self,
        attributes: int,
        image_size: int,
        widths: Sequence[int],
        blocks: Sequence[int],
        fold: int,
        attention: int,
        ascent: int,
    ) -> None:
        super().__init__()
        self.fold, self.attributes = fold, attributes
        self.embed = nn.Sequential(nn.Linear(64, EMBEDDING), nn.SiLU(), nn.Linear(EMBEDDING, EMBEDDING), nn.SiLU())
        self.stem = Convolution(3 * fold**2, widths[0], 3, padding=1)
        sides = [image_size // fold // 2**i for i in range(len(widths))]
        self.stages = nn.ModuleList(
            Stage(width, count, attention=side == attention)
            for width, count, side in zip(widths, blocks, sides, strict=True)
        )
        self.halve = nn.ModuleList(Convolution(a, b, 4, stride=2, padding=1) for a, b in pairwise(widths))
        self.ascents = nn.ModuleList(Ascent(b, a, ascent) for a, b in pairwise(widths) if ascent)
        self.flatten = nn.Linear(widths[-1] * sides[-1] ** 2, HIDDEN)
        self.modulate = ScaleAndShift(HIDDEN)
        self.dense = nn.Linear(HIDDEN, HIDDEN)
        self.base = nn.Linear(HIDDEN, 1)
        self.differences = nn.Linear(HIDDEN, attributes)
        for layer in (self.stem, *self.halve):
            if not layer.weight.is_meta:  # there is nothing to draw, and torch would load its compiler to find out
                nn.init.kaiming_normal_(layer.weight, a=0.3)
            nn.init.zeros_(layer.bias)
        nn.init.zeros_(self.base.weight)
        nn.init.zeros_(self.base.bias)

    def forward(self, u: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
        frequencies = torch.exp(torch.linspace(math.log(0.5), math.log(30), 32, device=u.device))
        angles = 0.25 * sigma.log()[:, None] * frequencies
        with torch.autocast(u.device.type, enabled=False):
            level = self.embed(torch.cat([angles.sin(), angles.cos()], dim=1))
        h = self.stem(F.pixel_unshuffle(u, self.fold).contiguous(memory_format=torch.channels_last))
        g, passed = torch.zeros_like(sigma), []
        for i, stage in enumerate(self.stages):
            h, share = stage(h, level)
            g = g + share
            if i < len(self.halve):
                passed.append(h)
                h = self.halve[i](silu(h))
        up = h
        for ascent, fine in zip(reversed(self.ascents), reversed(passed), strict=False):
            up, share = ascent(fine, up, level)
            g = g + share
        # Mixed precision ends here: energies and differences are sums that bfloat16 would round.
        with torch.autocast(u.device.type, enabled=False):
            whole = silu(self.modulate(self.flatten(silu(h).to(level.dtype).flatten(1)), level))
            whole = whole + silu(self.dense(whole))
            return g + self.base(whole)[:, 0], self.differences(whole)


class ResidualModel(JointEnergyModel):
    """f(x, sigma) by a residual network. Chains run on images scaled to [-1, 1], with the noise of their level on top.

    `widths` and `blocks` have an entry for each resolution, the finest first; `attention` is the side of the one at
    which places look at each other (0: none); `ascent` counts the blocks per resolution on the way back up (0: none).
    """

    network = "residual"
    levels = True
    lowest = 0.02
    shape_keys = ("widths", "blocks", "attention", "ascent")

    def __init__(
        self,
        names: Sequence[str],
        image_size: int = 64,
        widths: Sequence[int] = (32, 64, 128, 192),
        blocks: Sequence[int] = (1, 1, 2, 1),
        fold: int = 2,
        attention: int = 8,
        ascent: int = 0,
    ) -> None:
        super().__init__(names, image_size, fold)
        self.widths, self.blocks, self.attention, self.ascent = list(widths), list(blocks), attention, ascent
        sides = [image_size // fold // 2**i for i in range(len(self.widths))]
        if not self.widths or len(self.widths) != len(self.blocks) or sides[-1] < 2:
            raise ValueError(
                f"The widths are {list(widths)} and the blocks {list(blocks)}; expected as many of one as "
                f"of the other, and few enough that halving {image_size // fold} pixels leaves at least 2."
            )
        if min(self.widths) < 1 or min(*self.blocks, ascent) < 0:
            raise ValueError(
                f"The widths are {list(widths)}, the blocks {list(blocks)} and {ascent} on the way up; "
                "expected positive counts."
            )
        if attention and (attention not in sides or self.widths[sides.index(attention)] % HEADS):
            raise ValueError(f"The attention is at {attention!r} pixels; choose 0 or one of {sides}.")
        self.net = ResidualNet(len(self.names), image_size, self.widths, self.blocks, fold, attention, ascent)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def at(self, sigma: float | Tensor) -> Level:
        """The model of images blurred by sigma; a tensor (N,) gives each image its own."""
        return Level(self, check_levels(sigma) if isinstance(sigma, Tensor) else check_level(sigma))

    def encode(self, images: Tensor) -> Tensor:
        return images * 2 - 1

    def decode(self, x: Tensor) -> Tensor:
        return ((x + 1) / 2).clamp(0, 1)

    def energies(self, x: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
        """log p~_sigma(x), (N,), and the differences d, (N, K)."""
        variance = sigma**2 + SPREAD**2
        g, differences = self.net(x / variance.sqrt().view(-1, 1, 1, 1), sigma)
        return -x.square().sum(dim=(1, 2, 3)) / (2 * variance) + SPREAD / sigma * g, differences

    def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
        """f(x, sigma), (N, K, 2)."""
        self.check_input(x)
        base, d = self.energies(x, sigma)
        return torch.stack([F.logsigmoid(-d), F.logsigmoid(d)], dim=-1) + (base / self.num_attributes).view(-1, 1, 1)


class Level:
    """The model at one noise level: all that a sampler sees of it."""

    def __init__(self, model: ResidualModel, sigma: float | Tensor) -> None:
        self.model, self.sigma = model, sigma
        self.image_size, self.num_attributes = model.image_size, model.num_attributes

    def logits(self, x: Tensor) -> Tensor:
        sigma = self.sigma if isinstance(self.sigma, Tensor) else x.new_full((len(x),), self.sigma)
        return self.model(x, sigma)
