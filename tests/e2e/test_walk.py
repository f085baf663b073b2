"""A walk through each bundled model as a visitor takes it: ten toggles, four presets, and nothing burns.

Whether the pictures show what was asked is for `python -m train evaluate` to say; here they must stay pictures.
"""

import base64
import io
import json
from dataclasses import dataclass

import numpy as np
import pytest
from driver import Studio
from PIL import Image

from jem_core.hub import BUNDLED

MORE = 1.3  # times the share of the data's own values at 0 or 255
BLACK = 0.08  # mean brightness under which a picture counts as black; the darkest of the data has .13


@dataclass(frozen=True)
class Walk:
    """What a visitor clicks, one attribute after another, in a window of this size."""

    toggles: tuple[str, ...]
    window: tuple[int, int]


WALKS = {
    "avatars": Walk(
        (
            *("Eyeglasses", "Wearing_Hat", "Wearing_Hat", "Blond_Hair", "Black_Hair", "Smiling", "Beard", "Male"),
            *("Sunglasses", "Rosy_Cheeks"),
        ),
        (1440, 900),
    ),
    "celeba": Walk(
        (
            *("Male", "Blond_Hair", "Black_Hair", "Smiling", "Smiling", "Young", "Young", "Wavy_Hair"),
            *("Straight_Hair", "Bangs"),
        ),
        (390, 844),
    ),
    "shoes": Walk(
        ("Red", "Sandals", "Blue", "Heels", "Black", "Boots", "Knee_High", "Brown", "Sneakers", "White"),
        (1024, 768),
    ),
}


@pytest.mark.parametrize("model", list(WALKS))
def test_ten_toggles_and_four_presets(visit, model):
    walk = WALKS[model]
    if not (BUNDLED / model).is_dir():
        pytest.skip(f"{model} is not bundled")
    evaluation = json.loads((BUNDLED / model / "evaluation.json").read_text())
    most = MORE * evaluation["steering"]["data_clipped"]
    studio = visit(viewport=walk.window, model=model, chains=4, speed=0).settle()
    check(studio, most, "the first pictures")
    for name in walk.toggles:
        studio.toggle(name)
        check(studio, most, name)
    presets = studio.page.locator(".gj-preset[data-preset]")
    for i in range(4):
        epoch = studio.store("epoch")
        presets.nth(i).click()
        studio.until("(epoch) => window.gibbsJem.counters.shownEpoch !== epoch", epoch)
        studio.settle()
        check(studio, most, presets.nth(i).inner_text())


def check(studio: Studio, most: float, after: str) -> None:
    seen = pictures(studio)
    clipped = float(((seen == 0) | (seen == 255)).mean())
    assert clipped <= most, f"after {after}: {clipped:.1%} of all values are clipped"
    darkest = seen.mean(axis=(1, 2, 3)).min() / 255
    assert darkest > BLACK, f"after {after} a picture is black"


def pictures(studio: Studio) -> np.ndarray:
    """(n, S, S, 3), as the server sent them."""
    lane = studio.page.evaluate("window.gibbsJem.shown().lanes[0]")
    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(lane["src"].split(",")[1]))).convert("RGB"))
    size, columns = lane["size"], lane["columns"]
    cells = [(i // columns * size, i % columns * size) for i in range(lane["n"])]
    return np.stack([sheet[y : y + size, x : x + size] for y, x in cells])
