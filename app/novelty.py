"""How new a combination is, counted among the training images; and a surprise for those who ask for one."""

import random
from itertools import combinations

from jem_core.bundle import Bundle
from jem_core.condition import Condition

RARE = 0.02  # of the training images: a rarer attribute is not asked for by surprise


def badge(bundle: Bundle, condition: Condition) -> dict:
    """How many training images have what is asked, as numbers and as a sentence."""
    total = bundle.support.total
    count = bundle.support.count(condition)
    asked = len(condition.required) + len(condition.excluded)
    if not asked:
        sentence = "No attributes chosen; anything goes."
    else:
        verb = "has" if count == 1 else "have"
        sentence = f"{count:,} of {total:,} training images {verb} this combination."
    return {
        "count": count,
        "total": total,
        "novel": bool(asked) and count == 0,
        "sentence": sentence,
    }


def held_out_pairs(bundle: Bundle) -> list[dict[str, bool]]:
    """The pairs that were kept out of this model's training, each as names with values."""
    return [pair.as_dict() for pair in bundle.data.held_out]


def surprise(bundle: Bundle, rng: random.Random) -> Condition:
    """A combination without training support that could well exist.

    A held-out pair, often with a third attribute that is seen with each of the two. Without held-out pairs: three
    attributes, each two of them seen together, the three of them as seldom as a few draws can find.
    """
    names, pairs = bundle.names, held_out_pairs(bundle)
    if pairs:
        chosen = dict(rng.choice(pairs))
        thirds = [name for name in _frequent(bundle) if name not in chosen and _goes_with(bundle, chosen, name)]
        if thirds and rng.random() < 0.6:
            chosen[rng.choice(thirds)] = True
        return Condition.from_dict(names, chosen)
    frequent = _frequent(bundle)
    size = min(3, len(frequent))
    draws = [Condition.from_lists(names, rng.sample(frequent, size)) for _ in range(60)] if size else []
    possible = [draw for draw in draws if all(_seen(bundle, pair) for pair in combinations(draw.required, 2))]
    return min(possible or draws or [Condition.free(names)], key=bundle.support.count)


def _frequent(bundle: Bundle) -> list[str]:
    return [name for name in bundle.names if _seen(bundle, (name,)) > RARE * bundle.support.total]


def _seen(bundle: Bundle, required: tuple[str, ...]) -> int:
    return bundle.support.count(Condition.from_lists(bundle.names, required))


def _goes_with(bundle: Bundle, chosen: dict[str, bool], name: str) -> bool:
    """Whether training shows this attribute together with each one of those."""
    return all(
        bundle.support.count(Condition.from_dict(bundle.names, {other: value, name: True})) > 0
        for other, value in chosen.items()
    )
