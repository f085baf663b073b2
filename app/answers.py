"""What is said of a picture: by which model, in which words, and how far to trust it."""

from __future__ import annotations

from app import uploads
from app.attributes import caption
from app.catalog import Entry
from app.runtime import current
from app.uploads import Picture, View
from jem_core.calibration import Calibration, Row
from jem_core.data import avatars
from jem_core.prediction import Prediction, typicality
from jem_core.typicality import Reading

TITLES = {"inside": "A typical picture", "unusual": "An unusual picture", "unlike": "Not a picture for this model"}
DO_NOT_TRUST = "do not trust these numbers"


def choose(picture: Picture) -> str:
    """The model that a picture is for."""
    return choose_and_read(picture)[0]


def choose_and_read(picture: Picture) -> tuple[str, Reading | None]:
    """The model that a picture is for, and how typical it was found if that was asked: it takes as long as the answers.

    A drawn avatar is known, a face is found, anything else goes where it is most typical, but not to a model of
    faces. A face that the model of faces finds strange, such as a drawn one, goes where it is typical too, if anywhere.
    """
    entries = _candidates()
    first = next(iter(current().catalog.attributes()))
    if picture.avatar is not None:
        return next((entry.name for entry in entries if entry.data.drawn), first), None
    of_faces = next((entry for entry in entries if entry.data.faces), None)
    found = of_faces if of_faces and picture.find_faces() else None
    likely = [found] if found else [entry for entry in entries if not entry.data.faces] or entries
    readings = {}
    for entry in likely:
        readings[entry.name] = _reading(picture, entry)
    if found and (readings[found.name] is None or readings[found.name].verdict != "unlike"):
        return found.name, readings[found.name]
    for entry in entries if found else ():
        readings.setdefault(entry.name, _reading(picture, entry))
    known = {name: reading for name, reading in readings.items() if reading is not None}
    if found and not any(reading.verdict == "inside" for reading in known.values()):
        return found.name, readings[found.name]
    name = min(known, key=lambda name: known[name].distance, default=first)
    return name, known.get(name)


def _candidates() -> list[Entry]:
    """One model for each data set, one with noise levels where there is one."""
    catalog, found = current().catalog, {}
    entries = sorted((catalog.entry(name) for name in catalog.attributes()), key=lambda entry: not entry.levels)
    for entry in entries:
        found.setdefault(entry.data.source, entry)
    return list(found.values())


def _reading(picture: Picture, entry: Entry) -> Reading | None:
    view = uploads.crop_for(picture, entry)
    return typicality(current().catalog.bundle(entry.name), view.stored[None])


def share(value: float) -> str:
    """A probability as a sentence says it; a model is never certain, whatever its last digit says."""
    if value < 0.01:
        return "less than 1 %"
    if value > 0.99:
        return "more than 99 %"
    return f"{100 * value:.0f} %"


def sentence(row: Row) -> str:
    """What the model says, and how often test pictures with such an answer really had the attribute."""
    said = f"The model says {share(row.probability)}."
    if row.span is None:
        return f"{said} This model has not been evaluated, so there is nothing to check that against."
    if not row.enough:
        if not row.count:
            return f"{said} No test picture had such an answer, so there is nothing to compare with."
        count = f"{row.count} test picture{'s' * (row.count > 1)}"
        return f"{said} Only {count} had such an answer: too few to say how many really have it."
    low, high = (f"{100 * value:.0f}" for value in row.interval)
    if low == high:
        low, high = (f"{100 * value:.1f}" for value in row.interval)
    of = f"Of {row.count:,} test pictures with such an answer"
    return f"{said} {of}, {100 * row.rate:.0f} % ({low} to {high}) really had it."


def row_facts(row: Row, truth: bool | None = None) -> dict:
    """A row as the page draws it, and as the API gives it."""
    facts: dict = {"name": row.name, "label": caption(row.name), "p": round(row.probability, 6), "enough": row.enough}
    facts |= {"sentence": sentence(row), "surprise": round(row.surprise, 4), "count": None}
    if row.span is not None:
        facts |= {"count": row.count, "rate": row.rate, "low": row.interval[0], "high": row.interval[1]}
        facts |= {"from": row.span[0], "to": row.span[1]}
    return facts | ({} if truth is None else {"truth": truth})


def truths(picture: Picture) -> dict[str, bool]:
    """The attributes of an avatar that was drawn here; nothing of any other picture."""
    return {} if picture.avatar is None else avatars.visible(avatars.sample_attributes(picture.avatar))


def gate_words(prediction: Prediction, view: View) -> dict:
    """The gate's verdict in words; a photograph without a face is not for a model of faces."""
    reading = prediction.reading
    if view.lost:
        sentence = f"This model only knows faces: {DO_NOT_TRUST}."
        return {"verdict": "unlike", "title": TITLES["unlike"], "sentence": sentence}
    if reading is None:
        sentence = "This model cannot reliably tell unusual pictures apart."
        return {"verdict": None, "title": "", "sentence": sentence}
    than = "every test picture" if reading.beyond else f"{int(reading.percentile)} % of test pictures"
    if reading.verdict == "inside":
        sentence = f"Typical: more so than {100 - reading.percentile:.0f} % of test pictures."
    elif reading.verdict == "unusual":
        sentence = f"Less typical than {than}: trust these numbers less."
    else:
        sentence = f"Less typical than {than}: {DO_NOT_TRUST}."
    return {"verdict": reading.verdict, "title": TITLES[reading.verdict], "sentence": sentence}


def together(calibration: Calibration | None) -> str:
    """The sentence for all attributes at once."""
    if calibration is None:
        return "This model has not been evaluated."
    part = calibration.part()
    count = sum(part["bins"]["count"])
    return (
        f"All attributes of {calibration.images:,} test pictures, {count:,} answers in all: "
        f"the model's percentages are off by {100 * part['ece']:.1f} percentage points on average."
    )
