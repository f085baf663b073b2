"""The data set on disk: complete or not there at all, memory-mapped, and its splits."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from jem_core.data.dataset import Dataset, write_dataset
from jem_core.data.held_out import parse
from jem_core.data.source import Source, held_out_split, random_split

NAMES = ("Round", "Größe", "Red")


def make_source(n: int = 40, size: int = 8, seed: int = 0) -> Source:
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (n, 3, size, size), dtype=np.uint8)
    labels = rng.integers(-1, 2, (n, len(NAMES))).astype(np.int8)
    rows = zip(images, labels, strict=True)
    return Source("made", NAMES, n, size, rows, random_split(n, seed), options={"seed": seed}, credit="Nobody")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    kept = list(make_source().rows)
    written = write_dataset(tmp_path / "deep" / "set", make_source(), [parse("Round + -Red")])
    dataset = Dataset.open(tmp_path / "deep" / "set")
    assert len(dataset) == len(written) == 40
    assert dataset.names == NAMES
    assert dataset.image_size == 8
    assert isinstance(dataset.images, np.memmap)
    assert not dataset.images.flags.writeable
    images, labels = dataset.tensors([3, 39, 3])
    assert images.dtype == torch.uint8
    assert labels.dtype == torch.int64
    for place, index in enumerate([3, 39, 3]):
        assert np.array_equal(images[place].numpy(), kept[index][0])
        assert np.array_equal(labels[place].numpy(), kept[index][1])
    assert dataset.info["source"] == "made"
    assert dataset.info["held_out"] == ["Round + -Red"]
    assert dataset.info["credit"] == "Nobody"
    assert "Größe" in (dataset.directory / "dataset.json").read_text(encoding="utf-8")


def test_the_splits_cover_everything_once(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "set", make_source(200), [parse("Round + Red")])
    parts = [dataset.indices(split, held) for split in ("train", "val", "test") for held in (False, True)]
    assert sorted(np.concatenate(parts)) == list(range(200))
    assert [len(dataset.indices(s)) + len(dataset.indices(s, True)) for s in ("train", "val", "test")] == [
        160,
        20,
        20,
    ]
    for held, rows in ((False, parts[0]), (True, parts[1])):
        match = (dataset.labels[rows, 0] == 1) & (dataset.labels[rows, 2] == 1)
        assert (match == held).all()
    with pytest.raises(ValueError, match=r"no split 'dev'.*train, val, test"):
        dataset.indices("dev")


def test_support_counts_training_rows_alone(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "set", make_source(200), [parse("Round + Red")])
    support = dataset.support()
    assert support.total == len(dataset.indices("train"))
    assert support.pairs()["Round", "Red"] == 0


def test_frequencies_ignore_unknown_labels(tmp_path: Path) -> None:
    image = np.zeros((3, 8, 8), np.uint8)
    rows = [(image, np.array(row, np.int8)) for row in ([1, -1, -1], [0, -1, 1], [0, -1, 1], [-1, -1, 0])]
    source = replace(make_source(4), rows=rows)
    dataset = write_dataset(tmp_path / "set", source)
    assert dataset.frequencies() == pytest.approx({"Round": 1 / 3, "Größe": 0.0, "Red": 2 / 3})


def test_a_source_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def failing() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        rows = list(make_source().rows)
        yield from rows[:20]
        raise ValueError("picture 20 is broken")

    with pytest.raises(ValueError, match="picture 20 is broken"):
        write_dataset(tmp_path / "set", replace(make_source(), rows=failing()))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("announced", [39, 41])
def test_a_wrong_number_of_rows_is_refused(tmp_path: Path, announced: int) -> None:
    source = replace(make_source(), n=announced, split=random_split(announced, 0))
    with pytest.raises(ValueError, match=str(announced)):
        write_dataset(tmp_path / "set", source)
    assert list(tmp_path.iterdir()) == []


def test_an_older_set_is_replaced_only_when_asked_and_when_the_new_one_is_ready(tmp_path: Path) -> None:
    place = tmp_path / "set"
    write_dataset(place, make_source(seed=0))
    with pytest.raises(ValueError, match="--overwrite"):
        write_dataset(place, make_source(seed=1))
    with pytest.raises(ValueError, match="announced"):
        write_dataset(place, replace(make_source(seed=1), rows=[]), overwrite=True)
    assert Dataset.open(place).info["options"] == {"seed": 0}
    write_dataset(place, make_source(seed=1), overwrite=True)
    assert Dataset.open(place).info["options"] == {"seed": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_a_directory_with_other_files_is_never_replaced(tmp_path: Path) -> None:
    precious = tmp_path / "set" / "thesis.tex"
    precious.parent.mkdir()
    precious.write_text("years of work")
    with pytest.raises(ValueError, match="other files"):
        write_dataset(tmp_path / "set", make_source(), overwrite=True)
    assert precious.read_text() == "years of work"
    with pytest.raises(ValueError, match="is a file"):
        write_dataset(precious, make_source(), overwrite=True)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("A", "A", "B"), "'A' appears twice"),
        (("A", " ", "B"), "empty name"),
        (("A", "-B", "C"), "'-B'"),
        (("A", "B+C", "D"), r"'B\+C'"),
        ((), "No attribute is left"),
    ],
)
def test_bad_names_are_refused(tmp_path: Path, names: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_dataset(tmp_path / "set", replace(make_source(), names=names))
    assert list(tmp_path.iterdir()) == []


def test_damaged_sets_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a data set"):
        Dataset.open(tmp_path)
    place = write_dataset(tmp_path / "set", make_source()).directory
    labels = (place / "labels.npy").read_bytes()
    (place / "labels.npy").unlink()
    with pytest.raises(ValueError, match=r"labels\.npy is missing"):
        Dataset.open(place)
    np.save(place / "labels.npy", np.array([{"code": "run me"}]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"labels\.npy cannot be read"):
        Dataset.open(place)
    np.save(place / "labels.npy", np.zeros((40, 2), np.int8))
    with pytest.raises(ValueError, match=r"\(40, 2\).*\(40, 3\)"):
        Dataset.open(place)
    (place / "labels.npy").write_bytes(labels)
    images = (place / "images.npy").read_bytes()
    (place / "images.npy").write_bytes(images[:-100])
    with pytest.raises(ValueError, match=r"images\.npy cannot be read"):
        Dataset.open(place)
    (place / "images.npy").write_bytes(images)
    (place / "dataset.json").write_text(json.dumps({"names": list(NAMES)})[:-3])
    with pytest.raises(ValueError, match="not JSON"):
        Dataset.open(place)


def test_random_splits_are_exact_and_seeded() -> None:
    split = random_split(1000, 5, 0.1, 0.2)
    assert np.bincount(split).tolist() == [700, 100, 200]
    assert np.array_equal(split, random_split(1000, 5, 0.1, 0.2))
    assert not np.array_equal(split, random_split(1000, 6, 0.1, 0.2))
    assert np.bincount(random_split(4, 0)).tolist() == [2, 1, 1]
    with pytest.raises(ValueError, match="below 1"):
        random_split(10, 0, 0.5, 0.5)
    assert np.bincount(held_out_split(100_000, 0)).tolist() == [95_000, 2500, 2500]
    assert np.bincount(held_out_split(100, 0)).tolist() == [80, 10, 10]
