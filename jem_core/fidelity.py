"""How samples compare with real images: Frechet distance, precision and recall, spread, nearest training image."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from jem_core.metrics import rounded

NEIGHBOURS = 3
CHUNK = 1000


def frechet_distance(a: Tensor, b: Tensor) -> float:
    """Between Gaussians fitted to two sets of features (N, F): |m1 - m2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2))."""
    a, b = a.double(), b.double()
    first, second = torch.cov(a.T), torch.cov(b.T)
    values, vectors = torch.linalg.eigh(first)
    root = (vectors * values.clamp(min=0).sqrt()) @ vectors.T
    # (C1 C2)^(1/2) and (R C2 R)^(1/2), R^2 = C1, have the same trace, and the latter is symmetric.
    cross = torch.linalg.eigvalsh(root @ second @ root).clamp(min=0).sqrt().sum()
    distance = (a.mean(dim=0) - b.mean(dim=0)).square().sum() + first.trace() + second.trace() - 2 * cross
    return max(0.0, distance.item())


def precision_recall(samples: Tensor, real: Tensor, k: int = NEIGHBOURS) -> tuple[float, float]:
    """Improved precision and recall (Kynkaanniemi et al.): the share of samples that fall within reach of a real image
    (its k-th nearest real neighbour), and the share of real images within reach of a sample."""
    return _covered(samples, real, k), _covered(real, samples, k)


def _covered(points: Tensor, manifold: Tensor, k: int) -> float:
    reach = torch.cdist(manifold, manifold).kthvalue(min(k + 1, len(manifold)), dim=1).values  # itself comes first
    return (torch.cdist(points, manifold) <= reach).any(dim=1).float().mean().item()


def spread(images: Tensor, block: int = 1) -> float:
    """The standard deviation between images at each pixel, averaged over pixels.

    With `block` 4, between means over 4 x 4 pixels: grain, which is no variety, averages out.
    """
    if len(images) < 2:
        raise ValueError(f"The spread between {len(images)} images is undefined; expected at least 2.")
    x = images if images.is_floating_point() else (images.float() + 0.5) / 256
    return avg_pool2d(x, block).std(dim=0).mean().item()


def nearest_distances(queries: Tensor, database: np.ndarray | Tensor, rows: np.ndarray | None = None) -> Tensor:
    """Root mean square pixel distance from each query, float in [0, 1], to its nearest image (uint8). (N,)."""
    rows = np.arange(len(database)) if rows is None else rows
    flat = queries.flatten(1)
    best = torch.full((len(queries),), torch.inf)
    for first in range(0, len(rows), CHUNK):
        part = torch.as_tensor(np.ascontiguousarray(database[rows[first : first + CHUNK]]))
        squared = torch.cdist(flat, (part.flatten(1).float() + 0.5) / 256) ** 2
        best = torch.minimum(best, squared.min(dim=1).values)
    return (best / flat.shape[1]).sqrt()


def compare_features(samples: Tensor, real: Tensor) -> dict:
    """Frechet distance, precision and recall of one set of features against another."""
    precision, recall = precision_recall(samples, real)
    return {
        "images": len(samples),
        "frechet_distance": rounded(frechet_distance(samples, real), 4),
        "precision": rounded(precision),
        "recall": rounded(recall),
    }
