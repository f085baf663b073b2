"""The bundled models and pictures of every kind, by the function that the screen calls: answered, or greyed."""

import base64
from types import SimpleNamespace

import pictures
import pytest

from app import api, photo
from app.catalog import Catalog
from app.limits import Limits
from app.photo_forget import Ledger
from app.runtime import Runtime, install

MODELS = ("avatars", "celeba", "shoes")
STRANGERS = {"a landscape": pictures.landscape, "noise": pictures.noise}


@pytest.fixture(autouse=True)
def bundled() -> None:
    install(Runtime(Catalog([], device="cpu"), Limits()))


@pytest.fixture(scope="module")
def known() -> dict[str, bytes]:
    """By model, a picture that is for it."""
    return {
        "avatars": pictures.as_png(pictures.avatar()),
        "celeba": pictures.PORTRAIT.read_bytes(),
        "shoes": pictures.as_png(pictures.shoe()),
    }


def shown(data: bytes, **asked: object) -> dict:
    event = SimpleNamespace(_data={"order": 1, "data": base64.b64encode(data).decode(), **asked})
    answer, _, figure = photo.show(None, Ledger(), event)
    assert answer["kind"] == "photo", answer
    assert figure is not None
    return answer


@pytest.mark.parametrize("name", MODELS)
def test_a_picture_goes_to_its_model_and_is_answered(known: dict[str, bytes], name: str) -> None:
    answer = shown(known[name])
    assert (answer["model"], answer["gate"]["verdict"], answer["greyed"]) == (name, "inside", False)
    assert answer["gate"]["sentence"].startswith("Typical: more so than ")


@pytest.mark.parametrize("name", MODELS)
def test_a_picture_for_another_model_is_greyed(known: dict[str, bytes], name: str) -> None:
    for other in set(MODELS) - {name}:
        answer = shown(known[other], model=name)
        assert (answer["gate"]["verdict"], answer["greyed"]) == ("unlike", True), (name, other)


@pytest.mark.parametrize("name", [None, *MODELS])
@pytest.mark.parametrize("what", STRANGERS)
def test_what_no_model_knows_is_greyed(what: str, name: str | None) -> None:
    answer = shown(pictures.as_png(STRANGERS[what]()), model=name)
    assert (answer["gate"]["verdict"], answer["greyed"]) == ("unlike", True), answer["gate"]
    assert answer["gate"]["sentence"].endswith(": do not trust these numbers.")


@pytest.mark.parametrize(
    ("name", "box"),
    [("celeba", box) for box in pictures.BESIDE] + [(name, pictures.BESIDE[0]) for name in (None, "avatars", "shoes")],
)
def test_a_crop_beside_the_face_is_greyed(name: str | None, box: tuple) -> None:
    answer = shown(pictures.PORTRAIT.read_bytes(), model=name, box=list(box))
    assert (answer["gate"]["verdict"], answer["greyed"]) == ("unlike", True), answer["gate"]


def test_a_crop_around_the_face_is_answered() -> None:
    found = shown(pictures.PORTRAIT.read_bytes())
    by_hand = shown(pictures.PORTRAIT.read_bytes(), model="celeba", box=found["box"])
    assert not by_hand["greyed"]


def test_where_no_face_was_found_a_crop_by_hand_is_for_the_gate_to_judge(known: dict[str, bytes]) -> None:
    """The visitor may have shown the model a face that the detector missed."""
    assert shown(known["avatars"], model="celeba")["gate"]["sentence"].startswith("This model only knows faces")
    by_hand = shown(known["avatars"], model="celeba", box=[40, 40, 220, 220])
    assert by_hand["gate"]["sentence"].startswith("Less typical than")


@pytest.mark.parametrize("what", STRANGERS)
def test_a_program_hears_the_same_verdict(what: str) -> None:
    """A model of faces greys what has none, whatever its gate says of the middle."""
    data = pictures.as_png(STRANGERS[what]())
    answer = api.predict(base64.b64encode(data).decode(), "celeba")
    assert answer["gate"]["verdict"] == "unlike"
    assert answer["gate"]["sentence"] == shown(data, model="celeba")["gate"]["sentence"]
