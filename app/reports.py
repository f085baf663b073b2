"""What the evaluation wrote beside the models: every figure that the second and third screens show comes from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.catalog import Catalog, Entry
from jem_core.bundle import REPORTS, read_report
from jem_core.calibration import Calibration
from jem_core.objectives import OBJECTIVES  # in the order of the paper's tables, ours last

TITLES = {"avatars": "Avatars", "celeba": "CelebA", "shoes": "UT Zappos50K", "utzappos": "UT Zappos50K"}


def report(entry: Entry, kind: str) -> dict | None:
    """One of the files of a model; None when the model was not evaluated (so far)."""
    return read_report(entry.directory, kind) if entry.directory else None


def value_at(value: Mapping | list, path: str) -> object:
    """The value at "prediction.micro.f1.value"; None where the file does not go so far."""
    for part in path.split("."):
        if isinstance(value, list):
            value = value[int(part)] if part.isdecimal() and int(part) < len(value) else None
        else:
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is None:
            return None
    return value


@dataclass
class Family:
    """Models of one data set at one size, by objective."""

    key: str
    title: str
    source: str
    models: dict[str, Entry] = field(default_factory=dict)

    @property
    def attributes(self) -> tuple[str, ...]:
        return next(iter(self.models.values())).attributes

    def by_age(self) -> list[Entry]:
        """All models, the newest kind first."""
        return [self.models[objective] for objective in reversed(OBJECTIVES) if objective in self.models]

    @property
    def main(self) -> Entry:
        """The model that the family is about: the newest kind, of those that make pictures if any does."""
        return next((entry for entry in self.by_age() if entry.generates), self.by_age()[0])

    def missing(self) -> list[str]:
        """The objectives of the paper's table that are not at hand, or not evaluated."""
        return [o for o in OBJECTIVES if o not in self.models or report(self.models[o], "evaluation") is None]


def families(catalog: Catalog) -> dict[str, Family]:
    """All models, grouped; of two with the same objective the first counts."""
    found: dict[tuple, Family] = {}
    for entry in catalog.entries():
        if entry.objective not in OBJECTIVES:
            continue
        source = entry.data.source
        key = (source, entry.image_size, entry.attributes)
        title = f"{entry.data.title}, {entry.image_size} px"
        family = found.setdefault(key, Family(f"{source}-{entry.image_size}-{len(found)}", title, source))
        family.models.setdefault(entry.objective, entry)
    return {family.key: family for family in found.values()}


def stamp(family: Family | None) -> tuple:
    """Another one as soon as one of the family's files changes."""
    entries = [entry for entry in family.models.values() if entry.directory] if family else []
    files = [entry.directory / f"{kind}.json" for entry in entries for kind in REPORTS]
    return tuple((file, file.stat().st_mtime_ns) for file in files if file.is_file())


def family_of(catalog: Catalog, name: str) -> Family | None:
    """The family that a model belongs to."""
    mine = catalog.entry(name)
    return next((f for f in families(catalog).values() if mine in f.models.values()), None)


def calibration(entry: Entry) -> Calibration | None:
    """How often a model's answers were right; None when it was not evaluated."""
    found = report(entry, "calibration")
    return Calibration(found) if found else None


def baseline(catalog: Catalog, name: str) -> Calibration | None:
    """The calibration of the plain classifier of the same data, to lay over this model's."""
    family = family_of(catalog, name)
    entry = next((one for one in family.models.values() if not one.generates), None) if family else None
    return calibration(entry) if entry and entry.name != name else None
