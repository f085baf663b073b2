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
    title: str = ""  # for a reader
    credit: str = ""
    licence: str = ""  # of the data
    weights_licence: str = "MIT"  # of a model that was trained on them
    groups: Sequence[Sequence[str]] = ()  # attributes of which at most one is true of a picture
    alternatives: Sequence[Sequence[str]] = ()  # of which one is asked for at a time, though several may be true
    faces: bool = False  # aligned faces
    drawn: bool = False  # from their attributes, so that the truth is known
    flips: bool = False  # a mirrored picture is as good


def in_processes(
    function: Callable[[Job], Result], jobs: Iterable[Job], workers: int, chunk: int = 64
) -> Iterator[Result]:
    """`map` in order over spawned processes; with one worker in this process."""
    if workers <= 1:
        yield from map(function, jobs)
        return
    with get_context("spawn").Pool(workers) as pool:
        yield from pool.imap(function, jobs, chunksize=chunk)


def frequent(names: Sequence[str], labels: np.ndarray, least: float) -> list[int]:
    """The columns whose share of positives among known labels is `least` or more."""
    known = np.maximum((labels >= 0).sum(0), 1)
    return [i for i in range(len(names)) if (labels[:, i] == 1).sum() / known[i] >= least]


def random_split(n: int, seed: int, val: float = 0.1, test: float = 0.1) -> np.ndarray:
    """Every row goes to train (0), val (1) or test (2) at random, in these shares, rounded (but never to none)."""
    if val < 0 or test < 0 or val + test >= 1:
        raise ValueError(f"The shares val {val} and test {test} must be 0 or more and below 1 together.")
    first, second = (max(round(n * share), 1 if share and n > 2 else 0) for share in (val, test))
    return _split(n, first, second, seed)


def held_out_split(n: int, seed: int, count: int = 5000) -> np.ndarray:
    """The paper's 5,000 random rows (a fifth of a smaller set); half for val, half for test."""
    count = min(count, n // 5)
    return _split(n, count // 2, count - count // 2, seed)


def _split(n: int, val: int, test: int, seed: int) -> np.ndarray:
    split = np.zeros(n, dtype=np.uint8)
    order = np.random.default_rng([seed, 0x5917]).permutation(n)
    split[order[:val]] = 1
    split[order[val : val + test]] = 2
    return split
