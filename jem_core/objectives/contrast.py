"""The losses of objectives with chains.

Everything is the gradient of one formula. With chains x' and data (x, y),

    loss = mean log p~(x', y'_c) - mean log p~(x, y_c) + weight * cross-entropy(x, y)

- supervised: the last term alone.
- jem: c is empty, x' moves under log p~(x) (Grathwohl et al.).
- gibbs-jem, joint: c is empty, x' is drawn by Langevin-within-Gibbs (Algorithm 1). Since
  log p~(x, y) = log p~(x) - cross-entropy(x, y), this is the joint likelihood's gradient (Eq. 6). Sampled negative
  labels use log p~(x', y') in place of log p~(x'), its expectation over y'.
- gibbs-jem, semi-conditional: every chain and every image has its own c, so that the first two terms are the gradient
  of log p(x | y_c) for random c.

Given the same x', jem and the joint with marginalized labels have the same gradient: they differ in how x' was drawn.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from jem_core.condition import FREE
from jem_core.model import JointEnergyModel, log_prob_from_logits
from jem_core.objectives.base import accuracy, cross_entropy
from jem_core.samplers import ChainState, Sampler
from jem_core.schedules import Step


@dataclass(frozen=True)
class LossParts:
    """The loss to differentiate, and what it is made of, for whoever watches."""

    loss: Tensor
    cross_entropy: Tensor
    data_log_prob: Tensor  # (N,), detached
    chain_log_prob: Tensor  # (M,), detached; labels summed out, so that it compares with the data's
    accuracy: Tensor


@dataclass(frozen=True)
class Weights:
    """Of the parts of the loss."""

    cross_entropy: float = 1.0
    contrast: float = 1.0
    energy_penalty: float = 0.0


PLAIN = Weights()


def contrastive_loss(
    model: JointEnergyModel,
    x: Tensor,
    labels: Tensor,
    data_condition: Tensor,
    chains: ChainState,
    use: Tensor,
    negative_labels: str = "sampled",
    weights: Weights = PLAIN,
) -> LossParts:
    """The loss above for one batch of data and one of chains; `use` leaves stuck chains out. One forward for both."""
    logits = model.logits(torch.cat([x, chains.x]))
    data, fake = logits[: len(x)], logits[len(x) :]
    positive = log_prob_from_logits(data, data_condition, observed=data_condition != FREE)
    level = log_prob_from_logits(fake, chains.condition, observed=chains.condition != FREE)
    negative = log_prob_from_logits(fake, chains.y) if negative_labels == "sampled" else level
    used = use.to(negative.dtype)
    contrast = (negative * used).sum() / used.sum().clamp(min=1) - positive.mean()
    if not use.any():  # every chain is stuck: no contrast to learn from
        contrast = contrast * 0
    entropy = cross_entropy(data, labels)
    loss = weights.contrast * contrast + weights.cross_entropy * entropy
    if weights.energy_penalty:
        loss = loss + weights.energy_penalty * (positive.square().mean() + (negative * used).square().mean())
    return LossParts(loss, entropy.detach(), positive.detach(), level.detach(), accuracy(data, labels))


def kl_loss(
    model: JointEnergyModel,
    sampler: Sampler,
    step: Step,
    chains: ChainState,
    neighbours: Tensor,
    same: Tensor,
    generator: torch.Generator,
    entropy_weight: float,
) -> Tensor:
    """The gradient that contrastive divergence leaves out (Du et al. 2021; the paper, appendix B).

    One more Langevin step is a function of the weights. Its images should be likely under the model, whose weights are
    held still there, and far from their nearest neighbour among the buffer's samples; `same` (chains, neighbours) says
    which of these are the chain's own old image, left out.
    """
    moved = sampler.differentiable_langevin(chains, step, generator)
    weights = {name: value.detach() for name, value in model.named_parameters()}
    logits = torch.func.functional_call(model, weights, (moved,))
    loss = -log_prob_from_logits(logits, chains.y, observed=chains.condition != FREE).mean()
    if entropy_weight and len(neighbours):
        distance = torch.cdist(moved.flatten(1), neighbours.flatten(1)).masked_fill(same, torch.inf)
        nearest = distance.min(dim=1).values
        loss = loss - entropy_weight * nearest[nearest.isfinite()].clamp(min=1e-6).log().sum() / len(moved)
    return loss
