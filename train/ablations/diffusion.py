"""What a user would pick instead: python -m train.ablations.diffusion --model avatars --data DIR --minutes 60.

A conditional diffusion model with classifier-free guidance (Ho and Salimans 2022) in EDM's formulation (Karras et al.
2022): a U-Net of the blocks of our network and about as many parameters, trained on the same pictures, conditions and
noise levels for as many minutes on one core, and judged by the same judge. It cannot predict: it has no P(y | x).
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from tqdm import tqdm

from jem_core.bundle import Bundle, write_json
from jem_core.condition import FREE, Condition
from jem_core.config import TrainConfig, read_config
from jem_core.data.dataset import Dataset
from jem_core.fidelity import compare_features
from jem_core.hub import load
from jem_core.judge import Judge, right
from jem_core.networks.residual import EMBEDDING, SPREAD, Attention, Block
from jem_core.objectives.base import Setup
from jem_core.objectives.denoising import Denoising, weigh
from jem_core.precision import compute_in
from jem_core.random import generator
from jem_core.schedules import descend, karras_levels
from train.fit import find_config
from train.plan import conditions

HIGHEST, LOWEST = 40.0, 0.02  # levels of sampling
GUIDANCES = (2.0, 3.0, 5.0)


class UNet(nn.Module):
    """x (N, 3, S, S), sigma (N,) and a condition (N, K) to the denoised picture D(x, sigma, y_c)."""

    def __init__(self, attributes: int, widths: Sequence[int] = (32, 64, 128, 192), fold: int = 2) -> None:
        super().__init__()
        self.fold = fold
        self.level = nn.Sequential(nn.Linear(64, EMBEDDING), nn.SiLU(), nn.Linear(EMBEDDING, EMBEDDING))
        self.asked = nn.Linear(2 * attributes, EMBEDDING)
        self.stem = nn.Conv2d(3 * fold**2, widths[0], 3, padding=1)
        self.down = nn.ModuleList(Block(width) for width in widths)
        self.halve = nn.ModuleList(nn.Conv2d(a, b, 4, stride=2, padding=1) for a, b in pairwise(widths))
        self.second, self.attention = Block(widths[-2]), Attention(widths[-2])
        self.widen = nn.ModuleList(nn.Conv2d(b, a, 3, padding=1) for a, b in pairwise(widths))
        self.up = nn.ModuleList(Block(width) for width in widths[:-1])
        self.out = nn.Conv2d(widths[0], 3 * fold**2, 3, padding=1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)
        self.to(memory_format=torch.channels_last)

    @staticmethod
    def encode(images: Tensor) -> Tensor:
        return images * 2 - 1

    def forward(self, x: Tensor, sigma: Tensor, condition: Tensor) -> Tensor:
        """EDM's preconditioning around the network F: c_skip x + c_out F(c_in x, sigma, y_c)."""
        sigma = sigma.view(-1, 1, 1, 1)
        variance = sigma**2 + SPREAD**2
        inner = self._network(x / variance.sqrt(), sigma.flatten(), condition)
        return SPREAD**2 / variance * x + sigma * SPREAD / variance.sqrt() * inner

    def _network(self, u: Tensor, sigma: Tensor, condition: Tensor) -> Tensor:
        frequencies = torch.exp(torch.linspace(math.log(0.5), math.log(30), 32, device=u.device))
        angles = 0.25 * sigma.log()[:, None] * frequencies
        asked = torch.cat([condition == 1, condition == 0], dim=1).float()
        with torch.autocast(u.device.type, enabled=False):
            level = F.silu(self.level(torch.cat([angles.sin(), angles.cos()], dim=1)) + self.asked(asked))
        h = self.stem(F.pixel_unshuffle(u, self.fold).contiguous(memory_format=torch.channels_last))
        kept = []
        for i, block in enumerate(self.down):
            h = block(h, level)
            if i == len(self.down) - 2:
                h = self.attention(self.second(h, level), level)
            if i < len(self.halve):
                kept.append(h)
                h = self.halve[i](F.silu(h))
        for i in reversed(range(len(self.up))):
            h = kept[i] + self.widen[i](F.interpolate(F.silu(h), scale_factor=2))
            h = self.up[i](h, level)
        return F.pixel_shuffle(self.out(F.silu(h)).float(), self.fold)


