"""An independent judge of synthesized images: another network than the model's, trained supervised on all the data.

It shares nothing with the model or its sampler: residual blocks with batch norm and global pooling, cross-entropy only,
and it sees the held-out combinations, so that it can tell whether a sample of one is right.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from jem_core.bundle import write_json
from jem_core.condition import FREE, Condition
from jem_core.data.dataset import SPLITS, Dataset
from jem_core.data.transforms import dequantize, gaussian_blur
from jem_core.random import generator

FORMAT = 1
WEIGHTS, FACTS = "judge.safetensors", "judge.json"
LARGEST_NOISE = 0.08  # samples keep some grain; the judge must look through it
LARGEST_BLUR = 1.0
CHUNK = 256


class _Block(nn.Module):
    """Two convolutions around a shortcut; halves the image."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
            nn.BatchNorm2d(after),
        )
        self.shortcut = nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(before, after, 1, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.path(x) + self.shortcut(x))


class Judge(nn.Module):
    """A small residual network with batch norm and global pooling: one logit an attribute."""

    def __init__(self, names: Sequence[str], image_size: int, width: int = 16) -> None:
        super().__init__()
        self.names, self.image_size, self.width = tuple(names), image_size, width
        stride = max(1, image_size // 32)  # the blocks begin at 32 px, whatever the image
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 2 * stride + 1, stride=stride, padding=stride, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        )
        channels = [width, 2 * width, 4 * width, 6 * width]
        self.blocks = nn.Sequential(*(_Block(a, b) for a, b in pairwise(channels)))
        self.head = nn.Linear(2 * channels[-1], len(self.names))
        self.facts: dict = {}
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def config(self) -> dict:
        return {"names": list(self.names), "image_size": self.image_size, "width": self.width}

    def features(self, x: Tensor) -> Tensor:
        """Globally pooled features, mean and maximum: the space of Frechet distance and precision. (N, F)."""
        size = self.image_size
        if x.shape[1:] != (3, size, size):
            raise ValueError(f"The images have shape {tuple(x.shape)}; the judge expects (N, 3, {size}, {size}).")
        hidden = self.blocks(self.stem((x.contiguous(memory_format=torch.channels_last) - 0.5) * 4))
        return torch.cat([hidden.mean(dim=(2, 3)), hidden.amax(dim=(2, 3))], dim=1)

    def forward(self, x: Tensor) -> Tensor:
        """One logit an attribute, (N, K)."""
        return self.head(self.features(x))

    @torch.inference_mode()
    def probabilities(self, images: Tensor) -> Tensor:
        """P(y_k = 1) of images, float in [0, 1] or uint8, in chunks that fit the cache. (N, K)."""
        return torch.cat([self(_as_float(chunk)).sigmoid() for chunk in images.split(CHUNK)])

    @torch.inference_mode()
    def embed(self, images: Tensor) -> Tensor:
        """`features` of images, float in [0, 1] or uint8, in chunks. (N, F)."""
        return torch.cat([self.features(_as_float(chunk)) for chunk in images.split(CHUNK)])

    def save(self, directory: Path | str) -> None:
        """Two files: weights as safetensors, and what the judge is and how well it sees as JSON."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        save_file({name: value.contiguous() for name, value in self.state_dict().items()}, directory / WEIGHTS)
        write_json(directory / FACTS, {"format": FORMAT, "judge": self.config()} | self.facts)

    @classmethod
    def load(cls, directory: Path | str) -> Judge:
        directory = Path(directory)
        try:
            facts = json.loads((directory / FACTS).read_text())
        except FileNotFoundError:
            raise ValueError(f"{directory} holds no judge; train one with `python -m train judge`.") from None
        if facts.get("format") != FORMAT:
            raise ValueError(f"{directory / FACTS} is not of format {FORMAT}; train the judge again.")
        judge = cls(**facts["judge"])
        judge.load_state_dict(load_file(directory / WEIGHTS), strict=True)
        judge.facts = {key: value for key, value in facts.items() if key not in ("format", "judge")}
        return judge.eval().requires_grad_(False)


def _as_float(images: Tensor) -> Tensor:
    return images if images.is_floating_point() else (images.float() + 0.5) / 256


def judged_right(judge: Judge, images: Tensor, condition: Condition | Tensor) -> Tensor:
    """Which images have every asked attribute right in the judge's eyes, at threshold one half. (N,) bool."""
    asked = condition.tensor(len(images)) if isinstance(condition, Condition) else condition
    return right(judge.probabilities(images), asked)


def right(probabilities: Tensor, asked: Tensor) -> Tensor:
    """Which rows of P(y = 1) agree with everything asked (N, K; -1 free). (N,) bool."""
    return ((asked == FREE) | ((probabilities > 0.5).long() == asked)).all(dim=-1)


