"""Dequantization, noise and the augmentation of chains."""

import pytest
import torch

from jem_core.data.transforms import augment_chains, dequantize, gaussian_blur, training_transform
from jem_core.random import chain_generators
from tests.vision import v2


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def images() -> torch.Tensor:
    return torch.randint(0, 256, (16, 3, 12, 12), generator=seeded(9), dtype=torch.uint8)


def test_dequantization_fills_each_256th(images: torch.Tensor) -> None:
    x = dequantize(images, seeded())
    assert x.dtype == torch.float32
    assert (x >= 0).all()
    assert (x < 1).all()
    assert torch.equal((x * 256).floor().to(torch.uint8), images)
    rest = x * 256 - images.float()
    assert rest.mean() == pytest.approx(0.5, abs=0.02)
    assert rest.std() == pytest.approx(12**-0.5, abs=0.01)
    with pytest.raises(ValueError, match=r"uint8, not torch.float32"):
        dequantize(x, seeded())


def test_white_stays_below_one() -> None:
    white = torch.full((1, 3, 512, 512), 255, dtype=torch.uint8)
    assert (dequantize(white, seeded()) < 1).all()


def test_the_training_transform_adds_noise_and_clamps() -> None:
    grey = torch.full((8, 3, 32, 32), 128, dtype=torch.uint8)
    x = training_transform(grey, 0.03, seeded())
    assert x.mean() == pytest.approx(128.5 / 256, abs=0.001)
    assert x.std() == pytest.approx((0.03**2 + (1 / 256) ** 2 / 12) ** 0.5, rel=0.03)
    ends = torch.tensor([0, 255], dtype=torch.uint8).repeat_interleave(3 * 1024).view(2, 3, 32, 32)
    x = training_transform(ends, 0.1, seeded())
    assert x.min() == 0
    assert x.max() == 1
    assert torch.equal(training_transform(grey, 0.03, seeded(4)), training_transform(grey, 0.03, seeded(4)))
    assert not torch.equal(training_transform(grey, 0.03, seeded(4)), training_transform(grey, 0.03, seeded(5)))
    assert torch.equal(training_transform(grey, 0.0, seeded(4)), dequantize(grey, seeded(4)))


@pytest.mark.parametrize("sigma", [0.1, 0.7, 2.0])
def test_blur_agrees_with_torchvision(sigma: float) -> None:
    x = torch.rand(4, 3, 16, 16, generator=seeded())
    ours = gaussian_blur(x, torch.full((4,), sigma))
    assert torch.allclose(ours, v2.functional.gaussian_blur(x, [5, 5], [sigma, sigma]), atol=1e-6)


def test_blur_takes_a_sigma_an_image() -> None:
    x = torch.rand(3, 3, 16, 16, generator=seeded())
    sigma = torch.tensor([0.1, 0.8, 2.0])
    together = gaussian_blur(x, sigma)
    for i in range(3):
        assert torch.allclose(together[i], gaussian_blur(x[i : i + 1], sigma[i : i + 1])[0], atol=1e-6)


def test_a_blur_of_white_is_no_brighter_than_white() -> None:
    """Five weights may round to a sum above 1, and a chain out of [0, 1] would end a training run."""
    blurred = gaussian_blur(torch.ones(500, 3, 8, 8), torch.linspace(0.1, 2, 500))
    assert blurred.max() <= 1
    assert blurred.min() > 0.9999


def test_one_coin_an_image() -> None:
    x = torch.rand(400, 3, 8, 8, generator=seeded())
    flipped = augment_chains(x, seeded(1), flip=True, blur_probability=0.0)
    is_flipped = (flipped == x.flip(-1)).flatten(1).all(1)
    is_same = (flipped == x).flatten(1).all(1)
    assert (is_flipped ^ is_same).all()
    assert 150 < is_flipped.sum() < 250
    blurred = augment_chains(x, seeded(1), flip=False, blur_probability=0.25, blur_sigma=2.0)
    share = (blurred != x).flatten(1).any(1).float().mean()
    assert 0.18 < share < 0.32
    assert blurred.min() >= 0
    assert blurred.max() <= 1
    assert torch.equal(augment_chains(x, seeded(1), flip=False, blur_probability=0.0), x)
    assert torch.equal(augment_chains(x, seeded(1), flip=1.0, blur_probability=0.0), x.flip(-1))


def test_a_chain_does_not_depend_on_its_neighbours() -> None:
    x = torch.rand(6, 3, 8, 8, generator=seeded())
    many = augment_chains(x, chain_generators(3, 6), flip=True, blur_probability=0.5)
    few = augment_chains(x[:2], chain_generators(3, 6)[:2], flip=True, blur_probability=0.5)
    assert torch.allclose(many[:2], few, atol=1e-7)
