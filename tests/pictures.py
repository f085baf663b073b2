"""Pictures that anybody may see: one that each bundled model knows, and some that no model knows."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

import jem_core
from jem_core.data import avatars
from jem_core.places import ASSETS

PORTRAIT = ASSETS / "examples" / "astronaut.jpg"
BESIDE = ((0, 0, 150, 150), (330, 0, 512, 182), (0, 350, 150, 500))  # crops of the portrait without the face
HILLS = ((120, 140, 150), (80, 120, 70), (50, 90, 40))  # the farthest first


def as_png(image: Image.Image) -> bytes:
    target = io.BytesIO()
    image.save(target, "PNG")
    return target.getvalue()


def avatar(seed: int = 7) -> Image.Image:
    return Image.fromarray(avatars.draw(avatars.sample_attributes(seed), seed, 256).transpose(1, 2, 0))


def shoe(seed: int = 0) -> Image.Image:
    """A sample of our own model: no photograph of its data may be here."""
    bundle = jem_core.load("shoes")
    condition = jem_core.Condition.from_lists(bundle.names, required=["Boots", "Black"])
    image = jem_core.sample(bundle, condition, n=1, seed=seed).images[0]
    return Image.fromarray((image * 255).round().byte().permute(1, 2, 0).numpy())


def noise(seed: int = 0) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (200, 200, 3), dtype=np.uint8))


def landscape(seed: int = 0, width: int = 480, height: int = 360) -> Image.Image:
    """A sky that pales towards the horizon, and three rows of hills before it."""
    rng = np.random.default_rng(seed)
    down = np.linspace(0, 1, height)[:, None, None]
    pixels = np.repeat((1 - down) * np.array([90, 150, 230]) + down * np.array([230, 225, 215]), width, axis=1)
    x, y = np.arange(width), np.arange(height)[:, None]
    for row, colour in enumerate(HILLS):
        waves = [np.sin(x * wave * rng.uniform(0.005, 0.02) + rng.uniform(0, 6)) / wave for wave in range(1, 5)]
        pixels[y > height * (0.5 + 0.15 * row + 0.08 * sum(waves))] = colour
    return Image.fromarray((pixels + rng.normal(0, 6, pixels.shape)).clip(0, 255).astype(np.uint8))
