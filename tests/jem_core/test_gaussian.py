"""The start distribution and the preconditioner: right against plain linear algebra."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from jem_core.gaussian import RIDGE, LowRankGaussian, Preconditioner
from jem_core.random import generator
from tests.conftest import tiny_pictures


@pytest.fixture(scope="module")
def gaussian() -> LowRankGaussian:
    return LowRankGaussian.fit(*pictures(300, 16, seed=1), rank=12)


def pictures(n: int, size: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    images, labels = tiny_pictures(n, size, seed=seed)
    return torch.from_numpy(images), torch.from_numpy(labels).long()


def test_the_fit_is_the_principal_components() -> None:
    images, labels = pictures(200, 8, seed=2)
    fitted = LowRankGaussian.fit(images, labels, rank=6)
    pixels = (images.flatten(1).double().numpy() + 0.5) / 256
    covariance = np.cov(pixels.T, bias=True)
    values, vectors = np.linalg.eigh(covariance)
    np.testing.assert_allclose(fitted.scales.double() ** 2, values[::-1][:6], rtol=1e-3)
    overlap = np.abs(fitted.basis.double().numpy() @ vectors[:, ::-1][:, :6])
    np.testing.assert_allclose(np.linalg.svd(overlap, compute_uv=False), np.ones(6), atol=0.05)  # the same subspace
    assert fitted.residual_std**2 * 192 == pytest.approx(values[::-1][6:].sum(), rel=1e-3)  # no variance is lost
    np.testing.assert_allclose(fitted.mean.flatten(), pixels.mean(0), atol=1e-6)
    np.testing.assert_allclose(fitted.low.flatten(), pixels.min(0), atol=1e-6)
    np.testing.assert_allclose(fitted.high.flatten(), pixels.max(0), atol=1e-6)


def test_the_fit_is_repeatable_and_leaves_the_global_stream_alone() -> None:
    images, labels = pictures(50, 8, seed=0)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = LowRankGaussian.fit(images, labels, rank=4)
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(LowRankGaussian.fit(images, labels, rank=4).basis, first.basis)


def test_leading_directions_keep_the_variance(gaussian: LowRankGaussian) -> None:
    cut = gaussian.leading(3)
    assert cut.basis.shape == (3, gaussian.mean.numel())
    assert torch.equal(cut.mean_image(torch.full((1, 6), -1)), gaussian.mean[None])
    variances = [g.scales.square().sum().item() + g.residual_std**2 * g.mean.numel() for g in (cut, gaussian)]
    assert variances[0] == pytest.approx(variances[1], rel=1e-5)


def faint(gaussian: LowRankGaussian) -> LowRankGaussian:
    """A twentieth of the contrast around grey: far from 0 and 1, so that the clamp changes nothing."""
    return replace(
        gaussian,
        mean=torch.full_like(gaussian.mean, 0.5),
        scales=gaussian.scales / 20,
        cross_cov=gaussian.cross_cov / 20,
        residual_std=gaussian.residual_std / 20,
    )


def test_samples_have_the_means_and_variances_of_the_fit(gaussian: LowRankGaussian) -> None:
    n = 4000
    centred = faint(gaussian)
    x = centred.sample(n, generator(0), grain=1.0).flatten(1)
    along = (x - 0.5) @ gaussian.basis.T
    expected = (centred.scales**2 + centred.residual_std**2).sqrt()
    assert (along.mean(0).abs() < 4 * expected / n**0.5).all()
    assert ((along.std(0) / expected - 1).abs() < 4 / (2 * n) ** 0.5).all()


def test_without_grain_a_draw_lies_in_the_basis(gaussian: LowRankGaussian) -> None:
    """The same draw with grain differs from it by white noise of the size asked for, and by nothing else."""
    centred = faint(gaussian)
    clean, grainy = (centred.sample(500, generator(0), grain=grain).flatten(1) for grain in (0.0, 0.5))
    outside = (clean - 0.5) - (clean - 0.5) @ gaussian.basis.T @ gaussian.basis
    assert outside.abs().max() < 1e-5
    assert (grainy - clean).std().item() == pytest.approx(0.5 * centred.residual_std, rel=0.02)


@pytest.mark.parametrize("asked", [False, True])
def test_variety_scales_the_spread_and_leaves_the_mean(gaussian: LowRankGaussian, asked: bool) -> None:
    """A draw lies on the line from the mean of what is asked to the full draw, at the share that was asked for."""
    wide = replace(gaussian, mean=torch.full_like(gaussian.mean, 0.5), scales=gaussian.scales * 1e-3)  # nothing clamped
    wide = replace(wide, cross_cov=wide.cross_cov * 1e-3)
    condition = torch.full((6, len(gaussian.label_mean)), -1)
    condition[:, 0] = 1
    given = condition if asked else None
    middle, half, full = (wide.sample(6, generator(0), given, variety=share) for share in (0.0, 0.5, 1.0))
    assert (middle == middle[:1]).all()
    assert not torch.allclose(full, middle, atol=1e-5)
    torch.testing.assert_close(half, (middle + full) / 2, atol=1e-6, rtol=0)


def test_given_labels_the_draws_are_those_of_the_joint_gaussian(gaussian: LowRankGaussian) -> None:
    """Against the textbook's conditional of the joint covariance, and a regression of the data itself."""
    n, centred = 6000, faint(gaussian)
    wish = torch.tensor([1, -1, 0, -1, -1, -1])
    x = centred.sample(n, generator(0), wish.expand(n, -1)).flatten(1)
    along = ((x - 0.5) @ gaussian.basis.T).double().numpy()
    cross = centred.cross_cov[:, [0, 2]].double().numpy()
    own = centred.label_cov[[0, 2]][:, [0, 2]].double().numpy() + RIDGE * np.eye(2)
    slope = cross @ np.linalg.inv(own)
    mean = slope @ (np.array([1.0, 0.0]) - centred.label_mean[[0, 2]].double().numpy())
    covariance = np.diag(centred.scales.double().numpy() ** 2) - slope @ cross.T
    error = np.sqrt(np.diag(covariance) / n)
    assert (np.abs(along.mean(0) - mean) < 4.5 * error).all()
    assert np.abs(np.cov(along.T) - covariance).max() < 0.08 * covariance.max()
    assert np.abs(mean).max() > 20 * error.max()  # the labels say something: the draws above are not the plain ones


