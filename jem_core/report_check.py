"""What is read of the files that an evaluation wrote beside a model, checked once when the model is read.

A model from the Hub is somebody else's file: one odd value must be a sentence that names it, not an error in the answer
to whoever sends a picture. What nobody reads may be anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from reprlib import repr as shortened
from typing import NoReturn

from jem_core.calibration import ALL
from jem_core.typicality import KIND, LEVELS, PERCENTS, TURNED_FROM, TURNS

LARGEST = 1e12  # of any figure: what is larger is no measurement
RATE = ("value", "low", "high")
CURVES = {"roc": ("false_positive_rate", "true_positive_rate"), "pr": ("recall", "precision")}


@dataclass(frozen=True)
class Place:
    """A value of a report, and where it stands."""

    file: str
    value: object
    key: str = ""

    def refuse(self, expected: str) -> NoReturn:
        where = f"{shortened(self.value)} at {self.key!r}" if self.key else shortened(self.value)
        raise ValueError(
            f"{self.file} has {where}; expected {expected}. Without that file the model counts as not evaluated."
        )

    def _part(self, name: str | int, value: object) -> Place:
        return Place(self.file, value, f"{self.key}.{name}".lstrip("."))

    def entries(self) -> list[Place]:
        """The parts of an object or of a list; there are none in anything else."""
        if isinstance(self.value, dict):
            return [self._part(*item) for item in self.value.items()]
        return [self._part(*item) for item in enumerate(self.value)] if isinstance(self.value, list) else []

    def rates(self) -> Iterator[Place]:
        """Every {value, low, high} below this place, without recursion: nobody says how deep a file is."""
        waiting = [("", self.value)]
        while waiting:
            key, value = waiting.pop()
            if isinstance(value, dict) and "value" in value:
                yield Place(self.file, value, key)
            parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
            waiting += [(f"{key}.{name}".lstrip("."), part) for name, part in parts if isinstance(part, dict | list)]

    def __getitem__(self, name: str) -> Place:
        """A part of an object; None stands where there is none."""
        return self._part(name, self.mapping().get(name))

    def mapping(self) -> dict:
        return self.value if isinstance(self.value, dict) else self.refuse("an object")

    def items(self, length: int | None = None) -> list[Place]:
        """The parts of a list."""
        if not isinstance(self.value, list) or length not in (None, len(self.value)):
            self.refuse("a list" if length is None else f"a list of {length}")
        return self.entries()

    def text(self) -> str:
        return self.value if isinstance(self.value, str) else self.refuse("a text")

    def number(self, least: float = -LARGEST, most: float = LARGEST) -> None:
        if not _is_number(self.value, least, most):
            self.refuse(f"a number from {least:g} to {most:g}")

    def numbers(self, length: int | None = None, least: float = -LARGEST, most: float = LARGEST) -> list:
        """A list of numbers, and these numbers."""
        found = self.value if isinstance(self.value, list) else []
        if not found or length not in (None, len(found)) or not all(_is_number(value, least, most) for value in found):
            for place in self.items(length):
                place.number(least, most)
        return found

    def share(self) -> None:
        self.number(0, 1)

    def count(self) -> int:
        self.number(0)
        return self.value if isinstance(self.value, int) else self.refuse("a whole number")

    def rising(self, length: int | None = None) -> None:
        """Numbers, none of them smaller than the one before."""
        numbers = self.numbers(length)
        if numbers != sorted(numbers):
            self.refuse("numbers in order")


def _is_number(value: object, least: float, most: float) -> bool:
    return type(value) in (int, float) and least <= value <= most  # type: ignore[operator]


def check_reports(reports: Mapping[str, object], names: Sequence[str], levels: bool) -> None:
    """Refuse a report that a screen, an endpoint or `predict` would stumble over; ValueError names file and key."""
    for kind, report in reports.items():
        place = Place(f"{kind}.json", report)
        place.mapping()
        if kind == "calibration":
            _check_calibration(place, levels)
        elif kind == "evaluation":
            _check_evaluation(place)
        elif kind == "curves":
            _check_curves(place)
        elif kind == "pairs":
            _check_pairs(place, names)


def _check_calibration(report: Place, levels: bool) -> None:
    report["images"].count()
    report["attributes"].mapping()
    for part in (report[ALL], *report["attributes"].entries()):
        _check_bins(part["bins"])
        part["ece"].number()
        counts = part["histogram"]["count"].items()
        for count in counts:
            count.count()
        part["histogram"]["edges"].rising(len(counts) + 1)
    if report["gate"].value:
        _check_gate(report["gate"], levels)


def _check_bins(bins: Place) -> None:
    counts = [place.count() for place in bins["count"].items()]
    if not sum(counts):
        bins["count"].refuse("at least one image")
    bins["edges"].rising(len(counts) + 1)
    for name in ("mean_prediction", "positive_rate", "low", "high"):
        for count, value in zip(counts, bins[name].items(len(counts)), strict=True):
            if count or value.value is not None:  # an empty bin has no mean and no rate
                value.share()


def _check_gate(gate: Place, levels: bool) -> None:
    gate["auroc"].mapping()
    for found in gate["auroc"].entries():
        found["value"].share()
    if gate["kind"].value != KIND:  # one of an older kind is not used
        return
    figures = figure_count(levels)
    gate["mean"].numbers(figures)
    for row in gate["root"].items(figures):
        row.numbers(figures)
    gate["quantiles"].rising(len(PERCENTS))


def figure_count(levels: bool) -> int:
    """How many figures `typicality.figures` measures of a picture."""
    if not levels:
        return 2 * (1 + len(TURNS))
    return sum(4 + 3 * len(TURNS) * (sigma >= TURNED_FROM) for sigma in LEVELS)


def _check_evaluation(report: Place) -> None:
    for place in report.rates():
        for name in RATE:
            if place[name].value is not None:
                place[name].number()
    for row in _optional_list(report, "measures"):
        row["key"].text()
        row["measure"].text()
        if row["chains"].value is not None:
            row["chains"].count()
    for row in _optional_list(report, "synthesis", "samplers_and_starts"):
        row["sampler"].text()
        row["start"].text()
        for pairs in ("seen_pairs", "held_out_pairs"):
            if pairs in row.mapping():
                for name in RATE:
                    row[pairs]["judged_right"][name].share()
                row[pairs]["judged_right"]["of"].count()
    for part in ("steering", "long_run"):
        for place in _optional_list(report, part, "judged_right"):
            if not isinstance(place.value, dict):
                place.share()
    for step in _optional_list(report, "long_run", "steps"):
        step.count()


def _optional_list(report: Place, *keys: str) -> list[Place]:
    """The list there; empty where a model has not been measured in this way."""
    for key in keys:
        if not isinstance(report.value, dict) or not report[key].value:
            return []
        report = report[key]
    return report.items()


def _check_curves(report: Place) -> None:
    for kind, axes in CURVES.items():
        report[kind].mapping()
        for curve in report[kind].entries():
            length = len(curve[axes[0]].items())
            for axis in axes:
                curve[axis].numbers(length, 0, 1)


def _check_pairs(report: Place, names: Sequence[str]) -> None:
    report["chains"].count()
    known = [name.text() for name in report["names"].items()]
    for place, name in zip(report["names"].items(), known, strict=True):
        if name not in names:
            place.refuse("an attribute of the model")
    for row in report["pairs"].items():
        one, other = (name.text() for name in row["pair"].items(2))
        if one == other or not {one, other} <= set(known):
            row["pair"].refuse("two of the names of the map")
        row["judged_right"].share()
        row["training_images"].count()
