"""The data's mean and covariance at low rank: where informed chains start, and how their steps are preconditioned."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from jem_core.random import Randomness, normal, uniform


@dataclass(frozen=True)
class LowRankGaussian:
    """N(mean, basis' diag(scales^2) basis + residual_std^2 I) over images, with the data's bounds for each pixel."""

    mean: Tensor  # (3, S, S)
    basis: Tensor  # (rank, 3 S S), orthonormal rows
    scales: Tensor  # (rank,), standard deviations along the rows
    residual_std: float  # of what the basis leaves out
    low: Tensor  # (3, S, S), smallest value of each pixel
    high: Tensor  # (3, S, S), largest value of each pixel

    @classmethod
    def fit(cls, images: Tensor, rank: int, seed: int = 0) -> LowRankGaussian:
        """From uint8 images (N, 3, S, S) by a randomized principal component analysis."""
        if images.dtype != torch.uint8 or images.ndim != 4:
            raise ValueError(f"The images are {images.dtype} {tuple(images.shape)}; expected uint8 (N, 3, S, S).")
        if len(images) < 2 or rank < 1:
            raise ValueError(f"A Gaussian of rank {rank} from {len(images)} images: expected 1 and 2 at least.")
        pixels = (images.flatten(1).float() + 0.5) / 256
        mean = pixels.mean(dim=0)
        centred = pixels - mean
        with torch.random.fork_rng(devices=[]):  # svd_lowrank takes no generator
            torch.manual_seed(seed)
            _, values, vectors = torch.svd_lowrank(centred, q=min(rank + 16, *centred.shape), niter=4)
        values, basis = values[:rank], vectors[:, :rank].T.contiguous()
        left_over = (centred.square().sum() - values.square().sum()).clamp(min=0) / centred.numel()
        shape = images.shape[1:]
        return cls(
            mean=mean.view(shape),
            basis=basis,
            scales=values / len(pixels) ** 0.5,
            residual_std=left_over.sqrt().item(),
            low=pixels.amin(dim=0).view(shape),
            high=pixels.amax(dim=0).view(shape),
        )

    def sample(self, n: int, randomness: Randomness, residual: float = 0.5) -> Tensor:
        """Informed noise, clamped to [0, 1]. White noise takes chains longest to remove: `residual` shrinks it."""
        device = self.mean.device
        along = normal((n, len(self.scales)), randomness, device) * self.scales
        white = normal((n, *self.mean.shape), randomness, device) * (self.residual_std * residual)
        return (self.mean + (along @ self.basis).view(white.shape) + white).clamp_(0, 1)

    def uniform(self, n: int, randomness: Randomness) -> Tensor:
        """The paper's start: uniform between the bounds of each pixel."""
        draws = uniform((n, *self.mean.shape), randomness, self.mean.device)
        return self.low + (self.high - self.low) * draws

    def to(self, device: torch.device | str) -> LowRankGaussian:
        moved = {name: getattr(self, name).to(device) for name in ("mean", "basis", "scales", "low", "high")}
        return LowRankGaussian(residual_std=self.residual_std, **moved)

    def save(self, path: Path) -> None:
        """Half precision: a start needs no more, and the basis is the largest file of a small model."""
        tensors = {name: getattr(self, name).half().contiguous() for name in ("mean", "basis", "low", "high")}
        tensors |= {"scales": self.scales.contiguous(), "residual_std": torch.tensor(self.residual_std)}
        save_file(tensors, path)

    @classmethod
    def load(cls, path: Path) -> LowRankGaussian:
        tensors = {name: value.float() for name, value in load_file(path).items()}
        return cls(residual_std=tensors.pop("residual_std").item(), **tensors)


@dataclass(frozen=True)
class Preconditioner:
    """M = I + strength * V' diag(s / s_max) V from the data's covariance, s its eigenvalues.

    x += grad_coef * M g + noise_std * M^(1/2) xi leaves the target distribution as it is (M is constant and positive)
    and moves whole-image features such as hair or skin in a few steps instead of hundreds.
    """

    basis: Tensor  # (rank, D)
    gains: Tensor  # (rank,), eigenvalues of M along the basis, minus 1
    strength: float

    @classmethod
    def from_gaussian(cls, gaussian: LowRankGaussian, strength: float) -> Preconditioner:
        if not strength > 0:
            raise ValueError(f"The preconditioner's strength is {strength!r}; expected a number above 0.")
        variances = gaussian.scales.square()
        return cls(gaussian.basis, strength * variances / variances.max().clamp(min=1e-12), strength)

    def apply(self, v: Tensor) -> Tensor:
        """M v."""
        return self._along(v, self.gains)

    def apply_sqrt(self, v: Tensor) -> Tensor:
        """M^(1/2) v."""
        return self._along(v, (1 + self.gains).sqrt() - 1)

    def _along(self, v: Tensor, gains: Tensor) -> Tensor:
        flat = v.flatten(1)
        return v + ((flat @ self.basis.T * gains) @ self.basis).view(v.shape)
