"""The second screen's other end: pictures of every kind in, numbers of the calibration file out."""

import base64
import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest
import torch
from evaluated import evaluate_prediction
from PIL import Image

from app import answers, api, photo, reports, uploads
from app.catalog import Catalog, Entry
from app.limits import Limits
from app.photo_forget import ENDED, Ledger
from app.runtime import Runtime, install
from jem_core.bundle import Bundle
from jem_core.calibration import Calibration, Row
from jem_core.data import avatars
from jem_core.data.dataset import Dataset
from jem_core.data.facts import DataFacts
from jem_core.typicality import Reading

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


def test_an_attribute_that_was_never_measured_has_no_plot(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = reports.calibration

    def lacking(entry: Entry) -> Calibration | None:
        found = read(entry)
        parts = {name: part for name, part in found.report["attributes"].items() if name != "Red"}
        return Calibration(found.report | {"attributes": parts} if entry.name in lack else found.report)

    monkeypatch.setattr(reports, "calibration", lacking)
    lack = {"tiny"}
    assert photo.figure_of("tiny", "Red", 0.5, "light") is None
    whole = photo.figure_of("tiny", "Bright", 0.5, "light")
    lack = {"tiny-supervised"}
    assert len(photo.figure_of("tiny", "Red", 0.5, "light").data) < len(whole.data)  # without the classifier's line


def test_a_picture_gives_rows_whose_numbers_stand_in_the_file(app: Path) -> None:
    answer, picture, figure = photo.show(None, Ledger(), event(order=1, data=encoded(red()), theme="dark"))
    assert answer["kind"] == "photo"
    assert picture.image.size == (60, 40)
    calibration = json.loads((app / "calibration.json").read_text())
    for row in answer["rows"]:
        bins = calibration["attributes"][row["name"]]["bins"]
        i = bins["edges"].index(row["from"])
        found = (row["to"], row["count"], row["rate"], row["low"], row["high"])
        assert found == (bins["edges"][i + 1], *(bins[k][i] for k in ("count", "positive_rate", "low", "high")))
        assert row["sentence"].startswith(f"The model says {answers.share(row['p'])}.")
        if row["enough"]:
            low, high = (f"{100 * bins[key][i]:.0f}" for key in ("low", "high"))
            said = f"Of {bins['count'][i]:,} test pictures with such an answer, "
            said += f"{100 * bins['positive_rate'][i]:.0f} % ({low} to {high}) really had it."
            assert row["sentence"].endswith(said)
        else:
            assert ("too few to say" if row["count"] else "nothing to compare with") in row["sentence"]
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
    answer, _, _ = photo.show(None, Ledger(), event(order=1, data=data))
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
    answer, picture, figure = photo.show(None, Ledger(), event(order=3, data=data))
    assert (answer["kind"], answer["order"]) == ("refused", 3)
    assert any(part in answer["message"] for part in said.split("|")), answer["message"]
    assert answer["message"].count(". ") <= 1
    assert picture == figure == gr.skip()


def test_wrong_wishes_get_a_sentence(app: Path) -> None:
    for wish in (
        {"model": "../secret"},
        {"box": [0, 0]},
        {"box": [0, 0, float("nan"), 3]},
        {"box": [0, 0, 10**400, 3]},
        {"model": ["tiny"]},
    ):
        answer, _, _ = photo.show(None, Ledger(), event(order=1, data=encoded(red()), **wish))
        assert answer["kind"] == "refused", wish
    assert photo.show(None, Ledger(), event(order=1))[0]["message"] == ENDED
    assert photo.show(None, Ledger(), event(example="../../etc/passwd"))[0]["kind"] == "refused"
    assert photo.show(None, Ledger(), SimpleNamespace(_data="text"))[0]["kind"] == "refused"


def test_the_box_by_hand_is_what_the_model_sees(app: Path) -> None:
    image = Image.new("RGB", (100, 60), "white")
    image.paste((255, 0, 0), (0, 0, 30, 30))
    picture = uploads.Picture(image)
    view = uploads.crop_for(picture, DRAWN, box=[0, 0, 30, 30])
    assert view.stored[:, 16, 16].tolist() == [255, 0, 0]
    middle = uploads.crop_for(picture, DRAWN)
    assert middle.box == (20, 0, 80, 60)


def test_photographs_are_aligned_and_no_face_is_said() -> None:
    portrait = uploads.from_example("astronaut")
    view = uploads.crop_for(portrait, CELEBA_LIKE)
    assert (view.face, view.lost, view.note) == (0, False, "")
    assert view.stored.shape == (3, 64, 64)
    with pytest.raises(ValueError, match="the picture has 1"):
        uploads.crop_for(portrait, CELEBA_LIKE, face=1)
    empty = uploads.crop_for(uploads.Picture(Image.new("RGB", (300, 200), (90, 140, 60))), CELEBA_LIKE)
    assert empty.lost
    assert empty.note.startswith("No face was found")
    assert uploads.crop_for(uploads.Picture(Image.new("RGB", (300, 200))), DRAWN).lost is False


def test_an_avatar_is_drawn_as_the_training_images_were() -> None:
    picture = uploads.from_avatar(5)
    view = uploads.crop_for(picture, DRAWN)
    assert np.array_equal(view.stored.numpy(), avatars.draw(avatars.sample_attributes(5), 5, 32))
    assert uploads.crop_for(picture, CELEBA_LIKE).lost is False  # a drawing is not searched for a face


def test_the_studio_begins_at_the_picture(app: Path) -> None:
    _, picture, _ = photo.show(None, Ledger(), event(order=1, data=encoded(red())))
    answer, start = photo.to_studio(picture, Ledger(), event(order=2, model="tiny", face=0, box=None))
    assert answer["kind"] == "studio"
    assert sorted(answer["with"] + answer["without"]) == sorted(current_names())
    assert start.shape == (1, 3, 32, 32)
    assert 0 <= start.min() <= start.max() <= 1
    assert photo.to_studio(None, Ledger(), event(order=2))[0]["kind"] == "refused"


def current_names() -> list[str]:
    return list(photo.current().catalog.entry("tiny").attributes)


def reading(percentile: float, beyond: bool, verdict: str) -> SimpleNamespace:
    return SimpleNamespace(reading=Reading(1.0, percentile, beyond, verdict))


SEEN = uploads.View(torch.zeros(3, 32, 32), (0, 0, 1, 1), None, False)
LOST = replace(SEEN, lost=True)
LESS = "Less typical than"


@pytest.mark.parametrize(
    ("found", "view", "verdict", "sentence"),
    [
        (reading(30, False, "inside"), SEEN, "inside", "Typical: more so than 70 % of test pictures."),
        (reading(97, False, "unusual"), SEEN, "unusual", f"{LESS} 97 % of test pictures: trust these numbers less."),
        (reading(99.7, False, "unlike"), SEEN, "unlike", f"{LESS} 99 % of test pictures: {answers.DO_NOT_TRUST}."),
        (reading(100, True, "unlike"), SEEN, "unlike", f"{LESS} every test picture: do not trust these numbers."),
        (SimpleNamespace(reading=None), SEEN, None, "This model cannot reliably tell unusual pictures apart."),
        (reading(30, False, "inside"), LOST, "unlike", "This model only knows faces: do not trust these numbers."),
    ],
)  # fmt: skip
def test_the_gate_in_words(found: SimpleNamespace, view: uploads.View, verdict: str, sentence: str) -> None:
    words = answers.gate_words(found, view)
    assert (words["verdict"], words["sentence"]) == (verdict, sentence)


def test_the_sentence() -> None:
    row = Row("Smiling", 0.8, 0.5, (0.77, 0.84), 412, 0.71, (0.67, 0.75))
    assert answers.sentence(row) == (
        "The model says 80 %. Of 412 test pictures with such an answer, 71 % (67 to 75) really had it."
    )
    few = Row("Bald", 0.9, 0.1, (0.85, 1.0), 1, 0.5, (0.3, 0.7))
    assert answers.sentence(few).endswith(
        "Only 1 test picture had such an answer: too few to say how many really have it."
    )
    none = Row("Bald", 0.996, 0.1, (0.85, 1.0), 0, None, (0.0, 1.0))
    assert answers.sentence(none).startswith("The model says more than 99 %. No test picture had such an answer")
    assert "has not been evaluated" in answers.sentence(Row("Bald", 0.002))


def test_an_avatar_brings_the_truth_along(app: Path) -> None:
    picture = uploads.from_avatar(5)
    truths = answers.truths(picture)
    assert truths == avatars.visible(avatars.sample_attributes(5))
    assert answers.row_facts(Row("Smiling", 0.8), truths["Smiling"])["truth"] is truths["Smiling"]
    assert "truth" not in answers.row_facts(Row("Smiling", 0.8))
    assert answers.truths(uploads.Picture(red())) == {}


def entry(name: str, distance: float | None, **data: object) -> SimpleNamespace:
    return SimpleNamespace(
        name=name, levels=distance is not None, data=DataFacts(name, name, **data), distance=distance
    )


@pytest.mark.parametrize(
    ("picture", "distances", "chosen"),
    [
        (uploads.Picture(red(), avatar=3), (1, 1, 1), "drawings"),
        (uploads.Picture(red(), faces=["a face"]), (1, 0.5, 0.5), "faces"),
        (uploads.Picture(red(), faces=["a face"]), (9, 0.5, 3), "drawings"),  # a drawn face
        (uploads.Picture(red(), faces=["a face"]), (9, 8, 7), "faces"),  # strange to all of them
        (uploads.Picture(red(), faces=[]), (3, 2, 0.9), "shoes"),
        (uploads.Picture(red(), faces=[]), (30, 20, 90), "drawings"),
        (uploads.Picture(red(), faces=[]), (0.5, 1, 3), "drawings"),  # typical of faces, and has none
        (uploads.Picture(red(), faces=[]), (None, None, None), "faces"),  # no gate at all: the first model
    ],
)
def test_the_picture_chooses_the_model(
    monkeypatch: pytest.MonkeyPatch, picture: uploads.Picture, distances: tuple, chosen: str
) -> None:
    known = {"faces": {"faces": True}, "drawings": {"drawn": True}, "shoes": {}}
    entries = [entry(name, d, **data) for (name, data), d in zip(known.items(), distances, strict=True)]
    monkeypatch.setattr(answers, "_candidates", lambda: entries)
    monkeypatch.setattr(answers, "current", lambda: SimpleNamespace(catalog=SimpleNamespace(attributes=lambda: known)))

    def read(picture: uploads.Picture, one: SimpleNamespace) -> Reading | None:
        verdict = "inside" if (one.distance or 9) < 2 else "unlike"
        return None if one.distance is None else Reading(one.distance, 50.0, False, verdict)

    monkeypatch.setattr(answers, "_reading", read)
    name, found = answers.choose_and_read(picture)
    assert name == answers.choose(picture) == chosen
    assert found is None or found.distance == next(one.distance for one in entries if one.name == name)


def test_what_the_choice_has_read_is_not_read_again(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Reading(1.5, 97.0, False, "unusual")
    monkeypatch.setattr(answers, "choose_and_read", lambda picture: ("tiny", found))
    monkeypatch.setattr("jem_core.prediction.typicality", lambda *_: pytest.fail("asked twice"))
    shown, _, _ = photo.show(None, Ledger(), event(order=1, data=encoded(red())))
    assert shown["gate"]["verdict"] == "unusual"


def test_the_endpoint_says_the_same(app: Path) -> None:
    data = encoded(red())
    answer = api.predict(data)
    shown, _, _ = photo.show(None, Ledger(), event(order=1, data=data))
    assert answer["rows"] == shown["rows"]
    assert set(answer) == {"model", "rows", "gate", "gate_auroc", "faces", "note"}
    assert answer["gate"].items() >= shown["gate"].items()  # the verdict and its words, and what was measured
    for bad in ({"image": "/etc/passwd"}, {"image": data, "model": "nobody"}, {"image": data, "face": 0}):
        with pytest.raises(gr.Error):
            api.predict(**bad)


def test_a_change_gives_variants_and_says_which_have_it(app: Path) -> None:
    _, picture, _ = photo.show(None, Ledger(), event(order=1, data=encoded(red())))
    asked = {"order": 2, "model": "tiny", "with": ["Red"], "without": ["Left"], "level": 1.0, "seed": 3}
    answer = photo.change(picture, Ledger(), event(**asked))
    assert (answer["kind"], answer["order"]) == ("edited", 2)
    assert len(answer["images"]) == len(answer["has"]) == photo.VARIANTS
    assert photo.change(picture, Ledger(), event(**asked))["images"] == answer["images"]
    for bad in (
        {"with": []} | {"without": []},
        {"with": ["Reed"]},
        {"level": 0},
        {"level": "x"},
        {"seed": -1},
        {"model": 3},
    ):
        assert photo.change(picture, Ledger(), event(**(asked | bad)))["kind"] == "refused", bad
    assert photo.change(None, Ledger(), event(**asked))["message"] == ENDED


@pytest.mark.parametrize(("p", "said"), [(0.004, "< 1 %"), (0.8, "80 %"), (0.9996, "> 99 %"), (1, "> 99 %")])
def test_the_curve_marks_the_picture_and_never_calls_it_certain(app: Path, p: float, said: str) -> None:
    layout = photo.curve(Ledger(), event(model="tiny", attribute="Red", at=p)).layout
    assert layout.shapes[0].x0 == p
    assert layout.annotations[0].text == f"this picture: {said}"


def test_curves_of_unknown_attributes_change_nothing(app: Path) -> None:
    assert photo.curve(Ledger(), event(model="tiny", attribute="Nose")) == gr.skip()
    assert len(photo.curve(Ledger(), event(model="tiny", attribute="all", at="x")).data) > 3
    assert photo.curve(Ledger(), SimpleNamespace(_data=None)) == gr.skip()
    asked = event(order=3, model="tiny", attribute="Red", at=0.8)
    assert photo.curve(Ledger(forgotten=4), asked) == gr.skip()  # it would mark a picture that is forgotten
