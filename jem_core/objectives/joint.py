"""Objectives that contrast data with persistent chains: the paper's joint one and factored JEM."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from jem_core import distributed
from jem_core.buffer import JointBuffer
from jem_core.model import JointEnergyModel
from jem_core.objectives.base import Loss, Objective, Setup
from jem_core.objectives.chain_pool import ChainPool
from jem_core.objectives.contrast import Weights, contrastive_loss, kl_loss


class Jem(Objective):
    """Factored JEM (Grathwohl et al.): x' moves under log p~(x), a label is only classified."""

    name = "jem"
    uses_chains = True
    sampler = "marginalizing"  # of its chains

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        parts = (setup.config, setup.model, setup.gaussian, setup.labels, setup.chains, setup.ranks)
        self.pool = ChainPool(*parts, sampler=self.sampler, conditional=self.conditional)
        self.data_level: list[float] = []  # running mean and spread of the data's log p~

    @property
    def conditional(self) -> bool:
        """Whether every chain is asked for something of its own."""
        return False

    @property
    def negative_labels(self) -> str:
        return "marginalized"  # JEM knows no label of a chain

    def loss(self, x: Tensor, labels: Tensor, iteration: int) -> Loss:
        config, pool = self.config, self.pool
        chains, slots = pool.draw((config.chain_count or config.batch_size) // self.setup.ranks)
        chains, previous, uphill = pool.walk(chains, config.steps_at(iteration))
        moved_under = chains.y
        chains, stuck, behind = pool.finish(chains, self.data_level)
        use = ~(stuck | behind)
        # The energy waits while the chains catch up.
        weights = Weights(config.cross_entropy_weight, use.float().mean().item(), config.energy_penalty)
        asked = pool.conditions_of(labels)
        parts = contrastive_loss(self.model, x, labels, asked, chains, use, self.negative_labels, weights)
        if config.kl_weight:
            last = previous._replace(y=moved_under)
            near, same = pool.neighbours(slots)
            extra = kl_loss(
                self.model, pool.sampler, pool.step, last, near, same, pool.generator, config.entropy_weight
            )
            parts = replace(parts, loss=parts.loss + config.kl_weight * extra)
        pool.keep(chains, slots, stuck)
        level, spread = parts.data_log_prob.mean().item(), parts.data_log_prob.std(correction=0).item()
        *now, uphill = distributed.average({"level": level, "spread": spread, "up": uphill}).values()  # for all ranks
        self.data_level = [0.9 * old + 0.1 * new for old, new in zip(self.data_level or now, now, strict=True)]
        step = pool.grad_coef
        pool.adapt(uphill)
        gap = parts.chain_log_prob[use].mean().item() - level if use.any() else 0.0
        metrics = {
            "cross_entropy": parts.cross_entropy.item(),
            "accuracy": parts.accuracy.item(),
            "energy_gap": gap,
            "data_log_prob": level,
            "stuck": stuck.float().mean().item(),
            "behind": behind.float().mean().item(),
            "uphill": uphill,
            "grad_coef": step,
            "buffer_contrast": pool.contrast(chains.x),
        }
        return Loss(parts.loss, metrics)

    def health(self, model: JointEnergyModel, images: Tensor, generator: torch.Generator) -> dict[str, float]:
        return {"healthy": float(self.pool.fresh_chains_are_healthy(model, generator))}

    def sampling(self) -> dict[str, str | int | float | None]:
        """With the step that the run's chains have come to."""
        config = self.config
        return {
            "steps": config.sample_steps,
            "grad_coef": float(f"{self.pool.grad_coef:.3g}"),
            "noise_std": config.noise_std,
            "grad_clamp": config.grad_clamp or None,
            "steps_per_sweep": config.steps_per_sweep,
            "preconditioner": config.preconditioner,
        }

    def own_state(self) -> dict[str, dict[str, Tensor]]:
        return {"buffer": self.pool.buffer.state()}

    def own_facts(self) -> dict:
        return {"data_level": list(self.data_level), "grad_coef": self.pool.grad_coef}

    def restore(self, own: dict[str, dict[str, Tensor]], facts: dict) -> None:
        self.pool.buffer = JointBuffer.from_state(own["buffer"])
        self.data_level = list(facts["data_level"])
        self.pool.grad_coef = facts.get("grad_coef", self.config.grad_coef)


class GibbsJem(Jem):
    """The paper's: x' and y' are drawn in turn by Langevin-within-Gibbs (Algorithm 1, Eq. 6)."""

    name = "gibbs-jem"
    sampler = "resampling"

    @property
    def conditional(self) -> bool:
        return self.config.chains == "semi-conditional"

    @property
    def negative_labels(self) -> str:
        return self.config.negative_labels
