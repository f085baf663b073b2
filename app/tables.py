"""The tables of the third screen. Every cell names the file and the place that its figure was read from."""

from __future__ import annotations

import json
from functools import cache

from app.catalog import OBJECTIVES as WORDS
from app.catalog import Entry
from app.reports import OBJECTIVES, TITLES, Family, report, value_at
from jem_core.places import ASSETS

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


@cache
def paper() -> dict:
    return json.loads(PAPER.read_text())


def theirs(source: str) -> dict:
    """The paper's figures on the same data, by objective; empty where it has none."""
    return paper()["data"].get(SAME_DATA.get(source, source), {})


def as_percent(value: float, digits: int = 1) -> str:
    return f"{100 * value:.{digits}f} %"


def cell(entry: Entry, kind: str, path: str, plain: bool = False) -> dict | None:
    """The figure at `path` in a file of a model, with its 95 % interval and where it stands; None if not there."""
    found = report(entry, kind)
    value = value_at(found, f"{path}.value") if found else None
    if value is None:
        return None
    show = (lambda number: f"{number:.3g}") if plain else as_percent
    low, high = (value_at(found, f"{path}.{end}") for end in ("low", "high"))
    interval = "" if low is None or high is None else f"{show(low)} to {show(high)}"
    return {"text": show(value), "interval": interval, "from": f"{entry.name}/{kind}.json#{path}.value"}


def prediction_table(family: Family | None, source: str) -> dict:
    """The paper's table: measures down, models across, ours first and then the paper's own."""
    written = theirs(source)
    ours = {o: family.models[o] for o in OBJECTIVES if family and o in family.models}
    rows = []
    for average in AVERAGES:
        for key, name in MEASURES.items():
            path = f"prediction.{average}.{key}"
            cells = {o: cell(entry, "evaluation", path) for o, entry in ours.items()}
            own = {o: _paper_cell(source, o, average, key) for o in written}
            row = {"average": average, "key": key, "measure": name, "ours": cells, "paper": own}
            rows.append(row | {"best": _best(ours, path, key)})
    return {
        "ours": [
            {"objective": o, "title": WORDS.get(o, o), "model": entry.name, "iterations": entry.iterations}
            for o, entry in ours.items()
        ],
        "paper": [{"objective": o, "title": WORDS.get(o, o)} for o in OBJECTIVES if o in written],
        "paper_title": f"{paper()['title']} ({TITLES.get(source, source)})" if written else "",
        "note": " ".join(filter(None, [paper()["notes"].get(source), paper()["note"]])),
        "source": paper()["source"],
        "rows": rows,
    }


def _paper_cell(source: str, objective: str, average: str, key: str) -> dict | None:
    table, name = paper(), SAME_DATA.get(source, source)
    if key not in table["measures"]:
        return None
    i = table["measures"].index(key)
    value = theirs(source)[objective][average][i]
    if value is None:
        return None
    return {"text": f"{value:g} %", "interval": "", "from": f"paper.json#data.{name}.{objective}.{average}.{i}"}


def _best(ours: dict[str, Entry], path: str, key: str) -> str | None:
    values = {o: value_at(report(entry, "evaluation") or {}, f"{path}.value") for o, entry in ours.items()}
    known = {o: value for o, value in values.items() if value is not None}
    if len(known) < 2:
        return None
    return min(known, key=known.get) if key in LOWER_IS_BETTER else max(known, key=known.get)


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
        found = cell(entry, "evaluation", f"measures.{i}", plain=row["key"] in PLAIN)
        counted = row.get("chains")
        words = row["measure"].replace("judged right", "match the request")
        rows.append({"key": row["key"], "measure": words, "cell": found, "chains": counted})
    return rows


def pairs_grid(family: Family) -> dict | None:
    """The heat map's cells, without pairs that cannot be true of one picture; None when the file was not made."""
    entry = next((one for one in family.by_age() if report(one, "pairs")), None)
    if entry is None:
        return None
    pairs = report(entry, "pairs")
    cells = [
        {"pair": row["pair"], "value": row["judged_right"], "training": row["training_images"]}
        for row in pairs["pairs"]
        if row["pair"][1] not in family.main.data.rivals(row["pair"][0])
    ]
    return {
        "model": entry.name,
        "title": entry.title,
        "names": pairs["names"],
        "chains": pairs["chains"],
        "cells": cells,
    }


def missing_words(family: Family) -> str:
    """What the table lacks, and how it is made."""
    missing = family.missing()
    if not missing:
        return ""
    names = ", ".join(WORDS.get(o, o) for o in missing)
    return f"Not at hand or not evaluated for {family.title}: {names}. See `python -m train evaluate --help`."
