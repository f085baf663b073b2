"""Avatars: faces drawn from binary attributes, as many as required, the same seed always the same face.

A label says what is visible: hair under a hat or eyes behind sunglasses count for nothing. Every factor (hair style,
shade of skin, background, ...) has its own random stream, so that toggling one attribute redraws that attribute alone.
"""

from __future__ import annotations

import colorsys
import zlib
from collections.abc import Mapping, Sequence

import numpy as np

from .avatar_art import Look, pixels
from .source import Source, in_processes, random_split

NAMES: tuple[str, ...] = (
    "Male",
    "Pale_Skin",
    "Dark_Skin",
    "Rosy_Cheeks",
    "Smiling",
    "Mouth_Slightly_Open",
    "Wearing_Lipstick",
    "Eyes_Closed",
    "Eyeglasses",
    "Sunglasses",
    "Beard",
    "Mustache",
    "Wearing_Hat",
    "Bald",
    "Long_Hair",
    "Curly_Hair",
    "Bangs",
    "Black_Hair",
    "Brown_Hair",
    "Blond_Hair",
    "Gray_Hair",
)
HAIR_COLOURS = ("Black_Hair", "Brown_Hair", "Blond_Hair", "Gray_Hair")
# At most one of each group can be seen of one avatar (see `visible`).
GROUPS = (
    (*HAIR_COLOURS, "Bald"),
    ("Pale_Skin", "Dark_Skin"),
    ("Eyeglasses", "Sunglasses"),
    ("Eyes_Closed", "Sunglasses"),
    ("Wearing_Hat", "Bald"),
    ("Wearing_Hat", "Bangs"),
    ("Bald", "Long_Hair"),
    ("Bald", "Curly_Hair"),
    ("Bald", "Bangs"),
)
CREDIT = "Avataaars by Pablo Stanley (https://avataaars.com/), drawn through DiceBear, with changes."
LICENCE = "Avataaars: free for personal and commercial use"

_SHADES = {
    "Black_Hair": "#26222b",
    "Brown_Hair": "#96531f",
    "Blond_Hair": "#f4cf57",
    "Gray_Hair": "#c4cad2",
    "Pale_Skin": "#ffe0cb",
    "Tan_Skin": "#dca36e",
    "Dark_Skin": "#6b4029",
}
_STYLES = {  # (Long_Hair, Curly_Hair) -> avataaars names, or our own: parted, and curls by how many from ear to ear
    (False, False): ("shortFlat", "theCaesar", "theCaesarAndSidePart"),
    (False, True): ("8", "10"),
    (True, False): ("straight01", "straight02", "parted"),
    (True, True): ("8", "10"),
}
_HATS = ("winterHat03", "winterHat04", "hat")
_HAT_COLOURS = ("#d13b3b", "#2f6fc4", "#2f9457", "#8a45b5", "#e0771c", "#159a9c")
_GLASSES = ("prescription01", "prescription02", "round")
_GLASSES_COLOURS = ("#22272b", "#22272b", "#7a1f2b", "#1f3f7a")
_IRIS = ("#4b2e1a", "#4b2e1a", "#2f6a8f", "#4d7a3a")
_SHIRTS = ("#5b8def", "#f27a7a", "#58b98b", "#f2b84b", "#9a7bd1", "#e9edf2", "#3d4a5c")


def _stream(seed: int, factor: str) -> np.random.Generator:
    """The random stream of one factor of one avatar."""
    return np.random.default_rng([seed & 0xFFFFFFFFFFFFFFFF, zlib.crc32(factor.encode())])


def _coin(seed: int, factor: str, probability: float) -> bool:
    return bool(_stream(seed, factor).random() < probability)


