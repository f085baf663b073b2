"""Figures of multi-attribute prediction (the paper's tables 1 and 2), with bootstrap intervals over images.

Point values come from scikit-learn where it has the metric. The bootstrap weights every image by how often a resample
drew it and computes all resamples at once from one sort, so that 200 of them take a second; it agrees with
scikit-learn's `sample_weight` (tested).

Micro: every known label of every image counts as one example. Macro: the mean over attributes.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import overload

import numpy as np
from sklearn import metrics as sk

METRICS = ("accuracy", "f1", "auprc", "auroc", "ece", "ece_paper", "ece_adaptive", "brier")
BINS = 20
RESAMPLES = 200
_AT_ONCE = 2_000_000  # weights held in memory at a time


def confidence(p: np.ndarray) -> np.ndarray:
    """How sure the prediction is of the class it names: between one half and one."""
    return np.maximum(p, 1 - p)


def ece(p: np.ndarray, y: np.ndarray, bins: int = BINS) -> float:
    """Expected calibration error (Guo et al.) over equal-width bins of confidence; the last bin is closed at 1."""
    return _gap(p, y, *_closed(p, bins))


def ece_paper(p: np.ndarray, y: np.ndarray, bins: int = BINS) -> float:
    """The official code's variant: bins lo <= confidence < hi, so that a confidence of exactly 1 falls in none.

    The weights are renormalized over the rest. Kept to compare with the paper's table: for a saturated classifier it
    leaves the sure and mostly right predictions out and can exceed the error rate.
    """
    return _gap(p, y, *_half_open(p, bins))


def ece_adaptive(p: np.ndarray, y: np.ndarray, bins: int = BINS) -> float:
    """Expected calibration error over bins of equal mass."""
    return _gap(p, y, *_equal_mass(p, bins))


def _closed(p: np.ndarray, bins: int) -> tuple[np.ndarray, int]:
    sure = confidence(p).astype(np.float64)
    return np.minimum((sure * bins).astype(np.int64), bins - 1), bins


def _half_open(p: np.ndarray, bins: int) -> tuple[np.ndarray, int]:
    """Bin `bins` collects what falls in none."""
    sure = confidence(p).astype(np.float64)
    return np.where(sure >= 1, bins, (sure * bins).astype(np.int64)), bins


def _equal_mass(p: np.ndarray, bins: int) -> tuple[np.ndarray, int]:
    sure = confidence(p)
    edges = np.quantile(sure, np.linspace(0, 1, bins + 1)[1:-1])
    return np.searchsorted(edges, sure, side="right"), bins


def _gap(p: np.ndarray, y: np.ndarray, bin_of: np.ndarray, bins: int) -> float:
    return float(_gaps(np.ones((1, len(p))), p, y, bin_of, bins)[0])


def _gaps(weights: np.ndarray, p: np.ndarray, y: np.ndarray, bin_of: np.ndarray, bins: int) -> np.ndarray:
    """Sum over bins of |confidence - accuracy|, weighted by mass, for each row of weights."""
    difference = confidence(p) - ((p > 0.5) == (y == 1))
    gaps, mass = np.zeros(len(weights)), np.zeros(len(weights))
    for b in range(bins):
        inside = bin_of == b
        gaps += np.abs(weights[:, inside] @ difference[inside])
        mass += weights[:, inside].sum(axis=1)
    return gaps / np.maximum(mass, 1e-12)


def brier(p: np.ndarray, y: np.ndarray) -> float:
    """Mean squared error of P(y = 1)."""
    return float(np.mean((p - y) ** 2))


def point_metrics(p: np.ndarray, y: np.ndarray) -> dict[str, float | None]:
    """All metrics of P(y = 1) (M,) against labels 0 and 1 (M,). What one class alone leaves undefined is None."""
    check_predictions(p, y)
    p = p.astype(np.float64)
    said = p > 0.5
    both = 0 < y.sum() < len(y)
    return {
        "accuracy": float(sk.accuracy_score(y, said)),
        "f1": float(sk.f1_score(y, said, zero_division=0.0)),
        "auprc": float(sk.average_precision_score(y, p)) if both else None,
        "auroc": float(sk.roc_auc_score(y, p)) if both else None,
        "ece": ece(p, y),
        "ece_paper": ece_paper(p, y),
        "ece_adaptive": ece_adaptive(p, y),
        "brier": brier(p, y),
    }


def check_predictions(p: np.ndarray, y: np.ndarray) -> None:
    """Refuse what is not a probability or not a label."""
    if p.shape != y.shape or not p.size:
        raise ValueError(f"The predictions have shape {p.shape} and the labels {y.shape}; expected equal, not empty.")
    if not (np.isfinite(p).all() and p.min() >= 0 and p.max() <= 1):
        raise ValueError(f"The predictions range from {p.min()} to {p.max()}; expected probabilities in [0, 1].")
    if not np.isin(y, (0, 1)).all():
        raise ValueError(f"The labels hold {sorted(set(np.unique(y).tolist()) - {0, 1})}; expected 0 and 1.")


def weighted_metrics(p: np.ndarray, y: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
    """All metrics for each row of weights (B, M) at once. (B,) each; NaN where a row has one class alone."""
    order = np.argsort(-p, kind="stable")
    p, y, weights = p[order].astype(np.float64), y[order], weights[:, order].astype(np.float64)
    ends = np.flatnonzero(np.diff(p, append=-1.0))  # the last of equal scores: they pass a threshold together
    true = np.cumsum(weights * y, axis=1)[:, ends]
    false = np.cumsum(weights, axis=1)[:, ends] - true
    positives, negatives = true[:, -1], false[:, -1]
    total = positives + negatives
    said = np.searchsorted(-p[ends], -0.5)  # how many distinct scores lie above one half
    hits = true[:, said - 1] if said else np.zeros(len(weights))
    alarms = false[:, said - 1] if said else np.zeros(len(weights))
    steps = np.diff(true, axis=1, prepend=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = np.where(true + false > 0, true / (true + false), 0.0)
        auprc = (steps * precision).sum(axis=1) / positives
        area = (np.diff(false, axis=1, prepend=0.0) * (true - steps / 2)).sum(axis=1)
        auroc = area / (positives * negatives)
        one_class = (positives <= 0) | (negatives <= 0)
        auprc, auroc = (np.where(one_class, np.nan, values) for values in (auprc, auroc))
        f1 = np.where(hits + alarms + positives > 0, 2 * hits / (hits + alarms + positives), 0.0)
    return {
        "accuracy": (hits + negatives - alarms) / total,
        "f1": f1,
        "auprc": auprc,
        "auroc": auroc,
        "ece": _gaps(weights, p, y, *_closed(p, BINS)),
        "ece_paper": _gaps(weights, p, y, *_half_open(p, BINS)),
        "ece_adaptive": _gaps(weights, p, y, *_equal_mass(p, BINS)),
        "brier": weights @ ((p - y) ** 2) / total,
    }


def bootstrap_weights(images: int, resamples: int = RESAMPLES, seed: int = 0) -> np.ndarray:
    """How often each of `resamples` draws with replacement took each image. (resamples, images)."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(images, np.full(images, 1 / images), size=resamples).astype(np.float32)


