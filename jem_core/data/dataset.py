"""One type for every data set: images and labels on disk, memory-mapped, with splits and held-out rows.

A directory holds images.npy (N, 3, S, S uint8), labels.npy (N, K int8: -1 unknown, 0 without, 1 with),
split.npy (N uint8: 0 train, 1 val, 2 test), held_out.npy (N bool) and dataset.json (what it is).
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import held_out as held_out_pairs
from .source import Source
from .support import Support

SPLITS = ("train", "val", "test")
FORMAT = 1


@dataclass(frozen=True)
class Dataset:
    """A prepared data set. The images stay on disk until they are asked for."""

    directory: Path
    names: tuple[str, ...]
    image_size: int
    images: np.ndarray
    labels: np.ndarray
    split: np.ndarray
    held_out: np.ndarray
    info: dict[str, Any]

    @classmethod
    def open(cls, directory: str | Path) -> Dataset:
        """Open a directory that `write_dataset` made; a file that is missing or does not fit is named."""
        directory = Path(directory)
        try:
            info = json.loads((directory / "dataset.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ValueError(
                f"{directory} is not a data set: it has no dataset.json. Prepare one with `python -m train data`."
            ) from None
        except json.JSONDecodeError as error:
            raise ValueError(f"{directory / 'dataset.json'} is not JSON: {error}.") from None
        names, size = tuple(info["names"]), int(info["image_size"])
        images = _load(directory / "images.npy", np.uint8, mmap=True)
        n = len(images)
        arrays = {
            "labels": _load(directory / "labels.npy", np.int8),
            "split": _load(directory / "split.npy", np.uint8),
            "held_out": _load(directory / "held_out.npy", np.bool_),
        }
        expected = {"labels": (n, len(names)), "split": (n,), "held_out": (n,)}
        for name, array in [("images", images), *arrays.items()]:
            shape = expected.get(name, (n, 3, size, size))
            if array.shape != shape:
                raise ValueError(
                    f"{directory / name}.npy has the shape {array.shape}, but dataset.json asks for {shape}."
                )
        return cls(directory, names, size, images, info=info, **arrays)

    def __len__(self) -> int:
        return len(self.images)

    def indices(self, split: str, held_out: bool = False) -> np.ndarray:
        """Rows of a split: those with no held-out combination, or (held_out=True) only those with one."""
        if split not in SPLITS:
            raise ValueError(f"There is no split {split!r}. Choose among: {', '.join(SPLITS)}.")
        return np.flatnonzero((self.split == SPLITS.index(split)) & (self.held_out == held_out))

    def tensors(self, indices: np.ndarray | Sequence[int]) -> tuple[Tensor, Tensor]:
        """Images (uint8) and labels (int64) of some rows, read into memory."""
        indices = np.asarray(indices)
        images = torch.from_numpy(np.ascontiguousarray(self.images[indices]))
        return images, torch.from_numpy(self.labels[indices].astype(np.int64))

    def frequencies(self) -> dict[str, float]:
        """For each attribute the share of positives among the rows that know it (0 if none does)."""
        known = (self.labels >= 0).sum(0)
        positive = (self.labels == 1).sum(0)
        return {name: float(p / k) if k else 0.0 for name, p, k in zip(self.names, positive, known, strict=True)}

    def support(self) -> Support:
        """How many training rows carry each combination of labels."""
        return Support.from_labels(self.names, self.labels[self.indices("train")])


def _load(path: Path, dtype: type, mmap: bool = False) -> np.ndarray:
    try:
        array = np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False)
    except FileNotFoundError:
        raise ValueError(f"{path} is missing: the data set is not complete. Prepare it again.") from None
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from None
    if array.dtype != dtype:
        raise ValueError(f"{path} holds {array.dtype}, but should hold {np.dtype(dtype)}.")
    return array


def check_names(names: Sequence[str]) -> None:
    """Attribute names are distinct, not empty, and have no sign or plus that a held-out pair could not spell."""
    if not names:
        raise ValueError("No attribute is left: a data set needs at least one.")
    seen: set[str] = set()
    for name in names:
        if not name.strip():
            raise ValueError("An attribute has an empty name.")
        if name in seen:
            raise ValueError(f"The attribute {name!r} appears twice.")
        if name != name.strip() or name.startswith("-") or "+" in name or "," in name:
            raise ValueError(f"The attribute name {name!r} must not begin with '-', nor contain '+' or ','.")
        seen.add(name)


def write_dataset(
    directory: str | Path, source: Source, pairs: Sequence[held_out_pairs.Pair] = (), overwrite: bool = False
) -> Dataset:
    """Write a data set beside its place under a temporary name, and rename it when it is complete."""
    directory = Path(directory)
    check_names(source.names)
    held_out_pairs.check(pairs, source.names)
    check_place(directory, overwrite)
    directory.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", suffix=".unfinished", dir=directory.parent))
    try:
        unfinished.chmod(0o755)  # mkdtemp makes it private
        labels = _write_rows(unfinished, source)
        np.save(unfinished / "labels.npy", labels)
        np.save(unfinished / "split.npy", source.split.astype(np.uint8))
        np.save(unfinished / "held_out.npy", held_out_pairs.mask(labels, source.names, pairs))
        text = json.dumps(_describe(source, pairs), indent=2, ensure_ascii=False) + "\n"
        (unfinished / "dataset.json").write_text(text, encoding="utf-8")
        _put_in_place(unfinished, directory)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return Dataset.open(directory)


def _put_in_place(complete: Path, directory: Path) -> None:
    """Rename the complete data set to its place; an older one leaves only when the new one is ready."""
    if directory.exists():
        older = complete.with_suffix(".older")
        directory.rename(older)
        complete.rename(directory)
        shutil.rmtree(older)
    else:
        complete.rename(directory)


def _describe(source: Source, pairs: Sequence[held_out_pairs.Pair]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "source": source.name,
        "names": list(source.names),
        "image_size": source.image_size,
        "count": source.n,
        "held_out": [str(pair) for pair in pairs],
        "options": source.options,
        "notes": list(source.notes),
        "title": source.title or source.name,
        "credit": source.credit,
        "licence": source.licence,
        "weights_licence": source.weights_licence,
        "groups": _known(source.groups, source.names),
        "alternatives": _known(source.alternatives, source.names),
        "faces": source.faces,
        "drawn": source.drawn,
        "flips": source.flips,
    }


def _known(groups: Sequence[Sequence[str]], names: Sequence[str]) -> list[list[str]]:
    return [[name for name in group if name in names] for group in groups]


def check_place(directory: Path, overwrite: bool) -> None:
    """Nothing but an older data set is ever replaced, and that only when asked for."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise ValueError(f"{directory} is a file; --out names a directory.")
    if not any(directory.iterdir()):
        return
    if not (directory / "dataset.json").exists():
        raise ValueError(f"{directory} holds other files than a data set; choose another place.")
    if not overwrite:
        raise ValueError(f"{directory} holds a data set already; add --overwrite to replace it.")


def _write_rows(directory: Path, source: Source) -> np.ndarray:
    """Write the images one after the other, so that memory does not grow with their number; return the labels."""
    n, shape = source.n, (3, source.image_size, source.image_size)
    labels = np.empty((n, len(source.names)), dtype=np.int8)
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.uint8)), "fortran_order": False, "shape": (n, *shape)}
    count = 0
    with (directory / "images.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for image, label in source.rows:
            if count == n or image.shape != shape or image.dtype != np.uint8:
                raise ValueError(f"Row {count} of {n} is {image.dtype} of the shape {image.shape}, not uint8 {shape}.")
            file.write(np.ascontiguousarray(image).data)
            labels[count] = label
            count += 1
    if count != n or len(source.split) != n:
        raise ValueError(f"The source announced {n} rows, but gave {count} and a split of {len(source.split)}.")
    return labels
