"""The way that chains have come since they began: what was asked, one condition after another, and for how many steps.

It can be written as text (`Smiling+Eyeglasses;-Eyeglasses@7;Wearing_Hat`), taken again, and it knows why it cannot be
where that is so. `@7` says that the next change came after seven steps, before the pictures had arrived.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.settings import LONGEST_WALK
from jem_core.bundle import Bundle
from jem_core.condition import FREE, WITH, WITHOUT, Condition
from jem_core.walks import parse_walk

MOST_CHANGES = 16  # that a link takes again; more would keep its reader waiting
LONGEST_LEG = 1_000  # steps

# Why a walk cannot be taken again, as the end of a sentence.
LOCKED = "some pictures were locked while the others changed"
MOVED = "the pictures kept moving"
LIKE = "they grew out of an earlier picture"
CHOSEN = "they grew out of the best of many"
HALF = "a step was taken in halves"
SETTINGS = "settings changed on the way"
REPLACED = "a chain went astray and was replaced"
PHOTO = "they started from your photo"
TOO_LONG = f"there were more than {MOST_CHANGES} changes"
TOO_MANY_WORDS = "there were too many changes for a link"
OPPOSED = "some of the attributes you asked for exclude each other"


@dataclass(frozen=True)
class Leg:
    """One condition and the steps that were taken under it; None: all that it needs."""

    condition: Condition
    steps: int | None = None


@dataclass
class Walk:
    """What is noted of some chains on their way."""

    legs: list[Leg] = field(default_factory=list)
    steps: int = 0  # under the last condition
    whole: bool = False  # whether they have arrived there
    best_of: int = 0  # these chains are the best of so many times their number
    why: str = ""  # why they cannot be made again

    def turn(self, condition: Condition) -> None:
        """Another condition from here on."""
        if self.best_of and self.legs:
            self.break_off(CHOSEN)
        if self.legs:
            self.legs[-1] = Leg(self.legs[-1].condition, None if self.whole else self.steps)
        self.legs.append(Leg(condition))
        self.steps, self.whole = 0, False
        if len(self.legs) > MOST_CHANGES:
            self.break_off(TOO_LONG)

    def step(self, arrived: bool) -> None:
        self.steps += 1
        self.whole = arrived

    def break_off(self, why: str) -> None:
        self.why = self.why or why

    def taken(self) -> list[Leg]:
        """All legs, the last as far as it was walked."""
        if not self.legs:
            return []
        return [*self.legs[:-1], Leg(self.legs[-1].condition, None if self.whole else self.steps)]

    def text(self, bundle: Bundle) -> str:
        """As an address carries it; empty when there is nothing to tell (one condition, all its steps), or when it
        cannot be told: then `why` says so."""
        legs = self.taken()
        if self.why or self.best_of or not legs or (len(legs) == 1 and legs[0].steps is None):
            return ""
        text = write(legs)
        try:
            same = [leg.condition for leg in parse(text, bundle)] == [leg.condition for leg in legs]
        except ValueError:
            same = False
        if not same or len(text) > LONGEST_WALK:
            self.break_off(TOO_MANY_WORDS if same else OPPOSED)
            return ""
        return text

    def copy(self) -> Walk:
        return Walk(list(self.legs), self.steps, self.whole, self.best_of, self.why)


def write(legs: Sequence[Leg]) -> str:
    """The text of some legs: each says what is different from the one before."""
    before, parts = Condition.free(legs[0].condition.names), []
    for leg in legs:
        parts.append(changes(before, leg.condition) + ("" if leg.steps is None else f"@{leg.steps}"))
        before = leg.condition
    return ";".join(parts)


def changes(before: Condition, after: Condition) -> str:
    """What leads from one condition to the next: freed first, since requiring one attribute may free its rivals."""
    pairs = list(zip(after.names, before.values, after.values, strict=True))
    signs = ((FREE, "~"), (WITHOUT, "-"), (WITH, "+"))
    found = [sign + name for value, sign in signs for name, old, new in pairs if new == value != old]
    return "".join(found).removeprefix("+")


def parse(text: str, bundle: Bundle) -> list[Leg]:
    """The legs of a text; a bad one is named."""
    parts = [part.rpartition("@") if "@" in part else (part, "", "") for part in text.split(";")]
    if len(parts) > MOST_CHANGES:
        raise ValueError(f"The link has {len(parts)} changes; at most {MOST_CHANGES} can be repeated.")
    for _, at, steps in parts:
        if at and not (steps.isascii() and steps.isdecimal() and len(steps) < 6 and int(steps) <= LONGEST_LEG):
            raise ValueError(f"The link says @{steps[:20]}; expected a number of steps from 0 to {LONGEST_LEG}.")
    conditions = parse_walk(";".join(words for words, _, _ in parts), bundle)
    return [Leg(one, int(steps) if at else None) for one, (_, at, steps) in zip(conditions, parts, strict=True)]
