"""The joint energy over noise levels, trained without chains.

A batch (x0, y) gets noise of random levels, x = x0 + sigma xi, and every row a random condition c of its labels. With
D(x, sigma, y_c) = x + sigma^2 grad log p~_sigma(x, y_c), the denoised image,

    loss = mean (sigma^2 + s^2) / (sigma s)^2 |D - x0|^2 / pixels + weight * cross-entropy(x, y) / attributes

The first term is denoising score matching of log p_sigma(x | y_c), the free labels summed out by the one formula. It is
blind to how likely labels are, which is why the second is needed, at every level.
"""

from __future__ import annotations

import torch
from torch import Tensor

from jem_core.condition import FREE
from jem_core.data.transforms import dequantize
from jem_core.model import JointEnergyModel, log_prob_from_logits
from jem_core.networks.residual import SPREAD
from jem_core.objectives.base import (
    Loss,
    Objective,
    Setup,
    accuracy,
    cross_entropy,
    frequencies,
    random_conditions,
    random_counts,
)

LOWEST, HIGHEST = 0.01, 40.0  # levels of training
WATCHED = (0.05, 0.2, 1.0, 5.0)  # levels whose loss is logged: a good diagnosis of what a run lacks


class Denoising(Objective):
    name = "denoising"
    levels = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.frequency = frequencies(setup.labels).to(setup.noise.device)
        self.flips = setup.flips and self.config.data_flip

    def transform(self, images: Tensor) -> Tensor:
        """Bytes to [-1, 1], each a uniform draw from its own 256th; mirrored at random where the data allow it."""
        noise = self.setup.noise
        x = self.model.encode(dequantize(images, noise))
        if self.flips:
            coins = torch.rand(len(x), generator=noise, device=x.device) < 0.5
            x = torch.where(coins.view(-1, 1, 1, 1), x.flip(-1), x)
        return x

    def loss(self, x: Tensor, labels: Tensor, iteration: int) -> Loss:
        sigma = self.draw_levels(len(x), x.device)
        noisy = x + sigma.view(-1, 1, 1, 1) * torch.randn(x.shape, generator=self.setup.noise, device=x.device)
        denoised, logits = denoise(self.model, noisy, sigma, self.conditions(labels))
        error = (weigh(sigma).view(-1, 1, 1, 1) * (denoised - x) ** 2).mean()
        entropy = cross_entropy(logits, labels) / labels.shape[1]
        metrics = {"denoising_loss": error.item(), "cross_entropy": entropy.item()}
        metrics["accuracy"] = accuracy(logits, labels).item()
        return Loss(error + self.config.cross_entropy_weight * entropy, metrics)

    def draw_levels(self, n: int, device: torch.device) -> Tensor:
        """ln sigma ~ N(noise_mean, noise_spread^2), one from each n-th of it: a batch sees all levels evenly."""
        draws = torch.rand(n, generator=self.setup.noise, device=device)
        shares = (torch.arange(n, device=device) + draws.clamp(1e-4, 1 - 1e-4)) / n
        sigma = torch.exp(self.config.noise_mean + self.config.noise_spread * torch.special.ndtri(shares))
        return sigma.clamp(LOWEST, HIGHEST)

    def conditions(self, labels: Tensor) -> Tensor:
        """Nothing for some rows, all known labels for some, one to `max_conditions` for the others."""
        config, noise, n = self.config, self.setup.noise, len(labels)
        coin = torch.rand((n, 1), generator=noise, device=noise.device)
        count = random_counts(n, 1, config.max_conditions, noise)
        count = torch.where(coin < config.free_share, 0, count)
        count = torch.where(coin >= 1 - config.full_share, labels.shape[1], count)
        return random_conditions(labels, self.frequency, count, noise)

    def health(self, model: JointEnergyModel, images: Tensor, generator: torch.Generator) -> dict[str, float]:
        """The weighted denoising loss of held-out images by level, given no label."""
        x = model.encode(dequantize(images, generator))
        noise = torch.randn(x.shape, generator=generator, device=x.device)
        free = torch.full((len(x), model.num_attributes), FREE, device=x.device)
        figures = {}
        for level in WATCHED:
            sigma = torch.full((len(x),), level, device=x.device)
            denoised, _ = denoise(model, x + level * noise, sigma, free, differentiable=False)
            figures[f"denoising_at_{level:g}"] = (weigh(sigma)[0] * (denoised - x) ** 2).mean().item()
        return figures

    def sampling(self) -> dict[str, str | int | float | None]:
        return {"steps": self.config.sample_steps, "guidance": self.config.sample_guidance}


def denoise(
    model: JointEnergyModel, x: Tensor, sigma: Tensor, condition: Tensor, differentiable: bool = True
) -> tuple[Tensor, Tensor]:
    """D(x, sigma, y_c) and the logits at x. `differentiable`: with respect to the weights."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        logits = model.at(sigma).logits(x)
        log_prob = log_prob_from_logits(logits, condition, observed=condition != FREE)
        (grad,) = torch.autograd.grad(log_prob.sum(), x, create_graph=differentiable)
    return x + sigma.view(-1, 1, 1, 1) ** 2 * grad, logits


def weigh(sigma: Tensor) -> Tensor:
    """EDM's weight, which makes the loss of an untrained network about 1 at every level."""
    return (sigma**2 + SPREAD**2) / (sigma * SPREAD) ** 2
