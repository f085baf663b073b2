"""The calibration file against plain counting, and the density of a picture against finite differences."""

import copy

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from jem_core import calibration
from jem_core.calibration import Calibration, Row, equal_mass_bins, find_bin, surprise, wilson
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


@pytest.mark.parametrize("p", [np.full(40, 0.3), np.r_[np.full(300, 0.01), np.full(5, 0.99)], np.r_[0.0, 1.0]])
def test_no_bin_spans_half_of_the_range(p: np.ndarray):
    y = (np.arange(len(p)) % 2).astype(np.int64)
    bins = equal_mass_bins(p, y, 12)
    assert max(np.diff(bins["edges"])) < 0.5
    assert sum(bins["count"]) == len(p)
    for i, n in enumerate(bins["count"]):
        assert (bins["mean_prediction"][i] is None) == (bins["positive_rate"][i] is None) == (n == 0)
        assert (bins["low"][i], bins["high"][i]) != (0, 1) or n == 0


@pytest.mark.parametrize(("halves", "counts"), [((35, 65), [35, 65]), ((29, 71), [100])])
def test_a_wide_bin_is_split_where_both_halves_have_enough_images(halves: tuple[int, int], counts: list[int]):
    p = np.r_[np.full(1100, 0.01), np.full(halves[0], 0.6), np.full(halves[1], 0.9)]
    bins = equal_mass_bins(p, (p > 0.5).astype(np.int64), 12)
    assert [n for n in bins["count"] if n][1:] == counts


def test_a_bin_without_images_says_nothing():
    p = np.r_[np.full(300, 0.01), np.full(40, 0.99)]
    report = calibration.calibration_report(p[:, None], (p > 0.5).astype(int)[:, None], ["a"])
    row = Calibration(report).row("a", 0.6)
    assert (row.count, row.rate, row.enough) == (0, None, False)
    assert row.base_rate == pytest.approx(40 / 340)


def test_a_calibration_names_what_it_knows():
    p, y = predictions(400)
    found = Calibration(calibration.calibration_report(p[:, None], y[:, None], ["a"]))
    assert (found.images, found.names, found.gate) == (400, ("a",), None)
    assert found.part("all") == found.report["all"]
    assert found.row("b", 0.4) == Row("b", 0.4)
    with pytest.raises(ValueError, match="choose one of all, a"):
        found.part("b")


def test_look_up_takes_the_ends():
    p, y = predictions(600)
    report = calibration.calibration_report(p[:, None], y[:, None], ["a"])
    bins = report["attributes"]["a"]["bins"]
    found = Calibration(report)
    assert found.row("a", 0.0).count == bins["count"][0]
    assert found.row("a", 1.0).count == bins["count"][-1]
    assert found.row("a", 0.5).base_rate == pytest.approx(y.mean(), abs=1e-4)


def test_surprise_is_a_divergence_in_bits():
    assert surprise(0.3, 0.3) == 0
    assert surprise(1.0, 0.5) == pytest.approx(1.0, abs=0.002)
    assert surprise(0.95, 0.02) > surprise(0.95, 0.9) > 0
    assert np.isfinite(surprise(1.0, 0.0))


def test_a_picture_has_one_answer(tiny_bundle, tiny_dataset):
    """Alone or among others, today or tomorrow: the draws are fixed and shared."""
    images = tiny_dataset.tensors(np.arange(20))[0]
    together = mean_prediction(tiny_bundle.model, images)
    alone = torch.cat([mean_prediction(tiny_bundle.model, image[None]) for image in images])
    assert torch.allclose(together, alone, atol=1e-6)
    x = torch.cat([(images[:1].float() + noise) / 256 for noise in calibration_draws(tiny_bundle)])
    assert torch.allclose(tiny_bundle.model.predict(x).mean(dim=0), together[0], atol=1e-6)


def test_every_second_draw_may_be_mirrored(tiny_bundle, tiny_dataset):
    images = tiny_dataset.tensors(np.arange(20))[0]
    draws, model = calibration_draws(tiny_bundle), copy.deepcopy(tiny_bundle.model)
    for weight in model.parameters():  # untrained, it hardly looks at the picture
        weight.mul_(4)
    for image, found in zip(images, mean_prediction(model, images, mirror=True), strict=True):
        x = (image.float() + draws) / 256
        seen = torch.stack([one.flip(-1) if i % 2 else one for i, one in enumerate(x)])
        assert torch.allclose(model.predict(seen).mean(dim=0), found, atol=1e-6)
    assert not torch.allclose(mean_prediction(model, images), mean_prediction(model, images, mirror=True), atol=1e-4)


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
        (grad,) = torch.autograd.grad(model.log_prob(x).sum(), x)
        unit = grad / grad.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
        slope = (model.log_prob(x + 1e-4 * unit) - model.log_prob(x - 1e-4 * unit)) / 2e-4
        assert torch.allclose(model.log_prob(x).float(), score, rtol=1e-4)
    finally:
        model.float()
    assert torch.allclose(slope.float(), norm, rtol=1e-3)
