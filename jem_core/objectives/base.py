"""What an objective is: what it wants of the data, its loss, and what it keeps between iterations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from jem_core.condition import FREE
from jem_core.data.transforms import training_transform
from jem_core.model import JointEnergyModel

if TYPE_CHECKING:
    from jem_core.config import TrainConfig
    from jem_core.gaussian import LowRankGaussian


@dataclass(frozen=True)
class Setup:
    """What a run gives its objective to work with. Each rank has its own."""

    config: TrainConfig
    model: JointEnergyModel
    gaussian: LowRankGaussian
    labels: Tensor  # (N, K) of the training rows
    noise: torch.Generator  # what is drawn for the data
    chains: torch.Generator  # what is drawn for chains
    flips: bool = False  # whether a mirrored picture is as good
    ranks: int = 1


@dataclass(frozen=True)
class Loss:
    """The number to differentiate, and plain numbers for whoever watches: cross_entropy and accuracy at least."""

    value: Tensor
    metrics: dict[str, float] = field(default_factory=dict)


class Objective(ABC):
    """One per run. Its name stands in configs; the flags say what the rest of the program must know."""

    name: ClassVar[str]
    levels: ClassVar[bool] = False  # whether it trains networks that know noise levels
    uses_chains: ClassVar[bool] = False  # a buffer of persistent chains, with all that steadies them
    generates: ClassVar[bool] = True  # whether what it trains can be sampled from

    def __init__(self, setup: Setup) -> None:
        self.config, self.model, self.setup = setup.config, setup.model, setup

    def transform(self, images: Tensor) -> Tensor:
        """Stored bytes as the loss wants them."""
        return training_transform(images, self.config.data_noise, self.setup.noise)

    @abstractmethod
    def loss(self, x: Tensor, labels: Tensor, iteration: int) -> Loss:
        """The loss of one batch; unknown labels (-1) are left out."""

    def health(self, model: JointEnergyModel, images: Tensor, generator: torch.Generator) -> dict[str, float]:
        """More figures of the averaged weights on held-out images; `healthy` is 0 when sampling has diverged."""
        return {}

    def sampling(self) -> dict[str, str | int | float | None]:
        """The sampling settings that a run hands to its model."""
        return {}

    def own_state(self) -> dict[str, dict[str, Tensor]]:
        """Tensors of this rank that a checkpoint must hold."""
        return {}

    def own_facts(self) -> dict:
        """Numbers that a checkpoint must hold."""
        return {}

    def restore(self, own: dict[str, dict[str, Tensor]], facts: dict) -> None:
        """Go on as the objective that gave these did."""
        return


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """-log p(y | x) summed over the known labels, averaged over images; unknown labels (-1) are summed out."""
    each = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=FREE, reduction="sum")
    return each / len(labels)


def accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """Share of the known labels that the more likely value gets right."""
    known = labels != FREE
    right = (logits.detach().argmax(dim=-1) == labels) & known
    return right.sum() / known.sum().clamp(min=1)


def frequencies(labels: Tensor) -> Tensor:
    """Share of positives among the known labels of each attribute. (K,)."""
    known = (labels != FREE).sum(dim=0).clamp(min=1)
    return (labels == 1).sum(dim=0) / known


def random_conditions(labels: Tensor, frequency: Tensor, count: Tensor, generator: torch.Generator) -> Tensor:
    """For each row of labels a condition of `count` (N, 1) of its known attributes, the rest free. (N, K).

    An attribute is picked with a weight inverse to how common its value is, so that "with Eyeglasses" is asked for
    as often as "without" although most faces have none. The same rule serves data and chains.
    """
    known = labels != FREE
    common = torch.where(labels == 1, frequency, 1 - frequency).clamp(min=1e-3)
    noise = torch.rand(labels.shape, generator=generator, device=generator.device).to(labels.device)
    key = -torch.log(noise.clamp(min=1e-12)) * common  # exponential races: the smallest wins with weight 1 / common
    order = key.masked_fill(~known, torch.inf).argsort(dim=1).argsort(dim=1)
    return torch.where((order < count.to(labels.device)) & known, labels, torch.full_like(labels, FREE))


def random_counts(n: int, low: int, high: int, generator: torch.Generator) -> Tensor:
    """(n, 1) whole numbers from low to high."""
    return torch.randint(low, high + 1, (n, 1), generator=generator, device=generator.device)
