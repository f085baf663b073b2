"""What the model says of one picture, and how far that can be trusted: predict(bundle, image).

Every attribute gets its probability, the mean over eight fixed dequantization draws, half of them mirrored where the
data allow it, and beside it what test images with such a prediction turned out to be. The gate says whether the picture
is like those images at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from jem_core.bundle import Bundle
from jem_core.calibration import Row
from jem_core.condition import Condition
from jem_core.draws import mean_prediction
from jem_core.images import to_tensor
from jem_core.typicality import KIND, Gate, Reading, figures

GATE_AUROC = 0.8  # a gate that tells one kind of stranger from ordinary images less well than this is not used


@dataclass(frozen=True)
class Prediction:
    """All that is known of one picture. `rows` come in order of surprise."""

    names: tuple[str, ...]
    probabilities: tuple[float, ...]
    rows: tuple[Row, ...]
    reading: Reading | None  # None: this model has no gate, or one that tells too little
    gate_auroc: dict[str, float]

    def condition(self) -> Condition:
        """What the model sees, as a condition."""
        return Condition(self.names, tuple(int(p > 0.5) for p in self.probabilities))


def predict(bundle: Bundle, image: Image.Image | Tensor | np.ndarray, reading: Reading | None = None) -> Prediction:
    """The attributes of one picture: a PIL picture (its middle square is taken) or uint8 (3, S, S) of the model's size.

    For photographs and a model of CelebA, find and align the face first: jem_core.faces. `reading` is what `typicality`
    said of this picture, where somebody has asked already.
    """
    stored = as_stored(image, bundle.model.image_size)[None]
    probabilities = tuple(mean_prediction(bundle.model, stored, mirror=bundle.data.flips)[0].tolist())
    said = list(zip(bundle.names, probabilities, strict=True))
    calibration = bundle.calibration
    rows = [calibration.row(name, p) if calibration else Row(name, p) for name, p in said]
    gate = calibration.gate if calibration else None
    return Prediction(
        names=bundle.names,
        probabilities=probabilities,
        rows=tuple(sorted(rows, key=lambda row: -row.surprise)),
        reading=reading or typicality(bundle, stored),
        gate_auroc={kind: entry["value"] for kind, entry in gate["auroc"].items()} if gate else {},
    )


def typicality(bundle: Bundle, stored: Tensor) -> Reading | None:
    """Where a picture, uint8 (1, 3, S, S), stands among ordinary images; None without a gate that can tell."""
    gate = bundle.calibration.gate if bundle.calibration else None
    if not gate or not gate_is_used(gate):
        return None
    known = Gate.from_json(gate)
    return known.read(known.distance(figures(bundle.model, stored))[0])


def gate_is_used(gate: Mapping) -> bool:
    """Whether the gate tells every kind of stranger that it was tried on from ordinary images well enough."""
    values = [entry["value"] for entry in gate["auroc"].values()]
    return gate.get("kind") == KIND and min(values, default=0.0) >= GATE_AUROC


def as_stored(image: Image.Image | Tensor | np.ndarray, size: int) -> Tensor:
    """The bytes that the model sees, uint8 (3, size, size)."""
    if isinstance(image, Image.Image):
        return to_tensor(image, size)
    stored = torch.as_tensor(image)
    if stored.dtype != torch.uint8 or stored.shape != (3, size, size):
        raise ValueError(
            f"The picture is {stored.dtype} {tuple(stored.shape)}; expected a PIL picture or uint8 (3, {size}, {size})."
        )
    return stored
