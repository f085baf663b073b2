"""Synthesized images with what the model says of them, and the paper's filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Samples:
    """Synthesized images with what the model says of them."""

    images: Tensor  # (n, 3, S, S) in [0, 1]
    labels: Tensor  # (n, K)
    probabilities: Tensor  # (n, K) P(y_k = 1 | x)
    log_p_condition: Tensor  # (n,)
    energy: Tensor  # (n,)
    diverged: Tensor  # (n,) bool

    def select(self, rows: Tensor | slice) -> Samples:
        return Samples(**{name: getattr(self, name)[rows] for name in Samples.__dataclass_fields__})

    @staticmethod
    def join(parts: Sequence[Samples]) -> Samples:
        names = Samples.__dataclass_fields__
        return Samples(**{name: torch.cat([getattr(part, name) for part in parts]) for name in names})


def best(samples: Samples, n: int) -> Samples:
    """The n samples with the highest normalized log p(y_c | x), the best first; diverged ones come last."""
    if len(samples.images) == n:
        return samples
    return samples.select(rank(samples.log_p_condition, samples.diverged)[:n])


def rank(log_p_condition: Tensor, diverged: Tensor) -> Tensor:
    """The order of the paper's filter: the surest chain first, diverged ones last."""
    sure = log_p_condition.masked_fill(diverged, -torch.inf).nan_to_num(nan=-torch.inf)
    return sure.argsort(descending=True, stable=True)
