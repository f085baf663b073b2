"""Pictures from people: bytes in, an upright RGB picture out, or one sentence that says why not.

The kind of file is decided from its bytes. Size in bytes and in pixels is checked before anything is decoded. Colours
are taken as they are stored; colour profiles are metadata and go with the rest of it.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from jem_core.image_format import Header, ImageError, inspect

if TYPE_CHECKING:
    import torch

__all__ = ["CROPS", "ImageError", "read_image", "to_tensor"]

MAX_BYTES = 64 * 2**20
# By what a decoder needs for each: a JPEG is decoded at a reduced size, a PNG whole, a WebP whole and twice over, and
# forty bytes of WebP can state the largest size.
MAX_PIXELS = {"JPEG": 64_000_000, "PNG": 25_000_000, "WebP": 16_000_000}
MAX_SIDE = 65_535  # the longest side JPEG can state; PNG could state a strip one pixel high and millions wide
# Larger pictures are returned reduced to this side: no model here looks at more than a few hundred pixels of a face.
WORKING_SIDE = 2048

CROPS = ("centre", "pad", "stretch")

# EXIF orientation to the turn that makes the picture upright.
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def read_image(
    source: bytes | Path,
    *,
    max_bytes: int = MAX_BYTES,
    working_side: int = WORKING_SIDE,
) -> Image.Image:
    """An upright RGB picture of at most `working_side` pixels per side, without metadata; ImageError if refused.

    JPEG, PNG and WebP are read. Alpha is laid on white, 16 bits become 8, the first frame stands for an animation.
    """
    header = inspect(_read_bytes(source, max_bytes))
    width, height, pixels = header.width, header.height, header.width * header.height
    if pixels > MAX_PIXELS[header.format]:
        raise ImageError(
            f"The {header.format} picture is {width} by {height} pixels ({pixels / 1e6:.0f} megapixels); "
            f"at most {MAX_PIXELS[header.format] / 1e6:.0f} megapixels of a {header.format} are read."
        )
    if max(width, height) > MAX_SIDE:
        raise ImageError(f"The picture is {width} by {height} pixels; at most {MAX_SIDE} per side are read.")
    try:
        image = _decode(header, working_side)
    except Exception as error:  # decoders fail on hostile bytes in more ways than can be listed; all mean the same
        raise ImageError(f"The {header.format} picture cannot be decoded; it is damaged or cut short.") from error
    return image.transpose(TURNS[header.orientation]) if header.orientation in TURNS else image


def to_tensor(image: Image.Image, size: int, crop: str = "centre") -> torch.Tensor:
    """A square uint8 tensor (3, size, size), resized with antialiasing.

    crop: "centre" takes the largest square in the middle, "pad" lays the whole picture on white, "stretch" squeezes it.
    """
    if crop not in CROPS:
        raise ValueError(f"crop is {crop!r}; choose one of {', '.join(CROPS)}.")
    if size < 1:
        raise ValueError(f"size is {size}; it must be at least 1.")
    image = image.convert("RGB")
    width, height = image.size
    if crop == "pad":
        side = max(width, height)
        square = Image.new("RGB", (side, side), "white")
        square.paste(image, ((side - width) // 2, (side - height) // 2))
        image = square
    if crop == "centre":
        side = min(width, height)
        left, top = (width - side) // 2, (height - side) // 2
        image = image.crop((left, top, left + side, top + side))
    image = image.resize((size, size), Image.Resampling.BILINEAR)
    import torch  # here: a process that only decodes does without it

    return torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()


def _read_bytes(source: bytes | Path, max_bytes: int) -> bytes:
    if isinstance(source, Path):
        if not source.is_file():
            raise ImageError(f"There is no picture at {source}.")
        size = source.stat().st_size
    elif isinstance(source, bytes):
        size = len(source)
    else:
        raise ImageError(f"A picture is given as bytes or as a Path, not as {type(source).__name__}.")
    if size > max_bytes:
        raise ImageError(f"The picture is {size / 2**20:.0f} MB; at most {max_bytes / 2**20:.0f} MB is allowed.")
    if isinstance(source, bytes):
        return source
    try:
        return source.read_bytes()
    except OSError as error:
        raise ImageError(f"The picture at {source} cannot be read: {error.strerror}.") from error


def _decode(header: Header, working_side: int) -> Image.Image:
    scale = min(1.0, working_side / max(header.width, header.height))
    target = (max(1, round(header.width * scale)), max(1, round(header.height * scale)))
    with Image.open(io.BytesIO(header.data), formats=[header.format.upper()]) as image:
        if image.size != (header.width, header.height):
            raise ValueError(f"the decoder sees {image.size}, the header says {header.width} by {header.height}")
        image.draft(None, target)  # JPEG only: decodes at a half, a quarter or an eighth where that is enough
        image.load()
        plain = _plain_mode(image)
    if plain.size != target:
        plain = plain.resize(target, Image.Resampling.BILINEAR, reducing_gap=2.0)
    return _on_white(plain)


def _plain_mode(image: Image.Image) -> Image.Image:
    """To a mode that can be averaged: L, LA, RGB, RGBA or CMYK."""
    if image.mode.startswith("I"):  # 16-bit grey: the high byte, as Pillow itself does for 16-bit colour
        values = np.asarray(image).astype(np.uint16)
        grey = (values >> 8).astype(np.uint8)
        if "transparency" in image.info:
            grey[values == image.info["transparency"]] = 255
        return Image.fromarray(grey)
    if "transparency" in image.info:
        return image.convert("RGBA")
    if image.mode in ("1", "P"):
        return image.convert("RGB")
    return image


def _on_white(image: Image.Image) -> Image.Image:
    if image.mode in ("LA", "RGBA", "PA"):
        image = image.convert("RGBA")
        result = Image.new("RGB", image.size, "white")
        result.paste(image, mask=image.getchannel("A"))
    else:
        result = image.convert("RGB")
    result.info.clear()
    return result
