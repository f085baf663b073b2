"""What the figures say: the paragraph and the short table at the top of the third screen, written from the files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.catalog import OBJECTIVES as WORDS
from app.catalog import Entry
from app.reports import OBJECTIVES, TITLES, Family, report, value_at
from app.tables import as_percent, paper, theirs

PAPERS = "gibbs-jem"  # the model that the paper is about
SIDES = {  # worse than the paper, level with it, better
    "accuracy": {-1: "fewer", 0: "as many", 1: "more"},
    "ece_paper": {-1: "less honest", 0: "just as honest", 1: "more honest"},
}
NAMES = {  # in a sentence
    "denoising": "the model with noise levels",
    "gibbs-jem": "Gibbs-JEM",
    "jem": "factored JEM",
    "supervised": "the supervised model",
}
KINDS = {  # below the short table: what a newcomer must know of each column
    "supervised": "Supervised predicts labels and makes no pictures.",
    "jem": "Factored JEM is the rival that the paper compares itself with.",
    "gibbs-jem": "Gibbs-JEM is the paper's method.",
    "denoising": "Noise levels is the same kind of energy, learned at many levels of noise: the Studio opens with it.",
}


@dataclass(frozen=True)
class Measure:
    """One question and where its answer stands; shares, the larger the better unless said otherwise."""

    key: str
    question: str
    path: str  # in evaluation.json
    lower: bool = False
    papers: str = ""  # the same figure in the paper's table
    against: str = ""  # the paper's figure, in words: how ours compares, ours, theirs


MEASURES = (
    Measure(
        "accuracy",
        "Labels predicted right",
        "prediction.micro.accuracy.value",
        papers="accuracy",
        against="our best one gets {} labels right ({} % against {} %)",
    ),
    Measure("ece", "Average error of its percentages", "prediction.micro.ece.value", lower=True),
    Measure(
        "ece_paper",
        "Average error, by the paper's bins",
        "prediction.micro.ece_paper.value",
        lower=True,
        papers="ece_paper",
        against="our percentages are {} (off by {} points against {}, in the paper's bins)",
    ),
    Measure("seen", "Pictures that match two attributes", "synthesis.seen_pairs.summary.judged_right.value"),
    Measure("unseen", "Pictures that match an unseen pair", "synthesis.held_out_pairs.summary.judged_right.value"),
    Measure("steered", "Pictures that match after many changes", "steering.after_last"),
)
FACTORED = {"seen": "factored_jem.seen_pairs", "unseen": "factored_jem.held_out_pairs"}


def figures(family: Family, measure: Measure) -> dict[str, float]:
    """The measure by objective; a factored model's samples were judged beside those of the main one."""
    found = {}
    for objective in OBJECTIVES:
        entry = family.models.get(objective)
        value = _number(entry, measure.path) if entry else None
        if value is None and objective == "jem" and measure.key in FACTORED:
            value = _factored(family, FACTORED[measure.key])
        if value is not None:
            found[objective] = value
    return found


def _number(entry: Entry, path: str) -> float | None:
    return _share(value_at(report(entry, "evaluation") or {}, path))


def _factored(family: Family, path: str) -> float | None:
    values = (_number(entry, f"{path}.summary.judged_right.value") for entry in family.models.values())
    return next((value for value in values if value is not None), None)


def papers(source: str, measure: Measure) -> float | None:
    """The paper's own figure of its own model, as a share."""
    table = theirs(source).get(PAPERS)
    if not measure.papers or table is None:
        return None
    return table["micro"][paper()["measures"].index(measure.papers)] / 100


def headline(family: Family) -> dict:
    """The short table: a question per row, a model per column, the best of ours marked, the paper's last."""
    models = [objective for objective in OBJECTIVES if objective in family.models]
    rows = []
    for measure in MEASURES:
        found, written = figures(family, measure), papers(family.source, measure)
        if not found:
            continue
        cells = {objective: as_percent(value) for objective, value in found.items()}
        best = _best(found, measure) if len(found) > 1 else None
        row = {"key": measure.key, "question": measure.question, "cells": cells, "best": best}
        rows.append(row | {"paper": None if written is None else as_percent(written)})
    return {
        "models": [{"objective": o, "title": _title(o)} for o in models],
        "rows": rows,
        "paper": any(row["paper"] for row in rows),
        "kinds": " ".join(KINDS[o] for o in models if o in KINDS),
    }


