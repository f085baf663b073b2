"""Pictures of a run: the grid as it is sent to the browser, and a film of it for the animation."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

JPEG_QUALITY = 90
ANIMATIONS = {"gif": "image/gif", "webp": "image/webp"}
MILLISECONDS, REST = 80, 1500
MOST_BYTES = 3_000_000  # of an animation: what people can send to each other
# Frames and the longer side of an animation, the finest first: the first that stays small enough is taken.
SIZES = ((80, 512), (60, 448), (48, 384), (36, 320), (24, 256), (16, 192))
PROBE = 6  # frames that tell how large all will be
NAME = "Gibbs-JEM Studio"


def columns(n: int) -> int:
    """How many chains stand side by side: the squarest grid."""
    return math.ceil(math.sqrt(n))


def tile(x: Tensor) -> np.ndarray:
    """Images (N, 3, S, S) in [0, 1] as one picture (rows S, columns S, 3), uint8, without gaps."""
    images = (x.nan_to_num(0).clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
    n, size = images.shape[:2]
    across = columns(n)
    down = math.ceil(n / across)
    sheet = np.zeros((down * across, size, size, 3), np.uint8)
    sheet[:n] = images
    return sheet.reshape(down, across, size, size, 3).swapaxes(1, 2).reshape(down * size, across * size, 3)


def jpeg(sheet: np.ndarray) -> bytes:
    # Full colour resolution: at 32 pixels a face, halved colour shows. Tiles are whole JPEG blocks, so none bleeds.
    target = io.BytesIO()
    Image.fromarray(sheet).save(target, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    return target.getvalue()


def png(sheet: np.ndarray) -> bytes:
    target = io.BytesIO()
    Image.fromarray(sheet).save(target, "PNG", compress_level=3)
    return target.getvalue()


def _nothing() -> None:
    pass


@dataclass
class Film:
    """Some frames of a run, evenly spread: when there are too many, every second one goes."""

    most: int = 160
    across: int = 1  # tiles side by side in each picture
    stride: int = 1  # steps from one frame to the next
    frames: list[tuple[int, str, list[bytes]]] = field(default_factory=list)  # step, caption, a JPEG for each lane

    def add(self, step: int, caption: str, pictures: list[bytes]) -> None:
        if self.frames and step < self.frames[-1][0] + self.stride:
            return
        self.frames.append((step, caption, pictures))
        if len(self.frames) > self.most:
            self.frames = self.frames[::2]
            self.stride *= 2

    def animation(self, kind: str, progress: Callable[[], None] = _nothing) -> bytes:
        """The run as an animated GIF or WebP of at most MOST_BYTES, its caption below; it rests on the last frame.

        `progress` is called before every picture.
        """
        if kind not in ANIMATIONS:
            raise ValueError(f"There is no animation {kind!r}; choose {' or '.join(ANIMATIONS)}.")
        if len(self.frames) < 2:
            raise ValueError("There is nothing to animate yet: let the pictures take a few steps first.")
        for count, side in SIZES:
            pictures = [_still(*frame, side, self.across) for frame in _each(spread(self.frames, count), progress)]
            few = spread(pictures, PROBE)
            if len(_encode(few, kind, progress=progress)) * len(pictures) / len(few) > MOST_BYTES:
                continue
            data = _encode(pictures, kind, progress=progress)
            if len(data) <= MOST_BYTES:
                return data
        raise ValueError("This run is too long for an animation; save the picture instead.")


def _each(items: list, progress: Callable[[], None]) -> Iterator:
    for item in items:
        progress()
        yield item


def spread(items: list, count: int) -> list:
    """At most `count` of them, evenly spread, the first and the last among them."""
    if len(items) <= count:
        return list(items)
    return [items[round(i * (len(items) - 1) / (count - 1))] for i in range(count)]


def row(x: Tensor) -> np.ndarray:
    """Images (N, 3, S, S) in [0, 1] side by side, uint8 (S, N S, 3)."""
    images = (x.nan_to_num(0).clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
    return np.concatenate(list(images), axis=1)


def animate(pictures: list[np.ndarray], between: int, side: int = 256) -> bytes:
    """Pictures that fade into one another and back, as WebP."""
    frames: list[Image.Image] = []
    large = [Image.fromarray(one).resize((side, side), Image.Resampling.BICUBIC) for one in pictures]
    for first, second in pairwise(large):
        frames += [Image.blend(first, second, i / (between + 1)) for i in range(between + 1)]
    frames.append(large[-1])
    there_and_back = [*frames, *frames[-2:0:-1]]
    durations = [MILLISECONDS] * len(there_and_back)
    durations[0] = durations[len(frames) - 1] = REST // 2
    return _encode(there_and_back, "webp", durations)


def _encode(
    pictures: list[Image.Image],
    kind: str,
    durations: list[int] | None = None,
    progress: Callable[[], None] = _nothing,
) -> bytes:
    # Pillow asks for the pictures of a GIF, which take long, one by one. Of a WebP it wants all first: that is quick.
    target = io.BytesIO()
    durations = durations or [MILLISECONDS] * (len(pictures) - 1) + [REST]
    options = {"save_all": True, "append_images": _each(pictures[1:], progress), "duration": durations, "loop": 0}
    if kind == "gif":
        pictures[0].save(target, "GIF", optimize=False, disposal=1, **options)
    else:
        pictures[0].save(target, "WEBP", quality=80, method=2, **options)
    return target.getvalue()


def _enlarged(sheet: Image.Image, across: int, side: int) -> Image.Image:
    """A sheet of tiles, each `side` wide: they are enlarged one by one, so that none bleeds into its neighbour."""
    size = sheet.width // across
    large = Image.new("RGB", (across * side, sheet.height // size * side))
    for top in range(0, sheet.height, size):
        for left in range(0, sheet.width, size):
            tile = sheet.crop((left, top, left + size, top + size))
            large.paste(tile.resize((side, side), Image.Resampling.BICUBIC), (left // size * side, top // size * side))
    return large


def _still(step: int, caption: str, pictures: list[bytes], side: int, across: int) -> Image.Image:
    sheets = [Image.open(io.BytesIO(picture)).convert("RGB") for picture in pictures]
    grids = [_enlarged(sheet, across, round(side / (across * len(sheets)))) for sheet in sheets]
    gap, bar = 8, 26
    width = sum(grid.width for grid in grids) + gap * (len(grids) - 1)
    still = Image.new("RGB", (width, grids[0].height + bar), "white")
    left = 0
    for grid in grids:
        still.paste(grid, (left, 0))
        left += grid.width + gap
    draw, font = ImageDraw.Draw(still), ImageFont.load_default(size=13)
    middle = grids[0].height + bar // 2
    room = width - 20 - font.getlength(NAME)
    while caption and font.getlength(caption) > room:
        caption = caption[:-2].rstrip(" …") + "…" if len(caption) > 2 else ""
    draw.text((6, middle), caption, fill="#333333", font=font, anchor="lm")
    draw.text((width - 6, middle), NAME, fill="#777777", font=font, anchor="rm")
    return still
