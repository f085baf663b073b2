"""A joint distribution over noise levels that is known in closed form.

Each attribute owns a block of pixels. Its label is a coin, and given the label the block is Gaussian:

    y_k ~ Bernoulli(ones[k]),    x_block(k) | y_k = v  ~  N(mean[k, v], variance[k, v])

Blurred by sigma the variances grow by sigma^2 and labels given the image stay independent, so that

    f(x, sigma)[k][v] = log p(y_k = v) + log N(x_block(k); mean[k, v], variance[k, v] + sigma^2)

is exact at every level.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jem_core.condition import FREE
from tests.jem_core.closed_form import Moments


class BlurredModel(nn.Module):
    """Images of 2 x 2 pixels (12 values), three attributes of four values each."""

    image_size, num_attributes, block = 2, 3, 4
    levels, lowest = True, 0.02

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        shape = (self.num_attributes, 2, self.block)
        self.ones = torch.tensor([0.3, 0.5, 0.7], dtype=torch.float64)
        self.mean = 0.3 * torch.randn(shape, generator=generator, dtype=torch.float64)
        self.variance = 0.22 + 0.06 * torch.rand(shape, generator=generator, dtype=torch.float64)

    def at(self, sigma: float | Tensor) -> BlurredLevel:
        return BlurredLevel(self, sigma)

    def sample(self, condition: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Exact images (N, 3, 2, 2) and labels of a condition (N, K)."""
        coins = torch.rand(condition.shape, generator=generator) < self.ones.float()
        y = torch.where(condition == FREE, coins.long(), condition)
        rows = torch.arange(self.num_attributes)
        mean, variance = self.mean[rows, y].float(), self.variance[rows, y].float()
        x = mean + variance.sqrt() * torch.randn(mean.shape, generator=generator)
        return x.reshape(-1, 3, 2, 2), y

    def moments(self, condition: Tensor, sigma: float) -> Moments:
        """Of images blurred by sigma, under a condition (K,)."""
        ones = torch.where(condition == FREE, self.ones, condition.double())
        share = torch.stack([1 - ones, ones], dim=1)[:, :, None]
        mean = (share * self.mean).sum(dim=1)
        second = (share * (self.mean.square() + self.variance + sigma**2)).sum(dim=1)
        both = ones[:, None] * ones[None, :]
        both.diagonal().copy_(ones)
        return Moments(mean.flatten(), (second - mean.square()).flatten(), ones, both)


class BlurredLevel:
    """The model at one level, or at one per image."""

    image_size, num_attributes = BlurredModel.image_size, BlurredModel.num_attributes

    def __init__(self, model: BlurredModel, sigma: float | Tensor) -> None:
        self.model, self.sigma = model, sigma

    def logits(self, x: Tensor) -> Tensor:
        model = self.model
        sigma = torch.as_tensor(self.sigma, dtype=x.dtype).reshape(-1, 1, 1, 1)
        variance = model.variance.to(x.dtype) + sigma**2
        away = x.reshape(len(x), model.num_attributes, 1, model.block) - model.mean.to(x.dtype)
        log_normal = -0.5 * (away.square() / variance + (2 * torch.pi * variance).log()).sum(dim=-1)
        prior = torch.stack([1 - model.ones, model.ones], dim=1).log().to(x.dtype)
        return log_normal + prior
