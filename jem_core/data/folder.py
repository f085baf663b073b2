"""Your own pictures: a directory and a CSV with a file name and one column per attribute.

Values are 0/1, yes/no or true/false; an empty cell is unknown. Whatever is wrong is said in one sentence that names
the file and the row, before or while reading, and nothing half-written is left.
"""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jem_core.images import ImageError, read_image, to_tensor

from .source import Source, frequent, in_processes, random_split

VALUES = {
    **dict.fromkeys(("1", "1.0", "yes", "y", "true", "t"), 1),
    **dict.fromkeys(("0", "0.0", "no", "n", "false", "f"), 0),
    **dict.fromkeys(("", "nan", "na"), -1),  # pandas writes nothing, NaN or NA for a missing value
}
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")


class Columns(NamedTuple):
    """Which columns of the table are attributes: these, or all, if they have this share of positives at least."""

    names: Sequence[str] = ()
    least: float = 0.0


ALL_COLUMNS = Columns()


class Entry(NamedTuple):
    """One picture: where it is, the line of the CSV that names it, and its labels."""

    path: Path
    line: int
    labels: tuple[int, ...]


def source(
    root: str | Path,
    size: int,
    *,
    table: str | Path | None = None,
    columns: Columns = ALL_COLUMNS,
    crop: str = "centre",
    shares: tuple[float, float] = (0.1, 0.1),
    seed: int = 0,
    workers: int = 2,
) -> Source:
    """The pictures that the table names (the only CSV of the directory if none is given), split at random.

    `shares` are those of the pictures that go to val and to test.
    """
    root = Path(root)
    if not root.is_dir():
        raise ValueError(f"There is no directory {root}.")
    table = Path(table) if table else _only_table(root)
    names, entries, notes = read_table(table, root, columns.names)
    labels = np.array([entry.labels for entry in entries], dtype=np.int8).reshape(len(entries), len(names))
    keep = frequent(names, labels, columns.least)
    if not keep:
        raise ValueError(f"No attribute of {table} has at least {columns.least:.0%} positives.")
    labels = np.ascontiguousarray(labels[:, keep])
    names = [names[i] for i in keep]
    images = in_processes(partial(_read, size=size, crop=crop, table=table), entries, workers, chunk=16)
    return Source(
        name="folder",
        names=tuple(names),
        n=len(entries),
        image_size=size,
        rows=zip(images, labels, strict=True),
        split=random_split(len(entries), seed, *shares),
        options={"crop": crop, "least_positive": columns.least, "val": shares[0], "test": shares[1], "seed": seed},
        notes=(*notes, *_one_sided(names, labels)),
    )


def read_table(path: Path, root: Path, attributes: Sequence[str] = ()) -> tuple[list[str], list[Entry], list[str]]:
    """Attribute names, the pictures with their labels, and what is worth saying about the table."""
    header, rows = _read_csv(path)
    names = [name.strip() for name in header[1:]]
    columns = _columns(path, names, attributes)
    pictures = Pictures(root)
    seen: dict[Path, Entry] = {}
    repeated = 0
    for line, row in rows:
        if len(row) != len(header):
            raise ValueError(f"{path}, row {line} ({row[0]}): {len(row)} cells, but the header has {len(header)}.")
        picture = pictures.find(row[0].strip(), f"{path}, row {line}")
        labels = tuple(_value(row[1 + i], names[i], f"{path}, row {line} ({row[0].strip()})") for i in columns)
        entry = Entry(picture, line, labels)
        first = seen.setdefault(picture, entry)
        if first.labels != labels:
            raise ValueError(f"{path}: rows {first.line} and {line} give {row[0].strip()} different labels.")
        repeated += first is not entry
    notes = [f"{repeated} repeated rows of {path.name} were counted once."] if repeated else []
    unnamed = len(pictures.files) - len(seen)
    if unnamed:
        notes.append(f"{unnamed} pictures of {root} are not named in {path.name} and were left out.")
    return [names[i] for i in columns], list(seen.values()), notes