def _jitter(colour: str, rng: np.random.Generator, spread: float) -> str:
    """The colour, a little lighter or darker."""
    hue, light, saturation = colorsys.rgb_to_hls(*(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)))
    light = float(np.clip(light + np.clip(rng.normal(0, spread), -2 * spread, 2 * spread), 0.04, 0.96))
    return "#{:02x}{:02x}{:02x}".format(*(round(255 * v) for v in colorsys.hls_to_rgb(hue, light, saturation)))


def visible(attributes: Mapping[str, bool]) -> dict[str, bool]:
    """What can be seen of an avatar that has these attributes (missing ones count as absent): its labels.

    Of attributes that exclude each other the first wins: sunglasses over eyeglasses, pale over dark skin, a hat over
    a bald head, a bald head over hair, and of the hair colours the first in the list (brown if none is given).
    """
    unknown = [name for name in attributes if name not in NAMES]
    if unknown:
        raise ValueError(f"Avatars have no attribute {unknown[0]!r}. Choose among: {', '.join(NAMES)}.")
    seen = {name: bool(attributes.get(name, False)) for name in NAMES}
    seen["Dark_Skin"] &= not seen["Pale_Skin"]
    seen["Eyeglasses"] &= not seen["Sunglasses"]
    seen["Eyes_Closed"] &= not seen["Sunglasses"]
    seen["Bald"] &= not seen["Wearing_Hat"]
    seen["Long_Hair"] &= not seen["Bald"]
    hair = not seen["Bald"] and (seen["Long_Hair"] or not seen["Wearing_Hat"])
    seen["Curly_Hair"] &= hair
    seen["Bangs"] &= hair and not seen["Wearing_Hat"]
    colour = _hair_colour(attributes)
    for name in HAIR_COLOURS:
        seen[name] = hair and name == colour
    return seen


def _hair_colour(attributes: Mapping[str, bool]) -> str:
    return next((name for name in HAIR_COLOURS if attributes.get(name)), "Brown_Hair")


def sample_attributes(seed: int) -> dict[str, bool]:
    """The attributes of a random person, correlated as in life; parts of them may be out of sight (see `visible`)."""
    male, old = _coin(seed, "Male", 0.5), _coin(seed, "age", 0.3)
    a = dict.fromkeys(NAMES, False)
    a["Male"] = male
    skin = _stream(seed, "skin tone").random()
    a["Pale_Skin"], a["Dark_Skin"] = bool(skin < 0.36), bool(skin > 0.70)
    a["Smiling"] = _coin(seed, "Smiling", 0.5)
    a["Mouth_Slightly_Open"] = _coin(seed, "Mouth_Slightly_Open", 0.55 if a["Smiling"] else 0.35)
    a["Wearing_Lipstick"] = _coin(seed, "Wearing_Lipstick", 0.06 if male else 0.5)
    a["Rosy_Cheeks"] = _coin(seed, "Rosy_Cheeks", 0.18 if male else 0.34)
    a["Sunglasses"] = _coin(seed, "Sunglasses", 0.17)
    a["Eyeglasses"] = _coin(seed, "Eyeglasses", 0.45 if old else 0.25)
    a["Eyes_Closed"] = _coin(seed, "Eyes_Closed", 0.28)
    a["Beard"] = _coin(seed, "Beard", 0.38 if male else 0.02)
    a["Mustache"] = _coin(seed, "Mustache", (0.55 if a["Beard"] else 0.25) if male else 0.02)
    a["Wearing_Hat"] = _coin(seed, "Wearing_Hat", 0.24)
    a["Bald"] = _coin(seed, "Bald", (0.5 if old else 0.2) if male else 0.05)
    a["Long_Hair"] = _coin(seed, "Long_Hair", 0.16 if male else 0.72)
    a["Curly_Hair"] = _coin(seed, "Curly_Hair", 0.4)
    a["Bangs"] = _coin(seed, "Bangs", 0.24 if male else 0.4)
    shares = [0.12, 0.14, 0.10, 0.64] if old else [0.36, 0.32, 0.28, 0.04]
    if a["Dark_Skin"]:  # black hair is more frequent with dark skin, blond hair with pale skin
        shares = [0.16, 0.12, 0.08, 0.64] if old else [0.50, 0.28, 0.18, 0.04]
    a[str(_stream(seed, "hair colour").choice(HAIR_COLOURS, p=shares))] = True
    return a


