"""How new a combination is, counted among the training images; and a surprise for those who ask for one."""

import random
from itertools import combinations

from jem_core.bundle import Bundle
from jem_core.condition import Condition
from jem_core.data.held_out import parse

RARE = 0.02  # of the training images: a rarer attribute is not asked for by surprise


def badge(bundle: Bundle, condition: Condition) -> dict:
    """How many training images have what is asked, as numbers and as a sentence."""
    total = bundle.support.total
    count = bundle.support.count(condition)
    asked = len(condition.wanted) + len(condition.unwanted)
    if not asked:
        sentence = f"Nothing is asked: any of {total:,} training images would do."
    elif count:
        share = "every one" if count == total else f"{count:,}"
        sentence = f"{share} of {total:,} training images {'has' if count == 1 else 'have'} this combination."
    elif asked == 1:
        sentence = f"0 of {total:,} training images: never seen."
    else:
        sentence = f"0 of {total:,} training images: never seen together."
    return {
        "count": count,
        "total": total,
        "novel": bool(asked) and count == 0,
        "sentence": sentence,
        "text": str(condition),
    }


def held_out_pairs(bundle: Bundle) -> list[dict[str, bool]]:
    """The pairs that were kept out of this model's training, as wishes."""
    texts = bundle.config.get("data", {}).get("held_out", [])
    return [pair for pair in (parse(text).as_dict() for text in texts) if set(pair) <= set(bundle.names)]


def surprise(bundle: Bundle, rng: random.Random) -> Condition:
    """A combination without training support that could well exist.

    A held-out pair, often with a third attribute that is seen with each of the two. Without held-out pairs: three
    attributes, each two of them seen together, the three of them as seldom as a few draws can find.
    """
    names, pairs = bundle.names, held_out_pairs(bundle)
    if pairs:
        wishes = dict(rng.choice(pairs))
        thirds = [name for name in _frequent(bundle) if name not in wishes and _goes_with(bundle, wishes, name)]
        if thirds and rng.random() < 0.6:
            wishes[rng.choice(thirds)] = True
        return Condition.from_dict(names, wishes)
    frequent = _frequent(bundle)
    size = min(3, len(frequent))
    draws = [Condition.from_lists(names, rng.sample(frequent, size)) for _ in range(60)] if size else []
    possible = [draw for draw in draws if all(_seen(bundle, pair) for pair in combinations(draw.wanted, 2))]
    return min(possible or draws or [Condition.free(names)], key=bundle.support.count)


def _frequent(bundle: Bundle) -> list[str]:
    return [name for name in bundle.names if _seen(bundle, (name,)) > RARE * bundle.support.total]


def _seen(bundle: Bundle, wanted: tuple[str, ...]) -> int:
    return bundle.support.count(Condition.from_lists(bundle.names, wanted))


def _goes_with(bundle: Bundle, wishes: dict[str, bool], name: str) -> bool:
    """Whether training shows this attribute together with each one of the wishes."""
    return all(
        bundle.support.count(Condition.from_dict(bundle.names, {wish: value, name: True})) > 0
        for wish, value in wishes.items()
    )
