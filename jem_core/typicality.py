"""How typical a picture is of a model's data: figures, a Gaussian over them, and a rank among ordinary images.

A model with noise levels is asked to remove known noise at several of them. What it leaves (the denoising error, in
three bands of frequency) says at which scale a picture is strange to it, and how undecided the labels are says whether
it shows what the labels are about. Error, entropy and log density are also held against the picture's own turned
copies: how busy a picture is drops out of the difference, and an upright face is easier than the same face turned.
A model without levels has log p~(x) and its gradient norm instead. Far from ordinary images on any side is strange.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor
from torch.nn import functional as F

from jem_core.draws import density_figures
from jem_core.metrics import rounded
from jem_core.model import JointEnergyModel, log_prob_from_logits
from jem_core.random import generator

LEVELS = (0.1, 0.2, 0.5, 1.0, 2.0)
TURNED_FROM = 0.5  # the lowest level at which turned copies are looked at: below it all is texture
TURNS = (1, 2, 3)  # quarters
COARSE, FINE = 8, 2  # pixels at 64: the three bands are above, between and below these
CHUNK = 16
DRAWS = 2  # dequantization draws of a model without levels
PERCENTS = np.linspace(0, 100, 201)
UNUSUAL, UNLIKE = 95.0, 99.0  # percentiles among ordinary images from which on a picture is called so
VERDICTS = ("inside", "unusual", "unlike")
RIDGE = 1e-4  # on standardized figures
KIND = "distance"


class Reading(NamedTuple):
    """Where one picture stands among ordinary images."""

    distance: float  # about 1 for an ordinary image
    percentile: float  # of ordinary images that are nearer to the middle
    beyond: bool  # further out than every ordinary image
    verdict: str  # inside, unusual or unlike


@dataclass(frozen=True)
class Gate:
    """A Gaussian over figures, and the distances of ordinary images from its middle."""

    mean: np.ndarray  # (F,)
    root: np.ndarray  # (F, F): a distance is the length of (figures - mean) @ root
    quantiles: np.ndarray  # of ordinary images' distances, at PERCENTS

    def distance(self, figures: np.ndarray) -> np.ndarray:
        """Mahalanobis' distance of each row, divided by the square root of the number of figures. (N,)."""
        if figures.shape[-1] != len(self.mean):
            raise ValueError(f"There are {figures.shape[-1]} figures; this gate expects {len(self.mean)}.")
        away = (figures - self.mean) @ self.root
        return np.sqrt(np.square(away).mean(axis=-1))

    def read(self, distance: float) -> Reading:
        """The rank of a distance among ordinary images; not a number is as far out as can be."""
        distance = float(distance) if np.isfinite(distance) else float("inf")
        percentile = float(np.interp(distance, self.quantiles, PERCENTS))
        verdict = VERDICTS[(percentile > UNUSUAL) + (percentile > UNLIKE)]
        return Reading(distance, percentile, distance > float(self.quantiles[-1]), verdict)

    def as_json(self) -> dict:
        parts = {name: _plain(getattr(self, name)) for name in ("mean", "root", "quantiles")}
        return {"kind": KIND, "unusual": UNUSUAL, "unlike": UNLIKE} | parts

    @classmethod
    def from_json(cls, value: Mapping) -> Gate:
        if value.get("kind") != KIND:
            raise ValueError(f"The gate is of kind {value.get('kind')!r}; expected {KIND!r}: evaluate the model again.")
        return cls(*(np.asarray(value[name], dtype=np.float64) for name in ("mean", "root", "quantiles")))


def _plain(values: np.ndarray) -> list:
    if values.ndim > 1:
        return [_plain(row) for row in values]
    return [float(f"{value:.6g}") for value in values]


def figures(model: JointEnergyModel, images: Tensor) -> np.ndarray:
    """What is measured of uint8 pictures (N, 3, S, S): (N, F). Noise is fixed, so a picture has one answer."""
    if images.dtype != torch.uint8:
        raise ValueError(f"The pictures are {images.dtype}; expected uint8.")
    measure = _noisy_figures if model.levels else _plain_figures
    found = [measure(model, chunk) for chunk in images.split(CHUNK)]
    return torch.cat(found).double().cpu().numpy()


def _noisy_figures(model: JointEnergyModel, images: Tensor) -> Tensor:
    device, size = next(model.parameters()).device, model.image_size
    noise = torch.randn((len(LEVELS), 3, size, size), generator=generator(1)).to(device)
    columns = []
    for sigma, xi in zip(LEVELS, noise, strict=True):
        turns = (0, *TURNS) if sigma >= TURNED_FROM else (0,)
        copies = torch.cat([images.rot90(turn, (-2, -1)) for turn in turns]).to(device)
        clean = model.encode((copies.float() + 0.5) / 256)
        error, log_prob, entropy = _denoise(model, clean, sigma, xi)
        bands = _bands(error[: len(images)])
        columns += [*bands, entropy[: len(images)]]
        for figure in (error.square().mean(dim=(1, 2, 3)).log(), log_prob, entropy):
            own, *turned = figure.split(len(images))
            columns += [own - other for other in turned]
    return torch.stack(columns, dim=1)


