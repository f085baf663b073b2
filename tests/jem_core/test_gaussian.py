"""The start distribution and the preconditioner: right against plain linear algebra."""

from pathlib import Path

import numpy as np
import pytest
import torch

from jem_core.gaussian import LowRankGaussian, Preconditioner
from jem_core.random import generator
from tests.conftest import tiny_pictures


@pytest.fixture(scope="module")
def gaussian() -> LowRankGaussian:
    return LowRankGaussian.fit(torch.from_numpy(tiny_pictures(300, 16, seed=1)[0]), rank=12)


def test_the_fit_is_the_principal_components() -> None:
    images = torch.from_numpy(tiny_pictures(200, 8, seed=2)[0])
    fitted = LowRankGaussian.fit(images, rank=6)
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
    images = torch.from_numpy(tiny_pictures(50, 8, seed=0)[0])
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = LowRankGaussian.fit(images, rank=4)
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(LowRankGaussian.fit(images, rank=4).basis, first.basis)


def test_samples_have_the_means_and_variances_of_the_fit(gaussian: LowRankGaussian) -> None:
    n = 4000
    centred = LowRankGaussian(  # far from 0 and 1, so that the clamp changes nothing
        torch.full_like(gaussian.mean, 0.5),
        gaussian.basis,
        gaussian.scales / 20,
        gaussian.residual_std / 20,
        gaussian.low,
        gaussian.high,
    )
    x = centred.sample(n, generator(0), residual=1.0).flatten(1)
    along = (x - 0.5) @ gaussian.basis.T
    expected = (centred.scales**2 + centred.residual_std**2).sqrt()
    assert (along.mean(0).abs() < 4 * expected / n**0.5).all()
    assert ((along.std(0) / expected - 1).abs() < 4 / (2 * n) ** 0.5).all()


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
    for name in ("mean", "basis", "scales", "low", "high"):
        torch.testing.assert_close(getattr(again, name), getattr(gaussian, name), atol=5e-4, rtol=1e-3)
    product = again.basis @ again.basis.T
    torch.testing.assert_close(product, torch.eye(len(product)), atol=1e-3, rtol=0)  # half precision is enough


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
    same = LowRankGaussian.fit(torch.full((5, 3, 8, 8), 100, dtype=torch.uint8), rank=2)
    v = torch.randn(1, 3, 8, 8, generator=generator(0))
    torch.testing.assert_close(Preconditioner.from_gaussian(same, 10.0).apply(v), v, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize(
    ("images", "rank", "message"),
    [
        (torch.rand(4, 3, 8, 8), 2, "float32"),
        (torch.zeros(3, 8, 8, dtype=torch.uint8), 2, r"\(3, 8, 8\); expected uint8 \(N, 3, S, S\)"),
        (torch.zeros(1, 3, 8, 8, dtype=torch.uint8), 2, "1 images"),
        (torch.zeros(4, 3, 8, 8, dtype=torch.uint8), 0, "rank 0"),
    ],
)
def test_bad_images_are_refused(images: torch.Tensor, rank: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LowRankGaussian.fit(images, rank)


@pytest.mark.parametrize("strength", [0, -1.0, float("nan")])
def test_a_preconditioner_has_strength(gaussian: LowRankGaussian, strength: float) -> None:
    with pytest.raises(ValueError, match="strength"):
        Preconditioner.from_gaussian(gaussian, strength)
