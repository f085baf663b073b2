"""A contact sheet: pictures of a data set with what their labels say."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from .dataset import Dataset

TILE, GAP, LINE = 128, 12, 13


def contact_sheet(dataset: Dataset, columns: int = 8, rows: int = 8, seed: int = 0) -> Image.Image:
    """Random pictures of the data set, enlarged, the names of their attributes below ("?" marks an unknown one)."""
    count = min(columns * rows, len(dataset))
    chosen = np.sort(np.random.default_rng(seed).permutation(len(dataset))[:count])
    columns = min(columns, count)
    font = ImageFont.load_default(size=11)
    captions = [_wrap(caption(dataset.names, dataset.labels[index]), font, TILE) for index in chosen]
    width, height = TILE + GAP, TILE + GAP + LINE * max(len(lines) for lines in captions)
    sheet = Image.new("RGB", (columns * width + GAP, -(-count // columns) * height + GAP), "white")
    pen = ImageDraw.Draw(sheet)
    scale = Image.Resampling.NEAREST if dataset.image_size <= TILE else Image.Resampling.LANCZOS
    for place, index in enumerate(chosen):
        x, y = GAP + place % columns * width, GAP + place // columns * height
        picture = Image.fromarray(np.ascontiguousarray(dataset.images[index].transpose(1, 2, 0)))
        sheet.paste(picture.resize((TILE, TILE), scale), (x, y))
        for line, words in enumerate(captions[place]):
            pen.text((x, y + TILE + 1 + line * LINE), words, fill="#222222", font=font)
    return sheet


def caption(names: tuple[str, ...], labels: np.ndarray) -> list[str]:
    """The attributes that a picture has, and with a question mark those that nobody knows."""
    return [
        name.replace("_", " ") + ("?" if label < 0 else "") for name, label in zip(names, labels, strict=True) if label
    ]


def _wrap(words: list[str], font: ImageFont.FreeTypeFont | ImageFont.ImageFont, width: int) -> list[str]:
    lines: list[str] = []
    for word in words:
        longer = f"{lines[-1]}, {word}" if lines else word
        if lines and font.getlength(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
