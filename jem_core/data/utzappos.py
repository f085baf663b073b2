"""UT Zappos50K in its published layout: meta-data.csv and the square pictures.

As in the paper, HeelHeight, Insole and ToeStyle are dropped (too many values are missing), every value of the other
columns becomes a binary attribute, and attributes with less than 10 % positives are left out. Rows with a missing
value are dropped as in the paper, or kept with that column unknown.
"""

from __future__ import annotations

import csv
from functools import partial
from pathlib import Path

import numpy as np

from jem_core.images import ImageError, read_image, to_tensor

from .source import Source, frequent, held_out_split, in_processes

DROPPED = ("HeelHeight", "Insole", "ToeStyle")
LEAST_POSITIVE = 0.10
CREDIT = "UT Zappos50K (Yu and Grauman, Fine-Grained Visual Comparisons with Local Learning, CVPR 2014)"
LICENCE = "UT Zappos50K: academic, non-commercial use only"


def source(
    root: str | Path,
    size: int,
    *,
    missing: str = "drop",
    least: float = LEAST_POSITIVE,
    seed: int = 0,
    workers: int = 2,
) -> Source:
    """UT Zappos50K at this size; missing: "drop" rows with a missing value, or "keep" them as unknown."""
    if missing not in ("drop", "keep"):
        raise ValueError(f"missing is {missing!r}; choose drop or keep.")
    root = Path(root)
    table = _find(root, ("meta-data.csv", "ut-zap50k-data/meta-data.csv"))
    pictures = _find(root, ("ut-zap50k-images-square", "images-square"))
    ids, names, labels = read_table(table)
    total = len(ids)
    if missing == "drop":
        whole = np.asarray((labels >= 0).all(1))
        ids, labels = [name for name, keep in zip(ids, whole, strict=True) if keep], labels[whole]
    if not ids:
        raise ValueError(f"{table} has no row without missing values; add --missing keep to use them all the same.")
    keep = frequent(names, labels, least)
    if not keep:
        raise ValueError(f"No attribute of {table} has at least {least:.0%} positives.")
    paths = _locate(pictures, ids)
    images = in_processes(partial(_read, size=size), paths, workers)
    return Source(
        name="utzappos",
        names=tuple(names[i] for i in keep),
        n=len(ids),
        image_size=size,
        rows=zip(images, np.ascontiguousarray(labels[:, keep]), strict=True),
        split=held_out_split(len(ids), seed),
        options={"missing": missing, "least_positive": least, "seed": seed},
        notes=(f"{total - len(ids):,} of {total:,} rows have missing values and were dropped.",)
        if missing == "drop"
        else (),
        title="UT Zappos50K",
        credit=CREDIT,
        licence=LICENCE,
        weights_licence="academic, non-commercial use only, trained on UT Zappos50K",
    )


def read_table(path: Path) -> tuple[list[str], list[str], np.ndarray]:
    """Ids, attribute names (Column_Value) and labels of meta-data.csv: one-hot, -1 where the column is empty."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        columns = [name for name in reader.fieldnames or [] if name != "CID" and name not in DROPPED]
        if "CID" not in (reader.fieldnames or []) or not columns:
            raise ValueError(f"{path} is not the published table: its header needs CID and the columns of attributes.")
        rows = list(reader)
    if not rows:
        raise ValueError(f"{path} has a header but no rows.")
    blocks, names = [], []
    for column in columns:
        # A shoe may carry several values of a column, separated by semicolons.
        values = [[v.strip() for v in (row[column] or "").split(";") if v.strip()] for row in rows]
        kinds = sorted({v for cell in values for v in cell})
        block = np.array([[v in cell for v in kinds] if cell else [-1] * len(kinds) for cell in values], dtype=np.int8)
        blocks.append(block.reshape(len(rows), len(kinds)))
        names += [f"{column}_{_plain(kind)}" for kind in kinds]
    return [row["CID"] for row in rows], names, np.concatenate(blocks, axis=1)


def _plain(value: str) -> str:
    """A value as part of an attribute's name: no spaces, and no sign that separates names elsewhere."""
    return "_".join(value.replace("+", " and ").replace(",", " ").split())


def _find(root: Path, choices: tuple[str, ...]) -> Path:
    for choice in choices:
        if (root / choice).exists():
            return root / choice
    raise ValueError(f"{root} holds neither {' nor '.join(choices)}; --root names the folder of UT Zappos50K.")


def _locate(folder: Path, ids: list[str]) -> list[Path]:
    """The picture of id 100627-72 is some folder's 100627.72.jpg."""
    found = {path.stem.replace(".", "-"): path for path in sorted(folder.rglob("*.jpg"))}
    missing = [name for name in ids if name not in found]
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise ValueError(f"{folder} has no picture for the ids {', '.join(missing[:5])}{more} of meta-data.csv.")
    return [found[name] for name in ids]


def _read(path: Path, size: int) -> np.ndarray:
    try:
        return to_tensor(read_image(path), size, "centre").numpy()
    except ImageError as error:
        raise ValueError(f"{path}: {error}") from None
