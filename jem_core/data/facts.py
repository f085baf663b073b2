"""What a model says of the data it was trained on: read from its config once, checked, and asked by everybody else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .held_out import Pair, parse

LONGEST = 500  # letters of a text, entries of a list
# What configs of the first format leave unsaid.
_FIRST_FORMAT: dict[str, dict] = {
    "avatars": {"title": "Avatars", "drawn": True},
    "celeba": {"title": "CelebA", "faces": True, "flips": True},
    "utzappos": {"title": "UT Zappos50K"},
}


@dataclass(frozen=True)
class DataFacts:
    """The data of one model."""

    source: str
    title: str
    credit: str = ""
    licence: str = ""  # of the data
    held_out: tuple[Pair, ...] = ()  # combinations that training never saw
    groups: tuple[tuple[str, ...], ...] = ()  # attributes of which at most one is true of a picture
    alternatives: tuple[tuple[str, ...], ...] = ()  # of which a visitor wants one at a time, though several may be true
    faces: bool = False  # pictures are aligned faces: a photograph's face must be found first
    drawn: bool = False  # pictures were drawn from their attributes: the truth is known
    flips: bool = False  # a mirrored picture is as good as the picture
    train_images: int | None = None

    @classmethod
    def read(cls, config: Mapping, names: Sequence[str]) -> DataFacts:
        """From the part `data` of a config; whatever a screen would stumble over is refused by name."""
        data = config.get("data", {})
        if not isinstance(data, Mapping):
            raise ValueError(f"The config's data is a {type(data).__name__}; expected names with values.")
        source = _text(data, "source", "pictures")
        data = {**_FIRST_FORMAT.get(source, {}), **data}
        count = data.get("train_images")
        if count is not None and not (isinstance(count, int) and count >= 0):
            raise ValueError(f"The config's train_images is {count!r}; expected a whole number.")
        return cls(
            source=source,
            title=_text(data, "title", source),
            credit=_text(data, "credit"),
            licence=_text(data, "licence"),
            held_out=tuple(_pair(text, names) for text in _list(data, "held_out")),
            groups=_groups(data, "groups", names),
            alternatives=_groups(data, "alternatives", names),
            faces=data.get("faces") is True,
            drawn=data.get("drawn") is True,
            flips=data.get("flips") is True,
            train_images=count,
        )

    def rivals(self, name: str) -> tuple[str, ...]:
        """The attributes that cannot be true beside this one."""
        return _beside(name, self.groups)

    def instead_of(self, name: str) -> tuple[str, ...]:
        """What is no longer required when this one is: its rivals, and what it takes the place of."""
        return _beside(name, (*self.groups, *self.alternatives))


def _beside(name: str, groups: Sequence[Sequence[str]]) -> tuple[str, ...]:
    others = (other for group in groups if name in group for other in group)
    return tuple(dict.fromkeys(other for other in others if other != name))


def _text(data: Mapping, key: str, default: str = "") -> str:
    value = data.get(key, default)
    if not isinstance(value, str) or len(value) > LONGEST:
        raise ValueError(f"The config's {key} of the data is not a text of at most {LONGEST} letters.")
    return value


def _list(data: Mapping, key: str) -> Sequence:
    value = data.get(key, ())
    if not isinstance(value, list | tuple) or len(value) > LONGEST:
        raise ValueError(f"The config's {key} is not a list of at most {LONGEST} entries.")
    return value


def _pair(text: object, names: Sequence[str]) -> Pair:
    if not isinstance(text, str):
        raise ValueError(f"The config's held_out holds {str(text)[:60]!r}; expected pairs such as 'Male + Bangs'.")
    pair = parse(text)
    for name in (pair.first, pair.second):
        if name not in names:
            raise ValueError(f"The config's held-out pair '{pair}' names {name!r}, which the model does not know.")
    return pair


def _groups(data: Mapping, key: str, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Lists of attribute names; those that the model does not know are left out."""
    found = _list(data, key)
    if not all(isinstance(group, list | tuple) and all(isinstance(name, str) for name in group) for group in found):
        raise ValueError(f"The config's {key} are not lists of attribute names.")
    return tuple(tuple(name for name in group if name in names) for group in found)
