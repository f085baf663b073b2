"""Grids of images: every picture in its place, rows with their labels, conditions worth showing."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from jem_core.bundle import Bundle
from jem_core.chains import sample
from jem_core.condition import Condition
from jem_core.grids import condition_sheet, grid, save_picture, shown_conditions, to_image
from jem_core.random import generator


def pixels(picture: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.asarray(picture).copy()).permute(2, 0, 1)


def test_floats_and_bytes_are_the_same_picture() -> None:
    stored = torch.randint(0, 256, (3, 8, 8), generator=generator(0)).byte()
    assert torch.equal(pixels(to_image(stored)), stored)
    assert torch.equal(pixels(to_image(stored.float() / 255)), stored)
    assert pixels(to_image(torch.full((3, 2, 2), 1.7))).eq(255).all()  # what lies beyond is cut off


def test_every_picture_is_in_its_place() -> None:
    """Rows of different length on white, with a gap of two pixels."""
    rows = [torch.rand(3, 3, 8, 8, generator=generator(0)), torch.rand(1, 3, 8, 8, generator=generator(1))]
    sheet = pixels(grid(rows))
    assert sheet.shape == (3, 2 * 10 + 2, 3 * 10 + 2)
    for r, row in enumerate(rows):
        for c, x in enumerate(row):
            top, left = 2 + 10 * r, 2 + 10 * c
            assert torch.equal(sheet[:, top : top + 8, left : left + 8], (x * 255).round().byte())
    assert (sheet[:, 12:20, 12:] == 255).all()  # nothing beside the only picture of the second row


def test_labels_stand_to_the_left_and_a_scale_enlarges() -> None:
    rows = [torch.zeros(2, 3, 8, 8)] * 2
    plain, labelled = grid(rows, scale=4), grid(rows, ["one", "a longer label"], scale=4)
    assert plain.size == (2 * 34 + 2, 2 * 34 + 2)
    assert labelled.height == plain.height
    assert labelled.width > plain.width + 40
    margin = pixels(labelled)[:, :, : labelled.width - plain.width]
    assert (margin < 100).any()  # there is ink
    assert torch.equal(pixels(labelled)[:, :, -plain.width :], pixels(plain))


def test_conditions_worth_showing(tiny_bundle: Bundle) -> None:
    """Single attributes and seen pairs, which training has; held-out pairs last, which it has not."""
    found = shown_conditions(tiny_bundle)
    counts = [tiny_bundle.support.count(condition) for condition in found]
    assert len(found) == len(set(found)) == 8
    assert [len(condition.required) for condition in found] == [1] * 5 + [2] * 3
    assert found[-1] == Condition.from_lists(tiny_bundle.names, ["Red", "Striped"])
    assert counts[-1] == 0
    assert all(counts[:-1])


@pytest.mark.parametrize("kind", ["tiny_bundle", "tiny_levels"])
def test_a_sheet_shows_fresh_chains(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    bundle = request.getfixturevalue(kind)
    conditions = shown_conditions(bundle)[-2:]
    sheet = condition_sheet(bundle, conditions, 2, seed=3, steps=2)
    own = sample(bundle, conditions[0], 2, seed=3, steps=2).images
    first = pixels(sheet)[:, 2:34, -68:-36]
    assert torch.equal(first, (own[0] * 255).round().byte())
    save_picture(sheet, tmp_path / "sheet.png")
    assert torch.equal(pixels(Image.open(tmp_path / "sheet.png")), pixels(sheet))
    assert [path.name for path in tmp_path.iterdir()] == ["sheet.png"]
