"""What the figures say: the paragraph and the short table at the top of the third screen, written from the files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from app.catalog import Entry
from app.figures import Figure, figure, leaders, level, ranked
from app.kinds import MEANINGS, joined, name, start, title
from app.reports import OBJECTIVES, TITLES, Family, report, value_at
from app.tables import paper, theirs
from jem_core.plots import percent

SIDES = {  # worse than the paper, level with it, better
    "accuracy": {-1: "fewer", 0: "as many", 1: "more"},
    "ece_paper": {-1: "less honest", 0: "just as honest", 1: "more honest"},
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

    def show(self, value: float) -> str:
        """A share in percent; an error that would round to nothing is not nothing."""
        return "< 0.1 %" if self.lower and 0 < value < 0.0005 else percent(value)

    def points(self, value: float) -> str:
        """An error inside a sentence."""
        return self.show(value).removesuffix(" %").replace("<", "less than")


MEASURES = (
    Measure(
        "accuracy",
        "Labels predicted correctly",
        "prediction.micro.accuracy",
        papers="accuracy",
        against="gets {} labels right ({} % against {} %)",
    ),
    Measure("ece", "Average error of its percentages", "prediction.micro.ece", lower=True),
    Measure(
        "ece_paper",
        "Average error, by the paper's bins",
        "prediction.micro.ece_paper",
        lower=True,
        papers="ece_paper",
        against="its percentages are {} (off by {} points against {}, in the paper's bins)",
    ),
    Measure("seen", "Pictures that match two attributes", "synthesis.seen_pairs.summary.judged_right"),
    Measure("unseen", "Pictures that match an unseen pair", "synthesis.held_out_pairs.summary.judged_right"),
    Measure("steered", "Pictures that match after many changes", "steering.after_last"),
)


def figures(family: Family, measure: Measure) -> dict[str, Figure]:
    """The measure by objective, of all models that have it, the newest kind first."""
    found = {entry.objective: figure(entry, measure.path) for entry in family.by_age()}
    return {objective: value for objective, value in found.items() if value is not None}


def papers(source: str, measure: Measure) -> Figure | None:
    """The paper's own figure of its own model, as a share."""
    table = theirs(source).get(paper()["own"])
    if not measure.papers or table is None:
        return None
    return Figure(table["micro"][paper()["measures"].index(measure.papers)] / 100)


def headline(family: Family) -> dict:
    """The short table: a question per row, a model per column, the best of ours marked, the paper's last."""
    models = [objective for objective in OBJECTIVES if objective in family.models]
    rows = []
    for measure in MEASURES:
        found, written = figures(family, measure), papers(family.source, measure)
        if not found:
            continue
        cells = {objective: measure.show(one.value) for objective, one in found.items()}
        best = leaders(found, measure.lower) if len(found) > 1 else []
        row = {"key": measure.key, "question": measure.question, "cells": cells, "best": best}
        rows.append(row | {"paper": None if written is None else measure.show(written.value)})
    return {
        "models": [{"objective": o, "title": title(o)} for o in models],
        "rows": rows,
        "paper": any(row["paper"] for row in rows),
        "kinds": " ".join(MEANINGS[o] for o in models if o in MEANINGS),
        "unlike": unlike(family),
    }


UNLIKE = (  # what models must have in common before their figures are laid side by side
    ("trained on {}", lambda entry: entry.data.train_images),
    ("tested on {}", lambda entry: _in_evaluation(entry, "prediction.images")),
    ("judged by a network that learned from {}", lambda entry: _in_evaluation(entry, "judge.trained_on.rows")),
)


def _in_evaluation(entry: Entry, path: str) -> object:
    return value_at(report(entry, "evaluation") or {}, path)


def unlike(family: Family) -> str:
    """One sentence about numbers that differ between the models shown; nothing where all were measured alike."""
    told = []
    for words, count_of in UNLIKE:
        counts = {o: count_of(family.models[o]) for o in reversed(OBJECTIVES) if o in family.models}
        counts = {o: count for o, count in counts.items() if isinstance(count, int)}
        values = list(dict.fromkeys(counts.values()))
        if len(values) < 2:
            continue
        groups = {value: [name(o) for o, count in counts.items() if count == value] for value in values}
        values.sort(key=lambda value: len(groups[value]))
        if len(groups[values[-1]]) > 1:
            groups[values[-1]] = ["the others"]
        first, *more = (f"{value:,}{{}} ({joined(groups[value])})" for value in values)
        told.append(words.format(" or ".join([first.format(" images"), *(one.format("") for one in more)])))
    return f"Compare with care: the models were {joined(told)}." if told else ""


def paragraph(family: Family, others: Iterable[Family] = ()) -> str:
    """What the tables show, in a few sentences: which model is best at what, by how much, and against the paper.

    Where the paper has no figures for this data, one of the other families answers for it.
    """
    if not figures(family, MEASURES[0]):
        return f"No model of {family.title} has been evaluated yet."
    parts = (_accuracy(family), _calibration(family), _pairs(family), _steering(family), _paper(family, others))
    return " ".join(part for part in parts if part)


class Lead(NamedTuple):
    """Who is best at something, in words."""

    names: str  # one, or all that are level at the top
    level: bool
    shown: str  # their figures
    ahead: str  # ", 3.7 points ahead of Gibbs-JEM"; nothing where nobody is behind


