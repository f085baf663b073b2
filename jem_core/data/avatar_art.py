"""The drawing of one avatar: layers of SVG, some from avataaars, some our own, turned into pixels by resvg.

The avataaars art (hair, hats, glasses, beards, shirt) is by Pablo Stanley, free for personal and commercial use.
What must be readable at 32 pixels (face outline, eyes, mouth, fringe, curls, cheeks) is drawn here instead, larger.
Coordinates are those of the avataaars canvas, 280 x 280; the head is centred on x = 140.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from math import cos, pi, sin
from typing import NamedTuple

import numpy as np
from PIL import Image

# Where avataaars puts each component on its canvas.
_PLACES = {
    "clothes": (40.0, 184.7),
    "nose": (128.0, 130.0),
    "eyebrows": (91.86, 82.0),
    "top": (8.0, 0.0),
    "facialHair": (81.0, 98.0),
    "accessories": (75.77, 46.0),
}
# Colours that stand for "the colour of this avatar" in a cached fragment.
_SENTINELS = {
    "hair": "#010203",
    "facialHair": "#010204",
    "hat": "#010205",
    "clothes": "#010206",
    "accessories": "#010207",
}
INK = "#20140e"
LIPS = "#c2243f"
SHADE_LENS = "#23282c"


class Look(NamedTuple):
    """Everything that is drawn: the visible attributes and the free choices (style, shade, place) of each factor."""

    attributes: Mapping[str, bool]
    skin: str
    hair: str
    beard: str
    hair_style: str
    beard_style: str
    mustache_style: str
    hat_style: str
    hat_colour: str
    glasses_style: str
    shades_style: str
    glasses_colour: str
    iris: str
    shirt_style: str
    shirt: str
    background: str
    view: tuple[float, float, float]


@cache
def _style() -> object:
    from dicebear import Style  # imported on first use: only the avatars need it

    return Style(json.loads(files("dicebear_styles").joinpath("avataaars.json").read_text(encoding="utf-8")))


@cache
def _fragment(component: str, variant: str) -> str:
    """The SVG group of one avataaars component, placed on the canvas, with sentinel colours."""
    from dicebear import Avatar

    options = {"seed": "fragment", f"{component}Variant": variant, f"{component}Probability": 100}
    options |= {f"{name}Color": colour for name, colour in _SENTINELS.items()}
    svg = Avatar(_style(), options).to_string()
    found = re.search(rf'<g id="{component}-{variant}-[^"]*">(.*?)</g>(?=<|$)', svg, flags=re.DOTALL)
    if found is None:
        raise ValueError(f"The avataaars style has no {component} named {variant!r}.")
    x, y = _PLACES[component]
    return f'<g transform="translate({x} {y})">{found.group(1)}</g>'


def _art(component: str, variant: str, **colours: str) -> str:
    """A component in the given colours."""
    text = _fragment(component, variant)
    for name, colour in colours.items():
        text = text.replace(_SENTINELS[name], colour)
    return text


def shade(colour: str, factor: float) -> str:
    """The colour made darker (factor < 1) or lighter (factor > 1)."""
    parts = [min(255, round(int(colour[i : i + 2], 16) * factor)) for i in (1, 3, 5)]
    return "#{:02x}{:02x}{:02x}".format(*parts)


def _lightness(colour: str) -> float:
    return sum(int(colour[i : i + 2], 16) for i in (1, 3, 5)) / 765


def _head(male: bool, skin: str) -> str:
    """Face, ears, neck and shoulders: a broad jaw and neck for a man, a narrow chin and neck otherwise."""
    jaw, neck = (
        ("C84.5 166 104 187 140 187 S195.5 166 195.7 136", 29)
        if male
        else ("C86 158 114 189 140 189 S194 158 195.7 136", 18)
    )
    left, right = 140 - neck, 140 + neck
    face = (
        "M140 36a56 56 0 0 0-56 56v6.2A12 12 0 0 0 74 110v14a12 12 0 0 0 10.3 12"
        f"{jaw}A12 12 0 0 0 206 124v-14a12 12 0 0 0-10-11.8V92a56 56 0 0 0-56-56Z"
    )
    body = f"M{left} 160V199h-4a72 72 0 0 0-72 72v9h{2 * neck + 152}v-9a72 72 0 0 0-72-72h-4V160Z"
    shadow = f"M{left} 176H{right}V190a56 40 0 0 1-{2 * neck} 0Z"
    return (
        f'<path d="{body}" fill="{skin}"/><path d="{shadow}" fill="black" fill-opacity=".15"/>'
        f'<path d="{face}" fill="{skin}"/>'
    )


def _line(path: str, colour: str, width: float) -> str:
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}" '
        'stroke-linecap="round" stroke-linejoin="round"/>'
    )


def _ellipse(x: float, y: float, rx: float, ry: float, colour: str) -> str:
    return f'<ellipse cx="{x}" cy="{y}" rx="{rx}" ry="{ry}" fill="{colour}"/>'


def _eyes(closed: bool, male: bool, iris: str) -> str:
    """Open eyes show white; closed ones are a thick line. Lashes belong to faces that are not male."""
    parts = []
    for side in (-1, 1):
        x = 140 + 26 * side
        if closed:
            parts.append(_line(f"M{x - 12} 110q12 11 24 0", INK, 5))
        else:
            parts += [
                _ellipse(x, 112, 12, 9.5, "white"),
                _ellipse(x, 112, 7, 7, iris),
                _ellipse(x, 112, 3.5, 3.5, "#111"),
            ]
        if not male:
            y = 112 if closed else 107
            lid = "" if closed else f"M{x - 13} 108q13-12 26 0"
            parts.append(_line(f"{lid}M{x + 10 * side} {y}l{9 * side}-6", INK, 5))
    return "".join(parts)


def _mouth(smiling: bool, open_: bool, lipstick: bool) -> str:
    """Four mouths (smiling or not, open or not), each with or without painted lips around it."""
    if open_ and smiling:
        shape = "M117 152q23 6 46 0q-2 25-23 25t-23-25Z"
        teeth = "M120 153q20 5 40 0q0 6-1 7q-19 4-38 0q-1-1-1-7Z"
        inside = f'<path d="{shape}" fill="#4a1d1d"/><path d="{teeth}" fill="white"/>'
        lips = _line(shape, LIPS, 9)
    elif open_:
        inside = _ellipse(140, 163, 12, 11, "#4a1d1d") + _ellipse(140, 169, 7, 4, "#d9626a")
        lips = f'<ellipse cx="140" cy="163" rx="12" ry="11" fill="none" stroke="{LIPS}" stroke-width="10"/>'
    else:
        line = "M118 154q22 22 44 0" if smiling else "M123 161h34"
        inside = _line(line, INK, 3.5 if lipstick else 6)
        lips = _line(line, LIPS, 14)
    return (lips if lipstick else "") + inside


def _cheeks() -> str:
    return "".join(f'<circle cx="{x}" cy="139" r="11" fill="#ff5470" fill-opacity=".8"/>' for x in (105, 175))


def _curl_row(centres: Iterable[tuple[float, float]], radius: float, hair: str) -> str:
    """Curls: circles in the hair's colour, each with a turn inside that is still seen at 32 pixels."""
    line = shade(hair, 0.74) if _lightness(hair) > 0.3 else shade(hair, 1.9)
    r = 0.48 * radius
    return "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{hair}"/>'
        f'<path d="M{x - r:.1f} {y:.1f}a{r:.1f} {r:.1f} 0 1 1 {r:.1f} {r:.1f}" fill="none" stroke="{line}" '
        'stroke-width="5" stroke-linecap="round"/>'
        for x, y in centres
    )


