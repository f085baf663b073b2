"""The joint buffer of persistent chains: images, labels and conditions in parallel (the paper, section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from jem_core.condition import FREE
from jem_core.data.transforms import dequantize
from jem_core.random import Randomness

POLICIES = ("ring", "reservoir", "in-place")


def encode(x: Tensor) -> Tensor:
    """Images in [0, 1] as uint8: a quarter of the memory."""
    return (x.detach() * 256).clamp_(0, 255).to(torch.uint8)


def decode(images: Tensor, randomness: Randomness) -> Tensor:
    """uint8 back to [0, 1) by dequantization, so that nothing is lost on average."""
    return dequantize(images, randomness)


@dataclass
class JointBuffer:
    """Samples of the joint: `ring` keeps the newest, `reservoir` a uniform sample of all that came, `in-place`
    writes a chain back to the slot that it was drawn from."""

    images: Tensor  # (B, 3, S, S) uint8
    labels: Tensor  # (B, K) int8
    conditions: Tensor  # (B, K) int8, -1 free: what a semi-conditional chain was asked for
    policy: str = "ring"
    seen: int = 0  # how many samples were offered so far

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ValueError(f"There is no buffer policy {self.policy!r}; choose one of {', '.join(POLICIES)}.")
        if not len(self.images) == len(self.labels) == len(self.conditions):
            sizes = [len(self.images), len(self.labels), len(self.conditions)]
            raise ValueError(f"The buffer's images, labels and conditions have lengths {sizes}; expected equal ones.")

    @classmethod
    def empty(cls, capacity: int, image_size: int, num_attributes: int, policy: str = "ring") -> JointBuffer:
        if capacity < 1:
            raise ValueError(f"The buffer's capacity is {capacity}; expected at least 1.")
        images = torch.zeros(capacity, 3, image_size, image_size, dtype=torch.uint8)
        labels = torch.zeros(capacity, num_attributes, dtype=torch.int8)
        return cls(images, labels, torch.full_like(labels, FREE), policy)

    def __len__(self) -> int:
        """How many slots are filled."""
        return min(self.seen, len(self.images))

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """`n` filled slots at random; different ones while there are enough."""
        if not len(self):
            raise ValueError("The buffer is empty; push samples before drawing.")
        device = generator.device  # the buffer itself stays in main memory
        if n <= len(self):
            return torch.randperm(len(self), generator=generator, device=device)[:n].cpu()
        return torch.randint(len(self), (n,), generator=generator, device=device).cpu()

    def push(
        self,
        x: Tensor,
        y: Tensor,
        condition: Tensor,
        generator: torch.Generator,
        slots: Tensor | None = None,
    ) -> None:
        """Offer a batch; `slots` says where its chains were drawn from (used by `in-place` alone)."""
        free = len(self.images) - len(self)
        if self.policy == "in-place" and slots is not None and not free:
            self._write(slots, torch.arange(len(x)), x, y, condition)
        elif self.policy == "reservoir":
            self._push_reservoir(x, y, condition, generator)
        else:
            target = (self.seen + torch.arange(len(x))) % len(self.images)
            last = max(0, len(x) - len(self.images))  # a batch longer than the buffer leaves its newest
            self._write(target[last:], torch.arange(last, len(x)), x, y, condition)
        self.seen += len(x)

    def _push_reservoir(self, x: Tensor, y: Tensor, condition: Tensor, generator: torch.Generator) -> None:
        """Algorithm R: the t-th sample takes a slot with probability capacity / t."""
        capacity = len(self.images)
        order = torch.arange(self.seen, self.seen + len(x))
        coins = torch.rand(len(x), generator=generator, device=generator.device).cpu().double()
        slot = (coins * (order + 1)).long()
        slot = torch.where(order < capacity, order, slot)
        last = {int(s): i for i, s in enumerate(slot) if s < capacity}  # of two for one slot the later stays
        if last:
            self._write(torch.tensor(list(last)), torch.tensor(list(last.values())), x, y, condition)

    def _write(self, slots: Tensor, rows: Tensor, x: Tensor, y: Tensor, condition: Tensor) -> None:
        rows = rows.to(x.device)
        self.images[slots] = encode(x[rows]).to(self.images.device)
        self.labels[slots] = y[rows].to(self.labels)
        self.conditions[slots] = condition[rows].to(self.conditions)

    def matching(self, condition: Tensor) -> Tensor:
        """The filled slots whose labels carry the condition, (K,) of 1, 0 and -1."""
        if condition.shape != self.labels.shape[1:]:
            raise ValueError(f"The condition has {len(condition)} attributes, the buffer {self.labels.shape[1]}.")
        labels = self.labels[: len(self)]
        return ((labels == condition) | (condition == FREE)).all(dim=1).nonzero()[:, 0]

    def state(self) -> dict[str, Tensor]:
        """The filled part as tensors, for a checkpoint or a model directory."""
        filled = {name: getattr(self, name)[: len(self)].contiguous() for name in ("images", "labels", "conditions")}
        return filled | {
            "capacity": torch.tensor(len(self.images)),
            "seen": torch.tensor(self.seen),
            "policy": torch.tensor(POLICIES.index(self.policy)),
        }

    @classmethod
    def from_state(cls, state: dict[str, Tensor]) -> JointBuffer:
        images, labels = state["images"], state["labels"]
        policy = POLICIES[int(state["policy"])]
        buffer = cls.empty(int(state["capacity"]), images.shape[-1], labels.shape[1], policy)
        for name in ("images", "labels", "conditions"):
            getattr(buffer, name)[: len(images)] = state[name]
        buffer.seen = int(state["seen"])
        return buffer

    def save(self, path: Path) -> None:
        save_file(self.state(), path)

    @classmethod
    def load(cls, path: Path) -> JointBuffer:
        return cls.from_state(load_file(path))
