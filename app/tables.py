"""The tables of the third screen. Every cell names the file and the place that its figure was read from."""

from __future__ import annotations

import json
from functools import cache

from app.catalog import Entry
from app.figures import figure, leaders
from app.kinds import word
from app.reports import OBJECTIVES, TITLES, Family, report, value_at
from jem_core.places import ASSETS
from jem_core.plots import percent

PAPER = ASSETS / "paper.json"
AVERAGES = ("micro", "macro")
MEASURES = {
    "accuracy": "Accuracy",
    "f1": "F1",
    "auprc": "AUPRC",
    "auroc": "AUROC",
    "ece": "ECE",
    "ece_paper": "ECE, the paper's half-open bins",
}
LOWER_IS_BETTER = ("ece", "ece_paper")
SAME_DATA = {"shoes": "utzappos"}  # our name of a data set, and the paper's
PLAIN = ("frechet_distance", "spread", "spread_without_grain", "steering_clipped")  # not shares
GATE = "gate.worst_auroc"
NEAREST = "fidelity.nearest_training_image"
MEMORY = {  # samples that repeat training images are nearer to them than new pictures are
    "samples_median": "distance to the nearest training image (0: a copy), samples",
    "real_median": "distance to the nearest training image, real images never seen in training",
}


@cache
def paper() -> dict:
    return json.loads(PAPER.read_text())


def theirs(source: str) -> dict:
    """The paper's figures on the same data, by objective; empty where it has none."""
    return paper()["data"].get(SAME_DATA.get(source, source), {})


def cell(entry: Entry, path: str, plain: bool = False) -> dict | None:
    """The figure at `path` of evaluation.json, with its 95 % interval and where it stands; None if not there."""
    found = figure(entry, path)
    if found is None:
        return None
    show = (lambda number: f"{number:.3g}") if plain else percent
    interval = "" if found.low is None or found.high is None else f"{show(found.low)} to {show(found.high)}"
    place = path if found.alone else f"{path}.value"
    return {"text": show(found.value), "interval": interval, "from": f"{entry.name}/evaluation.json#{place}"}


def prediction_table(family: Family | None, source: str) -> dict:
    """The paper's table: measures down, models across, ours first and then the paper's own."""
    written = theirs(source)
    ours = {o: family.models[o] for o in OBJECTIVES if family and o in family.models}
    asked = [(average, key, f"prediction.{average}.{key}") for average in AVERAGES for key in MEASURES]
    rows = []
    for average, key, path in asked:
        own = {o: _paper_cell(source, o, average, key) for o in written}
        row = {"average": average, "key": key, "measure": MEASURES[key], "paper": own}
        rows.append(row | _ours(ours, path, key in LOWER_IS_BETTER))
    gate = _ours(ours, GATE)
    if any(gate["ours"].values()):
        rows.append(
            {"average": "", "key": "gate", "measure": "Finds unusual pictures: worst AUROC", "paper": {}} | gate
        )
    return {
        "ours": [
            {"objective": o, "title": word(o), "model": entry.name, "iterations": entry.iterations}
            for o, entry in ours.items()
        ],
        "paper": [{"objective": o, "title": word(o)} for o in OBJECTIVES if o in written],
        "paper_title": f"{paper()['title']} ({TITLES.get(source, source)})" if written else "",
        "note": " ".join(filter(None, [paper()["notes"].get(source), paper()["note"]])),
        "source": paper()["source"],
        "rows": rows,
    }


def _ours(ours: dict[str, Entry], path: str, lower: bool = False) -> dict:
    """The cells of our models, and which of them are best; nobody is alone at the top of a tie."""
    found = {o: figure(entry, path) for o, entry in ours.items()}
    known = {o: value for o, value in found.items() if value is not None}
    best = leaders(known, lower) if len(known) > 1 else []
    return {"ours": {o: cell(entry, path) for o, entry in ours.items()}, "best": best}


def _paper_cell(source: str, objective: str, average: str, key: str) -> dict | None:
    table, name = paper(), SAME_DATA.get(source, source)
    if key not in table["measures"]:
        return None
    i = table["measures"].index(key)
    value = theirs(source)[objective][average][i]
    if value is None:
        return None
    return {"text": f"{value:g} %", "interval": "", "from": f"paper.json#data.{name}.{objective}.{average}.{i}"}


def synthesis_table(family: Family) -> list[dict]:
    """How often samples of the main model match, their fidelity, and what a factored model does with the same pairs."""
    entry = next(
        (one for one in family.by_age() if value_at(report(one, "evaluation") or {}, "synthesis")), family.main
    )
    evaluation = report(entry, "evaluation") or {}
    rows = []
    for i, row in enumerate(evaluation.get("measures", [])):
        if row["key"].startswith(AVERAGES) or row["value"] is None:
            continue
        found = cell(entry, f"measures.{i}", plain=row["key"] in PLAIN)
        rows.append({"key": row["key"], "measure": said(row["measure"]), "cell": found, "chains": row.get("chains")})
    for key, measure in MEMORY.items():
        if found := cell(entry, f"{NEAREST}.{key}", plain=True):
            counted = value_at(evaluation, f"{NEAREST}.samples") if key.startswith("samples") else None
            rows.append({"key": key, "measure": measure, "cell": found, "chains": counted})
    return rows


def said(measure: str) -> str:
    """A measure of the evaluation as a screen says it: "steering, judged right, after toggle 8" is "matches the
    request: steering, after toggle 8"."""
    measure = measure.replace("a held-out", "an unseen").replace("held-out", "unseen")
    before, judged, after = measure.partition("judged right")
    rest = before.rstrip(",: ") + (after if before else after.lstrip(", "))
    return f"matches the request: {rest}" if judged else measure


def pairs_grid(family: Family) -> dict | None:
    """The heat map's cells, without pairs that cannot be true of one picture; None when the file was not made."""
    entry = next((one for one in family.by_age() if report(one, "pairs")), None)
    if entry is None:
        return None
    pairs = report(entry, "pairs")
    cells = [
        {"pair": row["pair"], "value": row["judged_right"], "training": row["training_images"]}
        for row in pairs["pairs"]
        if not _rivals(family, *row["pair"])
    ]
    return {
        "model": entry.name,
        "title": entry.title,
        "names": pairs["names"],
        "chains": pairs["chains"],
        "cells": cells,
    }


def _rivals(family: Family, first: str, second: str) -> bool:
    """Whether the two cannot be true of one picture; a model of the first format does not know."""
    return any(second in entry.data.rivals(first) for entry in family.models.values())


def missing_words(family: Family) -> str:
    """What the table lacks, and how it is made."""
    missing = family.missing()
    if not missing:
        return ""
    names = ", ".join(map(word, missing))
    return f"Not available or not evaluated for {family.title}: {names}. See `python -m train evaluate --help`."
