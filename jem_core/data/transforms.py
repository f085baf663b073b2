"""From stored bytes to what the model sees, and the augmentation of chains: on tensors, vectorized, seeded.

Data: x = clamp((u8 + uniform) / 256 + noise_std * normal, 0, 1). Chains: at a buffer draw an image is flipped or
blurred, one coin per image as in Du et al. (the official code throws one coin per batch).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import conv2d, pad

from jem_core.random import Randomness, normal, uniform

BLUR_KERNEL = 5
SMALLEST_SIGMA = 0.1


def dequantize(images: Tensor, generator: Randomness) -> Tensor:
    """Bytes 0..255 to float in [0, 1): each byte becomes a uniform draw from its own 256th."""
    if images.dtype != torch.uint8:
        raise ValueError(f"Images to dequantize are uint8, not {images.dtype}.")
    noise = uniform(images.shape, generator, images.device)
    return ((images.float() + noise) / 256).clamp_(max=1 - 2**-24)  # 255 + u rounds to 256 for u just below 1


def training_transform(images: Tensor, noise_std: float, generator: Randomness) -> Tensor:
    """What a training image goes through: dequantization, Gaussian noise, clamp to [0, 1]."""
    x = dequantize(images, generator)
    if noise_std:
        x = x + noise_std * normal(x.shape, generator, x.device)
    return x.clamp_(0, 1)


def augment_chains(
    x: Tensor,
    generator: Randomness,
    flip: bool | float = False,
    blur_probability: float = 0.1,
    blur_sigma: float = 1.0,
) -> Tensor:
    """Flip (`True` means one image in two) and blur chains, one coin each; sigma ~ U(0.1, blur_sigma), kernel 5."""
    coins = uniform((len(x), 3), generator, x.device)
    flip_probability = 0.5 * flip if isinstance(flip, bool) else flip
    column = (-1, 1, 1, 1)
    if flip_probability:
        x = torch.where((coins[:, 0] < flip_probability).view(column), x.flip(-1), x)
    if blur_probability:
        sigma = SMALLEST_SIGMA + coins[:, 2] * max(0.0, blur_sigma - SMALLEST_SIGMA)
        x = torch.where((coins[:, 1] < blur_probability).view(column), gaussian_blur(x, sigma), x)
    return x


def gaussian_blur(x: Tensor, sigma: Tensor) -> Tensor:
    """Blur each image with a sigma of its own (N,): separable, kernel 5, borders reflected.

    torchvision's `gaussian_blur` takes one sigma per call; where all images have the same, both agree.
    """
    n, channels, height, width = x.shape
    half = BLUR_KERNEL // 2
    offsets = torch.arange(-half, half + 1, device=x.device, dtype=x.dtype)
    kernels = torch.exp(-0.5 * (offsets / sigma.to(x.dtype).view(n, 1)) ** 2)
    kernels = (kernels / kernels.sum(1, keepdim=True)).repeat_interleave(channels, 0)
    flat = pad(x, (half, half, half, half), mode="reflect").reshape(
        1, n * channels, height + 2 * half, width + 2 * half
    )
    flat = conv2d(flat, kernels.view(-1, 1, 1, BLUR_KERNEL), groups=n * channels)
    flat = conv2d(flat, kernels.view(-1, 1, BLUR_KERNEL, 1), groups=n * channels)
    return flat.reshape(n, channels, height, width).clamp_(0, 1)  # weights that round to more than 1 brighten white
