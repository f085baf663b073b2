"""The persistent chains of a training run: where they start, what is asked of them, when they begin anew."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from jem_core.buffer import JointBuffer, decode
from jem_core.condition import FREE
from jem_core.data.transforms import augment_chains
from jem_core.gaussian import LowRankGaussian, Preconditioner
from jem_core.model import JointEnergyModel, log_prob_from_logits
from jem_core.objectives.base import frequencies, random_conditions, random_counts
from jem_core.samplers import ChainState, KernelSettings, draw_free_labels, make_sampler, saturated
from jem_core.schedules import Step

if TYPE_CHECKING:
    from jem_core.config import TrainConfig


class ChainPool:
    """One rank's chains: a joint buffer, the sampler that moves them, and the training labels they are asked from."""

    def __init__(
        self,
        config: TrainConfig,
        model: JointEnergyModel,
        gaussian: LowRankGaussian,
        labels: Tensor,
        generator: torch.Generator,
        ranks: int = 1,
        sampler: str = "resampling",
        conditional: bool = False,
    ) -> None:
        self.config, self.gaussian, self.labels, self.generator = config, gaussian, labels, generator
        self.conditional = conditional  # every chain has a condition of its own
        self.device = gaussian.mean.device
        self.grad_coef = config.grad_coef  # of the next Langevin steps
        strength = config.preconditioner
        settings = KernelSettings(
            grad_clamp=config.grad_clamp or None,
            steps_per_sweep=config.steps_per_sweep,
            preconditioner=Preconditioner.from_gaussian(gaussian, strength) if strength else None,
            precision=config.precision,
        )
        self.sampler = make_sampler(sampler, model, settings)
        self.frequency = frequencies(labels).to(self.device)
        noise = gaussian.residual_std**2 * gaussian.mean.numel()
        self.data_variance = gaussian.scales.square().sum().item() + noise
        size = max(1, config.buffer_size // ranks)
        self.buffer = JointBuffer.empty(size, model.image_size, model.num_attributes, config.buffer_policy)
        fresh = self.fresh(size)
        self.buffer.push(fresh.x, fresh.y, fresh.condition, generator)

    @property
    def step(self) -> Step:
        """The next Langevin step."""
        return Step(0.0, self.grad_coef, self.config.noise_std, 0.0)

    def conditions_of(self, labels: Tensor) -> Tensor:
        """What is asked of chains: nothing for joint chains, a random part of these labels for semi-conditional."""
        if not self.conditional:
            return torch.full_like(labels, FREE)
        counts = random_counts(len(labels), 0, self.config.max_conditions, self.generator)
        return random_conditions(labels, self.frequency, counts, self.generator)

    def fresh(self, n: int) -> ChainState:
        """Chains at the start distribution, each with a condition taken from a random training row."""
        condition = self._random_conditions(n)
        return self.sampler.init(self._start(condition, self.generator), condition, self.generator)

    def draw(self, n: int) -> tuple[ChainState, Tensor]:
        """Chains of the buffer, augmented, some with a new condition; a fresh fraction starts anew."""
        config, generator = self.config, self.generator
        slots = self.buffer.draw(n, generator)
        x = decode(self.buffer.images[slots].to(self.device), generator)
        x = augment_chains(x, generator, config.chain_flip, config.chain_blur, config.chain_blur_sigma)
        condition = self.buffer.conditions[slots].long().to(self.device)
        coin = torch.rand(n, 1, generator=generator, device=self.device)
        condition = torch.where(coin < config.switch_fraction, self._random_conditions(n), condition)
        fresh = self.fresh(n)
        renew = torch.rand(n, generator=generator, device=self.device) < config.fresh_fraction
        state = self.sampler.init(
            torch.where(renew.view(-1, 1, 1, 1), fresh.x, x),
            torch.where(renew.view(-1, 1), fresh.condition, condition),
            generator,
        )
        return state, slots

    def keep(self, chains: ChainState, slots: Tensor, stuck: Tensor) -> None:
        """Back into the buffer; a stuck chain begins anew."""
        if stuck.any():
            fresh = self.fresh(int(stuck.sum()))
            for field in ("x", "y", "condition"):
                getattr(chains, field)[stuck] = getattr(fresh, field)
        self.buffer.push(chains.x, chains.y, chains.condition, self.generator, slots)

    @torch.no_grad()
    def finish(self, chains: ChainState, data_level: list[float]) -> tuple[ChainState, Tensor, Tensor]:
        """(chains with labels drawn at their last images, stuck, behind), all from one forward.

        Stuck is a chain in a corner of the cube or far below the data's energy: it begins anew. Behind is one above the
        data's energy: the steps did not suffice, so it is no sample of the model yet. It waits outside the loss, for
        pushing its energy up further only makes the landscape steeper and lets it fall back more.
        """
        logits = self.sampler.model.logits(chains.x)
        chains = chains._replace(y=draw_free_labels(logits, chains.condition, self.generator))
        nobody = torch.zeros(len(chains.x), dtype=torch.bool, device=self.device)
        if not self.config.restart_stuck:
            return chains, nobody, nobody
        if not data_level:  # the first iteration: nothing to compare with yet
            return chains, saturated(chains.x), nobody
        mean, spread = data_level
        log_prob = log_prob_from_logits(logits, chains.condition, observed=chains.condition != FREE)
        distance = (log_prob - mean) / max(spread, 1.0)
        stuck = saturated(chains.x) | (distance > self.config.stuck_spreads)
        return chains, stuck, (distance < -self.config.behind_spreads) & ~stuck

    def walk(self, chains: ChainState, steps: int) -> tuple[ChainState, ChainState, float]:
        """(chains after these steps, the same before the last of them, the share of steps that went uphill in energy).

        The first step is not counted: there is nothing before it to compare with.
        """
        height, uphill = None, []
        for _ in range(steps):
            before = chains
            chains, info = self.sampler.step(chains, self.step, self.generator)
            if height is not None:
                uphill.append((info.log_marginal < height).float().mean())
            height = info.log_marginal
        return chains, before, torch.stack(uphill).mean().item() if uphill else self.config.uphill_target

    def adapt(self, uphill: float) -> None:
        """A smaller coefficient when too many steps went uphill, a larger one when few did.

        As the energy sharpens, a fixed step begins to overshoot its valleys: about half of the steps go uphill, chains
        stay above the data's energy, the model takes that for a success and sharpens further. Left alone, this is how
        training diverges. Chains that only lag behind go downhill all the time and ask for a larger step.
        """
        if self.config.uphill_target:
            grown = self.grad_coef * math.exp(self.config.uphill_rate * (self.config.uphill_target - uphill))
            self.grad_coef = min(grown, self.config.grad_coef)

    def neighbours(self, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Buffer samples for the entropy part of the KL term, and which chains (drawn from `slots`) they once were."""
        others = self.buffer.draw(self.config.entropy_samples, self.generator)
        same = (slots.view(-1, 1) == others.view(1, -1)).to(self.device)
        return decode(self.buffer.images[others].to(self.device), self.generator), same

    def contrast(self, x: Tensor) -> float:
        """The chains' pixel spread around the data's mean, as a ratio to the data's own."""
        variance = (x - self.gaussian.mean).square().sum(dim=(1, 2, 3)).mean().item()
        return (variance / self.data_variance) ** 0.5

    def fresh_chains_are_healthy(self, model: JointEnergyModel, generator: torch.Generator, n: int = 16) -> bool:
        """Whether unconditional chains from the start distribution still end at images."""
        sampler = type(self.sampler)(model, self.sampler.settings)
        free = torch.full((n, model.num_attributes), FREE, device=self.device)
        state = sampler.init(self._start(free, generator), free, generator)
        for _ in range(self.config.sample_steps):
            state, info = sampler.step(state, self.step, generator)
        return info.diverged.float().mean().item() < 0.25 and 1 / 2 < self.contrast(state.x) < 2

    def _start(self, condition: Tensor, generator: torch.Generator) -> Tensor:
        if self.config.start == "uniform":
            return self.gaussian.uniform(len(condition), generator)
        given = condition if self.config.start == "conditional" else None
        return self.gaussian.sample(len(condition), generator, given, self.config.start_grain)

    def _random_conditions(self, n: int) -> Tensor:
        pick = torch.randint(len(self.labels), (n,), generator=self.generator, device=self.device).cpu()
        return self.conditions_of(self.labels[pick].to(self.device))


def redistribute(buffers: list[dict[str, Tensor]], rank: int, ranks: int) -> dict[str, Tensor]:
    """This rank's share of the buffers of all ranks that wrote a checkpoint."""
    if len(buffers) == ranks:
        return buffers[rank]
    merged = {name: torch.cat([part[name] for part in buffers]) for name in ("images", "labels", "conditions")}
    mine = {name: value[rank::ranks].contiguous() for name, value in merged.items()}
    filled = len(mine["images"])
    capacity, seen = (sum(int(part[name]) for part in buffers) // ranks for name in ("capacity", "seen"))
    if filled:  # a reservoir goes on to know how long its stream was, or new samples would push out too many old ones
        capacity, seen = filled, max(filled, seen)
    facts = {"capacity": torch.tensor(max(1, capacity)), "seen": torch.tensor(seen)}
    return mine | facts | {"policy": buffers[0]["policy"]}