def train_judge(
    dataset: Dataset,
    epochs: int = 6,
    width: int = 16,
    seed: int = 0,
    rate: float = 4e-3,
    batch_size: int = 64,
    progress: Callable[[int, int, float], None] | None = None,
) -> Judge:
    """Plain supervised training on all training rows, held-out combinations among them.

    `progress(step, steps, loss)` is called after every step. The judge's facts hold its accuracy on real images.
    """
    began = time.perf_counter()
    with torch.random.fork_rng(devices=[]):  # layers draw their first weights from the global generator
        torch.manual_seed(seed)
        judge = Judge(dataset.names, dataset.image_size, width)
    rows = np.flatnonzero(dataset.split == SPLITS.index("train"))
    images, labels = dataset.tensors(rows)
    rates = _share(labels == 1, labels >= 0)
    randomness = generator(seed)
    optimizer = torch.optim.AdamW(judge.parameters(), lr=rate, weight_decay=1e-3)
    batches = max(1, len(rows) // batch_size)
    steps = epochs * batches
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=rate, total_steps=steps + 1, pct_start=0.2)
    judge.train()
    for step in range(steps):
        if step % batches == 0:
            order = torch.randperm(len(rows), generator=randomness)
        pick = order[step % batches * batch_size :][:batch_size]
        loss = _cross_entropy(judge(_augment(images[pick], randomness)), labels[pick], rates)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if progress:
            progress(step + 1, steps, loss.item())
    judge.eval().requires_grad_(False)
    judge.facts = _facts(judge, dataset, seed) | {
        "trained_on": {"source": dataset.info.get("source"), "rows": len(rows), "epochs": epochs, "seed": seed},
        "seconds": round(time.perf_counter() - began, 1),
    }
    return judge


def _cross_entropy(logits: Tensor, labels: Tensor, rates: Tensor) -> Tensor:
    """Averaged over the labels that are known, with and without weighing equally for each attribute.

    A sample is judged because it was asked for: the attribute's rate among the data is no evidence. Trained on the bare
    rates, a judge denies the rare ones when in doubt, and real images of rare pairs would fail it three times in four.
    """
    weights = torch.where(labels == 1, 0.5 / rates.clamp(0.05, 0.95), 0.5 / (1 - rates).clamp(0.05, 0.95))
    weights = torch.where(labels >= 0, weights, torch.zeros_like(weights))
    losses = F.binary_cross_entropy_with_logits(logits, labels.clamp(min=0).float(), reduction="none")
    return (losses * weights).sum() / weights.sum().clamp(min=1e-6)


def _augment(images: Tensor, randomness: torch.Generator) -> Tensor:
    """Shift by up to a sixteenth, blur every third image, add grain: what samples have and drawings have not."""
    x = dequantize(images, randomness)
    n, _, size, _ = x.shape
    reach = max(1, size // 16)
    shifts = torch.randint(-reach, reach + 1, (2, n, 1), generator=randomness)
    rows, columns = ((torch.arange(size) + shift).clamp(0, size - 1) for shift in shifts)
    x = x[torch.arange(n)[:, None, None], :, rows[:, :, None], columns[:, None, :]].movedim(-1, 1)
    coins = torch.rand((3, n), generator=randomness)
    blurred = (coins[0] < 1 / 3).nonzero()[:, 0]
    if len(blurred):
        x[blurred] = gaussian_blur(x[blurred], 0.1 + (LARGEST_BLUR - 0.1) * coins[1, blurred])
    noise = torch.randn(x.shape, generator=randomness) * (LARGEST_NOISE * coins[2]).view(-1, 1, 1, 1)
    return (x + noise).clamp_(0, 1)


def _facts(judge: Judge, dataset: Dataset, seed: int) -> dict:
    """Accuracy on real images that it never saw, for each attribute; and against shuffled labels, which must fail."""
    rows = np.flatnonzero(dataset.split == SPLITS.index("test"))
    images, labels = dataset.tensors(rows)
    said = (judge.probabilities(images) > 0.5).long()
    shuffled = labels[torch.randperm(len(labels), generator=generator(seed))]
    facts: dict = {"tested_on": {"split": "test", "images": len(rows)}}
    for key, truth in (("accuracy", labels), ("accuracy_shuffled_labels", shuffled)):
        facts[key] = _named(judge.names, _share(said == truth, truth >= 0))
        facts[f"mean_{key}"] = round(float(np.mean(list(facts[key].values()))), 5)
    # A rare attribute that is always denied scores high; the mean over present and absent shows what is seen.
    present, absent = _share(said == 1, labels == 1), _share(said == 0, labels == 0)
    facts["balanced_accuracy"] = _named(judge.names, (present + absent) / 2)
    facts["positive_rate"] = _named(judge.names, _share(labels == 1, labels >= 0))
    return facts


def _share(hits: Tensor, among: Tensor) -> Tensor:
    """For each attribute the share of hits among some of the images."""
    return (hits & among).sum(dim=0) / among.sum(dim=0).clamp(min=1)


def _named(names: Sequence[str], values: Tensor) -> dict[str, float]:
    return dict(zip(names, (round(value, 5) for value in values.tolist()), strict=True))
