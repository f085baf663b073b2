"""Every metric against scikit-learn on predictions whose answers are known, at p = 0 and p = 1 too."""

import numpy as np
import pytest
import torch
from sklearn import metrics as sk

from jem_core import metrics
from jem_core.metrics import METRICS, ece, ece_adaptive, ece_paper, point_metrics, prediction_report, weighted_metrics
from tests.vision import torchmetrics

CLOSE = 1e-6


def predictions(n: int = 500, seed: int = 0, ends: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated predictions with ties; with `ends` some are exactly 0 and 1, rightly and wrongly."""
    rng = np.random.default_rng(seed)
    p = rng.random(n).round(2)
    y = (rng.random(n) < p).astype(np.int64)
    if ends:
        p[:40], y[:40] = 0.0, np.arange(40) % 10 == 0
        p[40:80], y[40:80] = 1.0, np.arange(40) % 10 != 0
    return p, y


def plain_ece(p: np.ndarray, y: np.ndarray, bins: int, closed: bool) -> float:
    """The definition, bin by bin."""
    sure, hit = np.maximum(p, 1 - p), (p > 0.5) == y
    gaps, mass = 0.0, 0
    for b in range(bins):
        low, high = b / bins, (b + 1) / bins
        inside = (sure >= low) & ((sure < high) | (closed and b == bins - 1 and sure == 1))
        if inside.any():
            gaps += inside.sum() * abs(sure[inside].mean() - hit[inside].mean())
            mass += inside.sum()
    return gaps / max(mass, 1)


@pytest.mark.parametrize("ends", [False, True])
def test_point_metrics_agree_with_scikit_learn(ends: bool):
    p, y = predictions(ends=ends)
    found = point_metrics(p, y)
    expected = {
        "accuracy": sk.accuracy_score(y, p > 0.5),
        "f1": sk.f1_score(y, p > 0.5),
        "auprc": sk.average_precision_score(y, p),
        "auroc": sk.roc_auc_score(y, p),
        "ece": plain_ece(p, y, metrics.BINS, closed=True),
        "ece_paper": plain_ece(p, y, metrics.BINS, closed=False),
        "brier": sk.brier_score_loss(y, p),
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=CLOSE), name


@pytest.mark.parametrize("ends", [False, True])
def test_weighted_metrics_agree_with_scikit_learn_sample_weights(ends: bool):
    p, y = predictions(ends=ends, seed=3)
    weights = metrics.bootstrap_weights(len(p), 5, seed=1)
    found = weighted_metrics(p, y, weights)
    for row, weight in enumerate(weights):
        expected = {
            "accuracy": sk.accuracy_score(y, p > 0.5, sample_weight=weight),
            "f1": sk.f1_score(y, p > 0.5, sample_weight=weight),
            "auprc": sk.average_precision_score(y, p, sample_weight=weight),
            "auroc": sk.roc_auc_score(y, p, sample_weight=weight),
            "brier": sk.brier_score_loss(y, p, sample_weight=weight),
            "ece": ece(np.repeat(p, weight.astype(int)), np.repeat(y, weight.astype(int))),
            "ece_paper": ece_paper(np.repeat(p, weight.astype(int)), np.repeat(y, weight.astype(int))),
        }
        for name, value in expected.items():
            assert found[name][row] == pytest.approx(value, abs=CLOSE), name


def test_equal_weights_give_the_point_values():
    p, y = predictions(seed=5)
    found, expected = weighted_metrics(p, y, np.ones((1, len(p)))), point_metrics(p, y)
    assert {name: found[name][0] for name in METRICS} == pytest.approx(expected, abs=CLOSE)


def test_ece_agrees_with_torchmetrics_inside_the_ends():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.5, 1.0, 2000).astype(np.float32)  # P(y = 1) is the confidence when it is above one half
    y = (rng.random(2000) < 0.8).astype(np.int64)
    theirs = torchmetrics.classification.BinaryCalibrationError(n_bins=20, norm="l1")
    expected = theirs(torch.from_numpy(p), torch.from_numpy(y)).item()
    assert ece(p, y, 20) == pytest.approx(expected, abs=1e-5)


def test_a_saturated_overconfident_classifier():
    """95 % of 1,000 predictions are exactly 1 and mostly right, the rest says 0.9 and is a coin."""
    p = np.concatenate([np.ones(950), np.full(50, 0.9)])
    y = np.concatenate([np.arange(950) % 19 != 0, np.arange(50) % 2]).astype(np.int64)
    error = 1 - point_metrics(p, y)["accuracy"]
    assert error == pytest.approx(0.075)
    assert ece(p, y) < error < ece_paper(p, y)
    assert ece_paper(p, y) == pytest.approx(0.4)
    assert ece(p, y) == pytest.approx(0.95 * 50 / 950 + 0.05 * 0.4)


def test_all_predictions_at_the_ends():
    p, y = np.array([0.0, 1.0, 1.0, 0.0]), np.array([0, 1, 0, 0])
    assert ece(p, y) == pytest.approx(0.25)
    assert ece_adaptive(p, y) == pytest.approx(0.25)
    assert ece_paper(p, y) == 0.0  # no prediction is in any of its bins


def test_calibrated_predictions_have_no_error():
    p, y = predictions(200_000, ends=False)
    assert ece(p, y) < 0.005
    assert ece_adaptive(p, y) < 0.005


@pytest.mark.parametrize(("p", "y"), [([0.5, 1.1], [0, 1]), ([0.5, np.nan], [0, 1]), ([0.5, 0.1], [0, 2]), ([], [])])
def test_what_is_no_prediction_is_refused(p: list, y: list):
    with pytest.raises(ValueError, match="expected"):
        point_metrics(np.array(p), np.array(y))


def test_one_class_alone_leaves_ranking_undefined():
    found = point_metrics(np.array([0.2, 0.9]), np.array([1, 1]))
    assert found["auroc"] is None
    assert found["auprc"] is None
    assert found["accuracy"] == 0.5


def test_report_averages_and_skips_unknown_labels():
    rng = np.random.default_rng(2)
    p = rng.random((300, 3))
    labels = (rng.random((300, 3)) < p).astype(np.int64)
    labels[:100, 1] = -1
    report = prediction_report(p, labels, ["a", "b", "c"])
    known = labels >= 0
    assert report["labels"] == 800
    assert report["attributes"]["b"]["images"] == 200
    assert report["micro"]["auroc"]["value"] == pytest.approx(sk.roc_auc_score(labels[known], p[known]), abs=CLOSE)
    each = [sk.roc_auc_score(labels[known[:, k], k], p[known[:, k], k]) for k in range(3)]
    assert report["macro"]["auroc"]["value"] == pytest.approx(np.mean(each), abs=CLOSE)
    for table in (report["micro"], report["macro"], report["attributes"]["a"]):
        for name in ("accuracy", "f1", "auprc", "auroc", "brier"):
            assert table[name]["low"] < table[name]["value"] < table[name]["high"]


def test_intervals_cover_the_truth_and_repeat():
    """Of 40 data sets about 38 intervals hold the true accuracy."""
    covered = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = np.full((200, 1), 0.8)
        labels = (rng.random((200, 1)) < 0.8).astype(np.int64)
        found = prediction_report(p, labels, ["a"], seed=seed)["micro"]["accuracy"]
        covered += found["low"] <= 0.8 <= found["high"]
    assert 34 <= covered <= 40
    again = [prediction_report(p, labels, ["a"], seed=7) for _ in range(2)]
    assert again[0] == again[1]


def test_curves_are_points_of_the_whole_curve():
    p, y = predictions(5000, ends=False)
    thin = metrics.curves(p[:, None], y[:, None], ["a"], points=50)
    false, true, _ = sk.roc_curve(y, p)
    whole = {(round(a, 5), round(b, 5)) for a, b in zip(false, true, strict=True)}
    shown = list(zip(thin["roc"]["a"]["false_positive_rate"], thin["roc"]["a"]["true_positive_rate"], strict=True))
    assert set(shown) <= whole
    assert shown[0] == (0, 0)
    assert shown[-1] == (1, 1)
    assert len(shown) <= 52
    assert sk.auc(*zip(*shown, strict=True)) == pytest.approx(sk.roc_auc_score(y, p), abs=2e-3)
    assert thin["pr"]["micro"]["recall"][-1] == 1
