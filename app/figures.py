"""Figures of an evaluation with their intervals, and which of two is ahead: what looks the same is a tie, and so are
figures whose intervals overlap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from app.catalog import Entry
from app.reports import report, value_at

DIGITS = 1  # of a percentage, wherever one is shown


class Figure(NamedTuple):
    """A figure and its 95 % interval, where the file has one."""

    value: float
    low: float | None = None
    high: float | None = None
    alone: bool = False  # a plain number in the file

    @property
    def shown(self) -> float:
        """In percent, as a table shows it."""
        return round(100 * self.value, DIGITS)


def figure(entry: Entry, path: str) -> Figure | None:
    """What evaluation.json has there: {value, low, high}, or a number alone; None where it has neither."""
    found = value_at(report(entry, "evaluation") or {}, path)
    if isinstance(found, Mapping):
        value, low, high = (_number(found.get(key)) for key in ("value", "low", "high"))
        return None if value is None else Figure(value, low, high)
    value = _number(found)
    return None if value is None else Figure(value, alone=True)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def level(one: Figure, other: Figure) -> bool:
    """Neither is ahead. Without an interval a figure is taken as exact."""
    low, high = (one.value if end is None else end for end in (one.low, one.high))
    lowest, highest = (other.value if end is None else end for end in (other.low, other.high))
    return one.shown == other.shown or (low <= highest and lowest <= high)


def ranked(found: Mapping[str, Figure], lower: bool = False) -> list[str]:
    """The best first."""
    return sorted(found, key=lambda name: found[name].value, reverse=not lower)


def leaders(found: Mapping[str, Figure], lower: bool = False) -> list[str]:
    """The best, and all that are level with it."""
    order = ranked(found, lower)
    return [name for name in order if name == order[0] or level(found[order[0]], found[name])]
