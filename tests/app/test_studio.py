"""The handlers behind the first screen, called as Gradio calls them, with good and with hostile events."""

import base64
import io
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest
from PIL import Image

from app import api, recipe, studio
from app.settings import Settings
from train.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
VISITOR = SimpleNamespace(session_hash="visitor")
GOOD = {"order": 1, "run": "abc", "playing": True, "fresh": 1, "step": 0, "fps": 18, "action": "run"}
WISH = {"model": "tiny", "chains": 4, "speed": 0, "with": ["Red"], "steps": 4}


def event(**changes) -> gr.EventData:
    return gr.EventData(None, GOOD | {"settings": WISH} | changes)


@pytest.fixture(autouse=True)
def _empty_box(runtime):
    studio.goodbye(VISITOR)


def test_hello_tells_the_page_everything(runtime):
    hello = studio.hello()
    assert [model["name"] for model in hello["models"]] == ["tiny", "tiny-jem"]
    assert hello["device"] == "cpu"
    assert next(row for row in hello["table"] if row["key"] == "chains")["high"] == runtime.limits.chains


def test_run_steers_and_films():
    results = list(studio.run(None, None, event(), VISITOR))
    frame, chains = results[-1]
    assert (frame["status"], frame["step"]) == ("paused", 4)
    film = studio.film(chains, gr.EventData(None, {"format": "gif"}))
    assert film["kind"] == "film"
    assert Image.open(io.BytesIO(base64.b64decode(film["src"].split(",")[1]))).n_frames > 1


def test_steering_answers_with_the_badge_and_the_recipes():
    reply = studio.steer(event(settings=WISH | {"with": ["Red", "Striped"]}), VISITOR)
    assert reply["kind"] == "steered"
    assert reply["badge"]["novel"]
    assert "--with Red --with Striped" in reply["command"]
    assert reply["temperature"] == "5e-07"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"settings": WISH | {"with": ["Smilling"]}}, "There is no attribute 'Smilling'"),
        ({"settings": WISH | {"with": ["Red"], "without": ["Red"]}}, "both with and without"),
        ({"settings": WISH | {"chains": 10**9}}, "Chains is"),
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


@pytest.mark.parametrize("data", [None, [], "text", 3, {}])
def test_events_without_sense_are_refused(data):
    nonsense = gr.EventData(None, data)
    assert studio.steer(nonsense, VISITOR)["kind"] == "refused"
    assert studio.surprise(nonsense)["kind"] == "refused"
    assert studio.film(None, nonsense)["kind"] == "refused"
    assert next(studio.run(None, None, nonsense, VISITOR))[0]["status"] == "error"


def test_synthesize_answers_with_images_and_probabilities(runtime):
    answer = api.synthesize(["Red"], ["Left"], n=2, model="tiny", steps=3, seed=5)
    assert len(answer["images"]) == len(answer["probabilities"]) == 2
    picture = Image.open(io.BytesIO(base64.b64decode(answer["images"][0].split(",")[1])))
    assert picture.size == (32, 32)
    assert set(answer["probabilities"][0]) == set(runtime.catalog.bundle("tiny").names)
    assert answer == api.synthesize(["Red"], ["Left"], n=2, model="tiny", steps=3, seed=5)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"n": 1000}, "Chains is 1000"),
        ({"steps": 10**9}, "Steps is 1000000000; expected a whole number from 1 to 1000."),
        ({"steps": 0}, "Steps is 0"),
        ({"keep_best": 99}, "Keep best is 99"),
        ({"start": "photo"}, "Start is 'photo'"),
        ({"model": "/etc"}, "Model is '/etc'"),
        ({"guidance": float("nan")}, "Guidance is nan"),
        ({"wanted": ["Nobody"]}, "There is no attribute 'Nobody'"),
    ],
)
def test_synthesize_refuses_with_a_sentence(changes, sentence):
    with pytest.raises(gr.Error) as caught:
        api.synthesize(**{"wanted": ["Red"], "model": "tiny"} | changes)
    assert sentence in str(caught.value)


def test_the_recipes_make_the_same_images(runtime, tmp_path, monkeypatch, capsys):
    """The Python that the page shows runs, and the command line runs; both give the images that the API gives."""
    settings = Settings(
        model="tiny", chains=2, seed=5, wanted=("Red",), unwanted=("Left",), guidance=2.0, grad_clamp=0.0
    )
    source = str(runtime.catalog.bundle("tiny").directory)
    monkeypatch.chdir(tmp_path)
    exec(compile(recipe.as_python(settings, source, 3), "recipe", "exec"), {})
    command = shlex.split(recipe.as_command(settings, source, 3))
    assert command[:4] == ["python", "-m", "train", "sample"]
    assert main([*command[3:], "--scale", "1"]) == 0
    grid = Image.open("grid.png")
    first = Image.open("face-0.png")
    assert grid.crop((2, 2, 34, 34)).tobytes() == first.tobytes()
    assert "Red, not Left" in capsys.readouterr().out


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