def test_the_labels_means_and_covariances_are_the_datas() -> None:
    images, labels = pictures(300, 16, seed=1)
    fitted = LowRankGaussian.fit(images, labels, rank=12)
    along = ((images.flatten(1).double() + 0.5) / 256 - fitted.mean.flatten().double()) @ fitted.basis.double().T
    joint = np.cov(np.concatenate([along.numpy(), labels.double().numpy()], axis=1).T, bias=True)
    np.testing.assert_allclose(fitted.label_mean, labels.double().mean(0), atol=1e-6)
    np.testing.assert_allclose(fitted.label_cov, joint[12:, 12:], atol=1e-6)
    np.testing.assert_allclose(fitted.cross_cov, joint[:12, 12:], atol=1e-4)


def test_nothing_asked_is_the_informed_start(gaussian: LowRankGaussian) -> None:
    free = torch.full((4, 6), -1)
    assert torch.equal(gaussian.sample(4, generator(0), free), gaussian.sample(4, generator(0)))


def test_unknown_labels_keep_what_one_attribute_does() -> None:
    images, labels = pictures(2000, 8, seed=3)
    hidden = torch.where(torch.rand(labels.shape, generator=generator(0)) < 0.5, -1, labels)
    whole, some = (LowRankGaussian.fit(images, part, rank=8) for part in (labels, hidden))
    first = [fit.cross_cov[:, 0] / fit.label_cov[0, 0] for fit in (whole, some)]
    torch.testing.assert_close(first[1], first[0], atol=0.1 * first[0].abs().max().item(), rtol=0)
    nothing = LowRankGaussian.fit(images, torch.full_like(labels, -1), rank=8)  # an attribute that nobody labelled
    wish = torch.zeros(3, 6, dtype=torch.long)
    torch.testing.assert_close(
        nothing.sample(3, generator(0), wish), nothing.sample(3, generator(0)), atol=1e-4, rtol=0
    )


def test_wishes_that_contradict_each_other_still_give_images(gaussian: LowRankGaussian) -> None:
    x = gaussian.sample(8, generator(0), torch.ones(8, 6, dtype=torch.long))
    assert x.isfinite().all()
    assert x.std() > 0.01
    with pytest.raises(ValueError, match=r"condition is \(8, 5\); this start expects \(8, 6\)"):
        gaussian.sample(8, generator(0), torch.ones(8, 5, dtype=torch.long))