def _best(found: dict[str, float], measure: Measure) -> str:
    return (min if measure.lower else max)(found, key=found.get)


def _title(objective: str) -> str:
    words = WORDS.get(objective, objective)
    return words[:1].upper() + words[1:]


def paragraph(family: Family, others: Iterable[Family] = ()) -> str:
    """What the tables show, in a few sentences: which model is best at what, by how much, and against the paper.

    Where the paper has no figures for this data, one of the other families answers for it.
    """
    found = figures(family, MEASURES[0])
    if not found:
        return f"No model of {family.title} has been evaluated yet."
    parts = (_accuracy(family), _calibration(family), _pairs(family), _steering(family), _paper(family, others))
    return " ".join(part for part in parts if part)


def _ahead(family: Family, found: dict[str, float], measure: Measure, digits: int = 1) -> str:
    """By how much the best is ahead of the next: ", 3.7 points ahead of Gibbs-JEM"; nothing where it is alone."""
    best = _best(found, measure)
    others = {o: value for o, value in found.items() if o != best}
    if not others:
        return ""
    second = _best(others, measure)
    points = abs(round(100 * found[best], digits) - round(100 * found[second], digits))
    if points < 10**-digits / 2:
        return f", level with {_name(second)}"
    text = f", {points:.{digits}f} point{'s' * (points != 1)} ahead of {_name(second)}"
    first, other = (_interval(family, measure, objective) for objective in (best, second))
    overlap = first and other and first[0] <= other[1] and other[0] <= first[1]
    return f"{text}, which may be chance" if overlap else text


def _interval(family: Family, measure: Measure, objective: str) -> tuple[float, float] | None:
    """The 95 % interval of a figure; None where the file has none."""
    place = measure.path.removesuffix(".value")
    low, high = (_number(family.models[objective], f"{place}.{end}") for end in ("low", "high"))
    return None if low is None or high is None else (low, high)


def _name(objective: str) -> str:
    return NAMES.get(objective, objective)


def _makers(family: Family, measure: Measure) -> dict[str, float]:
    """The measure of the models that make pictures."""
    return {o: value for o, value in figures(family, measure).items() if family.models[o].generates}


def _accuracy(family: Family) -> str:
    found, makers = figures(family, MEASURES[0]), _makers(family, MEASURES[0])
    if not makers:
        best = _best(found, MEASURES[0])
        return f"{_name(best)[:1].upper()}{_name(best)[1:]} predicts labels best: {as_percent(found[best])} right."
    best = _best(makers, MEASURES[0])
    share = as_percent(makers[best])
    if len(makers) > 1:
        text = f"Of the models that make pictures, {_name(best)} predicts labels best: {share} right"
    else:
        text = f"{_name(best)[:1].upper()}{_name(best)[1:]} gets {share} of the labels right"
    text += _ahead(family, makers, MEASURES[0])
    others = [f"{_name(o)}: {as_percent(value)}" for o, value in found.items() if o not in makers]
    return f"{text} ({', '.join(others)})." if others else f"{text}."


def _calibration(family: Family) -> str:
    found = _makers(family, MEASURES[1])
    if not found:
        return ""
    best = _best(found, MEASURES[1])
    points = 100 * found[best]
    off = f"off by {'less than 0.1' if points < 0.05 else f'{points:.1f}'} points on average"
    if len(found) == 1:
        return f"Its percentages are {off}."
    too = best == _best(_makers(family, MEASURES[0]), MEASURES[0])
    whose = (
        "Its percentages are the most honest, too" if too else f"The most honest percentages come from {_name(best)}"
    )
    others = ", ".join(f"{_name(o)}: {100 * value:.1f}" for o, value in found.items() if o != best)
    return f"{whose}: {off} ({others})."


