"""A larger residual network that begins as a smaller, trained one: the same function, with room to learn more.

New blocks begin as the identity. New channels are computed, but nothing that the small network had reads them yet, so
energies and probabilities stay what they were; the gradient decides what they become (Net2Net, Chen et al., 2016).
"""

from __future__ import annotations

import torch
from torch import Tensor

from jem_core.networks.residual import ResidualModel


@torch.no_grad()
def grow(model: ResidualModel, small: ResidualModel) -> None:
    """Give `model`, fresh from its constructor, the function of `small`, which has at most its widths and blocks."""
    _check(model, small)
    weights = small.state_dict()
    for name, value in model.net.named_parameters():
        old = weights.get(f"net.{name}")
        if old is not None and old.shape == value.shape:
            value.copy_(old)
        elif old is not None:
            _embed(name, value, old)


def _check(model: ResidualModel, small: ResidualModel) -> None:
    same = ("names", "image_size", "fold", "attention")
    other = [name for name in same if getattr(model, name) != getattr(small, name)]
    if other or len(model.widths) != len(small.widths):
        what = other[0] if other else "number of resolutions"
        raise ValueError(f"The model to begin with has another {what}; only widths and blocks can grow.")
    new, old = ([*one.widths, *one.blocks, one.ascent] for one in (model, small))
    if any(after < before for after, before in zip(new, old, strict=True)):
        raise ValueError(
            f"The smaller model has widths {small.widths}, blocks {small.blocks} and {small.ascent} on the way up: "
            f"they can grow, but not shrink to {model.widths}, {model.blocks} and {model.ascent}."
        )
    sides = [model.image_size // model.fold // 2**i for i in range(len(model.widths))]
    if model.attention:
        i = sides.index(model.attention)
        if model.widths[i] != small.widths[i]:  # attention normalizes over channels: new ones would change the old
            raise ValueError(f"The width at the attention, {small.widths[i]}, cannot grow to {model.widths[i]}.")


def _embed(name: str, value: Tensor, old: Tensor) -> None:
    """The old tensor in the corner of the new one. What old outputs would read of new inputs is zero."""
    if "modulate.linear" in name:  # scales first, then shifts
        value, old = (one.view(2, one.shape[0] // 2, *one.shape[1:]) for one in (value, old))
        value[:, : old.shape[1]] = old
        return
    if value.ndim > 1:
        value[: old.shape[0], old.shape[1] :] = 0
    value[tuple(slice(n) for n in old.shape)] = old
