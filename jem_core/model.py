"""What every joint energy model is: two logits per attribute, and the one formula (the paper's Eq. 4 and 5).

A network lives in `jem_core.networks`. Most know the noise level of an image as one more input; for whoever steps
chains, a level is a view: `model.at(sigma)` has `logits` and nothing else to learn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jem_core.condition import FREE

IMAGE_SIZES = (32, 64, 128)
FOLDS = (1, 2, 4)


def log_prob_from_logits(logits: Tensor, y: Tensor | None = None, observed: Tensor | None = None) -> Tensor:
    """log p~(x, y_obs), up to the one constant log Z; (N,).

    Observed attributes add their logit, all others are summed out:
    sum over observed k of f(x)[k][y_k], plus sum over the rest of logsumexp f(x)[k]. All observed: the joint (Eq. 5).
    None observed: log p~(x) (appendix A.2). Some: the marginalizing sampler's target (Eq. 8), and training rows with
    missing labels.
    """
    # Of two logits. Not torch.logaddexp: its second derivative, which denoising needs, is NaN where they differ by 89.
    marginal = logits[..., 0] - F.logsigmoid(logits[..., 0] - logits[..., 1])
    if y is None:
        return marginal.sum(dim=-1)
    chosen = logits.gather(-1, y.clamp(min=0).unsqueeze(-1))[..., 0]  # an unknown label (-1) is never observed
    if observed is None:
        return chosen.sum(dim=-1)
    return torch.where(observed, chosen, marginal).sum(dim=-1)


class HasLogits(Protocol):
    """All that a sampler needs of a model."""

    @property
    def image_size(self) -> int: ...

    @property
    def num_attributes(self) -> int: ...

    def logits(self, x: Tensor) -> Tensor: ...


class JointEnergyModel(nn.Module):
    """K binary attributes and images of one size. A network adds `logits` or `at`, and says how to build itself."""

    network: ClassVar[str]  # its name in configs
    levels: ClassVar[bool] = False  # whether it knows noise levels
    lowest: ClassVar[float] = 0.0  # the level at which pictures are looked at
    shape_keys: ClassVar[tuple[str, ...]] = ()  # what describes it besides names, image size and fold

    def __init__(self, names: Sequence[str], image_size: int, fold: int) -> None:
        super().__init__()
        if image_size not in IMAGE_SIZES:
            raise ValueError(f"The image size is {image_size!r}; choose one of {', '.join(map(str, IMAGE_SIZES))}.")
        if fold not in FOLDS:
            raise ValueError(f"The fold is {fold!r}; choose one of {', '.join(map(str, FOLDS))}.")
        if not names or len(set(names)) != len(names):
            raise ValueError(f"The attribute names are {list(names)!r}; give at least one, each only once.")
        self.names = tuple(names)
        self.image_size = image_size
        self.fold = fold

    @property
    def num_attributes(self) -> int:
        return len(self.names)

    def config(self) -> dict:
        """What it takes to build this network again."""
        shared = {"network": self.network, "names": list(self.names), "image_size": self.image_size, "fold": self.fold}
        return shared | {name: getattr(self, name) for name in self.shape_keys}

    def at(self, sigma: float | Tensor) -> HasLogits:
        """The model of images with Gaussian noise of spread sigma, as samplers see it."""
        if sigma != 0:
            raise ValueError(f"The level is {sigma}; this model knows no noise: its one level is 0.")
        return self

    def logits(self, x: Tensor) -> Tensor:
        """f(x): two logits per attribute, (N, K, 2), at the lowest level. `x` is on the chains' own scale."""
        return self.at(self.lowest).logits(x)

    def encode(self, images: Tensor) -> Tensor:
        """Images in [0, 1] on the scale that chains run on."""
        return images

    def decode(self, x: Tensor) -> Tensor:
        """What a chain holds, as images in [0, 1]."""
        return x

    def log_prob(self, images: Tensor, y: Tensor | None = None, observed: Tensor | None = None) -> Tensor:
        """log p~(x, y_obs) by the one formula of `log_prob_from_logits`; no labels gives log p~(x). (N,)."""
        check_images(images, self.image_size)
        if y is not None:
            check_labels(y, observed, (len(images), self.num_attributes))
        elif observed is not None:
            raise ValueError("A mask of observed labels was given without labels y.")
        return log_prob_from_logits(self.logits(self.encode(images)), y, observed)

    def predict(self, images: Tensor) -> Tensor:
        """P(y_k = 1 | x), a softmax over the two logits of each attribute (Eq. 7). (N, K)."""
        check_images(images, self.image_size)
        return self.logits(self.encode(images)).softmax(dim=-1)[..., 1]

    def check_input(self, x: Tensor) -> None:
        """Refuse a batch of another shape, kind or device than this model's, before a layer does in its own words."""
        weight = next(self.parameters())
        if x.device != weight.device or x.dtype != weight.dtype:
            raise ValueError(f"The images are {x.dtype} on {x.device}, the model is {weight.dtype} on {weight.device}.")
        check_shape(x, self.image_size)


def check_level(sigma: float) -> float:
    """Refuse a noise level that is none."""
    if not (isinstance(sigma, int | float) and 0 < sigma < math.inf):
        raise ValueError(f"The noise level is {sigma!r}; expected a finite number above 0.")
    return float(sigma)


def check_levels(sigma: Tensor) -> Tensor:
    """The same of one level for each image."""
    bad = sigma[~((sigma > 0) & sigma.isfinite())]
    if len(bad):
        raise ValueError(f"One of the noise levels is {bad[0].item():g}; expected finite numbers above 0.")
    return sigma


def check_shape(x: Tensor, image_size: int) -> None:
    if x.ndim != 4 or x.shape[1:] != (3, image_size, image_size):
        raise ValueError(f"The images have shape {tuple(x.shape)}; expected (N, 3, {image_size}, {image_size}).")


def check_images(x: Tensor, image_size: int) -> None:
    """Refuse what is not a batch of finite images in [0, 1]: the check at every door, too slow for every step."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"The images are {kind}; expected a floating-point tensor with values in [0, 1].")
    check_shape(x, image_size)
    low, high = (bound.item() for bound in x.aminmax()) if x.numel() else (0.0, 0.0)
    if not (low >= 0.0 and high <= 1.0):
        raise ValueError(f"The images range from {low:g} to {high:g}; expected finite values in [0, 1].")


def check_labels(y: Tensor, observed: Tensor | None, shape: tuple[int, ...], name: str = "y") -> None:
    """Refuse labels that are not int64 (N, K), or not 0 or 1 where they are observed (everywhere without a mask)."""
    for title, value, kind in ((name, y, torch.int64), ("observed", observed, torch.bool)):
        if value is not None and (value.shape != shape or value.dtype != kind):
            found, wanted = f"{value.dtype} {tuple(value.shape)}", f"{kind} {shape}"
            raise ValueError(f"{title} is {found}; expected {wanted}: images, attributes.")
    bad = (y != 0) & (y != 1)
    if observed is not None:
        bad = bad & (observed | (y != FREE))
    if bad.any():
        raise ValueError(f"{name} holds the value {y[bad][0].item()}; expected 0 or 1, or -1 where it is not observed.")


def check_weights(model: nn.Module) -> None:
    """Refuse weights that are not finite, by the name of the first bad one."""
    for name, weight in model.named_parameters():
        if not torch.isfinite(weight).all():
            raise ValueError(f"The weight {name} holds NaN or infinite values; expected finite numbers.")
