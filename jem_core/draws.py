"""A stored picture seen through a few fixed dequantization draws: its probabilities and its density."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from jem_core.model import JointEnergyModel
from jem_core.random import generator

DRAWS = 8
CHUNK = 64


def fixed_draws(image_size: int, draws: int = DRAWS) -> Tensor:
    """The noise inside a byte, (draws, 3, S, S), the same for every picture: a picture has one answer."""
    return torch.rand((draws, 3, image_size, image_size), generator=generator(0))


def _decoded(model: JointEnergyModel, images: Tensor, draws: int) -> Iterator[Tensor]:
    """For each chunk of pictures its `draws` decodings, (draws * n, 3, S, S)."""
    if images.dtype != torch.uint8:
        raise ValueError(f"The pictures are {images.dtype}; expected uint8.")
    if draws < 1:
        raise ValueError(f"The number of draws is {draws}; expected at least 1.")
    device = next(model.parameters()).device
    noise = fixed_draws(model.image_size, draws).to(device)[:, None]
    for chunk in images.split(max(1, CHUNK // draws)):
        yield ((chunk.to(device).float() + noise) / 256).flatten(0, 1).clamp_(max=1 - 2**-24)


@torch.inference_mode()
def mean_prediction(model: JointEnergyModel, images: Tensor, draws: int = DRAWS, mirror: bool = False) -> Tensor:
    """P(y_k = 1 | x) of uint8 pictures (N, 3, S, S), the mean over the fixed draws. (N, K).

    `mirror`: every second draw shows the mirrored picture, for data where that is as good as the picture. The two views
    err in different places; their mean is more often right, and less sure of itself.
    """
    if not len(images):
        return torch.empty((0, model.num_attributes))
    found = []
    for x in _decoded(model, images, draws):
        seen = x.unflatten(0, (draws, -1))
        if mirror:
            seen[1::2] = seen[1::2].flip(-1)
        found.append(model.predict(x).unflatten(0, (draws, -1)).mean(dim=0))
    return torch.cat(found)


def density_figures(model: JointEnergyModel, images: Tensor, draws: int = DRAWS) -> tuple[Tensor, Tensor]:
    """log p~(x) and the norm of its gradient, each the mean over the fixed draws. Two of (N,)."""
    levels, norms = [], []
    for x in _decoded(model, images, draws):
        x.requires_grad_()
        with torch.enable_grad():
            log_prob = model.log_prob(x)
            (grad,) = torch.autograd.grad(log_prob.sum(), x)
        levels.append(log_prob.detach().unflatten(0, (draws, -1)).mean(dim=0))
        norms.append(grad.flatten(1).norm(dim=1).unflatten(0, (draws, -1)).mean(dim=0))
    return torch.cat(levels), torch.cat(norms)