def choose_look(attributes: Mapping[str, bool], seed: int) -> Look:
    """The free choices of an avatar, each from its own stream."""
    seen = visible(attributes)

    def pick(factor: str, among: Sequence[str]) -> str:
        return among[int(_stream(seed, factor).integers(len(among)))]

    def tint(factor: str, colour: str, spread: float) -> str:
        return _jitter(colour, _stream(seed, factor), spread)

    skin = "Pale_Skin" if seen["Pale_Skin"] else "Dark_Skin" if seen["Dark_Skin"] else "Tan_Skin"
    hair = tint("hair shade", _SHADES[_hair_colour(attributes)], 0.02)
    back = _stream(seed, "background")
    hue, light = back.random(), 0.84 + 0.06 * back.random()
    background = "#{:02x}{:02x}{:02x}".format(*(round(255 * v) for v in colorsys.hls_to_rgb(hue, light, 0.5)))
    place = np.clip(_stream(seed, "place").normal(0, 1, 3), -2, 2)
    size = 192 + 2.0 * place[0]
    return Look(
        attributes=seen,
        skin=tint("skin shade", _SHADES[skin], 0.02),
        hair=hair,
        beard=hair,
        hair_style=pick("hair style", _STYLES[seen["Long_Hair"], seen["Curly_Hair"]]),
        beard_style=pick("beard style", ("beardMedium", "beardMajestic")),
        mustache_style=pick("mustache style", ("moustacheMagnum", "moustacheFancy")),
        hat_style=pick("hat style", _HATS),
        hat_colour=tint("hat shade", pick("hat colour", _HAT_COLOURS), 0.02),
        glasses_style=pick("glasses style", _GLASSES),
        shades_style=pick("shades style", ("kurt", "prescription02")),
        glasses_colour=pick("glasses colour", _GLASSES_COLOURS),
        iris=pick("iris", _IRIS),
        shirt_style=pick("shirt style", ("shirtCrewNeck", "shirtVNeck")),
        shirt=pick("shirt", _SHIRTS),
        background=background,
        view=(140 - size / 2 + 1.2 * float(place[1]), 113 - size / 2 + 1.2 * float(place[2]), float(size)),
    )


def draw(attributes: Mapping[str, bool], seed: int = 0, size: int = 64) -> np.ndarray:
    """One avatar with these attributes (names to true or false; missing ones are absent), uint8 (3, size, size)."""
    return pixels(choose_look(attributes, seed), size)


def _render(job: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    seed, size = job
    attributes = sample_attributes(seed)
    labels = np.array([visible(attributes)[name] for name in NAMES], dtype=np.int8)
    return draw(attributes, seed, size), labels


def person_seed(seed: int, index: int) -> int:
    """The seed of the avatar number `index` of the set `seed`."""
    return int(np.random.SeedSequence([seed, index]).generate_state(1, np.uint64)[0])


def source(n: int, size: int, *, seed: int = 0, workers: int = 2) -> Source:
    """`n` random avatars; which ones they are depends on the seed alone. 80 % train, 10 % val, 10 % test."""
    if n < 10:
        raise ValueError(f"{n} avatars cannot be split into three parts; ask for 10 or more.")
    jobs = ((person_seed(seed, index), size) for index in range(n))
    return Source(
        name="avatars",
        names=NAMES,
        n=n,
        image_size=size,
        rows=in_processes(_render, jobs, workers),
        split=random_split(n, seed),
        options={"n": n, "seed": seed},
        title="Avatars",
        credit=CREDIT,
        licence=LICENCE,
        groups=GROUPS,
        drawn=True,
    )