def _read_csv(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header and the rows that are not blank, each with its line number."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ValueError(f"There is no table {path}.") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8; save it as CSV in UTF-8.") from None
    if not text.strip():
        raise ValueError(f"{path} is empty; it needs a header and one row per picture.")
    first = text.lstrip("\n\r").splitlines()[0]
    delimiter = max(",;\t", key=first.count)  # spreadsheets write semicolons where the comma is the decimal sign
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise ValueError(f"{path}, row {reader.line_num} is not valid CSV: {error}.") from None
    header = rows[0][1]
    if len(header) < 2:
        raise ValueError(f"{path} has a single column; it needs a file name and one column per attribute.")
    if len(rows) == 1:
        raise ValueError(f"{path} has a header but no rows.")
    return header, rows[1:]


def _columns(path: Path, names: list[str], attributes: Sequence[str]) -> list[int]:
    for i, name in enumerate(names):
        if not name:
            raise ValueError(f"{path}: column {i + 2} of the header has no name.")
        if name in names[:i]:
            raise ValueError(f"{path}: the column {name!r} appears twice.")
    for name in attributes:
        if name not in names:
            raise ValueError(f"{path} has no column {name!r}. Choose among: {', '.join(names)}.")
    return [names.index(name) for name in attributes] or list(range(len(names)))


def _value(cell: str, name: str, where: str) -> int:
    value = VALUES.get(cell.strip().casefold())
    if value is None:
        raise ValueError(
            f"{where}: {name} is {cell.strip()!r}; write 0 or 1, yes or no, true or false, or nothing if unknown."
        )
    return value


class Pictures:
    """The pictures below a directory, found by the names that people write."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = sorted(p for p in root.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
        self.by_name: dict[str, list[Path]] = {}
        for path in self.files:
            relative = path.relative_to(root)
            keys = {relative.as_posix(), relative.name, relative.with_suffix("").as_posix(), relative.stem}
            for key in {_key(key) for key in keys}:
                self.by_name.setdefault(key, []).append(path)

    def find(self, name: str, where: str) -> Path:
        """The picture with this path or bare name, with or without ending, whatever its case and form of accents."""
        if not name:
            raise ValueError(f"{where}: the file name is empty.")
        written = name.replace("\\", "/").removeprefix("./")
        found = self.by_name.get(_key(written), [])
        if len(found) > 1:  # several differ only by case or folder: then the exact path decides
            found = [path for path in found if path.relative_to(self.root).as_posix() == written] or found
        if not found:
            raise ValueError(f"{where}: there is no picture {name!r} below {self.root} (JPEG, PNG and WebP are read).")
        if len(found) > 1:
            choices = " and ".join(path.relative_to(self.root).as_posix() for path in found[:2])
            raise ValueError(f"{where}: {name!r} may mean {choices}; write the path.")
        return found[0]


def _key(name: str) -> str:
    """Names that people take for the same: case aside, accents composed."""
    return unicodedata.normalize("NFC", name).casefold()


def _only_table(root: Path) -> Path:
    tables = sorted(root.glob("*.csv"))
    if len(tables) != 1:
        found = f"{len(tables)} CSV files" if tables else "no CSV file"
        raise ValueError(f"{root} holds {found}; name the table with --csv.")
    return tables[0]


def _one_sided(names: list[str], labels: np.ndarray) -> list[str]:
    """A word on attributes that teach nothing."""
    words = []
    for i, name in enumerate(names):
        known = labels[:, i][labels[:, i] >= 0]
        if len(known) == 0 or known.min() == known.max():
            same = f"{name} has the same value in every picture that has one"
            words.append(f"{same}, so nothing can be learned about it.")
    return words


def _read(entry: Entry, size: int, crop: str, table: Path) -> np.ndarray:
    try:
        return to_tensor(read_image(entry.path), size, crop).numpy()
    except ImageError as error:
        raise ValueError(f"{table}, row {entry.line}: {entry.path}: {error}") from None