def _lead(found: dict[str, Figure], measure: Measure) -> Lead:
    order, best = ranked(found, measure.lower), leaders(found, measure.lower)
    write = measure.points if measure.lower else measure.show
    shown = joined(list(dict.fromkeys(write(found[o].value) for o in best)))
    return Lead(joined([name(o) for o in best]), len(best) > 1, shown, _ahead(found, order, best, write))


def _ahead(found: dict[str, Figure], order: Sequence[str], best: Sequence[str], write: Callable) -> str:
    """By how much the best is ahead of the next."""
    behind = [o for o in order if o not in best]
    if not behind:
        return ""
    first, second = found[best[0]], found[behind[0]]
    if len(best) > 1:
        return f", ahead of {name(behind[0])} ({write(second.value)})"
    return f", {abs(first.shown - second.shown):.1f} points ahead of {name(behind[0])}"


def _accuracy(family: Family) -> str:
    found = figures(family, MEASURES[0])
    lead = _lead(found, MEASURES[0])
    if len(found) == 1:
        return f"{start(lead.names)} gets {lead.shown} of the labels right."
    how = "predict labels equally well" if lead.level else "predicts labels best"
    return f"{start(lead.names)} {how}: {lead.shown} right{lead.ahead}."


def _calibration(family: Family) -> str:
    found = figures(family, MEASURES[1])
    if not found:
        return ""
    lead = _lead(found, MEASURES[1])
    if len(found) == 1:
        return f"Its percentages are off by {lead.shown} points on average."
    level = ", which are level" if lead.level else ""
    return (
        f"The most honest percentages come from {lead.names}{level}: off by {lead.shown} points on average{lead.ahead}."
    )


def _pairs(family: Family) -> str:
    seen, unseen = (figures(family, measure) for measure in MEASURES[3:5])
    if not seen:
        return ""
    text = f"Asked for two attributes at once, {_matching(seen, MEASURES[3], ' of {} pictures match')}."
    if unseen:
        text += f" For pairs never seen in training, {_matching(unseen, MEASURES[4], ' match')}."
    return text


def _matching(found: dict[str, Figure], measure: Measure, match: str) -> str:
    """The share that matches; beside others, whose it is and by how much it is ahead."""
    lead = _lead(found, measure)
    match = match.format("their" if lead.level else "its")
    if len(found) == 1:
        return f"{lead.shown}{match}"
    return f"{lead.names} {'are level' if lead.level else 'is best'}: {lead.shown}{match}{lead.ahead}"


def _steering(family: Family) -> str:
    found = figures(family, MEASURES[5])
    if not found:
        return ""
    lead = _lead(found, MEASURES[5])
    steps = (_in_evaluation(family.models[o], "steering.judged_right") for o in found)
    changes = max((len(one) - 1 for one in steps if isinstance(one, list)), default=0)
    count = f"{changes} changes" if changes > 0 else "many changes"
    share = f"{lead.shown} of the pictures from {lead.names} still match everything that was asked for"
    return f"After {count} in a row, {share}{lead.ahead}."


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
    """How one model of ours, the newest kind that makes pictures, compares with the paper's own; empty where the paper
    or the family has no figures."""
    for entry in (one for one in family.by_age() if one.generates):
        told = []
        for measure in MEASURES:
            written, ours = papers(family.source, measure), figure(entry, measure.path)
            if written is None or ours is None:
                continue
            side = _side(ours, written, measure.lower)
            words = (f"{ours.shown:.1f}", f"{written.shown:.1f}")
            told.append((side, measure.against.format(SIDES[measure.key][side], *words)))
        if told:
            word = ", but " if len({side for side, _ in told if side}) > 1 else ", and "
            note = paper()["notes"].get(family.source, "")
            whose = f"our {name(entry.objective).removeprefix('the ')}"
            return f"{whose} {word.join(text for _, text in told)}. {note}".strip()
    return ""


def _side(ours: Figure, written: Figure, lower: bool) -> int:
    """1 where ours is better, -1 where it is worse, 0 where they are level."""
    if level(ours, written):
        return 0
    return 1 if (ours.value < written.value) == lower else -1


def curves(family: Family) -> dict[str, dict]:
    """Steering and long runs by objective, where they were measured: what the two plots show."""
    steering, runs = {}, {}
    for objective in reversed(OBJECTIVES):
        evaluation = report(family.models[objective], "evaluation") if objective in family.models else None
        if not evaluation:
            continue
        shares = [_share(one) for one in value_at(evaluation, "steering.judged_right") or ()]
        if shares and None not in shares:
            steering[objective] = shares
        steps, judged = (value_at(evaluation, f"long_run.{key}") for key in ("steps", "judged_right"))
        values = [_share(one) for one in judged or ()]
        if values and None not in values and isinstance(steps, list) and len(steps) == len(values):
            runs[objective] = (steps, values)
    return {"steering": steering, "long_run": runs}


def _share(value: object) -> float | None:
    """A share as the file has it: a number, or one with its interval."""
    value = value.get("value") if isinstance(value, dict) else value
    return float(value) if isinstance(value, int | float) else None