def test_starts_are_images(gaussian: LowRankGaussian) -> None:
    for x in (gaussian.sample(64, generator(0)), gaussian.uniform(64, generator(0))):
        assert x.shape == (64, 3, 16, 16)
        assert x.min() >= 0
        assert x.max() <= 1
    x = gaussian.uniform(2000, generator(0))
    assert (x >= gaussian.low).all()
    assert (x <= gaussian.high).all()
    assert ((x.mean(0) - (gaussian.low + gaussian.high) / 2).abs() < 5 * 0.3 / 2000**0.5).all()


def test_a_file_keeps_the_distribution(gaussian: LowRankGaussian, tmp_path: Path) -> None:
    gaussian.save(tmp_path / "start.safetensors")
    again = LowRankGaussian.load(tmp_path / "start.safetensors")
    assert again.residual_std == pytest.approx(gaussian.residual_std)
    for name in ("mean", "basis", "scales", "low", "high", "label_mean", "label_cov", "cross_cov"):
        torch.testing.assert_close(getattr(again, name), getattr(gaussian, name), atol=5e-4, rtol=1e-3)
    product = again.basis @ again.basis.T
    torch.testing.assert_close(product, torch.eye(len(product)), atol=1e-3, rtol=0)  # half precision is enough


def test_a_file_of_something_else_is_refused(gaussian: LowRankGaussian, tmp_path: Path) -> None:
    save_file({"mean": gaussian.mean}, tmp_path / "start.safetensors")
    with pytest.raises(ValueError, match="no basis, low, high, scales, label_mean"):
        LowRankGaussian.load(tmp_path / "start.safetensors")


def test_the_preconditioner_is_its_matrix(gaussian: LowRankGaussian) -> None:
    preconditioner = Preconditioner.from_gaussian(gaussian, strength=10)
    basis = gaussian.basis.double()
    variances = gaussian.scales.double() ** 2
    matrix = torch.eye(768, dtype=torch.float64) + basis.T @ torch.diag(10 * variances / variances.max()) @ basis
    v = torch.randn(3, 3, 16, 16, generator=generator(0))
    flat = v.flatten(1).double()
    torch.testing.assert_close(preconditioner.apply(v).flatten(1).double(), flat @ matrix, atol=1e-4, rtol=1e-4)
    values, vectors = torch.linalg.eigh(matrix)
    root = vectors @ torch.diag(values.sqrt()) @ vectors.T
    torch.testing.assert_close(preconditioner.apply_sqrt(v).flatten(1).double(), flat @ root, atol=1e-4, rtol=1e-4)
    twice = preconditioner.apply_sqrt(preconditioner.apply_sqrt(v))
    torch.testing.assert_close(twice, preconditioner.apply(v), atol=1e-4, rtol=1e-4)
    assert values.max().item() == pytest.approx(11, rel=1e-4)  # the first direction gains the whole strength


def test_images_that_do_not_differ_give_the_identity() -> None:
    same = LowRankGaussian.fit(torch.full((5, 3, 8, 8), 100, dtype=torch.uint8), torch.zeros(5, 1), rank=2)
    v = torch.randn(1, 3, 8, 8, generator=generator(0))
    torch.testing.assert_close(Preconditioner.from_gaussian(same, 10.0).apply(v), v, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize(
    ("images", "rank", "message"),
    [
        (torch.rand(4, 3, 8, 8), 2, "float32"),
        (torch.zeros(3, 8, 8, dtype=torch.uint8), 2, r"\(3, 8, 8\); expected uint8 \(N, 3, S, S\)"),
        (torch.zeros(1, 3, 8, 8, dtype=torch.uint8), 2, "1 images"),
        (torch.zeros(4, 3, 8, 8, dtype=torch.uint8), 0, "rank 0"),
        (torch.zeros(5, 3, 8, 8, dtype=torch.uint8), 2, r"labels are \(4, 2\) for 5 images"),
    ],
)
def test_bad_images_are_refused(images: torch.Tensor, rank: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LowRankGaussian.fit(images, torch.zeros(4, 2), rank)


@pytest.mark.parametrize("strength", [0, -1.0, float("nan")])
def test_a_preconditioner_has_strength(gaussian: LowRankGaussian, strength: float) -> None:
    with pytest.raises(ValueError, match="strength"):
        Preconditioner.from_gaussian(gaussian, strength)
