"""A model whose joint distribution is known in closed form: every p(x | y) is a Gaussian, and p(y) follows.

f(x)[k][v] = bias[k, v] - 1/2 sum_d precision[k, v, d] (x_d - mean[k, v, d])^2

Each attribute pulls at every pixel, so labels are correlated and the Gaussians are not the attributes' own: the sampler
must get the whole joint right. Given y the exponent is one quadratic in x, so with P = sum_k precision[k, y_k] and
h = sum_k precision[k, y_k] mean[k, y_k], x ~ N(h / P, 1 / P), and p(y) is the integral of the exponential.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from jem_core.condition import FREE


class Moments(NamedTuple):
    """What a sampler must reach: mean and variance of each pixel, the share of ones of each label and pair."""

    mean: Tensor  # (D,)
    variance: Tensor  # (D,)
    ones: Tensor  # (K,)
    both: Tensor  # (K, K)


class NoLevels:
    """What a model without noise levels says to whoever asks for one, for the small models of tests."""

    levels, lowest = False, 0.0

    def at(self, sigma: float) -> Self:
        assert sigma == 0
        return self


class ClosedFormModel(NoLevels, nn.Module):
    """Images of 2 x 2 pixels (12 values), K attributes; parameters are weights, so that a loss can train them."""

    image_size = 2
    size = 12

    def __init__(self, num_attributes: int = 3, spread: float = 0.18, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        shape = (num_attributes, 2, self.size)
        self.num_attributes = num_attributes
        shift = 0.35 * spread * torch.randn(shape, generator=generator, dtype=torch.float64)
        scale = 1 + 0.5 * torch.rand(shape, generator=generator, dtype=torch.float64)
        self.mean = nn.Parameter(0.5 + shift * num_attributes**0.5)
        self.precision = nn.Parameter(scale / (num_attributes * spread**2))
        self.bias = nn.Parameter(0.6 * torch.randn(shape[:2], generator=generator, dtype=torch.float64))
        self.float()

    def logits(self, x: Tensor) -> Tensor:
        x = x.flatten(1)  # the square is written out: two small matrix products instead of a large sum
        precision, pull = self.precision.flatten(0, 1), (self.precision * self.mean).flatten(0, 1)
        linear = x @ pull.T - 0.5 * x.square() @ precision.T
        return linear.view(-1, self.num_attributes, 2) + self.bias - 0.5 * (self.precision * self.mean**2).sum(dim=-1)

    forward = logits

    def log_weight(self, y: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
        """log of the integral of exp f(x, y) over x, and the mean and variance of p(x | y)."""
        rows = range(self.num_attributes)
        mean, precision, bias = (value[rows, list(y)].double() for value in (self.mean, self.precision, self.bias))
        total = precision.sum(dim=0)
        pull = (precision * mean).sum(dim=0)
        constant = bias.sum() - 0.5 * (precision * mean.square()).sum() + 0.5 * (pull.square() / total).sum()
        return constant + 0.5 * (2 * torch.pi / total).log().sum(), pull / total, 1 / total

    def joint(self, condition: Tensor) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """For each y that agrees with the condition: y, log weight, mean and variance of x given y."""
        found = []
        for y in product((0, 1), repeat=self.num_attributes):
            labels = torch.tensor(y)
            if ((condition == FREE) | (condition == labels)).all():
                found.append((labels, *self.log_weight(y)))
        return found

    def log_normalizer(self, condition: Tensor) -> Tensor:
        """log of the sum over labels and the integral over images of exp f(x, y): log Z, differentiable."""
        return torch.stack([weight for _, weight, _, _ in self.joint(condition)]).logsumexp(dim=0)

    @torch.no_grad()
    def moments(self, condition: Tensor) -> Moments:
        """The truth: a mixture of Gaussians over the labels that the condition leaves."""
        labels, weights, means, variances = (torch.stack(parts) for parts in zip(*self.joint(condition), strict=True))
        share = weights.softmax(dim=0)[:, None]
        mean = (share * means).sum(dim=0)
        variance = (share * (variances + means.square())).sum(dim=0) - mean.square()
        ones = labels.double()
        return Moments(mean, variance, (share * ones).sum(dim=0), ones.T @ (share * ones))
