"""Shoes as a folder of small pictures and a table: what the data say of themselves."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jem_core.data import shoes
from jem_core.data.dataset import Dataset, write_dataset
from jem_core.data.facts import DataFacts


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    """Fifty wide pictures: half are boots, half of those ankle boots, one is a clog."""
    root = tmp_path / "shoes"
    (root / "images").mkdir(parents=True)
    lines = []
    for i in range(50):
        wide = Image.new("RGB", (40, 20), (255, 255, 255))
        wide.paste((0, 5 * i, 0), (0, 0, 20, 20))
        wide.save(root / "images" / f"{i}.png")
        lines.append(f"images/{i}.png,{int(i < 25)},{int(i < 12)},{int(i == 40)},{int(i >= 25)}")
    (root / "labels.csv").write_text("file,Boots,Ankle_Boots,Clogs_and_Mules,Heels\n" + "\n".join(lines))
    return write_dataset(tmp_path / "out", shoes.source(root, 16, least=0.03, workers=1))


def test_the_whole_shoe_is_kept(dataset: Dataset) -> None:
    """Stretched to a square, not cropped: the left half is coloured, the right half white."""
    assert len(dataset) == 50
    image = dataset.images[30].astype(int)
    assert (abs(image[:, :, :7] - np.array([0, 150, 0])[:, None, None]) <= 1).all()
    assert (image[:, :, 9:] >= 254).all()


def test_rare_attributes_are_left_out_and_a_fifth_is_held_back(dataset: Dataset) -> None:
    assert dataset.names == ("Boots", "Ankle_Boots", "Heels")
    assert np.bincount(dataset.split).tolist() == [40, 5, 5]


def test_what_the_data_say_of_themselves(dataset: Dataset) -> None:
    facts = DataFacts.read({"data": dataset.info}, dataset.names)
    assert (facts.source, facts.title) == ("shoes", "Shoes (UT Zappos50K)")
    assert "non-commercial" in facts.licence
    assert "non-commercial" in dataset.info["weights_licence"]
    assert "Yu and Grauman" in facts.credit
    assert facts.rivals("Boots") == ("Heels",)  # a group names only what is there
    assert facts.rivals("Ankle_Boots") == ("Heels",)  # only boots have a height
    assert (facts.faces, facts.drawn, facts.flips) == (False, False, False)
