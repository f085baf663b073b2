"""Grids of images as PNG files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from jem_core.bundle import Bundle
from jem_core.chains import sample
from jem_core.condition import Condition


def to_image(x: Tensor) -> Image.Image:
    """One image (3, S, S), float in [0, 1] or uint8."""
    if x.is_floating_point():
        x = (x.detach().clamp(0, 1) * 255).round().byte()
    return Image.fromarray(np.ascontiguousarray(x.permute(1, 2, 0).cpu().numpy()))


def grid(rows: Sequence[Tensor], labels: Sequence[str] | None = None, scale: int = 1, gap: int = 2) -> Image.Image:
    """One row of images per entry, with its label to the left where labels are given."""
    size = rows[0].shape[-1] * scale
    margin = 0
    font = ImageFont.load_default(size=max(11, size // 5))
    if labels:
        margin = 8 + int(max(font.getlength(label) for label in labels))
    width = margin + max(len(row) for row in rows) * (size + gap) + gap
    sheet = Image.new("RGB", (width, len(rows) * (size + gap) + gap), "white")
    draw = ImageDraw.Draw(sheet)
    for r, row in enumerate(rows):
        top = gap + r * (size + gap)
        if labels:
            draw.text((4, top + size // 2), labels[r], fill="black", font=font, anchor="lm")
        for c, x in enumerate(row):
            picture = to_image(x)
            if scale != 1:
                picture = picture.resize((size, size), Image.Resampling.BICUBIC)
            sheet.paste(picture, (margin + gap + c * (size + gap), top))
    return sheet


def shown_conditions(bundle: Bundle, count: int = 8) -> list[Condition]:
    """Conditions for a grid: common single attributes, then seen pairs, held-out pairs last."""
    names = bundle.names
    novel = [Condition.from_dict(names, pair.as_dict()) for pair in bundle.data.held_out]
    share = {n: bundle.support.count(Condition.from_lists(names, [n])) / max(1, bundle.support.total) for n in names}
    common = sorted(names, key=lambda name: abs(share[name] - 0.3))  # neither rare nor everywhere
    singles = [Condition.from_lists(names, [name]) for name in common]
    pairs = [Condition.from_lists(names, two) for two in zip(common, common[3:], strict=False)]
    seen = [pair for pair in pairs if bundle.support.count(pair)]
    novel = novel[: count * 3 // 8]
    seen = seen[: count * 2 // 8]
    return singles[: count - len(seen) - len(novel)] + seen + novel


def condition_sheet(
    bundle: Bundle, conditions: Sequence[Condition], n: int, seed: int, scale: int = 1, **options: Any
) -> Image.Image:
    """Fresh chains, one row per condition, nothing picked by hand; a novel combination is marked."""
    rows, labels = [], []
    for condition in conditions:
        rows.append(sample(bundle, condition, n, seed=seed, **options).images)
        labels.append(f"{condition}{'' if bundle.support.count(condition) else ' *'}")
    return grid(rows, labels, scale)


def save_picture(picture: Image.Image, path: Path) -> None:
    """PNG, replaced in one move so that nobody opens half a picture."""
    partial = path.with_name(f".{path.name}.partial")
    picture.save(partial, "PNG")
    partial.replace(path)