def _curls(hair: str, count: int, long: bool, under_hat: bool) -> str:
    """A cap of curls from ear to ear; long ones hang down on both sides; under a hat only those that hang are seen."""
    radius = 19.0 if count == 8 else 16.0
    parts = []
    if long:
        heights = np.arange(92 if under_hat else 100, 215, 1.6 * radius)
        parts.append(
            _curl_row([(140 + s * (66 + 0.08 * (y - 90)), y) for y in heights for s in (-1, 1)], radius + 2, hair)
        )
    if not under_hat:
        angles = [pi * (1.03 - 1.06 * i / count) for i in range(count + 1)]
        parts.append(f'<path d="M84 88C90 62 104 60 140 60S190 62 196 88L192 56C176 24 104 24 88 56Z" fill="{hair}"/>')
        parts.append(_curl_row([(140 + 60 * cos(t), 84 - 54 * sin(t)) for t in angles], radius, hair))
        inner = [pi * (0.84 - 0.68 * i / 3) for i in range(4)]
        parts.append(_curl_row([(140 + 40 * cos(t), 76 - 27 * sin(t)) for t in inner], radius - 2, hair))
    return "".join(parts)


def _straight_under_hat(hair: str) -> str:
    """Straight strands that hang from under a hat on both sides of the face."""
    strand = "M84 78C72 100 70 150 62 232H100C98 190 90 160 92 128C93 110 94 92 96 78Z"
    return (
        f'<path d="{strand}" fill="{hair}"/><path d="{strand}" fill="{hair}" transform="translate(280) scale(-1 1)"/>'
    )


