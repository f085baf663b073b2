"""The handlers behind the first screen, called as Gradio calls them, with good and with hostile events."""

import base64
import io
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest
import torch
from PIL import Image

from app import studio
from app.paths import PICTURES, blend
from jem_core.condition import Condition

ROOT = Path(__file__).resolve().parents[2]
VISITOR = SimpleNamespace(session_hash="visitor")
GOOD = {"order": 1, "run": "abc", "playing": True, "fresh": 1, "fps": 18, "action": "run"}
CHOSEN = {"model": "tiny-levels", "chains": 4, "speed": 0, "with": ["Red"]}


def event(**changes) -> gr.EventData:
    return gr.EventData(None, GOOD | {"settings": CHOSEN} | changes)


def picture(uri: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1])))


@pytest.fixture(autouse=True)
def _empty_box(runtime):
    studio.goodbye(VISITOR)


def ran():
    frame, chains = list(studio.run(None, None, event(), VISITOR))[-1]
    assert frame["status"] == "settled"
    return frame, chains


def test_hello_tells_the_page_everything(runtime):
    hello = studio.hello()
    assert [model["name"] for model in hello["models"]] == ["tiny", "tiny-jem", "tiny-levels"]
    assert hello["device"] == "cpu"
    chains = next(row for row in hello["table"] if row["key"] == "chains")
    assert (chains["high"], chains["help"]) == (runtime.limits.chains, "At most 64 on this server")


def test_a_run_can_be_filmed():
    _, chains = ran()
    film = studio.film(chains, gr.EventData(None, {"format": "gif"}))
    assert film["kind"] == "film"
    assert picture(film["src"]).n_frames > 1


def test_steering_answers_with_the_badge_of_what_was_asked():
    reply = studio.steer(event(settings=CHOSEN | {"with": ["Red", "Striped"]}), VISITOR)
    assert reply["kind"] == "steered"
    assert reply["badge"]["novel"]
    assert reply["asked"] == {"model": "tiny-levels", "with": ["Red", "Striped"], "without": []}


def test_a_path_between_two_conditions_and_between_two_pictures():
    frame, chains = ran()
    ends = {"a": {"with": ["Red"], "without": []}, "b": {"with": ["Left"], "without": ["Red"]}}
    reply = studio.path(chains, event(**ends))
    assert reply["kind"] == "path"
    assert (reply["from"], reply["to"]) == ("red", "left; not red")
    strip = np.asarray(picture(reply["strip"]).convert("RGB"))
    assert strip.shape == (32, 32 * PICTURES, 3)
    assert picture(reply["animation"]).n_frames > 2  # equal ones in a row are one
    grid = np.asarray(picture(frame["lanes"][0]["src"]).convert("RGB"))
    tiles = {end: {"with": ["Red"], "without": [], "state": frame["state"], "place": i} for i, end in enumerate("ab")}
    strip = np.asarray(picture(studio.path(chains, event(**tiles))["strip"]).convert("RGB"))
    assert np.array_equal(strip[:, :32], grid[:32, :32])
    assert np.array_equal(strip[:, -32:], grid[:32, 32:])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"a": None}, "Choose both A and B first."),
        ({"a": {"with": "Red"}}, "not a list"),
        ({"a": {"with": ["Nobody"]}}, "There is no attribute 'Nobody'"),
        ({"a": {"with": ["Red"], "state": 99, "place": 0}}, "no longer kept"),
        ({"a": {"with": ["Red"], "state": 1, "place": 99}}, "another model"),
        ({"a": {"with": ["Red"], "state": "1", "place": []}}, "no longer kept"),
        ({"settings": CHOSEN | {"model": "tiny"}}, "needs a model with noise levels"),
    ],
)
def test_a_path_that_cannot_be_is_refused(changes, sentence):
    _, chains = ran()
    reply = studio.path(chains, event(**{"a": {"with": ["Red"]}, "b": {"with": []}} | changes))
    assert (reply["kind"], reply["about"]) == ("refused", "path")
    assert sentence in reply["message"]


