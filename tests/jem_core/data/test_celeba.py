"""CelebA in a made folder of the official layout; no picture of the real one is needed."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jem_core.data import celeba
from jem_core.data.dataset import write_dataset
from jem_core.data.held_out import parse

NAMES = ("Rare", "Bangs", "Male", "Young")
COUNT = 40


def labels_of(i: int) -> list[int]:
    return [int(i % 10 == 0), int(i % 3 == 0), int(i % 2 == 0), int(i % 4 != 0)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """40 pictures: a white square of 148 px in the middle of a black picture; the attribute Rare has 10 %."""
    root = tmp_path / "celeba"
    (root / "img_align_celeba").mkdir(parents=True)
    attributes, partition = [str(COUNT), " ".join(NAMES)], []
    for i in range(COUNT):
        file = f"{i + 1:06}.jpg"
        picture = np.zeros((218, 178, 3), np.uint8)
        picture[35:183, 15:163] = (255, 2 * i, 255 - 2 * i)
        Image.fromarray(picture).save(root / "img_align_celeba" / file, quality=95)
        attributes.append(f"{file} " + " ".join(f"{2 * value - 1:2d}" for value in labels_of(i)))
        partition.append(f"{file} {0 if i < 30 else 1 if i < 34 else 2}")
    (root / "list_attr_celeba.txt").write_text("\n".join(attributes) + "\n")
    (root / "list_eval_partition.txt").write_text("\n".join(partition) + "\n")
    return root


def test_the_official_layout(root: Path, tmp_path: Path) -> None:
    source = celeba.source(root, 16, workers=1)
    assert source.names == ("Bangs", "Male", "Young")  # Rare has 10 %, less than 13 %
    dataset = write_dataset(tmp_path / "out", source, [parse("Male + Bangs")])
    assert np.bincount(dataset.split).tolist() == [30, 4, 6]
    for i in range(COUNT):
        assert dataset.labels[i].tolist() == labels_of(i)[1:]
        assert abs(int(dataset.images[i, 1, 8, 8]) - 2 * i) < 8  # row i is picture i
    assert dataset.held_out.sum() == sum(i % 6 == 0 for i in range(COUNT))
    assert "non-commercial" in dataset.info["licence"]


def test_the_crop_is_the_square_in_the_middle_and_the_squash_is_everything(root: Path) -> None:
    image, _ = next(iter(celeba.source(root, 37, workers=1).rows))
    assert image.shape == (3, 37, 37)
    assert image[0, 1:-1, 1:-1].min() > 250  # nothing but the white square; its rim is smoothed with what lies outside
    assert image[0].min() > 150
    squashed, _ = next(iter(celeba.source(root, 37, crop="squash", workers=1).rows))
    assert squashed[0, 0].max() < 50
    assert squashed[0, :, 0].max() < 50
    assert squashed[0, 18, 18] > 200
    with pytest.raises(ValueError, match=r"no crop 'face'.*centre, squash"):
        celeba.source(root, 32, crop="face")


def test_the_random_split_holds_out_a_fifth_of_a_small_set(root: Path) -> None:
    source = celeba.source(root, 16, split="random", seed=1, workers=1)
    assert np.bincount(source.split).tolist() == [32, 4, 4]
    assert not np.array_equal(source.split, celeba.source(root, 16, split="random", seed=2, workers=1).split)
    with pytest.raises(ValueError, match="no CelebA split 'folds'"):
        celeba.source(root, 16, split="folds")


def test_two_processes_give_the_same_rows(root: Path) -> None:
    alone, together = (list(celeba.source(root, 16, workers=workers).rows) for workers in (1, 2))
    for (image, label), (other, other_label) in zip(alone, together, strict=True):
        assert np.array_equal(image, other)
        assert np.array_equal(label, other_label)


def test_missing_and_broken_pictures_are_named(root: Path, tmp_path: Path) -> None:
    picture = root / "img_align_celeba" / "000007.jpg"
    whole = picture.read_bytes()
    for broken in (whole[: len(whole) // 2], b"this is not a picture", b""):
        picture.write_bytes(broken)
        for workers in (1, 2):
            with pytest.raises(ValueError, match=r"000007\.jpg cannot be read"):
                write_dataset(tmp_path / "out", celeba.source(root, 16, workers=workers))
        assert [path.name for path in tmp_path.iterdir()] == ["celeba"]
    picture.unlink()
    with pytest.raises(ValueError, match=r"lacks pictures.*000007\.jpg"):
        celeba.source(root, 16)


def test_damaged_lists_are_named(root: Path) -> None:
    attributes = root / "list_attr_celeba.txt"
    text = attributes.read_text()
    for damaged, message in [
        (text.replace("40\n", "41\n", 1), "announces 41 images, but lists 40"),
        (text.replace("000003.jpg -1", "000003.jpg  7"), "line 5: 000003.jpg needs 4 values"),
        (text.replace("000003.jpg -1", "000003.jpg"), "line 5: 000003.jpg needs 4 values"),
        ("", "does not begin"),
    ]:
        attributes.write_text(damaged)
        with pytest.raises(ValueError, match=message):
            celeba.source(root, 16)
    attributes.write_text(text)
    partition = root / "list_eval_partition.txt"
    lines = partition.read_text().splitlines()
    partition.write_text("\n".join(lines[:-1]))
    with pytest.raises(ValueError, match=r"says nothing of 000040\.jpg"):
        celeba.source(root, 16)
    partition.write_text("\n".join([*lines[:-1], "000040.jpg 3"]))
    with pytest.raises(ValueError, match="line 40"):
        celeba.source(root, 16)
    partition.unlink()
    with pytest.raises(ValueError, match=r"There is no .*list_eval_partition\.txt"):
        celeba.source(root, 16)


def test_a_filter_that_leaves_nothing_says_so(root: Path) -> None:
    with pytest.raises(ValueError, match="at least 99%"):
        celeba.source(root, 16, least=0.99)
