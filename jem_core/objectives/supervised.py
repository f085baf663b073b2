"""Cross-entropy alone: the classifier that the paper's tables begin with."""

from __future__ import annotations

from torch import Tensor

from jem_core.objectives.base import Loss, Objective, accuracy, cross_entropy


class Supervised(Objective):
    name = "supervised"
    generates = False

    def loss(self, x: Tensor, labels: Tensor, iteration: int) -> Loss:
        logits = self.model.logits(x)
        value = cross_entropy(logits, labels)
        return Loss(value, {"cross_entropy": value.item(), "accuracy": accuracy(logits, labels).item()})