def test_strengths_go_over_from_one_end_to_the_other():
    names = ("only_a", "only_b", "both", "opposed")
    a = Condition.from_lists(names, ["only_a", "both", "opposed"])
    b = Condition.from_lists(names, ["only_b", "both"], ["opposed"])
    condition, strengths = blend(a, b, torch.linspace(0, 1, 5))
    assert strengths[:, 0].tolist() == [1, 0.75, 0.5, 0.25, 0]
    assert strengths[:, 1].tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert strengths[:, 2].tolist() == [1] * 5
    assert strengths[:, 3].tolist() == [1, 0.5, 0, 0.5, 1]
    assert condition[:, 3].tolist() == [1, 1, 1, 0, 0]


@pytest.mark.parametrize("model", ["tiny", "tiny-levels"])
def test_one_step_is_taken_apart_and_the_chains_stay(model):
    settings = CHOSEN | {"model": model}
    _, chains = list(studio.run(None, None, event(settings=settings), VISITOR))[-1]
    before = chains.digest()
    reply = studio.under_the_hood(chains, event(settings=settings, place=2))
    assert [one["title"][:2] for one in reply["steps"]] == ["1.", "2."]
    shown = [picture(one["src"]) for half in reply["steps"] for one in half["images"]]
    assert len(shown) == (4 if model == "tiny-levels" else 3)
    assert {one.size for one in shown} == {(32, 32)}
    assert chains.digest() == before
    assert studio.under_the_hood(None, event())["kind"] == "refused"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"settings": CHOSEN | {"with": ["Smilling"]}}, "There is no attribute 'Smilling'"),
        ({"settings": CHOSEN | {"with": ["Red"], "without": ["Red"]}}, "both required and excluded"),
        ({"settings": CHOSEN | {"chains": 10**9}}, "Pictures is"),
        ({"settings": None}, "The settings are a NoneType"),
        ({"order": -1}, "order is -1"),
        ({"order": "1"}, "order is '1'"),
        ({"fresh": 1e300}, "fresh is 1e+300"),
        ({"run": "../x"}, "run is '../x'"),
        ({"run": "a" * 10_000}, "run is"),
        ({"fps": None}, "fps is None"),
    ],
)
def test_bad_events_get_a_sentence_and_leave_the_box_alone(changes, sentence):
    reply = studio.steer(event(**changes), VISITOR)
    assert reply["kind"] == "refused"
    assert sentence in reply["message"]
    assert len(reply["message"]) < 300
    assert studio.Mailbox(VISITOR.session_hash).read() is None
    frame, kept = next(studio.run(None, None, event(**changes), VISITOR))
    assert frame["status"] == "error"
    assert kept == gr.skip()


@pytest.mark.parametrize("changes", [{"action": "dance"}, {"place": -1}, {"state": "x"}, {"place": 1e99}])
def test_odd_orders_are_refused(changes):
    assert next(studio.run(None, None, event(**changes), VISITOR))[0]["status"] == "error"


@pytest.mark.parametrize("data", [None, [], "text", 3, {}])
def test_events_without_sense_are_refused(data):
    nonsense = gr.EventData(None, data)
    assert studio.steer(nonsense, VISITOR)["kind"] == "refused"
    assert studio.surprise(nonsense)["kind"] == "refused"
    for handler in (studio.film, studio.recipes, studio.path, studio.under_the_hood):
        assert handler(None, nonsense)["kind"] == "refused"
    assert next(studio.run(None, None, nonsense, VISITOR))[0]["status"] == "error"


def test_import_app_and_app_py_live_side_by_side():
    """`import app` is the package; app.py as a module offers `demo`, for Gradio's reload and for Spaces."""
    code = (
        "import app, runpy; assert hasattr(app, '__path__'), app;"
        "space = runpy.run_path('app.py', run_name='reloaded'); print(type(space['demo']).__name__)"
    )
    model = studio.current().catalog.bundle("tiny").directory
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "GIBBS_JEM_MODEL": str(model), "HOME": "/tmp", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.stdout.strip().endswith("Blocks"), result.stderr
