"""Say what a picture shows, and how far to trust it: python -m train predict MODEL photo.jpg [--face 1 | --whole]."""

from __future__ import annotations

import argparse
from pathlib import Path

from PIL import Image

from jem_core.bundle import Bundle
from jem_core.calibration import Row
from jem_core.condition import plain
from jem_core.faces import align, find_faces
from jem_core.hub import load
from jem_core.images import read_image
from jem_core.prediction import Prediction, as_stored, predict

VERDICTS = {
    "inside": "like the test images",
    "unusual": "unusual among the test images",
    "unlike": "unlike anything it was trained on: the percentages carry no guarantee",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a bundled name, hf-hub:owner/name@revision, or a directory")
    parser.add_argument("picture", type=Path, help="JPEG, PNG or WebP")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--face", type=int, default=1, metavar="N", help="which face, the largest is 1")
    choice.add_argument("--whole", action="store_true", help="the middle of the picture, without looking for a face")
    parser.add_argument("--crop", type=Path, metavar="FILE.png", help="also write what the model sees")


def run(args: argparse.Namespace) -> int:
    bundle = load(args.model)
    picture = read_image(args.picture)
    if not args.whole and shows_photographs(bundle):
        picture = the_face(picture, args.face, bundle.model.image_size)
    prediction = predict(bundle, picture)
    if args.crop:
        seen = as_stored(picture, bundle.model.image_size).permute(1, 2, 0).numpy()
        Image.fromarray(seen).save(args.crop, "PNG")
    show(prediction)
    return 0


def shows_photographs(bundle: Bundle) -> bool:
    """Whether the model was trained on aligned faces, so that a photograph must be aligned first."""
    return bundle.data.faces


def the_face(picture: Image.Image, number: int, size: int) -> Image.Image:
    faces = find_faces(picture)
    if not faces:
        print("No face was found; the middle of the picture is used instead.")
        return picture
    if not 1 <= number <= len(faces):
        raise ValueError(f"--face is {number}; the picture has faces 1 to {len(faces)}.")
    if len(faces) > 1:
        print(f"{len(faces)} faces were found; this is number {number}, the largest is 1.")
    return align(picture, faces[number - 1], size)


def show(prediction: Prediction) -> None:
    print(f"{'':22s}{'says':>6s}{'true':>9s}{'interval':>15s}{'images':>8s}")
    for row in prediction.rows:
        print(f"{plain(row.name):22s}{row.probability:6.0%}{observed(row)}")
    if prediction.reading is None:
        print("This model cannot reliably tell unusual pictures apart.")
        return
    seen = prediction.reading
    than = "every test image" if seen.beyond else f"{int(seen.percentile)} % of test images"
    print(f"Less typical than {than}: {VERDICTS[seen.verdict]}.")


def observed(row: Row) -> str:
    if not row.enough:
        return f"{'too few to say':>24s}{row.count:8d}" if row.span else ""
    low, high = row.interval
    return f"{row.rate:9.0%}{f'{low:.0%} to {high:.0%}':>15s}{row.count:8d}"
