"""python -m train predict: the numbers of the prediction in words, the right part of the picture, and refusals."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jem_core.bundle import Bundle
from jem_core.data.dataset import Dataset
from jem_core.prediction import predict
from tests.evaluated import evaluate_prediction
from train.__main__ import main
from train.predict import VERDICTS

PORTRAIT = Path(__file__).parents[2] / "assets" / "examples" / "astronaut.jpg"


@pytest.fixture(scope="module")
def drawings(tiny_bundle: Bundle, tiny_dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A model of drawings that was evaluated."""
    folder = tmp_path_factory.mktemp("evaluated") / "drawings"
    return Bundle.read(evaluate_prediction(tiny_bundle, tiny_dataset, folder, "gibbs-jem"))


@pytest.fixture(scope="module")
def faces(tiny_bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A model that says it was trained on aligned faces, and was not evaluated."""
    config = tiny_bundle.config | {"data": tiny_bundle.config["data"] | {"faces": True}}
    folder = tmp_path_factory.mktemp("faces") / "model"
    replace(tiny_bundle, config=config).write(folder)
    return Bundle.read(folder)


def test_the_words_are_those_of_the_prediction(drawings: Bundle, capsys: pytest.CaptureFixture) -> None:
    assert main(["predict", str(drawings.directory), str(PORTRAIT)]) == 0
    said = capsys.readouterr().out
    prediction = predict(drawings, Image.open(PORTRAIT).convert("RGB"))
    rows = [line for line in said.splitlines() if line.split(" ")[0] in drawings.names]
    assert [line.split()[0] for line in rows] == [row.name for row in prediction.rows]
    for line, row in zip(rows, prediction.rows, strict=True):
        assert f"{row.probability:.0%}" in line
        assert f"{row.rate:.0%}" in line if row.enough else "too few to say" in line
        assert line.endswith(f" {row.count}")
    last = said.splitlines()[-1]
    assert (VERDICTS[prediction.reading.verdict] if prediction.reading else "cannot reliably tell") in last


def seen_by(model: Bundle, folder: Path, *words: str, picture: Path = PORTRAIT) -> np.ndarray:
    out = folder / "seen.png"
    assert main(["predict", str(model.directory), str(picture), "--crop", str(out), *words]) == 0
    return np.asarray(Image.open(out)).astype(float)


def test_a_model_of_faces_sees_the_face(
    faces: Bundle, drawings: Bundle, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    face, whole = seen_by(faces, tmp_path), seen_by(faces, tmp_path, "--whole")
    assert face.shape == whole.shape == (32, 32, 3)
    assert np.abs(face - whole).mean() > 5
    assert np.array_equal(whole, seen_by(drawings, tmp_path))  # which never looks for a face
    assert "cannot reliably tell" in capsys.readouterr().out


def test_two_faces_and_none(faces: Bundle, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    portrait = Image.open(PORTRAIT).convert("RGB")
    both = Image.new("RGB", (2 * portrait.width, portrait.height))
    both.paste(portrait, (0, 0))
    both.paste(portrait.transpose(Image.Transpose.FLIP_LEFT_RIGHT), (portrait.width, 0))
    both.save(tmp_path / "both.png")
    first, second = (seen_by(faces, tmp_path, "--face", n, picture=tmp_path / "both.png") for n in "12")
    assert "2 faces were found; this is number 2" in capsys.readouterr().out
    assert np.abs(first - second).mean() > 2
    assert main(["predict", str(faces.directory), str(tmp_path / "both.png"), "--face", "3"]) == 2
    assert "--face is 3; the picture has faces 1 to 2." in capsys.readouterr().err
    Image.new("RGB", (90, 60), "#808080").save(tmp_path / "grey.png")
    assert (seen_by(faces, tmp_path, picture=tmp_path / "grey.png") == 128).all()
    assert "No face was found" in capsys.readouterr().out
