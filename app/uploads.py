"""A visitor's picture: how it arrives, and which part of it a model looks at. No path and no address is ever opened."""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from app.catalog import Entry
from app.deadlines import Deadline
from app.decoder import MOST_BYTES, shared
from app.inbox import UNSUPPORTED, is_picture
from app.parcels import parcels
from app.runtime import current
from jem_core.data import avatars
from jem_core.faces import Face, align, crop, crop_box, find_faces
from jem_core.places import ASSETS

EXAMPLES = {"astronaut": ASSETS / "examples" / "astronaut.jpg"}
SHOWN_SIDE = 640  # of the copy that goes back to the page
AVATAR_SIDE = 256
SMALL = 2**16  # pixels of a picture that is kept as it is
QUALITY = 95  # of the others
FARTHEST = 1e6  # pixels that a corner of the crop may be away

Box = tuple[float, float, float, float]


class Picture:
    """What is kept of a visitor's picture, in memory only: a large one as a fine JPEG, a tenth of its pixels' bytes.

    It is packed at once, so that a model sees the same pixels whenever it is asked.
    """

    def __init__(self, image: Image.Image, avatar: int | None = None, faces: list[Face] | None = None) -> None:
        self._kept = image if image.width * image.height <= SMALL else _packed(image)
        self.avatar = avatar  # the seed of an avatar drawn here: it can be drawn at any size
        self.faces = faces  # None: nobody has looked for them yet
        self.order = 0  # the number of the request that brought it

    @property
    def image(self) -> Image.Image:
        """The picture; its pixels are unpacked when they are first looked at."""
        return Image.open(io.BytesIO(self._kept), formats=["JPEG"]) if isinstance(self._kept, bytes) else self._kept

    def find_faces(self) -> list[Face]:
        if self.faces is None:
            self.faces = find_faces(self.image, Deadline(current().limits.call_seconds).check)
        return self.faces


@dataclass(frozen=True)
class View:
    """What a model sees of a picture."""

    stored: Tensor  # uint8 (3, S, S)
    box: Box  # in pixels of the picture
    face: int | None  # which face was aligned
    lost: bool  # a face was looked for and is not in it
    note: str = ""


def _packed(image: Image.Image) -> bytes:
    target = io.BytesIO()
    image.save(target, "JPEG", quality=QUALITY, subsampling=0)
    return target.getvalue()


def from_bytes(data: bytes) -> Picture:
    if not is_picture(data):
        raise ValueError(UNSUPPORTED)
    return Picture(shared().decode(data))  # at most 1024 x 1024


def from_base64(text: object) -> Picture:
    """A picture as base64 or as a data URI."""
    if not isinstance(text, str):
        raise ValueError(f"The picture is a {type(text).__name__}; expected its bytes in base64.")
    if (data := parcels.take(text)) is not None:  # a large one: its bytes did not come through Gradio
        return from_bytes(data)
    if len(text) > MOST_BYTES * 4 / 3 + 100:
        size = len(text) * 3 / 4 / 2**20
        raise ValueError(f"The picture is {size:.0f} MB; at most {MOST_BYTES >> 20} MB is allowed.")
    if text[:5] == "data:":
        text = text.partition(",")[2]
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("The picture is incomplete: its bytes are not base64.") from None
    return from_bytes(data)


def from_example(name: object) -> Picture:
    if not isinstance(name, str) or name not in EXAMPLES:
        raise ValueError(f"There is no such example; choose one of {', '.join(EXAMPLES)}.")
    return from_bytes(EXAMPLES[name].read_bytes())


def from_avatar(seed: object) -> Picture:
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**53:
        raise ValueError("The avatar's seed must be a whole number of at least 0.")
    drawn = avatars.draw(avatars.sample_attributes(seed), seed, AVATAR_SIDE)
    return Picture(Image.fromarray(drawn.transpose(1, 2, 0)), avatar=seed)


def crop_for(picture: Picture, entry: Entry, face: object = 0, box: object = None) -> View:
    """The part that the model sees: the box by hand, the chosen face, or the middle."""
    size = entry.image_size
    if box is not None:
        square = _box(box)
        return View(_stored(crop(picture.image, square, size)), square, None, _beside(picture, entry, square))
    if entry.data.faces and picture.avatar is None:
        faces = picture.find_faces()
        if faces:
            number = _number(face, len(faces))
            note = f"{len(faces)} faces were found, the largest first." if len(faces) > 1 else ""
            found = faces[number]
            return View(_stored(align(picture.image, found, size)), crop_box(found), number, False, note)
        note = "No face was found, so this is the middle of the picture. You can adjust the crop."
        return _middle(picture, size, lost=True, note=note)
    return _middle(picture, size)


def _middle(picture: Picture, size: int, lost: bool = False, note: str = "") -> View:
    width, height = picture.image.size
    side = min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    square = (left, top, left + side, top + side)
    if picture.avatar is not None:  # drawn at the model's own size, as its training images were
        seed = picture.avatar
        stored = torch.from_numpy(avatars.draw(avatars.sample_attributes(seed), seed, size))
    else:
        stored = _stored(crop(picture.image, square, size))
    return View(stored, square, None, lost, note)


def _beside(picture: Picture, entry: Entry, square: Box) -> bool:
    """Whether a crop by hand is beside the faces that were found. Where none was, a visitor may know better."""
    if not entry.data.faces or picture.avatar is not None:
        return False
    left, top, right, bottom = square
    inside = [left <= face.middle[0] <= right and top <= face.middle[1] <= bottom for face in picture.find_faces()]
    return bool(inside) and not any(inside)


def _number(value: object, count: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < count:
        raise ValueError(f"There is no such face; the picture has {count}.")
    return value


def _box(value: object) -> Box:
    numbers = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []
    good = len(numbers) == 4 and all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers)
    if not good or not all(abs(n) <= FARTHEST for n in numbers):  # also false for nan
        raise ValueError("The crop must be four numbers: left, top, right, bottom in pixels of the picture.")
    return tuple(float(n) for n in numbers)


def _stored(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()


def as_uri(image: Image.Image | Tensor, kind: str = "PNG") -> str:
    """For the page, as a data URI."""
    if isinstance(image, Tensor):
        image = Image.fromarray(image.permute(1, 2, 0).numpy())
    target = io.BytesIO()
    image.save(target, kind, **({"quality": 85} if kind == "JPEG" else {}))
    return f"data:image/{kind.lower()};base64,{base64.b64encode(target.getvalue()).decode()}"


def shown(picture: Picture) -> str:
    """The picture as the page shows it."""
    copy = picture.image.copy()
    copy.thumbnail((SHOWN_SIDE, SHOWN_SIDE))
    return as_uri(copy, "JPEG")
