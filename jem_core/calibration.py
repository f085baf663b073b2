"""The calibration file: what held-out images answered when the model said so, and how unusual an image is.

Bins are of equal mass on P(y = 1), so that every bin speaks for about as many images; the interval of a bin's positive
rate is Wilson's. The gate keeps quantiles of log p~(x) and of its gradient norm among held-out images: an image far out
in either tail is unlike anything that the percentages were measured on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from jem_core.draws import DRAWS, density_figures
from jem_core.metrics import BINS, check_predictions, ece, ece_adaptive, ece_paper, rounded
from jem_core.model import JointEnergyModel
from jem_core.random import generator

FORMAT = 1
BINS_ATTRIBUTE, BINS_ALL = 12, 20
PERCENTS = np.linspace(0, 100, 201)
UNUSUAL, UNLIKE = 0.05, 0.01  # two-sided tail shares: below the first "unusual", below the second "unlike"
VERDICTS = ("inside", "unusual", "unlike")
SIDES = ("score", "gradient_norm")
_Z = 1.959964  # 97.5 % of a standard normal


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

    Equal predictions stay together, so there may be fewer bins than asked for.
    """
    check_predictions(p, y)
    inner = np.quantile(p, np.linspace(0, 1, bins + 1)[1:-1])
    edges = np.unique(np.concatenate([[0.0], inner[(inner > 0) & (inner < 1)], [1.0]]).round(6))
    bin_of = np.searchsorted(edges, p, side="right").clip(1, len(edges) - 1) - 1
    count = np.bincount(bin_of, minlength=len(edges) - 1)
    if (count == 0).any():  # rounding or ties emptied a bin: give its span to the one below
        edges = np.concatenate([[0.0], edges[1:-1][count[1:] > 0], [1.0]])
        bin_of = np.searchsorted(edges, p, side="right").clip(1, len(edges) - 1) - 1
        count = np.bincount(bin_of, minlength=len(edges) - 1)
    positive = np.bincount(bin_of, weights=y, minlength=len(count)).astype(int)
    mean = np.bincount(bin_of, weights=p, minlength=len(count)) / np.maximum(count, 1)
    intervals = [wilson(hits, n) for hits, n in zip(positive.tolist(), count.tolist(), strict=True)]
    return {
        "edges": [rounded(edge) for edge in edges],
        "count": count.tolist(),
        "mean_prediction": [rounded(value) for value in mean],
        "positive_rate": [rounded(value) for value in positive / np.maximum(count, 1)],
        "low": [low for low, _ in intervals],
        "high": [high for _, high in intervals],
    }


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
        "draws": DRAWS,
        "note": "Together the labels of one image count separately, so those intervals are narrower than images allow.",
        "all": reliability(p[known], labels[known], BINS_ALL),
        "attributes": attributes,
    }


class Reading(NamedTuple):
    """Where one image stands among held-out images."""

    score_percentile: float
    gradient_percentile: float
    tail: float  # the smaller two-sided tail share of the two, 0 to 1
    verdict: str  # "inside", "unusual" or "unlike"


def percentile(value: float, quantiles: Sequence[float]) -> float:
    """The percentage of held-out images below a value, from their quantiles at PERCENTS."""
    return float(np.interp(value, quantiles, PERCENTS))


def read_gate(gate: Mapping, score: float, gradient_norm: float) -> Reading:
    """Two-sided: a very likely image (a flat colour, say) is as strange as an unlikely one."""
    ranks = [
        percentile(value, gate[side]["quantiles"]) for side, value in zip(SIDES, (score, gradient_norm), strict=True)
    ]
    tail = float(_tails(gate, np.array([score]), np.array([gradient_norm]))[0])
    verdict = VERDICTS[0] if tail >= UNUSUAL else VERDICTS[1] if tail >= UNLIKE else VERDICTS[2]
    return Reading(ranks[0], ranks[1], tail, verdict)


def _tails(gate: Mapping, scores: np.ndarray, norms: np.ndarray) -> np.ndarray:
    below = [
        np.interp(value, gate[side]["quantiles"], PERCENTS / 100)
        for side, value in zip(SIDES, (scores, norms), strict=True)
    ]
    return np.minimum.reduce([2 * np.minimum(share, 1 - share) for share in below]).clip(0, 1)


def make_gate(scores: np.ndarray, norms: np.ndarray) -> dict:
    """Quantiles of both figures on held-out images."""
    gate: dict = {"percents": PERCENTS.tolist(), "images": len(scores), "unusual": UNUSUAL, "unlike": UNLIKE}
    for side, values in zip(SIDES, (scores, norms), strict=True):
        gate[side] = {"quantiles": [rounded(value) for value in np.quantile(values.astype(np.float64), PERCENTS / 100)]}
    return gate


def strangers(images: Tensor, seed: int = 0) -> dict[str, Tensor]:
    """What a visitor may show instead: noise, a flat colour, the pictures upside down. uint8, as many as images."""
    randomness = generator(seed)
    flat = torch.randint(0, 256, (len(images), 3, 1, 1), generator=randomness).expand_as(images)
    return {
        "noise": torch.randint(0, 256, images.shape, generator=randomness).byte(),
        "flat colour": flat.byte(),
        "upside down": images.flip(-1, -2),
        "turned by a quarter": images.rot90(1, (-2, -1)).contiguous(),
    }


def gate_report(
    model: JointEnergyModel, held_out: Tensor, others_from: Tensor, other: Tensor | None = None, seed: int = 0
) -> dict:
    """The gate from one half of the held-out images, its AUROC with the other half as the ordinary ones.

    AUROC: how often the gate finds a stranger more extreme than an ordinary image.
    """
    gate = make_gate(*(figures.cpu().numpy() for figures in density_figures(model, held_out)))
    ordinary = [figures.cpu().numpy() for figures in density_figures(model, others_from)]
    unknown = strangers(others_from, seed) | ({} if other is None else {"the other data set": other})
    gate["auroc"] = {}
    for name, images in unknown.items():
        figures = [values.cpu().numpy() for values in density_figures(model, images)]
        gate["auroc"][name] = _gate_auroc(gate, ordinary, figures)
    worst = min(entry["value"] for entry in gate["auroc"].values())
    gate["ordinary_images"] = len(others_from)
    gate["ordinary_share"] = {
        verdict: rounded(
            float(np.mean([read_gate(gate, s, g).verdict == verdict for s, g in zip(*ordinary, strict=True)]))
        )
        for verdict in VERDICTS
    }
    gate["worst_auroc"] = rounded(worst)
    return gate


def _gate_auroc(gate: Mapping, ordinary: Sequence[np.ndarray], strange: Sequence[np.ndarray]) -> dict:
    truth = np.concatenate([np.zeros(len(ordinary[0])), np.ones(len(strange[0]))])
    values = np.concatenate([-_tails(gate, *ordinary), -_tails(gate, *strange)])
    caught = float(np.mean(_tails(gate, *strange) < UNLIKE))
    return {"value": rounded(roc_auc_score(truth, values)), "images": len(strange[0]), "found_unlike": rounded(caught)}