def fit(net: UNet, bundle: Bundle, dataset: Dataset, config: TrainConfig, minutes: float) -> tuple[UNet, int]:
    """The averaged network after so many minutes of this process's time, and the iterations that they gave."""
    images, labels = dataset.tensors(dataset.indices("train"))
    random = generator(config.seed)
    # The pictures' transform, the noise levels and the random conditions are those of our own objective.
    ours = Denoising(Setup(config, net, bundle.gaussian, labels, random, random, flips=bundle.data.flips))
    optimizer = torch.optim.Adam(net.parameters(), config.learning_rate, (config.adam_beta1, config.adam_beta2))
    average = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(config.ema))
    end, iterations = time.process_time() + 60 * minutes, 0
    with tqdm(total=minutes, unit="min", bar_format="{desc}: {n:.1f} of {total:.0f} minutes") as bar:
        while iterations == 0 or time.process_time() < end:
            rows = torch.randint(len(images), (config.batch_size,), generator=random)
            x, truth = ours.transform(images[rows]), labels[rows]
            sigma = ours.draw_levels(len(x), x.device)
            noisy = x + sigma.view(-1, 1, 1, 1) * torch.randn(x.shape, generator=random)
            with compute_in(config.precision, x.device):
                denoised = net(noisy, sigma, ours.conditions(truth))
            loss = (weigh(sigma).view(-1, 1, 1, 1) * (denoised - x) ** 2).mean()
            left = max(0.0, end - time.process_time()) / 60 / minutes
            for group in optimizer.param_groups:  # held, then brought down, as ours is
                falling = max(config.final_rate, min(1.0, left / config.final_phase))
                group["lr"] = config.learning_rate * falling * min(1.0, (1 + iterations) / config.warmup_iterations)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), config.grad_norm_clip)
            optimizer.step()
            average.update_parameters(net)
            iterations += 1
            bar.set_description(f"{iterations} iterations, loss {loss.item():.3f}", refresh=False)
            bar.update(minutes * (1 - left) - bar.n)
    return average.module, iterations


@torch.no_grad()
def sample(net: UNet, condition: Tensor, size: int, steps: int, guidance: float, seed: int) -> Tensor:
    """From pure noise down the same levels as our chains; D_free + guidance (D_c - D_free). Images in [0, 1]."""
    random, free = generator(seed), torch.full_like(condition, FREE)
    x = HIGHEST * torch.randn((len(condition), 3, size, size), generator=random)
    for step in descend(karras_levels(HIGHEST, LOWEST, steps)):
        sigma = torch.full((len(x),), step.sigma)
        plain, asked = net(x, sigma, free), net(x, sigma, condition)
        gradient = (plain + guidance * (asked - plain) - x) / step.sigma**2
        x = x + step.grad_coef * gradient + step.noise_std * torch.randn(x.shape, generator=random)
    return ((x + 1) / 2).clamp(0, 1)


def judged(net: UNet, judge: Judge, asked: Sequence[Condition], chains: int, **how: float) -> float:
    """The share of samples in which the judge sees all that was asked."""
    found = []
    for i, condition in enumerate(asked):
        rows = condition.tensor(chains)
        images = sample(net, rows, judge.image_size, seed=i, **how)
        found.append(right(judge.probabilities(images), rows))
    return torch.cat(found).float().mean().item()


def report(net: UNet, bundle: Bundle, dataset: Dataset, judge: Judge, chains: int) -> dict:
    """Judged right by measure, at the guidance that serves seen pairs best, and fidelity without a condition."""
    plan, steps = conditions(bundle, judge), int(bundle.sampling["steps"])
    few = max(2, chains // 5)
    tried = {g: judged(net, judge, plan.seen_pairs, few, steps=steps, guidance=g) for g in GUIDANCES}
    guidance = max(tried, key=lambda g: tried[g])
    found: dict = {"guidance": guidance, "tried": {f"{g:g}": round(value, 4) for g, value in tried.items()}}
    for name in ("singles", "seen_pairs", "held_out_pairs"):
        found[name] = round(judged(net, judge, getattr(plan, name), chains, steps=steps, guidance=guidance), 4)
    free = torch.full((5 * chains, len(bundle.names)), FREE)  # as many as `evaluate` takes
    images = torch.cat([sample(net, part, judge.image_size, steps, 1.0, i) for i, part in enumerate(free.split(50))])
    real = dataset.tensors(dataset.indices("test"))[0][:1500]
    found["fidelity"] = compare_features(judge.embed(images), judge.embed(real))
    return found | {"parameters": sum(weight.numel() for weight in net.parameters()), "steps": steps, "chains": chains}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="avatars", help="ours: its conditions and its number of steps (avatars)")
    parser.add_argument("--data", type=Path, required=True, help="the data set that it was trained on, with its judge")
    parser.add_argument("--config", default="avatars", help="batch size, rate, noise levels and conditions (avatars)")
    parser.add_argument("--minutes", type=float, default=60.0, help="of one core (60)")
    parser.add_argument("--samples", type=int, default=100, help="chains per condition (100)")
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    args = parser.parse_args()
    torch.set_num_threads(1)
    bundle, dataset, judge = load(args.model), Dataset.open(args.data), Judge.load(args.data / "judge")
    torch.manual_seed(0)
    net = UNet(len(bundle.names))
    net, iterations = fit(net, bundle, dataset, read_config(find_config(args.config)), args.minutes)
    figures = {"minutes": args.minutes, "iterations": iterations} | report(net, bundle, dataset, judge, args.samples)
    if args.out:
        write_json(args.out, figures)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
