"""The second screen's other end: pictures of every kind in, numbers of the calibration file out."""

import base64
import io
import json
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest
import torch
from evaluated import evaluate_prediction
from PIL import Image

from app import photo, photo_api, pictures
from app.catalog import Catalog, Entry
from app.limits import Limits
from app.runtime import Runtime, install
from jem_core.bundle import Bundle
from jem_core.data.dataset import Dataset

CELEBA_LIKE = Entry("photographs", {"data": {"source": "celeba"}, "model": {"names": ["Smiling"], "image_size": 64}})
DRAWN = Entry("drawings", {"data": {"source": "avatars"}, "model": {"names": ["Smiling"], "image_size": 32}})


@pytest.fixture(scope="module")
def directory(tiny_bundle: Bundle, tiny_dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluated")
    evaluate_prediction(tiny_bundle, tiny_dataset, folder / "tiny-supervised", "supervised")
    return evaluate_prediction(tiny_bundle, tiny_dataset, folder / "tiny", "gibbs-jem")


@pytest.fixture
def app(directory: Path, tmp_path: Path) -> Path:
    sources = [str(directory), str(directory.parent / "tiny-supervised")]
    install(Runtime(Catalog(sources, bundled=tmp_path, device="cpu"), Limits()))
    return directory


def event(**data: object) -> SimpleNamespace:
    return SimpleNamespace(_data=data)


def encoded(image: Image.Image, kind: str = "PNG", **options: object) -> str:
    target = io.BytesIO()
    image.save(target, kind, **options)
    return base64.b64encode(target.getvalue()).decode()


def red(size: tuple[int, int] = (60, 40), mode: str = "RGB") -> Image.Image:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 90, (size[1], size[0], 3), dtype=np.uint8)
    pixels[..., 0] += 150
    return Image.fromarray(pixels).convert(mode)


def test_a_picture_gives_rows_whose_numbers_stand_in_the_file(app: Path) -> None:
    answer, picture, figure = photo.show(None, event(order=1, data=encoded(red()), theme="dark"))
    assert answer["kind"] == "photo"
    assert picture.image.size == (60, 40)
    calibration = json.loads((app / "calibration.json").read_text())
    for row in answer["rows"]:
        bins = calibration["attributes"][row["name"]]["bins"]
        i = bins["edges"].index(row["from"])
        found = (row["to"], row["count"], row["rate"], row["low"], row["high"])
        assert found == (bins["edges"][i + 1], *(bins[k][i] for k in ("count", "positive_rate", "low", "high")))
        assert f"The model says {row['name']} {100 * row['p']:.0f} %." in row["sentence"]
        if row["enough"]:
            assert f"{bins['count'][i]:,} held-out images" in row["sentence"]
            assert f"{100 * bins['positive_rate'][i]:.0f} % had it" in row["sentence"]
        else:
            assert "too few to say" in row["sentence"]
    assert any("Supervised, ECE" in (trace.name or "") for trace in figure.data)  # the overlay
    assert figure.layout.shapes[0].x0 == pytest.approx(answer["rows"][0]["p"], abs=1e-5)


@pytest.mark.parametrize(
    "data",
    [
        encoded(red(mode="RGBA")),
        encoded(red(mode="L")),
        encoded(red(mode="CMYK"), "JPEG"),
        encoded(Image.fromarray(np.arange(40 * 60, dtype=np.uint16).reshape(40, 60) * 20)),
        encoded(red(), "WEBP"),
        encoded(red((8, 8))),
        encoded(red(), "PNG", save_all=True, append_images=[red(), red()]),
        "data:image/png;base64," + encoded(red()),
    ],
    ids=["alpha", "grey", "cmyk", "16-bit", "webp", "8 px", "animated", "data uri"],
)
def test_every_kind_of_picture_is_predicted(app: Path, data: str) -> None:
    answer, _, _ = photo.show(None, event(order=1, data=data))
    assert answer["kind"] == "photo", answer
    assert len(answer["rows"]) == 6


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("not base64 at all", "not base64"),
        (base64.b64encode(b"<svg xmlns='http://www.w3.org/2000/svg'/>").decode(), "JPEG, PNG"),
        (encoded(red())[:200], "cut short|not base64|damaged"),
        (17, "expected its bytes"),
        (["/etc/passwd"], "expected its bytes"),
        ("/etc/passwd", "not base64|JPEG, PNG"),
    ],
)
def test_bad_pictures_get_a_sentence_and_lose_nothing(app: Path, data: object, said: str) -> None:
    answer, picture, figure = photo.show(None, event(order=3, data=data))
    assert (answer["kind"], answer["order"]) == ("refused", 3)
    assert any(part in answer["message"] for part in said.split("|")), answer["message"]
    assert answer["message"].count(". ") == 0
    assert picture == figure == gr.skip()


