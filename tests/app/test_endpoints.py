"""Both documented endpoints, called as a program would: with gradio_client, over HTTP."""

import base64
import io
from collections.abc import Iterator

import numpy as np
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError
from PIL import Image

from app import shell
from jem_core.bundle import Bundle


@pytest.fixture(scope="module")
def client(tiny_bundle: Bundle) -> Iterator[Client]:
    demo = shell.build(shell.options(["--model", str(tiny_bundle.directory)]))
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, server_name="127.0.0.1", **shell.launch_options())
    yield Client(url, verbose=False)
    demo.close()


@pytest.fixture(scope="module")
def picture() -> str:
    target = io.BytesIO()
    Image.new("RGB", (48, 40), (200, 60, 40)).save(target, "PNG")
    return base64.b64encode(target.getvalue()).decode()


def opened(uri: str) -> Image.Image:
    kind, data = uri.split(",")
    assert kind == "data:image/png;base64"
    return Image.open(io.BytesIO(base64.b64decode(data)))


def test_synthesize_gives_images_and_probabilities(client: Client, tiny_bundle: Bundle) -> None:
    answer = client.predict(["Red"], ["Left"], n=3, model="tiny", steps=4, seed=7, api_name="/synthesize")
    assert answer["condition"] == "Red, not Left"
    assert len(answer["images"]) == len(answer["probabilities"]) == 3
    assert all(opened(uri).size == (32, 32) for uri in answer["images"])
    for row in answer["probabilities"]:
        assert set(row) == set(tiny_bundle.names)
        assert all(0 <= value <= 1 for value in row.values())


def test_the_same_seed_gives_the_same_images(client: Client) -> None:
    answers = [client.predict([], n=2, model="tiny", steps=3, seed=5, api_name="/synthesize") for _ in range(2)]
    assert answers[0]["images"] == answers[1]["images"]


def test_predict_gives_a_probability_for_every_attribute(client: Client, tiny_bundle: Bundle, picture: str) -> None:
    answer = client.predict(picture, model="tiny", api_name="/predict")
    assert {row["name"] for row in answer["rows"]} == set(tiny_bundle.names)
    assert all(0 <= row["p"] <= 1 for row in answer["rows"])


def test_variety_says_how_far_apart_chains_begin(client: Client) -> None:
    def spread(variety: float) -> float:
        wish = {"n": 8, "model": "tiny", "steps": 1, "variety": variety}
        pictures = [opened(uri) for uri in client.predict([], **wish, api_name="/synthesize")["images"]]
        return float(np.stack([np.asarray(picture, dtype=float) for picture in pictures]).std(axis=0).mean())

    assert spread(0.3) < 0.6 * spread(1.0)


@pytest.mark.parametrize(
    ("arguments", "endpoint", "sentence"),
    [
        ((["Reed"],), "/synthesize", "Red"),
        (([], [], 0), "/synthesize", "expected a whole number from 1"),
        (("bm90IGEgcGljdHVyZQ==",), "/predict", "JPEG, PNG"),
    ],
)
def test_bad_calls_get_a_sentence(client: Client, arguments: tuple, endpoint: str, sentence: str) -> None:
    with pytest.raises(AppError, match=sentence):
        client.predict(*arguments, model="tiny", api_name=endpoint)


def test_the_page_of_the_interface_shows_both_with_their_types(client: Client) -> None:
    endpoints = client.view_api(print_info=False, return_format="dict")["named_endpoints"]
    assert {"/synthesize", "/predict"} <= set(endpoints)
    for name in ("/synthesize", "/predict"):
        for parameter in endpoints[name]["parameters"]:
            assert parameter["python_type"]["type"] not in ("", "Any"), (name, parameter["parameter_name"])
