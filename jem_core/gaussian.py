"""The data's mean and covariance at low rank: where informed chains start, and how their steps are preconditioned.

With the labels' covariance beside them, the same Gaussian can be drawn given some labels: the conditional start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from jem_core.condition import FREE
from jem_core.random import Randomness, normal, uniform

RIDGE = 0.001  # on the labels' variances: attributes that nearly determine each other must not be played off
IMAGE_PARTS = ("mean", "basis", "low", "high")
SMALL_PARTS = ("scales", "label_mean", "label_cov", "cross_cov")


@dataclass(frozen=True)
class LowRankGaussian:
    """N(mean, basis' diag(scales^2) basis + residual_std^2 I) over images, with the data's bounds for each pixel."""

    mean: Tensor  # (3, S, S)
    basis: Tensor  # (rank, 3 S S), orthonormal rows
    scales: Tensor  # (rank,), standard deviations along the rows
    residual_std: float  # of what the basis leaves out
    low: Tensor  # (3, S, S), smallest value of each pixel
    high: Tensor  # (3, S, S), largest value of each pixel
    label_mean: Tensor  # (K,), of labels 0 and 1
    label_cov: Tensor  # (K, K)
    cross_cov: Tensor  # (rank, K), of coordinates along the rows with labels

    @classmethod
    def fit(cls, images: Tensor, labels: Tensor, rank: int, seed: int = 0) -> LowRankGaussian:
        """From uint8 images (N, 3, S, S) by a randomized principal component analysis, and their labels (N, K).

        An unknown label (-1) counts as an average one. What labels say of images keeps its size then, and together
        they keep a covariance that is one.
        """
        if images.dtype != torch.uint8 or images.ndim != 4:
            raise ValueError(f"The images are {images.dtype} {tuple(images.shape)}; expected uint8 (N, 3, S, S).")
        if len(images) < 2 or rank < 1:
            expected = "expected a rank of at least 1 and at least 2 images"
            raise ValueError(f"The Gaussian has rank {rank} from {len(images)} images; {expected}.")
        if labels.ndim != 2 or len(labels) != len(images):
            raise ValueError(f"The labels are {tuple(labels.shape)} for {len(images)} images; expected (N, K).")
        pixels = (images.flatten(1).float() + 0.5) / 256
        mean = pixels.mean(dim=0)
        centred = pixels - mean
        with torch.random.fork_rng(devices=[]):  # svd_lowrank takes no generator
            torch.manual_seed(seed)
            _, values, vectors = torch.svd_lowrank(centred, q=min(rank + 16, *centred.shape), niter=4)
        values, basis = values[:rank], vectors[:, :rank].T.contiguous()
        left_over = (centred.square().sum() - values.square().sum()).clamp(min=0) / centred.numel()
        shape, known = images.shape[1:], labels != FREE
        label_mean = torch.where(known, labels, 0).sum(dim=0) / known.sum(dim=0).clamp(min=1)
        away = torch.where(known, labels - label_mean, 0)
        return cls(
            mean=mean.view(shape),
            basis=basis,
            scales=values / len(pixels) ** 0.5,
            residual_std=left_over.sqrt().item(),
            low=pixels.amin(dim=0).view(shape),
            high=pixels.amax(dim=0).view(shape),
            label_mean=label_mean,
            label_cov=away.T @ away / len(away),
            cross_cov=basis @ (centred.T @ away) / len(away),
        )

    def sample(
        self,
        n: int,
        randomness: Randomness,
        condition: Tensor | None = None,
        grain: float = 0.0,
        variety: float = 1.0,
    ) -> Tensor:
        """Informed noise, clamped to [0, 1]; given the asked labels of a condition (n, K) where there is one.

        `variety` multiplies the spread: below 1 draws lie nearer to the mean of what is asked, where the Gaussian is
        closest to the data, so that chains begin with fewer ghosts of hats and hair that belong to nobody.
        `grain` is the share of the white noise that belongs to what the basis leaves out. It takes chains longest to
        remove: a visitor's begin without it, training's with some, so that the model learns what grain is.
        """
        shape = (n, *self.mean.shape)
        along = normal((n, len(self.scales)), randomness, self.mean.device) * variety
        along = along * self.scales if condition is None else self._given(condition, along)
        x = self.mean + (along @ self.basis).view(shape)
        if grain:
            x += normal(shape, randomness, self.mean.device) * (self.residual_std * grain)
        return x.clamp_(0, 1)

    def mean_image(self, condition: Tensor) -> Tensor:
        """The mean of images given the asked labels (n, K), in [0, 1] up to what a linear fit overshoots."""
        nothing = self.mean.new_zeros((len(condition), len(self.scales)))
        return self.mean + (self._given(condition, nothing) @ self.basis).view(-1, *self.mean.shape)

    def _given(self, condition: Tensor, noise: Tensor) -> Tensor:
        """Coordinates z given labels y_c, under the Gaussian of both, from standard normal noise.

        Their mean is C_zc C_cc^-1 (y_c - m_c), their covariance C_zz - C_zc C_cc^-1 C_cz.
        """
        if condition.shape != (len(noise), len(self.label_mean)):
            expected = (len(noise), len(self.label_mean))
            raise ValueError(f"The condition is {tuple(condition.shape)}; this start expects {expected}.")
        along = noise * self.scales
        for row in condition.unique(dim=0):
            asked, rows = row != FREE, (condition == row).all(dim=1)
            if not asked.any():
                continue
            cross = self.cross_cov[:, asked].double()
            own = self.label_cov[asked][:, asked].double()
            own.diagonal().add_(RIDGE)
            slope = torch.linalg.solve(own, cross.T).T
            left = self.scales.double().square().diag() - slope @ cross.T
            left.diagonal().add_(1e-6 * left.diagonal().max())  # rounding must not make it indefinite
            mean = slope @ (row - self.label_mean)[asked].double()
            along[rows] = (mean + noise[rows].double() @ torch.linalg.cholesky(left).T).float()
        return along

    def leading(self, rank: int) -> LowRankGaussian:
        """The same with its first directions alone; the variance along the others counts as left over."""
        cut = self.scales[rank:].square().sum().item() / self.mean.numel()
        parts = {name: getattr(self, name)[:rank].clone() for name in ("basis", "scales", "cross_cov")}
        return replace(self, residual_std=(self.residual_std**2 + cut) ** 0.5, **parts)

    def uniform(self, n: int, randomness: Randomness) -> Tensor:
        """The paper's start: uniform between the bounds of each pixel."""
        draws = uniform((n, *self.mean.shape), randomness, self.mean.device)
        return self.low + (self.high - self.low) * draws

    def to(self, device: torch.device | str) -> LowRankGaussian:
        moved = {name: getattr(self, name).to(device) for name in (*IMAGE_PARTS, *SMALL_PARTS)}
        return LowRankGaussian(residual_std=self.residual_std, **moved)

    def save(self, path: Path) -> None:
        """Half precision: a start needs no more, and the basis is the largest file of a small model."""
        tensors = {name: getattr(self, name).half().contiguous() for name in IMAGE_PARTS}
        tensors |= {name: getattr(self, name).contiguous() for name in SMALL_PARTS}
        save_file(tensors | {"residual_std": torch.tensor(self.residual_std)}, path)

    @classmethod
    def load(cls, path: Path) -> LowRankGaussian:
        tensors = {name: value.float() for name, value in load_file(path).items()}
        missing = [name for name in (*IMAGE_PARTS, *SMALL_PARTS, "residual_std") if name not in tensors]
        if missing:
            raise ValueError(f"{path} has no {', '.join(missing)}: it is not a start distribution of this version.")
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
