"""What the model says of one picture, and how far that can be trusted: predict(bundle, image).

Every attribute gets its probability, the mean over eight fixed dequantization draws, and beside it what held-out images
with such a prediction turned out to be. The gate says whether the picture is like those images at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log2

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from jem_core.bundle import Bundle
from jem_core.calibration import Reading, find_bin, read_gate
from jem_core.condition import Condition, plain
from jem_core.draws import DRAWS, density_figures, fixed_draws, mean_prediction
from jem_core.images import to_tensor

__all__ = ["DRAWS", "Prediction", "Row", "density_figures", "fixed_draws", "mean_prediction", "predict"]

FEWEST = 30  # held-out images below which a rate says nothing
GATE_AUROC = 0.8  # a gate that tells strangers from faces less well than this is not shown
_FLOOR = 1e-4  # probabilities nearer to 0 or 1 than this are all equally sure


@dataclass(frozen=True)
class Row:
    """One attribute: what is said of it, and how often that was so among held-out images."""

    name: str
    probability: float
    base_rate: float | None = None  # of the attribute among held-out images
    span: tuple[float, float] | None = None  # the bin of predictions that this one falls into
    count: int = 0  # held-out images in it
    rate: float | None = None  # the share of them that has the attribute
    interval: tuple[float, float] | None = None  # Wilson, 95 %
    surprise: float = 0.0  # bits

    @property
    def enough(self) -> bool:
        return self.count >= FEWEST

    def sentence(self) -> str:
        said = f"The model says {plain(self.name)} {percent(self.probability)} %."
        if self.span is None:
            return f"{said} This model has no calibration file to hold that against."
        low, high = self.span
        digits = 0 if high - low >= 0.03 else 1 if high - low >= 0.003 else 2
        span = f"{percent(low, digits)} to {percent(high, digits)} %"
        if not self.enough:
            return f"{said} Only {self.count} held-out images were scored {span}: too few to say."
        least, most = (percent(value) for value in self.interval)
        was = f"{percent(self.rate)} % had it (95 % interval {least} to {most} %)"
        return f"{said} Of {self.count:,} held-out images scored {span}, {was}."


@dataclass(frozen=True)
class Prediction:
    """All that is known of one picture. `rows` come in order of surprise."""

    names: tuple[str, ...]
    probabilities: tuple[float, ...]
    rows: tuple[Row, ...]
    score: float  # log p~(x)
    gradient_norm: float
    reading: Reading | None  # None: this model has no gate, or one that tells too little
    gate_auroc: dict[str, float]

    def condition(self) -> Condition:
        """What the model sees, as a wish: chains that start from the picture stay what it is until one is toggled."""
        return Condition(self.names, tuple(int(p > 0.5) for p in self.probabilities))


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f}"


def predict(bundle: Bundle, image: Image.Image | Tensor | np.ndarray) -> Prediction:
    """The attributes of one picture: a PIL picture (its middle square is taken) or uint8 (3, S, S) of the model's size.

    For photographs and a model of CelebA, find and align the face first: jem_core.faces.
    """
    stored = as_stored(image, bundle.model.image_size)[None]
    probabilities = tuple(mean_prediction(bundle.model, stored)[0].tolist())
    score, norm = (figures.item() for figures in density_figures(bundle.model, stored))
    calibration = bundle.calibration or {}
    rows = [look_up(calibration, name, p) for name, p in zip(bundle.names, probabilities, strict=True)]
    gate = calibration.get("gate")
    return Prediction(
        names=bundle.names,
        probabilities=probabilities,
        rows=tuple(sorted(rows, key=lambda row: -row.surprise)),
        score=score,
        gradient_norm=norm,
        reading=read_gate(gate, score, norm) if gate and gate_is_shown(gate) else None,
        gate_auroc={kind: entry["value"] for kind, entry in gate["auroc"].items()} if gate else {},
    )


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


def look_up(calibration: Mapping, name: str, probability: float) -> Row:
    """The row of the calibration file that speaks for this prediction."""
    entry = calibration.get("attributes", {}).get(name)
    if entry is None:
        return Row(name, probability)
    bins = entry["bins"]
    i = find_bin(bins["edges"], probability)
    positives = sum(rate * n for rate, n in zip(bins["positive_rate"], bins["count"], strict=True))
    base = positives / sum(bins["count"])
    return Row(
        name=name,
        probability=probability,
        base_rate=base,
        span=(bins["edges"][i], bins["edges"][i + 1]),
        count=bins["count"][i],
        rate=bins["positive_rate"][i],
        interval=(bins["low"][i], bins["high"][i]),
        surprise=surprise(probability, base),
    )


def surprise(probability: float, base_rate: float) -> float:
    """How far the answer is from what is usual: the divergence of the two coins, in bits."""
    p, q = (min(max(value, _FLOOR), 1 - _FLOOR) for value in (probability, base_rate))
    return p * log2(p / q) + (1 - p) * log2((1 - p) / (1 - q))


def gate_is_shown(gate: Mapping) -> bool:
    """Whether the gate tells strangers from held-out images well enough, on average over the kinds it was tried on."""
    return float(np.mean([entry["value"] for entry in gate["auroc"].values()])) >= GATE_AUROC
