"""What a visitor may show instead of a picture of the data: made from ordinary images, to try a gate on."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from jem_core.random import generator


def strangers(images: Tensor, faces: bool = False, seed: int = 0) -> dict[str, Tensor]:
    """Noise, a flat colour, the pictures turned, and for faces windows that miss the face; uint8, as many as images."""
    randomness = generator(seed)
    flat = torch.randint(0, 256, (len(images), 3, 1, 1), generator=randomness).expand_as(images)
    found = {
        "noise": torch.randint(0, 256, images.shape, generator=randomness).byte(),
        "flat colour": flat.byte(),
        "upside down": images.flip(-1, -2),
        "turned by a quarter": images.rot90(1, (-2, -1)).contiguous(),
    }
    return found | ({"beside the face": crops_beside(images, seed)} if faces else {})


def crops_beside(images: Tensor, seed: int = 0) -> Tensor:
    """Windows that miss the face: beside it and over the picture's edge, which is repeated; every third shows a small
    part alone. uint8, as many as images."""
    size, windows = images.shape[-1], []
    draws = torch.rand((len(images), 3), generator=generator(seed)).tolist()
    for i, (image, (far, turn, zoom)) in enumerate(zip(images, draws, strict=True)):
        small = i % 3 == 2
        reach = size * (0.25 + 0.2 * far if small else 0.45 + 0.45 * far)
        side = round(size * (0.25 + 0.2 * zoom if small else 0.7 + 0.5 * zoom))
        middle = (1.5 * size + reach * way(2 * math.pi * turn) for way in (math.cos, math.sin))
        left, top = (min(max(round(place - side / 2), 0), 3 * size - side) for place in middle)
        wide = F.pad(image[None].float(), (size,) * 4, mode="replicate")
        window = wide[:, :, top : top + side, left : left + side]
        windows.append(F.interpolate(window, (size, size), mode="bilinear", antialias=True).round().clamp(0, 255))
    return torch.cat(windows).byte()
