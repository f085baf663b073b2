"""Distances between sets of images whose answers are known."""

import numpy as np
import pytest
import torch

from jem_core.fidelity import frechet_distance, nearest_distances, precision_recall, spread


def normal(n: int, mean: float, scale: float, seed: int) -> torch.Tensor:
    return mean + scale * torch.randn(n, 6, generator=torch.Generator().manual_seed(seed))


def test_frechet_distance_of_gaussians():
    """|m1 - m2|^2 + tr((S1 - S2)^2) when the covariances are multiples of the identity."""
    found = frechet_distance(normal(200_000, 0.0, 1.0, 0), normal(200_000, 2.0, 3.0, 1))
    assert found == pytest.approx(6 * (2.0**2 + (3 - 1) ** 2), rel=0.02)
    same = normal(500, 0.0, 1.0, 0)
    assert frechet_distance(same, same) == pytest.approx(0, abs=1e-6)


def test_precision_and_recall():
    wide, narrow, far = normal(400, 0, 1, 0), normal(400, 0, 0.1, 1), normal(400, 50, 1, 2)
    assert precision_recall(narrow, wide)[0] > 0.95
    assert precision_recall(narrow, wide)[1] < 0.2
    assert precision_recall(far, wide) == (0, 0)
    assert min(precision_recall(normal(400, 0, 1, 3), wide)) > 0.8


def test_spread_is_the_deviation_between_images():
    images = torch.stack([torch.full((3, 4, 4), value) for value in (0.2, 0.4)])
    assert spread(images) == pytest.approx(0.1 * 2**0.5)
    assert spread(torch.zeros(3, 3, 4, 4)) == 0
    grain = images + 0.05 * torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    assert spread(grain, block=4) == pytest.approx(spread(images), abs=0.02)
    with pytest.raises(ValueError, match="at least 2"):
        spread(images[:1])


def test_nearest_image_is_found_across_chunks():
    rng = np.random.default_rng(0)
    database = rng.integers(0, 256, (2500, 3, 4, 4), dtype=np.uint8)
    queries = (torch.from_numpy(database[[3, 2400]]).float() + 0.5) / 256
    queries[1] = (queries[1] + 0.1).clamp(max=1)
    found = nearest_distances(queries, database)
    assert found[0] == pytest.approx(0, abs=1e-3)
    assert 0.05 < found[1] < 0.11
    assert nearest_distances(queries, database, np.arange(100, 200)).min() > 0.15
