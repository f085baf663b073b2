"""The calibration file: how often test images had an attribute when the model said so, and the gate of `typicality`.

Bins are of equal mass on P(y = 1), so that every bin speaks for about as many images, and none spans half of the range:
what holds for 20 % says nothing about 80 %. The interval of a bin's positive rate is Wilson's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2, sqrt

import numpy as np

from jem_core.metrics import BINS, check_predictions, ece, ece_adaptive, ece_paper, rounded

FORMAT = 2
ALL = "all"  # the entry of all attributes together
BINS_ATTRIBUTE, BINS_ALL = 12, 20
WIDEST = 0.5  # of a bin: from here on it is split at its middle
WIDE = 0.2  # from here on it is split where both halves have enough images
FEWEST = 30  # images below which a rate says nothing
_Z = 1.959964  # 97.5 % of a standard normal
_FLOOR = 1e-4  # probabilities nearer to 0 or 1 than this are all equally sure


def wilson(count: int, n: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a share; (0, 1) when nothing was counted."""
    if n <= 0:
        return 0.0, 1.0
    p, z2 = count / n, _Z**2
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return rounded(max(0.0, centre - half)), rounded(min(1.0, centre + half))


def equal_mass_bins(p: np.ndarray, y: np.ndarray, bins: int) -> dict[str, list]:
    """Bins of about equal count over P(y = 1): bin i holds edges[i] <= p < edges[i + 1], the last one p = 1 too.

    Equal predictions stay together, so there may be fewer bins than asked for; a wide bin is split, so there may be
    more. One that spans half of the range is split in any case; an empty half has None as its mean and rate.
    """
    check_predictions(p, y)
    inner = np.quantile(p, np.linspace(0, 1, bins + 1)[1:-1])
    edges = np.unique(np.concatenate([[0.0], inner[(inner > 0) & (inner < 1)], [1.0]]).round(6))
    count = np.bincount(_bin_of(edges, p), minlength=len(edges) - 1)
    if (count == 0).any():  # rounding or ties emptied a bin: give its span to the one below
        edges = np.concatenate([[0.0], edges[1:-1][count[1:] > 0], [1.0]])
    edges = _split(edges, p)
    bin_of = _bin_of(edges, p)
    count = np.bincount(bin_of, minlength=len(edges) - 1)
    positive = np.bincount(bin_of, weights=y, minlength=len(count)).astype(int)
    total = np.bincount(bin_of, weights=p, minlength=len(count))
    intervals = [wilson(hits, n) for hits, n in zip(positive.tolist(), count.tolist(), strict=True)]
    return {
        "edges": [rounded(edge) for edge in edges],
        "count": count.tolist(),
        "mean_prediction": [rounded(value / n) if n else None for value, n in zip(total, count, strict=True)],
        "positive_rate": [rounded(value / n) if n else None for value, n in zip(positive, count, strict=True)],
        "low": [low for low, _ in intervals],
        "high": [high for _, high in intervals],
    }


def _bin_of(edges: np.ndarray, p: np.ndarray) -> np.ndarray:
    return np.searchsorted(edges, p, side="right").clip(1, len(edges) - 1) - 1


def _split(edges: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The edges with one more in the middle of every span that is too wide, until none is."""
    found, waiting = [0.0], [tuple(pair) for pair in zip(edges[-2::-1].tolist(), edges[:0:-1].tolist(), strict=True)]
    while waiting:
        low, high = waiting.pop()
        middle = (low + high) / 2
        fewest = min(((low <= p) & (p < middle)).sum(), ((middle <= p) & (p <= high)).sum())
        if high - low >= WIDEST or (high - low >= WIDE and fewest >= FEWEST):
            waiting += [(middle, high), (low, middle)]
        else:
            found.append(high)
    return np.asarray(found)


def find_bin(edges: Sequence[float], probability: float) -> int:
    """Which bin a prediction belongs to, by the rule of `equal_mass_bins`."""
    if not 0 <= probability <= 1:
        raise ValueError(f"The prediction is {probability!r}; expected a probability in [0, 1].")
    return int(np.clip(np.searchsorted(edges, probability, side="right"), 1, len(edges) - 1)) - 1


def reliability(p: np.ndarray, y: np.ndarray, bins: int) -> dict:
    """Everything that a reliability plot shows of these predictions."""
    counts, edges = np.histogram(p, bins=BINS, range=(0, 1))
    return {
        "bins": equal_mass_bins(p, y, bins),
        "ece": rounded(ece(p, y)),
        "ece_paper": rounded(ece_paper(p, y)),
        "ece_adaptive": rounded(ece_adaptive(p, y)),
        "histogram": {"edges": [rounded(edge) for edge in edges], "count": counts.tolist()},
    }


def calibration_report(p: np.ndarray, labels: np.ndarray, names: Sequence[str]) -> dict:
    """Reliability for each attribute and all together, of P (N, K) against labels (N, K; -1 unknown)."""
    known = labels >= 0
    attributes = {
        name: reliability(p[known[:, k], k], labels[known[:, k], k], BINS_ATTRIBUTE)
        for k, name in enumerate(names)
        if known[:, k].any()
    }
    return {
        "format": FORMAT,
        "images": len(p),
        "note": "Together the labels of one image count separately, so those intervals are narrower than images allow.",
        ALL: reliability(p[known], labels[known], BINS_ALL),
        "attributes": attributes,
    }


@dataclass(frozen=True)
class Row:
    """One attribute: what is said of it, and how often that was so among test images."""

    name: str
    probability: float
    base_rate: float | None = None  # of the attribute among test images
    span: tuple[float, float] | None = None  # the bin of predictions that this one falls into
    count: int = 0  # test images in it
    rate: float | None = None  # the share of them that has the attribute
    interval: tuple[float, float] | None = None  # Wilson, 95 %
    surprise: float = 0.0  # bits

    @property
    def enough(self) -> bool:
        return self.count >= FEWEST


class Calibration:
    """The one reader of a calibration file."""

    def __init__(self, report: Mapping) -> None:
        self.report = report

    @property
    def images(self) -> int:
        return self.report["images"]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.report["attributes"])

    @property
    def gate(self) -> Mapping | None:
        return self.report.get("gate")

    def part(self, attribute: str = ALL) -> Mapping:
        """Bins, errors and histogram of one attribute, or of all together."""
        if attribute == ALL:
            return self.report[ALL]
        if attribute not in self.names:
            raise ValueError(
                f"There is no calibration for {attribute!r}; choose one of {', '.join([ALL, *self.names])}."
            )
        return self.report["attributes"][attribute]

    def row(self, name: str, probability: float) -> Row:
        """What the file says of this prediction."""
        if name not in self.names:
            return Row(name, probability)
        bins = self.part(name)["bins"]
        i = find_bin(bins["edges"], probability)
        pairs = zip(bins["positive_rate"], bins["count"], strict=True)
        base = sum(rate * n for rate, n in pairs if n) / sum(bins["count"])
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
