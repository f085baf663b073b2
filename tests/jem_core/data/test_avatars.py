"""Avatars: the same seed gives the same face, a label is what is seen, toggling one thing redraws that alone."""

from itertools import combinations

import numpy as np
import pytest

from jem_core.data import avatar_art, avatars
from jem_core.data.held_out import NAMED_LISTS, mask

SIZE = 64
# Where attributes of fixed place are drawn, on the canvas: left, top, right, bottom.
BOXES = {
    "Smiling": (105, 140, 175, 188),
    "Mouth_Slightly_Open": (105, 140, 175, 188),
    "Wearing_Lipstick": (105, 140, 175, 188),
    "Rosy_Cheeks": (90, 125, 190, 155),
    "Eyes_Closed": (88, 92, 192, 126),
    "Eyeglasses": (70, 84, 210, 142),
    "Mustache": (85, 132, 195, 165),
    "Beard": (76, 92, 204, 240),
}
HAIR = ("Bald", "Long_Hair", "Curly_Hair", "Bangs", "Black_Hair", "Blond_Hair", "Gray_Hair")


def difference(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return (first != second).any(0)


def box(look: avatar_art.Look, left: float, top: float, right: float, bottom: float) -> np.ndarray:
    """The pixels of a rectangle of the canvas, with one pixel around it for smooth edges."""
    x, y, size = look.view
    scale = SIZE / size
    inside = np.zeros((SIZE, SIZE), dtype=bool)
    rows = slice(max(0, int((top - y) * scale) - 1), int((bottom - y) * scale) + 2)
    columns = slice(max(0, int((left - x) * scale) - 1), int((right - x) * scale) + 2)
    inside[rows, columns] = True
    return inside


def painted(look: avatar_art.Look, **parts: tuple[str, str]) -> np.ndarray:
    """Where some colours of an avatar are seen: the pixels that change when the colours change."""
    first = avatar_art.pixels(look._replace(**{name: pair[0] for name, pair in parts.items()}), SIZE)
    second = avatar_art.pixels(look._replace(**{name: pair[1] for name, pair in parts.items()}), SIZE)
    return difference(first, second)


def grown(region: np.ndarray) -> np.ndarray:
    """The region and the pixels that touch it: its smooth edge."""
    wide = np.pad(region, 1)
    shifts = [wide[i : i + SIZE, j : j + SIZE] for i in range(3) for j in range(3)]
    return np.any(shifts, axis=0)


def toggled(attributes: dict[str, bool], name: str, seed: int) -> tuple[avatar_art.Look, avatar_art.Look]:
    return avatars.choose_look(attributes, seed), avatars.choose_look(attributes | {name: not attributes[name]}, seed)


def people(count: int) -> list[tuple[dict[str, bool], int]]:
    return [(avatars.sample_attributes(seed), seed) for seed in range(count)]


@pytest.fixture(scope="module")
def labels() -> np.ndarray:
    seen = [avatars.visible(avatars.sample_attributes(avatars.person_seed(7, i))) for i in range(6000)]
    return np.array([[person[name] for name in avatars.NAMES] for person in seen], dtype=np.int8)


def test_the_same_seed_gives_the_same_bytes_whoever_draws() -> None:
    alone = list(avatars.source(80, 32, seed=3, workers=1).rows)
    together = list(avatars.source(80, 32, seed=3, workers=2).rows)
    assert len(alone) == len(together) == 80
    for (image, label), (other, other_label) in zip(alone, together, strict=True):
        assert image.dtype == np.uint8
        assert image.shape == (3, 32, 32)
        assert np.array_equal(image, other)
        assert np.array_equal(label, other_label)
    different = next(iter(avatars.source(80, 32, seed=4, workers=1).rows))
    assert not np.array_equal(alone[0][0], different[0])


@pytest.mark.parametrize("name", BOXES)
def test_a_toggle_changes_only_its_place(name: str) -> None:
    changed_any = 0
    for attributes, seed in people(16):
        attributes |= {"Sunglasses": False, "Eyeglasses": name != "Eyeglasses" and attributes["Eyeglasses"]}
        before, after = toggled(attributes, name, seed)
        changed = difference(avatar_art.pixels(before, SIZE), avatar_art.pixels(after, SIZE))
        assert changed.any(), f"{name} is not seen on avatar {seed}"
        assert not (changed & ~box(before, *BOXES[name])).any(), f"{name} of avatar {seed} changed other pixels"
        changed_any += int(changed.sum())
    assert changed_any > 16 * 8  # a few pixels each: seen at a glance


@pytest.mark.parametrize("name", HAIR)
def test_a_toggle_of_hair_changes_only_hair(name: str) -> None:
    for attributes, seed in people(16):
        attributes |= {"Wearing_Hat": False}
        before, after = toggled(attributes, name, seed)
        changed = difference(avatar_art.pixels(before, SIZE), avatar_art.pixels(after, SIZE))
        colours = {"hair": ("#ff00ff", "#00ff00"), "beard": ("#ff00ff", "#00ff00")}
        drawn = grown(painted(before, **colours) | painted(after, **colours))
        shadow = box(before, 84, 40, 196, 115)  # one style throws a shadow on the forehead: 16 % darker at most
        assert not (changed & ~drawn & ~shadow).any(), f"{name} of avatar {seed} changed more than hair"
        first, second = (avatar_art.pixels(look, SIZE).astype(int)[:, changed & ~drawn] for look in (before, after))
        assert np.abs(first - second).max(initial=0) <= 0.17 * 255


@pytest.mark.parametrize("name", ["Pale_Skin", "Dark_Skin"])
def test_a_toggle_of_skin_changes_only_skin(name: str) -> None:
    for attributes, seed in people(16):
        before, after = toggled(attributes, name, seed)
        changed = difference(avatar_art.pixels(before, SIZE), avatar_art.pixels(after, SIZE))
        assert not (changed & ~painted(before, skin=("#ff00ff", "#00ff00"))).any()


def test_a_hat_changes_only_hat_and_hair() -> None:
    for attributes, seed in people(16):
        before, after = toggled(attributes, "Wearing_Hat", seed)
        changed = difference(avatar_art.pixels(before, SIZE), avatar_art.pixels(after, SIZE))
        colours = {"hair": ("#ff00ff", "#00ff00")}
        brim = box(before, 0, 0, 104, 146) | box(before, 176, 0, 280, 146)
        place = grown(painted(before, **colours) | painted(after, **colours)) | box(before, 0, 0, 280, 106) | brim
        assert not (changed & ~place).any()


def test_male_changes_only_face_neck_and_shoulders() -> None:
    for attributes, seed in people(16):
        before, after = toggled(attributes, "Male", seed)
        changed = difference(avatar_art.pixels(before, SIZE), avatar_art.pixels(after, SIZE))
        assert changed.any()
        assert not (changed & ~box(before, 60, 78, 220, 280)).any()


def test_toggling_never_moves_the_background() -> None:
    attributes, seed = avatars.sample_attributes(5), 5
    before = avatars.choose_look(attributes, seed)
    for name in avatars.NAMES:
        after = avatars.choose_look(attributes | {name: not attributes[name]}, seed)
        assert (after.background, after.view, after.shirt) == (before.background, before.view, before.shirt)


def test_a_label_is_what_is_seen() -> None:
    hat = avatars.visible({"Wearing_Hat": True, "Bald": True, "Black_Hair": True, "Bangs": True, "Curly_Hair": True})
    assert [name for name, there in hat.items() if there] == ["Wearing_Hat"]
    long = avatars.visible({"Wearing_Hat": True, "Long_Hair": True, "Black_Hair": True, "Bangs": True})
    assert [name for name, there in long.items() if there] == ["Wearing_Hat", "Long_Hair", "Black_Hair"]
    bald = avatars.visible({"Bald": True, "Long_Hair": True, "Gray_Hair": True, "Bangs": True})
    assert [name for name, there in bald.items() if there] == ["Bald"]
    shades = avatars.visible({"Sunglasses": True, "Eyeglasses": True, "Eyes_Closed": True})
    assert [name for name, there in shades.items() if there] == ["Sunglasses", "Brown_Hair"]


def test_what_is_out_of_sight_is_not_drawn() -> None:
    """A hidden attribute must not change a single pixel."""
    for base, hidden in [
        ({"Sunglasses": True}, "Eyes_Closed"),
        ({"Wearing_Hat": True}, "Curly_Hair"),
        ({"Wearing_Hat": True}, "Black_Hair"),
        ({"Bald": True}, "Gray_Hair"),
        ({"Wearing_Hat": True, "Long_Hair": True}, "Bangs"),
    ]:
        for seed in range(12):
            assert np.array_equal(avatars.draw(base, seed), avatars.draw(base | {hidden: True}, seed)), hidden


def test_attributes_are_balanced(labels: np.ndarray) -> None:
    assert len(avatars.NAMES) >= 18
    for name, share in zip(avatars.NAMES, labels.mean(0), strict=True):
        assert 0.08 <= share <= 0.60, f"{name}: {share:.1%}"


def test_every_visible_pair_occurs(labels: np.ndarray) -> None:
    exclusive = [*combinations(avatars.HAIR_COLOURS, 2), ("Pale_Skin", "Dark_Skin"), ("Eyeglasses", "Sunglasses")]
    exclusive += [("Eyes_Closed", "Sunglasses"), ("Wearing_Hat", "Bald"), ("Wearing_Hat", "Bangs")]
    exclusive += [("Bald", name) for name in ("Long_Hair", "Curly_Hair", "Bangs", *avatars.HAIR_COLOURS)]
    impossible = {frozenset(pair) for pair in exclusive}
    for (i, first), (j, second) in combinations(enumerate(avatars.NAMES), 2):
        count = int((labels[:, i] & labels[:, j]).sum())
        if frozenset((first, second)) in impossible:
            assert count == 0, (first, second)
        else:
            assert count > 0.01 * len(labels), (first, second, count)


def test_attributes_are_correlated_as_in_life(labels: np.ndarray) -> None:
    column = {name: labels[:, i].astype(bool) for i, name in enumerate(avatars.NAMES)}
    male = column["Male"]
    assert column["Beard"][male].mean() > 5 * column["Beard"][~male].mean()
    assert column["Long_Hair"][~male].mean() > 2 * column["Long_Hair"][male].mean()
    assert column["Eyeglasses"][column["Gray_Hair"]].mean() > 1.2 * column["Eyeglasses"][column["Black_Hair"]].mean()


def test_the_held_out_pairs_are_frequent_enough_to_judge(labels: np.ndarray) -> None:
    pairs = NAMED_LISTS["avatars-novel"]
    assert len(pairs) >= 6
    for pair in pairs:
        assert mask(labels, avatars.NAMES, [pair]).mean() >= 0.015, str(pair)
    assert mask(labels, avatars.NAMES, pairs).mean() <= 0.25


def test_every_style_can_be_drawn() -> None:
    look = avatars.choose_look({"Beard": True, "Mustache": True}, 0)
    for styles in avatars._STYLES.values():
        for style in styles:
            curly = style.isdigit()
            seen = {**look.attributes, "Curly_Hair": curly}
            assert avatar_art.pixels(look._replace(attributes=seen, hair_style=style), 32).std() > 10
    with pytest.raises(ValueError, match="no top named 'mohawk'"):
        avatar_art.svg(look._replace(hair_style="mohawk"))


def test_an_unknown_attribute_is_named() -> None:
    with pytest.raises(ValueError, match=r"no attribute 'Moustache'.*Mustache"):
        avatars.draw({"Moustache": True})
