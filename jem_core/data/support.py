"""How many training images match a condition: exact for any condition, from the distinct rows of labels.

The bundle carries this table, so that the app can say "novel: no training image has this combination".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Protocol

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file


class HasValues(Protocol):
    """A condition: names, and for each -1 (free), 0 (without) or 1 (with)."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def values(self) -> tuple[int, ...]: ...


class Support:
    """The distinct rows of labels (U, K int8; -1 unknown) of a training set, and how often each occurs."""

    def __init__(self, names: Sequence[str], rows: np.ndarray, counts: np.ndarray) -> None:
        self.names = tuple(names)
        self.rows = np.asarray(rows, dtype=np.int8)
        self.counts = np.asarray(counts, dtype=np.int64)
        if self.rows.shape != (len(self.counts), len(self.names)):
            expected = (len(self.counts), len(self.names))
            raise ValueError(f"The rows have the shape {self.rows.shape}, but counts and names ask for {expected}.")

    @classmethod
    def from_labels(cls, names: Sequence[str], labels: np.ndarray) -> Support:
        """Count the distinct rows of a table of labels."""
        labels = np.asarray(labels, dtype=np.int8).reshape(-1, len(names))
        rows, counts = np.unique(labels, axis=0, return_counts=True)
        return cls(names, rows, counts)

    @property
    def total(self) -> int:
        """The number of training images."""
        return int(self.counts.sum())

    def count(self, condition: HasValues) -> int:
        """The number of training images that match; an unknown label matches only where the condition is free."""
        if len(condition.names) != len(condition.values):
            raise ValueError(f"The condition has {len(condition.names)} names but {len(condition.values)} values.")
        match = np.ones(len(self.rows), dtype=bool)
        for name, value in zip(condition.names, condition.values, strict=True):
            if value < 0:
                continue
            if name not in self.names:
                raise ValueError(f"There is no attribute {name!r}. Choose among: {', '.join(self.names)}.")
            match &= self.rows[:, self.names.index(name)] == value
        return int(self.counts[match].sum())

    def pairs(self) -> dict[tuple[str, str], int]:
        """How many training images have both attributes, for every pair."""
        both = (self.rows == 1).astype(np.int64)
        table = both.T @ (both * self.counts[:, None])
        return {(self.names[i], self.names[j]): int(table[i, j]) for i, j in combinations(range(len(self.names)), 2)}

    def triples(self) -> dict[tuple[str, str, str], int]:
        """How many training images have all three attributes, for every triple."""
        both = (self.rows == 1).astype(np.int64)
        table = np.einsum("ui,uj,uk,u->ijk", both, both, both, self.counts, optimize=True)
        return {
            (self.names[i], self.names[j], self.names[k]): int(table[i, j, k])
            for i, j, k in combinations(range(len(self.names)), 3)
        }

    def save(self, path: str | Path) -> None:
        """Write a small safetensors file; the names travel in its header."""
        save_file({"rows": self.rows, "counts": self.counts}, path, metadata={"names": json.dumps(self.names)})

    @classmethod
    def load(cls, path: str | Path) -> Support:
        """Read what `save` wrote."""
        try:
            with safe_open(path, framework="np") as file:
                names = json.loads((file.metadata() or {})["names"])
                return cls(names, file.get_tensor("rows"), file.get_tensor("counts"))
        except (SafetensorError, KeyError, json.JSONDecodeError) as error:
            raise ValueError(f"{path} is not a table of training support: {error}.") from None
