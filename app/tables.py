"""The tables of the third screen. Every cell names the file and the place that its figure was read from."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from app.catalog import OBJECTIVES as WORDS
from app.catalog import Entry
from app.reports import OBJECTIVES, TITLES, Family, look, report

PAPER = Path(__file__).resolve().parent.parent / "assets" / "paper.json"
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
PLAIN = ("frechet_distance", "spread", "spread_without_grain")  # no shares


@cache
def paper() -> dict:
    return json.loads(PAPER.read_text())


def as_percent(value: float, digits: int = 1) -> str:
    return f"{100 * value:.{digits}f} %"


def cell(entry: Entry, kind: str, path: str, plain: bool = False) -> dict | None:
    """The figure at `path` in a file of a model, with its 95 % interval and where it stands; None if not there."""
    found = report(entry, kind)
    value = look(found, f"{path}.value") if found else None
    if value is None:
        return None
    show = (lambda number: f"{number:.3g}") if plain else as_percent
    low, high = (look(found, f"{path}.{end}") for end in ("low", "high"))
    interval = "" if low is None or high is None else f"{show(low)} to {show(high)}"
    return {"text": show(value), "interval": interval, "from": f"{entry.name}/{kind}.json#{path}.value"}


def prediction_table(family: Family | None, source: str) -> dict:
    """The paper's table: measures down, models across, ours first and then the paper's own."""
    theirs = paper()["data"].get(source, {})
    ours = {o: family.models[o] for o in OBJECTIVES if family and o in family.models}
    rows = []
    for average in AVERAGES:
        for key, name in MEASURES.items():
            path = f"prediction.{average}.{key}"
            cells = {o: cell(entry, "evaluation", path) for o, entry in ours.items()}
            written = {o: _paper_cell(source, o, average, key) for o in theirs}
            row = {"average": average, "key": key, "measure": name, "ours": cells, "paper": written}
            rows.append(row | {"best": _best(ours, path, key)})
    return {
        "ours": [
            {"objective": o, "title": WORDS.get(o, o), "model": entry.name, "iterations": entry.iterations}
            for o, entry in ours.items()
        ],
        "paper": [{"objective": o, "title": WORDS.get(o, o)} for o in OBJECTIVES if o in theirs],
        "paper_title": f"{paper()['title']} ({TITLES.get(source, source)})" if theirs else "",
        "note": paper()["note"],
        "source": paper()["source"],
        "rows": rows,
    }


def _paper_cell(source: str, objective: str, average: str, key: str) -> dict | None:
    table = paper()
    if key not in table["measures"]:
        return None
    i = table["measures"].index(key)
    value = table["data"][source][objective][average][i]
    if value is None:
        return None
    return {"text": f"{value:g} %", "interval": "", "from": f"paper.json#data.{source}.{objective}.{average}.{i}"}


def _best(ours: dict[str, Entry], path: str, key: str) -> str | None:
    values = {o: look(report(entry, "evaluation") or {}, f"{path}.value") for o, entry in ours.items()}
    known = {o: value for o, value in values.items() if value is not None}
    if len(known) < 2:
        return None
    return min(known, key=known.get) if key in LOWER_IS_BETTER else max(known, key=known.get)


def synthesis_table(family: Family) -> list[dict]:
    """Judged accuracy and fidelity of the main model, and what a factored model does with the same pairs."""
    entry = family.main
    evaluation = report(entry, "evaluation") or {}
    rows = []
    for i, row in enumerate(evaluation.get("measures", [])):
        if row["key"].startswith(AVERAGES) or row["value"] is None:
            continue
        found = cell(entry, "evaluation", f"measures.{i}", plain=row["key"] in PLAIN)
        counted = row.get("chains")
        rows.append({"key": row["key"], "measure": row["measure"], "cell": found, "chains": counted})
    return rows


def pairs_grid(family: Family) -> dict | None:
    """The heat map's cells, or None when the file was not made."""
    entry = family.main
    pairs = report(entry, "pairs")
    if pairs is None:
        return None
    cells = [
        {"pair": row["pair"], "value": row["judged_right"], "training": row["training_images"]}
        for row in pairs["pairs"]
    ]
    return {"model": entry.name, "names": pairs["names"], "chains": pairs["chains"], "cells": cells}


def missing_words(family: Family) -> str:
    """What the table lacks, and how it is made."""
    missing = family.missing()
    if not missing:
        return ""
    names = ", ".join(WORDS.get(o, o) for o in missing)
    return f"Not at hand or not evaluated for {family.title}: {names}. See `python -m train evaluate --help`."