def _in_parts(p: np.ndarray, y: np.ndarray, image: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
    """`weighted_metrics` over parts of the resamples, to bound memory; `image` says whose label each entry is."""
    size = max(1, _AT_ONCE // len(p))
    parts = [weighted_metrics(p, y, weights[i : i + size][:, image]) for i in range(0, len(weights), size)]
    return {name: np.concatenate([part[name] for part in parts]) for name in METRICS}


def prediction_report(
    p: np.ndarray, labels: np.ndarray, names: Sequence[str], resamples: int = RESAMPLES, seed: int = 0
) -> dict:
    """Micro, macro and per-attribute metrics of P (N, K) against labels (N, K; -1 unknown), with 95 % intervals.

    The units of the bootstrap are images: their attributes are drawn together, because they are not independent.
    """
    known = labels >= 0
    check_predictions(p[known], labels[known])
    weights = bootstrap_weights(len(p), resamples, seed)
    image = np.broadcast_to(np.arange(len(p))[:, None], p.shape)
    micro = point_metrics(p[known], labels[known])
    spread = _in_parts(p[known], labels[known], image[known], weights)
    attributes: dict[str, dict] = {}
    points, spreads = [], []
    for k, name in enumerate(names):
        rows = np.flatnonzero(known[:, k])
        if not len(rows):
            continue
        y = labels[rows, k]
        points.append(point_metrics(p[rows, k], y))
        spreads.append(_in_parts(p[rows, k], y, rows, weights))
        attributes[name] = with_intervals(points[-1], spreads[-1])
        attributes[name] |= {"images": len(rows), "positive_rate": rounded(y.mean())}
    macro = {m: _mean([point[m] for point in points]) for m in METRICS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a resample in which no attribute is defined
        macro_spread = {m: np.nanmean([one[m] for one in spreads], axis=0) for m in METRICS}
    return {
        "images": len(p),
        "labels": int(known.sum()),
        "positive_rate": rounded(labels[known].mean()),
        "bins": BINS,
        "resamples": resamples,
        "micro": with_intervals(micro, spread),
        "macro": with_intervals(macro, macro_spread),
        "attributes": attributes,
    }


def with_intervals(point: dict[str, float | None], spread: dict[str, np.ndarray]) -> dict[str, dict]:
    """{"auroc": {"value", "low", "high"}, ...}: the middle 95 % of the resamples around each value.

    Resamples repeat images, which raises every calibration error: there the spread is laid around the value itself.
    """
    table = {}
    for name, value in point.items():
        draws = spread[name][np.isfinite(spread[name])]
        if name.startswith("ece") and value is not None and len(draws):
            draws = np.maximum(0.0, draws - np.median(draws) + value)
        low, high = np.quantile(draws, (0.025, 0.975)) if value is not None and len(draws) else (None, None)
        table[name] = {"value": rounded(value), "low": rounded(low), "high": rounded(high)}
    return table


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return float(np.mean(defined)) if defined else None


@overload
def rounded(value: float, digits: int = 6) -> float: ...


@overload
def rounded(value: None, digits: int = 6) -> None: ...


@overload
def rounded(value: float | None, digits: int = 6) -> float | None: ...


def rounded(value: float | None, digits: int = 6) -> float | None:
    return None if value is None else round(float(value), digits)


def curves(p: np.ndarray, labels: np.ndarray, names: Sequence[str], points: int = 160) -> dict:
    """ROC and precision-recall curves, micro and for each attribute, thinned to what a plot can show."""
    known = labels >= 0
    entries = {"micro": (p[known], labels[known])}
    entries |= {name: (p[known[:, k], k], labels[known[:, k], k]) for k, name in enumerate(names)}
    found: dict[str, dict] = {"roc": {}, "pr": {}}
    for name, (scores, y) in entries.items():
        if not 0 < y.sum() < len(y):
            continue
        false, true, _ = sk.roc_curve(y, scores)
        precision, recall, _ = sk.precision_recall_curve(y, scores)
        found["roc"][name] = _thin({"false_positive_rate": false, "true_positive_rate": true}, points)
        found["pr"][name] = _thin({"recall": recall[::-1], "precision": precision[::-1]}, points)
    return found


def _thin(curve: dict[str, np.ndarray], points: int) -> dict[str, list[float]]:
    """Points of the curve itself, evenly spaced along its length; the ends stay."""
    length = np.concatenate([[0.0], np.cumsum(sum(np.abs(np.diff(values)) for values in curve.values()))])
    keep = np.unique(np.searchsorted(length, np.linspace(0, length[-1], points), side="left").clip(0, len(length) - 1))
    keep = np.union1d(keep, [0, len(length) - 1])
    return {name: [rounded(value, 5) for value in values[keep]] for name, values in curve.items()}
