"""Where chains begin: a Gaussian that knows the condition, pure noise, samples of the buffer, or given images."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from jem_core.buffer import JointBuffer, decode
from jem_core.condition import FREE
from jem_core.gaussian import LowRankGaussian
from jem_core.model import check_images
from jem_core.random import Randomness, uniform
from jem_core.settings import STARTS


@dataclass(frozen=True)
class Start:
    """The parts of a model that chains can begin from."""

    gaussian: LowRankGaussian
    buffer: JointBuffer | None = None

    def images(
        self,
        kind: str,
        condition: Tensor,
        randomness: Randomness,
        given: Tensor | None = None,
        variety: float = 1.0,
    ) -> Tensor:
        """An image (3, S, S) in [0, 1] for each row of the condition (n, K).

        conditional: a low-rank Gaussian fitted to images and labels, given the asked labels. What single attributes do
        to an image adds up there, so it serves combinations without data too. informed: the same, given nothing.
        `variety` is the share of the Gaussian's spread that both take. noise: mid-grey, for the noise of a high level
        to fall on. uniform: noise within the data's bounds (the paper's). buffer-match: samples of the buffer that
        carry the condition, any sample when none does. buffer-any: any sample. images: given ones, repeated in turn.
        """
        n, gaussian = len(condition), self.gaussian
        if kind == "conditional":
            return gaussian.sample(n, randomness, condition, variety=variety)
        if kind == "informed":
            return gaussian.sample(n, randomness, variety=variety)
        if kind == "noise":
            return torch.full((n, *gaussian.mean.shape), 0.5, device=gaussian.mean.device)
        if kind == "uniform":
            return gaussian.uniform(n, randomness)
        if kind == "images":
            return self._given(n, given)
        if kind in ("buffer-match", "buffer-any"):
            return self._from_buffer(kind, condition, randomness)
        raise ValueError(f"There is no start {kind!r}; choose one of {', '.join(STARTS)}.")

    def _given(self, n: int, images: Tensor | None) -> Tensor:
        if images is None or not len(images):
            raise ValueError("The start is 'images', but no image was given.")
        check_images(images, self.gaussian.mean.shape[-1])
        device = self.gaussian.mean.device
        return images.to(device)[torch.arange(n, device=device) % len(images)]

    def _from_buffer(self, kind: str, condition: Tensor, randomness: Randomness) -> Tensor:
        buffer, device = self.buffer, self.gaussian.mean.device
        if buffer is None or not len(buffer):
            raise ValueError(f"The start is {kind!r}, but the model has no buffer samples.")
        asked = condition.cpu()
        if kind == "buffer-any":
            asked = torch.full_like(asked, FREE)
        pick = uniform((len(asked), 1), randomness, device)[:, 0].cpu()
        slots = torch.empty(len(asked), dtype=torch.int64)
        for row in asked.unique(dim=0):
            fits, here = buffer.matching(row), (asked == row).all(dim=1)
            options = fits if len(fits) else torch.arange(len(buffer))
            slots[here] = options[(pick[here] * len(options)).long()]
        return decode(buffer.images[slots].to(device), randomness)