def _straight_parted(hair: str) -> str:
    """Long straight hair, parted in the middle, the forehead free."""
    outline = (
        "M64 232C70 150 72 110 77 84C82 38 110 22 140 22S198 38 203 84C208 110 210 150 216 232H180"
        "C186 190 191 150 189 112C185 86 166 70 140 54C114 70 95 86 91 112C89 150 94 190 100 232Z"
    )
    return (
        f'<path d="{outline}" fill="{hair}"/><path d="M140 54V24" stroke="black" stroke-opacity=".2" stroke-width="3"/>'
    )


def _hair(look: Look) -> tuple[str, str]:
    """What hangs behind the head, and what lies over it."""
    wears = look.attributes
    hat, long = wears["Wearing_Hat"], wears["Long_Hair"]
    if wears["Bald"] or (hat and not long):
        return "", ""
    if wears["Curly_Hair"]:
        front = _curls(look.hair, int(look.hair_style), long, hat)
    elif hat:
        front = _straight_under_hat(look.hair)
    elif look.hair_style == "parted":
        front = _straight_parted(look.hair)
    else:
        front = _art("top", look.hair_style, hair=look.hair)
    if wears["Bangs"]:
        front += _curly_fringe(look.hair) if wears["Curly_Hair"] else _fringe(look.hair)
    back = f'<path d="M80 90a60 56 0 0 1 120 0V230H80Z" fill="{shade(look.hair, 0.8)}"/>' if long else ""
    return back, front


def _fringe(hair: str) -> str:
    edge = "M84 62C100 34 180 34 196 62L195 98q-9 5-17-3q-9 6-19 1q-9 5-19 0q-10 5-19 0q-10 5-19-1q-8 8-17 3Z"
    lines = "M112 62q-4 18-2 30M140 58v36M168 62q4 18 2 30"
    strands = f'<path d="{lines}" fill="none" stroke="black" stroke-opacity=".2" stroke-width="3"/>'
    return f'<path d="{edge}" fill="{hair}"/>{strands}'


def _curly_fringe(hair: str) -> str:
    row = _curl_row([(x, 84 - 0.004 * (x - 140) ** 2) for x in (96, 118, 140, 162, 184)], 15.0, hair)
    return f'<path d="M88 60H192V84H88Z" fill="{hair}"/>{row}'


def _glasses(look: Look) -> str:
    wears = look.attributes
    if wears["Sunglasses"]:
        if look.shades_style == "kurt":
            return _art("accessories", "kurt", accessories=SHADE_LENS)
        lens = "".join(_ellipse(x, 113, 22, 19, SHADE_LENS) for x in (110, 172))
        return lens + _art("accessories", look.shades_style, accessories=SHADE_LENS)
    if wears["Eyeglasses"]:
        return _art("accessories", look.glasses_style, accessories=look.glasses_colour)
    return ""


def svg(look: Look) -> str:
    """The whole picture as SVG, layer upon layer from the back to the front."""
    wears = look.attributes
    male = wears["Male"]
    back, front = _hair(look)
    layers = [back, _head(male, look.skin), _art("clothes", look.shirt_style, clothes=look.shirt)]
    layers.append(_art("nose", "default"))
    layers.append(_art("eyebrows", "defaultNatural" if male else "default"))
    layers.append(_eyes(wears["Eyes_Closed"] and not wears["Sunglasses"], male, look.iris))
    layers.append(front)
    if wears["Beard"]:  # the upper lip stays free: that is the moustache's place
        layers.append(f'<g clip-path="url(#no-lip)">{_art("facialHair", look.beard_style, facialHair=look.beard)}</g>')
    if wears["Rosy_Cheeks"]:
        layers.append(_cheeks())
    layers.append(_mouth(wears["Smiling"], wears["Mouth_Slightly_Open"], wears["Wearing_Lipstick"]))
    if wears["Mustache"]:
        art = _art("facialHair", look.mustache_style, facialHair=look.beard)
        layers.append(f'<g transform="translate(140 146) scale(1.25 1.2) translate(-140.5 -149)">{art}</g>')
    if wears["Wearing_Hat"]:
        layers.append(_art("top", look.hat_style, hat=look.hat_colour))
    layers.append(_glasses(look))
    x, y, size = look.view
    clip = "M0 0H280V280H0ZM112 162a28 24 0 0 1 56 0a28 17 0 0 1-56 0Z"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{x:.2f} {y:.2f} {size:.2f} {size:.2f}" fill="none">'
        f'<defs><clipPath id="no-lip"><path clip-rule="evenodd" d="{clip}"/></clipPath></defs>{"".join(layers)}</svg>'
    )


def pixels(look: Look, size: int) -> np.ndarray:
    """The picture as uint8 (3, size, size)."""
    import resvg_py

    png = resvg_py.svg_to_bytes(
        svg_string=svg(look), width=size, height=size, background=look.background, skip_system_fonts=True
    )
    image = Image.open(io.BytesIO(bytes(png))).convert("RGB")
    return np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1))
