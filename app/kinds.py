"""The kinds of models in words: what a sentence calls them, and what a newcomer must know. The registry of objectives
says which there are and in what order; one without words here is called by its plain name."""

from __future__ import annotations

from jem_core.objectives import OBJECTIVES

WORDS = {
    "denoising": "noise levels",
    "gibbs-jem": "Gibbs-JEM",
    "jem": "factored JEM",
    "supervised": "supervised",
}
NAMES = {  # in a sentence
    "denoising": "the noise-level model",
    "gibbs-jem": "Gibbs-JEM",
    "jem": "factored JEM",
    "supervised": "the supervised model",
}
MEANINGS = {  # below the short table
    "supervised": "Supervised predicts labels and makes no pictures.",
    "jem": "Factored JEM is the rival that the paper compares itself with.",
    "gibbs-jem": "Gibbs-JEM is the paper's method.",
    "denoising": (
        "The noise-level model is the same kind of model, trained at many noise levels; the Studio opens with it."
    ),
}


def word(objective: str) -> str:
    """Inside a list: noise levels."""
    return WORDS.get(objective, objective)


def title(objective: str) -> str:
    """At the head of a column or a row, in a legend: Noise levels."""
    return start(word(objective))


def name(objective: str) -> str:
    return NAMES.get(objective, objective)


def start(text: str) -> str:
    """As it begins a sentence."""
    return text[:1].upper() + text[1:]


def place(objective: str) -> int:
    """Which colour it has, on every plot: the newest kind has the first."""
    return list(reversed(OBJECTIVES)).index(objective)


def baseline_place() -> int:
    """The colour of the plain classifier, which makes no pictures."""
    return next(place(name) for name, kind in OBJECTIVES.items() if not kind.generates)


def joined(words: list[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
