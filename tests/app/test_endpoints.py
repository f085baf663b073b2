"""All documented endpoints, called as a program would: with gradio_client, over HTTP."""

import base64
import io
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from PIL import Image

from app import shell
from app.parcels import parcels
from jem_core.bundle import Bundle

ENDPOINTS = ("/synthesize", "/steer", "/predict", "/edit")


@pytest.fixture(scope="module")
def url(tiny_bundle: Bundle, tiny_levels: Bundle) -> Iterator[str]:
    models = [word for bundle in (tiny_bundle, tiny_levels) for word in ("--model", str(bundle.directory))]
    demo = shell.build(shell.options(models))
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, server_name="127.0.0.1", **shell.launch_options())
    yield url
    demo.close()


@pytest.fixture(scope="module")
def client(url: str) -> Client:
    return Client(url, verbose=False)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pictures") / "me.png"
    noise = np.random.default_rng(0).integers(0, 256, (200, 180, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    return path


@pytest.fixture(scope="module")
def picture(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


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


@pytest.mark.parametrize("model", ["tiny", "tiny-levels"])
def test_the_same_seed_gives_the_same_images(client: Client, model: str) -> None:
    answers = [client.predict([], n=2, model=model, steps=3, seed=5, api_name="/synthesize") for _ in range(2)]
    assert answers[0]["images"] == answers[1]["images"]


def test_variety_says_how_far_apart_chains_begin(client: Client) -> None:
    def spread(variety: float) -> float:
        asked = {"n": 8, "model": "tiny", "steps": 1, "variety": variety}
        pictures = [opened(uri) for uri in client.predict([], **asked, api_name="/synthesize")["images"]]
        return float(np.stack([np.asarray(picture, dtype=float) for picture in pictures]).std(axis=0).mean())

    assert spread(0.3) < 0.6 * spread(1.0)


@pytest.mark.parametrize("model", ["tiny", "tiny-levels"])
def test_steer_takes_the_same_chains_along(client: Client, model: str) -> None:
    answer = client.predict("Red; -Red; +Bright+Left", n=2, model=model, steps=3, api_name="/steer")
    assert answer["conditions"] == ["Red", "not Red", "Bright and Left, not Red"]
    assert [len(row) for row in answer["rows"]] == [2, 2, 2]
    assert answer["rows"][0] != answer["rows"][2]
    assert all(opened(uri).size == (32, 32) for row in answer["rows"] for uri in row)


def test_predict_takes_a_file_base64_and_a_data_uri(client: Client, tiny_bundle: Bundle, file: Path, picture: str):
    given = (handle_file(file), picture, f"data:image/png;base64,{picture}")
    answers = [client.predict(image, model="tiny", api_name="/predict") for image in given]
    assert answers[0] == answers[1] == answers[2]
    assert {row["name"] for row in answers[0]["rows"]} == set(tiny_bundle.names)
    assert all(0 <= row["p"] <= 1 for row in answers[0]["rows"])
    assert len(parcels) == 0  # nothing waits for anybody


@pytest.mark.parametrize("model", ["tiny", "tiny-levels"])
def test_edit_gives_variants(client: Client, file: Path, model: str) -> None:
    asked = {"required": ["Red"], "excluded": ["Bright"], "variants": 3, "level": 1.5, "model": model}
    answer = client.predict(handle_file(file), **asked, api_name="/edit")
    assert len(answer["images"]) == len(answer["probabilities"]) == 3
    assert all(opened(uri).size == (32, 32) for uri in [answer["before"], *answer["images"]])


def test_an_attribute_is_removed_without_adding_any(client: Client, file: Path) -> None:
    answer = client.predict(handle_file(file), excluded=["Red"], variants=1, model="tiny-levels", api_name="/edit")
    assert len(answer["images"]) == 1


@pytest.mark.parametrize(
    ("endpoint", "arguments", "sentence"),
    [
        ("/synthesize", {"required": ["Reed"]}, "^required: .*Red"),
        ("/synthesize", {"required": [], "excluded": ["Lefft"]}, "^excluded: .*Left"),
        ("/synthesize", {"required": ["Red"], "excluded": ["Red"]}, "^excluded: Red is both required and excluded"),
        ("/synthesize", {"required": [], "n": 0}, "^n is 0; expected a whole number from 1 to 64"),
        ("/synthesize", {"required": [], "n": 2.5}, "^n is 2.5;"),
        ("/synthesize", {"required": [], "guidance": 99}, "^guidance is 99; expected a number from 0 to 50"),
        (
            "/synthesize",
            {"required": [], "steps": 10_000_000},
            "^steps is 10000000; expected a whole number from 1 to 1000",
        ),
        ("/synthesize", {"required": [], "start": "photo"}, "^start is 'photo'; choose one of"),
        ("/synthesize", {"required": [], "start": "images"}, "^start is 'images'; to begin at a picture"),
        ("/synthesize", {"required": [], "start": "noise"}, "^start is 'noise'"),
        ("/synthesize", {"required": [], "sampler": ["resampling"]}, "^sampler is list; expected one of resampling"),
        ("/synthesize", {"required": [], "sampler": "x" * 9000}, r"^sampler is 'x{1,56}\.\.\.; expected one of"),
        ("/synthesize", {"required": [], "variety": "1"}, "^variety is '1'; expected a number from 0 to 2"),
        ("/synthesize", {"required": [], "keep_best": 99}, "^keep_best is 99;"),
        ("/synthesize", {"required": [], "model": "nobody"}, "^model is 'nobody'; choose one of tiny"),
        ("/synthesize", {"required": [], "seed": -1}, "^seed is -1;"),
        ("/steer", {"walk": "Red; +Bluue"}, "^walk: .*Bluue"),
        ("/steer", {"walk": ";" * 50}, "^walk is ';{50}'; expected a text of at most 20 parts and 2,000 letters"),
        ("/steer", {"walk": "Red+" * 999}, r"^walk is '(Red\+){14}\.\.\.; expected a text"),
        ("/steer", {"walk": "Red", "lift": 2.0}, "^lift means nothing"),
        ("/predict", {"image": "bm90IGEgcGljdHVyZQ=="}, "^image: Unsupported file. Use JPEG, PNG or WebP."),
        ("/predict", {"image": "not base64"}, "^image: The picture is incomplete"),
        ("/predict", {"image": "/etc/hostname"}, "^image: "),
        ("/edit", {"image": "x"}, "^required: Choose an attribute to change first."),
        ("/edit", {"image": "x", "required": [], "excluded": []}, "^required: Choose an attribute to change first."),
        ("/edit", {"image": "x", "required": [], "variants": 9}, "^variants is 9; expected a whole number from 1 to 8"),
        ("/edit", {"image": "x", "required": [], "level": 0}, "^level is 0; expected a number from 0.1 to 10"),
        ("/edit", {"image": "x", "required": [], "anchor": 2}, "^anchor is 2;"),
    ],
)
def test_bad_values_are_named_as_the_caller_wrote_them(client: Client, endpoint: str, arguments: dict, sentence: str):
    model = {} if "model" in arguments else {"model": "tiny"}
    with pytest.raises(AppError) as error:
        client.predict(**arguments, **model, api_name=endpoint)
    assert re.search(sentence, str(error.value)), error.value


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/me.png", "https://example.org/me.png"])
def test_an_address_is_not_opened(client: Client, address: str) -> None:
    with pytest.raises(Exception, match=r"No file and no address|400"):
        client.predict(handle_file(address), model="tiny", api_name="/predict")


def test_another_file_is_not_taken(client: Client, tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_text("not a picture")
    with pytest.raises(Exception, match=r"415|Unsupported"):
        client.predict(handle_file(tmp_path / "secret.png"), model="tiny", api_name="/predict")
    assert len(parcels) == 0


def test_every_parameter_says_its_type_range_and_default(client: Client) -> None:
    endpoints = client.view_api(print_info=False, return_format="dict")["named_endpoints"]
    assert set(endpoints) == set(ENDPOINTS)
    shown = client.view_api(print_info=False, return_format="str")
    for name in ENDPOINTS:
        assert endpoints[name]["description"]
        assert endpoints[name]["returns"][0]["python_type"]["description"] in shown
        for parameter in endpoints[name]["parameters"]:
            said = parameter["python_type"]["description"]
            assert parameter["label"] == parameter["parameter_name"]
            assert parameter["python_type"]["type"] not in ("", "Any"), (name, parameter["parameter_name"])
            assert said.endswith(".")
            assert said in shown
            number = parameter["python_type"]["type"].startswith(("int", "float"))
            assert not number or re.search(r"from \S+ to \S+|1 is the largest", said), (name, said)
    given = {parameter["parameter_name"]: parameter["example_input"] for parameter in endpoints["/edit"]["parameters"]}
    assert given["required"] == ["Red"]  # snippets of the API page name an attribute that the first model knows
    assert "Weight on log p(y_c | x); 1: as in the paper; from 0 to 50; the default is the model's own." in shown