def test_wrong_wishes_get_a_sentence(app: Path) -> None:
    for wish in (
        {"model": "../secret"},
        {"box": [0, 0]},
        {"box": [0, 0, float("nan"), 3]},
        {"box": [0, 0, 10**400, 3]},
        {"model": ["tiny"]},
    ):
        answer, _, _ = photo.show(None, event(order=1, data=encoded(red()), **wish))
        assert answer["kind"] == "refused", wish
    assert photo.show(None, event(order=1))[0]["message"].startswith("There is no picture")
    assert photo.show(None, event(example="../../etc/passwd"))[0]["kind"] == "refused"
    assert photo.show(None, SimpleNamespace(_data="text"))[0]["kind"] == "refused"


def test_the_box_by_hand_is_what_the_model_sees(app: Path) -> None:
    image = Image.new("RGB", (100, 60), "white")
    image.paste((255, 0, 0), (0, 0, 30, 30))
    picture = pictures.Picture(image)
    view = pictures.look(picture, DRAWN, box=[0, 0, 30, 30])
    assert view.stored[:, 16, 16].tolist() == [255, 0, 0]
    middle = pictures.look(picture, DRAWN)
    assert middle.box == (20, 0, 80, 60)


def test_photographs_are_aligned_and_no_face_is_said() -> None:
    portrait = pictures.from_example("astronaut")
    view = pictures.look(portrait, CELEBA_LIKE)
    assert (view.face, view.lost, view.note) == (0, False, "")
    assert view.stored.shape == (3, 64, 64)
    with pytest.raises(ValueError, match="the picture has 1"):
        pictures.look(portrait, CELEBA_LIKE, face=1)
    empty = pictures.look(pictures.Picture(Image.new("RGB", (300, 200), (90, 140, 60))), CELEBA_LIKE)
    assert empty.lost
    assert empty.note.startswith("No face was found")
    assert pictures.look(pictures.Picture(Image.new("RGB", (300, 200))), DRAWN).lost is False


def test_an_avatar_is_drawn_as_the_training_images_were() -> None:
    from jem_core.data import avatars

    picture = pictures.from_avatar(5)
    view = pictures.look(picture, DRAWN)
    assert np.array_equal(view.stored.numpy(), avatars.draw(avatars.sample_attributes(5), 5, 32))
    assert pictures.look(picture, CELEBA_LIKE).lost is False  # a drawing is not searched for a face


def test_editing_hands_the_picture_to_the_first_screen(app: Path) -> None:
    _, picture, _ = photo.show(None, event(order=1, data=encoded(red())))
    answer, start = photo.edit(picture, event(order=2, model="tiny", face=0, box=None))
    assert answer["kind"] == "edit"
    assert sorted(answer["with"] + answer["without"]) == sorted(current_names())
    assert start.shape == (1, 3, 32, 32)
    assert 0 <= start.min() <= start.max() <= 1
    assert photo.edit(None, event(order=2))[0]["kind"] == "refused"


def current_names() -> list[str]:
    return list(photo.current().catalog.entry("tiny").attributes)


def test_the_verdict_unlike_greys_the_rows(app: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    answer, _, _ = photo.show(None, event(order=1, data=encoded(Image.fromarray(noise))))
    verdict = answer["gate"]["verdict"]
    assert answer["greyed"] == (verdict == "unlike")
    lost = pictures.View(torch.zeros(3, 32, 32), (0, 0, 1, 1), None, True)
    prediction = SimpleNamespace(reading=None, gate_auroc={})
    assert photo.gate_words(prediction, lost)["verdict"] == "unlike"


def test_the_endpoint_says_the_same(app: Path) -> None:
    data = encoded(red())
    answer = photo_api.predict(data)
    shown, _, _ = photo.show(None, event(order=1, data=data))
    assert answer["rows"] == shown["rows"]
    assert set(answer) == {"model", "rows", "gate", "gate_auroc", "faces", "note"}
    for bad in ({"image": "/etc/passwd"}, {"image": data, "model": "nobody"}, {"image": data, "face": 0}):
        with pytest.raises(gr.Error):
            photo_api.predict(**bad)


def test_curves_of_unknown_attributes_change_nothing(app: Path) -> None:
    assert photo.curve(event(model="tiny", attribute="Nose")) == gr.skip()
    assert photo.curve(event(model="tiny", attribute="all", at="x")).layout.title.text.startswith("Reliability")
    assert photo.curve(SimpleNamespace(_data=None)) == gr.skip()
