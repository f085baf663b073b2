"""Combinations held out of training, written as pairs with signs: `Male + Bangs`, `-No_Beard + Bangs`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Pair(NamedTuple):
    """Two attributes, each required (True) or excluded (False)."""

    first: str
    first_required: bool
    second: str
    second_required: bool

    def __str__(self) -> str:
        sign = {True: "", False: "-"}
        return f"{sign[self.first_required]}{self.first} + {sign[self.second_required]}{self.second}"

    def as_dict(self) -> dict[str, bool]:
        """The pair as a condition: attribute to required or not."""
        return {self.first: self.first_required, self.second: self.second_required}


# The paper's CelebA-novel: Beard stands for "not No_Beard" and Old for "not Young".
_CELEBA = (
    "Male + Bangs",
    "Male + Blond_Hair",
    "-No_Beard + Bangs",
    "-No_Beard + Brown_Hair",
    "Bangs + -Young",
    "Bangs + Black_Hair",
    "Bangs + Brown_Hair",
    "Bangs + Blond_Hair",
    "-Young + Black_Hair",
    "-Young + Brown_Hair",
    "-Young + Blond_Hair",
)
_AVATARS = (
    "Wearing_Hat + Sunglasses",
    "Bald + Sunglasses",
    "Beard + Blond_Hair",
    "Male + Long_Hair",
    "Eyeglasses + Gray_Hair",
    "Dark_Skin + Blond_Hair",
    "Rosy_Cheeks + Beard",
)
# Colours on shapes that are seen often, each combination in at least 50 real pictures to compare with.
_SHOES = (
    "Red + Boots",
    "White + Boots",
    "Pink + Mid_Calf",
    "Blue + Heels",
    "Gray + Heels",
    "Brown + Sneakers",
    "Beige + Sneakers",
    "Red + Loafers",
    "Red + Oxfords",
    "Pink + Sandals",
    "Blue + Sandals",
)


def parse(text: str) -> Pair:
    """Read one pair, such as "Male + Bangs" or "-No_Beard + Bangs"."""
    parts = [part.strip() for part in text.split("+")]
    if len(parts) != 2 or not all(part.removeprefix("-").strip() for part in parts):
        raise ValueError(f"{text!r} is not a pair of attributes. Write two names with a plus, such as 'Male + -Young'.")
    (first, first_required), (second, second_required) = (
        (part.removeprefix("-").strip(), not part.startswith("-")) for part in parts
    )
    if first == second:
        raise ValueError(f"{text!r} names the attribute {first!r} twice.")
    return Pair(first, first_required, second, second_required)


NAMED_LISTS: dict[str, tuple[Pair, ...]] = {
    "celeba-novel": tuple(parse(text) for text in _CELEBA),
    "avatars-novel": tuple(parse(text) for text in _AVATARS),
    "shoes-novel": tuple(parse(text) for text in _SHOES),
}


def parse_list(texts: Sequence[str]) -> tuple[Pair, ...]:
    """Read named lists, pairs, and several of either separated by commas."""
    pairs: dict[Pair, None] = {}
    for text in (part.strip() for whole in texts for part in whole.split(",")):
        if not text:
            continue
        if text in NAMED_LISTS:
            pairs.update(dict.fromkeys(NAMED_LISTS[text]))
        elif "+" not in text:
            choices = " or ".join(NAMED_LISTS)
            raise ValueError(f"There is no list {text!r}. Choose {choices}, or write pairs such as 'Male + Bangs'.")
        else:
            pairs[parse(text)] = None
    return tuple(pairs)


def check(pairs: Sequence[Pair], names: Sequence[str]) -> None:
    """Every pair speaks of attributes that the data have."""
    for pair in pairs:
        for name in (pair.first, pair.second):
            if name not in names:
                choices = ", ".join(names)
                raise ValueError(
                    f"The pair '{pair}' names {name!r}, which is not an attribute here; choose one of {choices}."
                )


def mask(labels: np.ndarray, names: Sequence[str], pairs: Sequence[Pair]) -> np.ndarray:
    """Which rows carry one of the pairs. An unknown label matches nothing."""
    check(pairs, names)
    column = {name: i for i, name in enumerate(names)}
    found = np.zeros(len(labels), dtype=bool)
    for pair in pairs:
        first = labels[:, column[pair.first]] == int(pair.first_required)
        found |= first & (labels[:, column[pair.second]] == int(pair.second_required))
    return found