def _pairs(family: Family) -> str:
    seen, unseen = (figures(family, measure) for measure in MEASURES[3:5])
    if not seen:
        return ""
    text = f"Asked for two attributes at once, {_matching(family, seen, MEASURES[3], 'of its pictures match')}."
    if unseen:
        text += f" For pairs that training never showed, {_matching(family, unseen, MEASURES[4], 'match')}."
    return text


def _matching(family: Family, found: dict[str, float], measure: Measure, match: str) -> str:
    """The share that matches; beside others, whose it is and by how much it is ahead."""
    best = _best(found, measure)
    share = f"{as_percent(found[best], 0)} {match}"
    return f"{_name(best)} is best: {share}{_ahead(family, found, measure, 0)}" if len(found) > 1 else share


def _steering(family: Family) -> str:
    found = figures(family, MEASURES[5])
    if not found:
        return ""
    best = _best(found, MEASURES[5])
    steps = (value_at(report(family.models[o], "evaluation"), "steering.judged_right") for o in found)
    changes = max((len(one) - 1 for one in steps if isinstance(one, list)), default=0)
    count = f"{changes} changes" if changes > 0 else "many changes"
    share = f"{as_percent(found[best], 0)} of the pictures from {_name(best)} still match everything that was asked for"
    return f"After {count} in a row, {share}{_ahead(family, found, MEASURES[5], 0)}."


def _paper(family: Family, others: Iterable[Family] = ()) -> str:
    """Is it better than the paper? By the measures that the paper has, of its own model."""
    if any(papers(family.source, measure) is not None for measure in MEASURES):
        here = _against(family)
        return f"Compared with the paper's own model, {here}" if here else ""
    elsewhere = next(((one, text) for one in others if (text := _against(one))), None)
    none = f"The paper has no figures for {TITLES.get(family.source, family.title)}"
    if elsewhere is None:
        return f"{none}."
    other, text = elsewhere
    return f"{none}; compared with its own model on {TITLES.get(other.source, other.title)}, {text}"


def _against(family: Family) -> str:
    """How ours compares with the paper's own model; empty where the paper or the family has no figures."""
    told = []
    for measure in MEASURES:
        written, found = papers(family.source, measure), _makers(family, measure)
        if written is None or not found:
            continue
        ours = round(100 * found[_best(found, measure)], 1)  # as it is shown: what looks the same is the same
        ahead = (round(100 * written, 1) - ours) * (1 if measure.lower else -1)
        side = (ahead > 0) - (ahead < 0)
        told.append((side, measure.against.format(SIDES[measure.key][side], f"{ours:.1f}", f"{100 * written:.1f}")))
    if not told:
        return ""
    word = ", but " if len({side for side, _ in told if side}) > 1 else ", and "
    note = paper()["notes"].get(family.source, "")
    return f"{word.join(text for _, text in told)}. {note}".strip()


def curves(family: Family) -> dict[str, dict]:
    """Steering and long runs by model, where they were measured: what the two plots show."""
    steering, runs = {}, {}
    for objective in reversed(OBJECTIVES):
        evaluation = report(family.models[objective], "evaluation") if objective in family.models else None
        if not evaluation:
            continue
        shares = [_share(one) for one in value_at(evaluation, "steering.judged_right") or ()]
        if shares and None not in shares:
            steering[_title(objective)] = shares
        steps, judged = (value_at(evaluation, f"long_run.{key}") for key in ("steps", "judged_right"))
        values = [_share(one) for one in judged or ()]
        if values and None not in values and isinstance(steps, list) and len(steps) == len(values):
            runs[_title(objective)] = (steps, values)
    return {"steering": steering, "long_run": runs}


def _share(value: object) -> float | None:
    """A share as the file has it: a number, or one with its interval."""
    value = value.get("value") if isinstance(value, dict) else value
    return float(value) if isinstance(value, int | float) else None
