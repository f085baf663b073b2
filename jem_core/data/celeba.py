"""CelebA in its official layout: img_align_celeba/, list_attr_celeba.txt, list_eval_partition.txt.

The paper keeps the attributes with at least 13 % positives (23 of 40). Its code squashes 178 x 218 pixels to a square;
the default here is the square of 148 pixels in the middle, which leaves faces their proportions.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from .source import Source, frequent, held_out_split, in_processes

LEAST_POSITIVE = 0.13
CROP_SIDE = 148
CROPS = ("centre", "squash")
CREDIT = "CelebA (Liu, Luo, Wang and Tang, Deep Learning Face Attributes in the Wild, ICCV 2015)"
LICENCE = "CelebA: non-commercial research only; its images may not be redistributed"
GROUPS = (("Black_Hair", "Blond_Hair", "Brown_Hair", "Gray_Hair", "Bald"), ("Straight_Hair", "Wavy_Hair", "Bald"))


def source(
    root: str | Path,
    size: int,
    *,
    crop: str = "centre",
    split: str = "official",
    least: float = LEAST_POSITIVE,
    seed: int = 0,
    workers: int = 2,
) -> Source:
    """CelebA at this size; split: "official", or "random" (5,000 held out, half val, half test)."""
    root = Path(root)
    if crop not in CROPS:
        raise ValueError(f"There is no crop {crop!r}. Choose among: {', '.join(CROPS)}.")
    if split not in ("official", "random"):
        raise ValueError(f"There is no CelebA split {split!r}. Choose official or random.")
    files, names, labels = read_attributes(root / "list_attr_celeba.txt")
    paths = [root / "img_align_celeba" / file for file in files]
    _check_present(root / "img_align_celeba", files)
    keep = frequent(names, labels, least)
    if not keep:
        raise ValueError(f"No attribute has at least {least:.0%} positives.")
    labels = np.ascontiguousarray(labels[:, keep])
    parts = (
        read_partition(root / "list_eval_partition.txt", files)
        if split == "official"
        else held_out_split(len(files), seed)
    )
    images = in_processes(partial(read_picture, size=size, crop=crop), paths, workers)
    return Source(
        name="celeba",
        names=tuple(names[i] for i in keep),
        n=len(files),
        image_size=size,
        rows=zip(images, labels, strict=True),
        split=parts,
        options={"crop": crop, "split": split, "least_positive": least, "seed": seed},
        title="CelebA",
        credit=CREDIT,
        licence=LICENCE,
        weights_licence="non-commercial research only, trained on CelebA",
        groups=GROUPS,
        faces=True,
        flips=True,
    )


def read_attributes(path: Path) -> tuple[list[str], list[str], np.ndarray]:
    """File names, attribute names and labels (0 or 1) of list_attr_celeba.txt."""
    lines = _lines(path)
    if len(lines) < 3 or not lines[0].strip().isdigit():
        raise ValueError(f"{path} does not begin with the number of images and the names of the attributes.")
    names, body = lines[1].split(), [line for line in lines[2:] if line.strip()]
    if len(body) != int(lines[0]):
        raise ValueError(f"{path} announces {int(lines[0])} images, but lists {len(body)}.")
    files, labels = [], np.empty((len(body), len(names)), dtype=np.int8)
    for i, line in enumerate(body):
        file, *values = line.split()
        if len(values) != len(names) or not set(values) <= {"1", "-1"}:
            raise ValueError(f"{path}, line {i + 3}: {file} needs {len(names)} values, each 1 or -1.")
        files.append(file)
        labels[i] = [value == "1" for value in values]
    return files, names, labels


def read_partition(path: Path, files: list[str]) -> np.ndarray:
    """The official split of these files: 0 train, 1 val, 2 test."""
    parts: dict[str, str] = {}
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        fields = line.split()
        if len(fields) != 2 or fields[1] not in ("0", "1", "2"):
            raise ValueError(f"{path}, line {number}: {line.strip()!r} is not a file name and 0, 1 or 2.")
        parts[fields[0]] = fields[1]
    for file in files:
        if file not in parts:
            raise ValueError(f"{path} says nothing of {file}.")
    return np.array([int(parts[file]) for file in files], dtype=np.uint8)


def read_picture(path: Path, size: int, crop: str) -> np.ndarray:
    """One aligned picture, cropped or squashed to a square of `size` pixels, uint8 (3, size, size)."""
    try:
        with Image.open(path) as picture:
            image = picture.convert("RGB")
    except (OSError, ValueError, SyntaxError) as error:  # what Pillow raises on files that are not pictures
        raise ValueError(f"{path} cannot be read as a picture: {error}.") from None
    width, height = image.size
    box = (0, 0, width, height)
    if crop == "centre":
        side = min(CROP_SIDE, width, height)
        left, top = (width - side) // 2, (height - side) // 2
        box = (left, top, left + side, top + side)
    image = image.resize((size, size), Image.Resampling.BILINEAR, box=box)
    return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))


def _check_present(folder: Path, files: list[str]) -> None:
    if not folder.is_dir():
        raise ValueError(f"There is no folder {folder}; --root names the folder that holds img_align_celeba.")
    present = {entry.name for entry in folder.iterdir()}
    missing = [file for file in files if file not in present]
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise ValueError(f"{folder} lacks pictures that list_attr_celeba.txt names: {', '.join(missing[:5])}{more}.")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise ValueError(f"There is no {path}; --root names the folder of the official CelebA files.") from None
