"""Where chains begin: conditional, informed or uniform noise, buffer samples, or given images."""

import torch
from torch import Tensor

from jem_core.buffer import JointBuffer, decode
from jem_core.condition import Condition
from jem_core.gaussian import LowRankGaussian
from jem_core.model import check_images
from jem_core.random import Randomness, uniform

START_NAMES = ("conditional", "informed", "uniform", "buffer-match", "buffer-any", "images")


def start_chains(
    kind: str,
    n: int,
    *,
    gaussian: LowRankGaussian,
    randomness: Randomness,
    buffer: JointBuffer | None = None,
    condition: Condition | None = None,
    images: Tensor | None = None,
    variety: float = 1.0,
) -> Tensor:
    """`n` images (n, 3, S, S) in [0, 1] to start chains from.

    conditional: a low-rank Gaussian fitted to images and labels, given the asked labels. What single attributes do to
    an image adds up there, so it serves combinations without data too. informed: the same, given nothing. `variety` is
    the share of the Gaussian's spread that both take. uniform:
    noise within the data's bounds (the paper's). buffer-match: samples of the buffer that carry the condition, any
    sample when none does. buffer-any: any sample. images: given ones, repeated in turn.
    """
    if kind == "conditional":
        if condition is None:
            raise ValueError("The start is 'conditional', but there is no condition.")
        return gaussian.sample(n, randomness, condition.tensor(n, gaussian.mean.device), variety=variety)
    if kind == "informed":
        return gaussian.sample(n, randomness, variety=variety)
    if kind == "uniform":
        return gaussian.uniform(n, randomness)
    if kind == "images":
        if images is None or not len(images):
            raise ValueError("The start is 'images', but no image was given.")
        check_images(images, gaussian.mean.shape[-1])
        return images.to(gaussian.mean.device)[torch.arange(n, device=gaussian.mean.device) % len(images)]
    if kind in ("buffer-match", "buffer-any"):
        return _from_buffer(kind, n, gaussian, randomness, buffer, condition)
    raise ValueError(f"There is no start {kind!r}; choose one of {', '.join(START_NAMES)}.")


def _from_buffer(
    kind: str,
    n: int,
    gaussian: LowRankGaussian,
    randomness: Randomness,
    buffer: JointBuffer | None,
    condition: Condition | None,
) -> Tensor:
    if buffer is None or not len(buffer):
        raise ValueError(f"The start is {kind!r}, but the model has no buffer samples.")
    slots = torch.arange(len(buffer))
    if kind == "buffer-match" and condition is not None and len(buffer.matching(condition)):
        slots = buffer.matching(condition)
    device = gaussian.mean.device
    pick = uniform((n, 1), randomness, device)[:, 0].cpu()
    return decode(buffer.images[slots[(pick * len(slots)).long()]].to(device), randomness)
