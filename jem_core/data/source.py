"""What every source of data hands over to be written: how many rows, their names, the rows one by one, the split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any, TypeVar

import numpy as np

Row = tuple[np.ndarray, np.ndarray]
Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Source:
    """A source ready to be read. `rows` yields (image uint8 (3, S, S), labels int8 (K,)) once."""

    name: str
    names: tuple[str, ...]
    n: int
    image_size: int
    rows: Iterable[Row]
    split: np.ndarray
    options: dict[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    credit: str = ""
    licence: str = ""


def in_processes(
    function: Callable[[Job], Result], jobs: Iterable[Job], workers: int, chunk: int = 64
) -> Iterator[Result]:
    """`map` in order over spawned processes; with one worker, or few jobs, in this process."""
    if workers <= 1:
        yield from map(function, jobs)
        return
    with get_context("spawn").Pool(workers) as pool:
        yield from pool.imap(function, jobs, chunksize=chunk)


def frequent(names: Sequence[str], labels: np.ndarray, least: float) -> list[int]:
    """The columns whose share of positives among known labels is `least` or more."""
    known = np.maximum((labels >= 0).sum(0), 1)
    return [i for i in range(len(names)) if (labels[:, i] == 1).sum() / known[i] >= least]


def random_split(n: int, seed: int, choose: float = 0.1, report: float = 0.1) -> np.ndarray:
    """Every row goes to train, choose or report at random, in exactly these shares (rounded)."""
    if choose < 0 or report < 0 or choose + report >= 1:
        raise ValueError(
            f"The shares choose {choose} and report {report} must be 0 or more and leave room for training."
        )
    first, second = round(n * choose), round(n * report)
    split = np.zeros(n, dtype=np.uint8)
    order = np.random.default_rng([seed, 0x5917]).permutation(n)
    split[order[:first]] = 1
    split[order[first : first + second]] = 2
    return split
