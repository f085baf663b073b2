"""The three objectives as one loss, and the conditions that semi-conditional chains are asked for.

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
from torch.nn import functional as F

from jem_core.condition import FREE
from jem_core.model import JointEnergyModel, log_prob_from_logits
from jem_core.samplers import ChainState, Sampler


@dataclass(frozen=True)
class LossParts:
    """The loss to differentiate, and what it is made of, for whoever watches."""

    loss: Tensor
    cross_entropy: Tensor
    data_log_prob: Tensor  # (N,), detached
    chain_log_prob: Tensor  # (M,), detached; labels summed out, so that it compares with the data's
    accuracy: Tensor


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """-log p(y | x) summed over the known labels, averaged over images; unknown labels (-1) are summed out."""
    each = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=FREE, reduction="sum")
    return each / len(labels)


def supervised_loss(model: JointEnergyModel, x: Tensor, labels: Tensor) -> LossParts:
    """Cross-entropy alone."""
    logits = model.logits(x)
    loss = cross_entropy(logits, labels)
    nothing = loss.new_zeros(0)
    return LossParts(loss, loss.detach(), log_prob_from_logits(logits).detach(), nothing, accuracy(logits, labels))


def contrastive_loss(
    model: JointEnergyModel,
    x: Tensor,
    labels: Tensor,
    data_condition: Tensor,
    chains: ChainState,
    use: Tensor,
    negative_labels: str = "sampled",
    cross_entropy_weight: float = 1.0,
    energy_penalty: float = 0.0,
    contrast_weight: float = 1.0,
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
    loss = contrast_weight * contrast + cross_entropy_weight * entropy
    if energy_penalty:
        loss = loss + energy_penalty * (positive.square().mean() + (negative * used).square().mean())
    return LossParts(loss, entropy.detach(), positive.detach(), level.detach(), accuracy(data, labels))


def kl_loss(
    model: JointEnergyModel,
    sampler: Sampler,
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
    moved = sampler.differentiable_langevin(chains, generator)
    weights = {name: value.detach() for name, value in model.named_parameters()}
    logits = torch.func.functional_call(model, weights, (moved,))
    loss = -log_prob_from_logits(logits, chains.y, observed=chains.condition != FREE).mean()
    if entropy_weight and len(neighbours):
        distance = torch.cdist(moved.flatten(1), neighbours.flatten(1)).masked_fill(same, torch.inf)
        nearest = distance.min(dim=1).values
        loss = loss - entropy_weight * nearest[nearest.isfinite()].clamp(min=1e-6).log().sum() / len(moved)
    return loss


def random_conditions(labels: Tensor, frequency: Tensor, most: int, generator: torch.Generator) -> Tensor:
    """For each row of labels a random condition of 0 to `most` of its known attributes, the rest free. (N, K).

    An attribute is picked with a weight inverse to how common its value is, so that "with Eyeglasses" is asked for
    as often as "without" although most faces have none. The same rule serves data and chains.
    """
    known = labels != FREE
    common = torch.where(labels == 1, frequency, 1 - frequency).clamp(min=1e-3)
    noise = torch.rand(labels.shape, generator=generator, device=generator.device).to(labels.device)
    key = -torch.log(noise.clamp(min=1e-12)) * common  # exponential races: the smallest wins with weight 1 / common
    order = key.masked_fill(~known, torch.inf).argsort(dim=1).argsort(dim=1)
    count = torch.randint(0, most + 1, (len(labels), 1), generator=generator, device=generator.device)
    return torch.where((order < count.to(labels.device)) & known, labels, torch.full_like(labels, FREE))


def accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """Share of the known labels that the more likely value gets right."""
    known = labels != FREE
    right = (logits.detach().argmax(dim=-1) == labels) & known
    return right.sum() / known.sum().clamp(min=1)
