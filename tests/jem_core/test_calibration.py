"""The calibration file against plain counting, and the gate on densities that are known."""

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from jem_core import calibration
from jem_core.calibration import equal_mass_bins, find_bin, make_gate, read_gate, wilson
from jem_core.draws import density_figures, mean_prediction


@pytest.mark.parametrize(("count", "n"), [(0, 10), (10, 10), (5, 10), (263, 333)])
def test_wilson_interval(count: int, n: int):
    expected = binomtest(count, n).proportion_ci(method="wilson")
    assert wilson(count, n) == pytest.approx((expected.low, expected.high), abs=1e-5)


def test_nothing_counted_says_nothing():
    assert wilson(0, 0) == (0.0, 1.0)


def predictions(n: int = 2000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.beta(0.4, 0.8, n)
    return p, (rng.random(n) < p).astype(np.int64)


def test_bins_are_what_counting_says():
    p, y = predictions()
    bins = equal_mass_bins(p, y, 12)
    assert len(bins["count"]) == 12
    assert sum(bins["count"]) == len(p)
    assert max(bins["count"]) - min(bins["count"]) <= 3
    assert (bins["edges"][0], bins["edges"][-1]) == (0, 1)
    for i in range(12):
        inside = (p >= bins["edges"][i]) & (p < bins["edges"][i + 1])
        assert bins["count"][i] == inside.sum()
        assert bins["mean_prediction"][i] == pytest.approx(p[inside].mean(), abs=1e-6)
        assert bins["positive_rate"][i] == pytest.approx(y[inside].mean(), abs=1e-6)
        assert (bins["low"][i], bins["high"][i]) == wilson(int(y[inside].sum()), int(inside.sum()))


def test_every_prediction_finds_the_bin_that_counted_it():
    p, y = predictions(500)
    p[:5], p[5:10] = 0.0, 1.0
    bins = equal_mass_bins(p, y, 12)
    found = np.bincount([find_bin(bins["edges"], value) for value in p], minlength=len(bins["count"]))
    assert found.tolist() == bins["count"]
    with pytest.raises(ValueError, match="probability"):
        find_bin(bins["edges"], 1.5)


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_equal_predictions_share_a_bin(value: float):
    bins = equal_mass_bins(np.full(50, value), np.arange(50) % 2, 12)
    assert sorted(bins["count"])[-1] == 50
    assert sum(bins["count"]) == 50


def test_report_leaves_unknown_labels_out():
    p, y = predictions(600)
    p, labels = p.reshape(200, 3), y.reshape(200, 3).copy()
    labels[:50, 1] = -1
    report = calibration.calibration_report(p, labels, ["a", "b", "c"])
    assert sum(report["attributes"]["b"]["bins"]["count"]) == 150
    assert sum(report["all"]["bins"]["count"]) == 550
    assert sum(report["all"]["histogram"]["count"]) == 550


def test_gate_is_two_sided():
    rng = np.random.default_rng(0)
    gate = make_gate(rng.normal(size=20_000), rng.normal(10, 1, size=20_000))
    middle = read_gate(gate, 0.0, 10.0)
    assert middle.verdict == "inside"
    assert middle.score_percentile == pytest.approx(50, abs=2)
    for score, norm in ((9.0, 10.0), (-9.0, 10.0), (0.0, 20.0), (0.0, 1.0)):
        assert read_gate(gate, score, norm).verdict == "unlike"
    assert read_gate(gate, 2.2, 10.0).verdict == "unusual"  # 2.8 % of a normal lie further out


def test_gate_of_a_model_orders_what_it_measures(tiny_bundle, tiny_dataset):
    reference = tiny_dataset.tensors(tiny_dataset.indices("report"))[0]
    ordinary = tiny_dataset.tensors(tiny_dataset.indices("choose"))[0][:20]
    gate = calibration.gate_report(tiny_bundle.model, reference, ordinary, other=reference[:20], seed=0)
    assert set(gate["auroc"]) == {
        "noise",
        "flat colour",
        "upside down",
        "turned by a quarter",
        "the other data set",
    }
    assert gate["worst_auroc"] == min(entry["value"] for entry in gate["auroc"].values())
    assert gate["auroc"]["the other data set"]["value"] == pytest.approx(0.5, abs=0.2)  # it is the same data
    score, norm = (figures.numpy() for figures in density_figures(tiny_bundle.model, reference))
    assert gate["score"]["quantiles"][0] == pytest.approx(score.min(), abs=1e-5)
    assert gate["gradient_norm"]["quantiles"][-1] == pytest.approx(norm.max(), abs=1e-5)


def test_a_picture_has_one_answer(tiny_bundle, tiny_dataset):
    """Alone or among others, today or tomorrow: the draws are fixed and shared."""
    images = tiny_dataset.tensors(np.arange(20))[0]
    together = mean_prediction(tiny_bundle.model, images)
    alone = torch.cat([mean_prediction(tiny_bundle.model, image[None]) for image in images])
    assert torch.allclose(together, alone, atol=1e-6)
    x = torch.cat([(images[:1].float() + noise) / 256 for noise in calibration_draws(tiny_bundle)])
    assert torch.allclose(tiny_bundle.model.predict(x).mean(dim=0), together[0], atol=1e-6)


def calibration_draws(bundle) -> torch.Tensor:
    from jem_core.draws import fixed_draws

    return fixed_draws(bundle.model.image_size)


def test_gradient_norm_is_the_gradients(tiny_bundle, tiny_dataset):
    """One draw, by finite differences along the gradient."""
    images = tiny_dataset.tensors(np.arange(3))[0]
    score, norm = density_figures(tiny_bundle.model, images, draws=1)
    x = ((images.float() + calibration_draws(tiny_bundle)[:1]) / 256).double().requires_grad_()
    model = tiny_bundle.model.double()
    try:
        (grad,) = torch.autograd.grad(model.score(x).sum(), x)
        unit = grad / grad.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
        slope = (model.score(x + 1e-4 * unit) - model.score(x - 1e-4 * unit)) / 2e-4
        assert torch.allclose(model.score(x).float(), score, rtol=1e-4)
    finally:
        model.float()
    assert torch.allclose(slope.float(), norm, rtol=1e-3)