def _denoise(model: JointEnergyModel, clean: Tensor, sigma: float, xi: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What is left of the noise after denoising, log p~_sigma of the noisy picture, and the entropy of its labels."""
    x = (clean + sigma * xi).requires_grad_()
    with torch.enable_grad():
        logits = model.at(sigma).logits(x)
        log_prob = log_prob_from_logits(logits)
        (grad,) = torch.autograd.grad(log_prob.sum(), x)
    error = (x + sigma**2 * grad - clean).detach()
    return error, log_prob.detach(), _entropy(logits.detach())


def _entropy(logits: Tensor) -> Tensor:
    """Of all labels together, given the picture: they are independent then. (N,)."""
    log_p = logits.log_softmax(dim=-1)
    return -(log_p.exp() * log_p).sum(dim=(-1, -2))


def _bands(error: Tensor) -> list[Tensor]:
    """The log energy of an error at low, middle and high frequencies, three of (N,)."""
    size = error.shape[-1]
    coarse, fine = (_averaged(error, max(1, side * size // 64)) for side in (COARSE, FINE))
    return [(part.square().mean(dim=(1, 2, 3)) + 1e-12).log() for part in (coarse, fine - coarse, error - fine)]


def _averaged(x: Tensor, side: int) -> Tensor:
    return F.interpolate(F.avg_pool2d(x, side), x.shape[-2:])


def _plain_figures(model: JointEnergyModel, images: Tensor) -> Tensor:
    copies = torch.cat([images.rot90(turn, (-2, -1)) for turn in (0, *TURNS)])
    columns = []
    for figure in density_figures(model, copies, DRAWS):
        own, *turned = figure.split(len(images))
        columns += [own, *(own - other for other in turned)]
    return torch.stack(columns, dim=1)


def fit(values: np.ndarray, ordinary: np.ndarray | None = None) -> Gate:
    """A gate from the figures of images (N, F). Distances are ranked among `ordinary` figures: other images, since the
    images that a Gaussian was fitted to lie too near; without them those of either half under the other's Gaussian."""
    values = np.asarray(values, dtype=np.float64)
    if len(values) < 4 or not np.isfinite(values).all():
        raise ValueError(f"A gate needs the finite figures of at least 4 images; there are {len(values)}.")
    mean, root = _gaussian(values)
    gate = Gate(mean, root, np.zeros(len(PERCENTS)))
    if ordinary is None:
        halves = values[::2], values[1::2]
        crossed = [Gate(*_gaussian(one), gate.quantiles).distance(other) for one, other in (halves, halves[::-1])]
        distances = np.concatenate(crossed)
    else:
        distances = gate.distance(np.asarray(ordinary, dtype=np.float64))
    return Gate(mean, root, np.quantile(distances, PERCENTS / 100))


def _gaussian(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Its mean, and the root of its inverse covariance."""
    mean, spread = values.mean(axis=0), values.std(axis=0) + 1e-9
    correlation = np.cov(((values - mean) / spread).T) + RIDGE * np.eye(values.shape[1])
    return mean, np.linalg.cholesky(np.linalg.inv(correlation)) / spread[:, None]


def gate_report(
    model: JointEnergyModel, fit_images: Tensor, ordinary_images: Tensor, strange: Mapping[str, Tensor]
) -> dict:
    """The gate as calibration.json keeps it, fitted on one set of images and ranked among another, with its AUROC for
    each kind of stranger: how often it finds one further out than an ordinary image."""
    ordinary = figures(model, ordinary_images)
    gate = fit(figures(model, fit_images), ordinary)
    near = gate.distance(ordinary)
    report = gate.as_json() | {"images": len(fit_images), "ordinary_images": len(ordinary_images)}
    report["ordinary_share"] = _shares(near)
    report["auroc"] = {name: _found(gate, near, figures(model, images)) for name, images in strange.items()}
    report["worst_auroc"] = min((entry["value"] for entry in report["auroc"].values()), default=None)
    return report


def _found(gate: Gate, near: np.ndarray, strange: np.ndarray) -> dict:
    far = np.nan_to_num(gate.distance(strange), nan=np.inf, posinf=1e12)
    truth = np.concatenate([np.zeros(len(near)), np.ones(len(far))])
    caught = np.mean([gate.read(value).verdict == VERDICTS[-1] for value in far])
    value = roc_auc_score(truth, np.concatenate([near, far]))
    return {"value": rounded(value), "images": len(far), "found_unlike": rounded(float(caught))}


def _shares(distances: np.ndarray) -> dict[str, float]:
    """The verdicts on ordinary images when either half is ranked among the other."""
    nobody, halves = np.zeros(0), (distances[::2], distances[1::2])
    found = []
    for mine, others in (halves, halves[::-1]):
        gate = Gate(nobody, nobody, np.quantile(others, PERCENTS / 100))
        found += [gate.read(value).verdict for value in mine]
    return {verdict: rounded(found.count(verdict) / len(found)) for verdict in VERDICTS}
