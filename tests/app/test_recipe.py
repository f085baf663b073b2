"""The recipes that the page shows make the very pictures on screen, or say that they cannot."""

import shlex

import numpy as np
import pytest
import torch
from PIL import Image
from runs import LEVELS, PAPER, pictures, run

from app.live import Order
from app.recipe import recipe
from jem_core.grids import to_image
from train.__main__ import main

pytestmark = pytest.mark.usefixtures("one_thread")


def make(settings, chains, runtime, tmp_path, monkeypatch):
    """The recipe; its Python was run, and wrote what is on screen."""
    source = str(runtime.catalog.bundle(settings.model).directory)
    made = recipe(settings, chains, source)
    monkeypatch.chdir(tmp_path)
    exec(compile(made.python, "recipe", "exec"), {})
    for i, image in enumerate(pictures(chains, runtime, settings.view == "heading")):
        assert Image.open(f"picture-{i}.png").tobytes() == to_image(image).tobytes()
    return made


def last_row(path: str, n: int, size: int = 32) -> np.ndarray:
    """The pictures of a grid's last row."""
    grid = np.asarray(Image.open(path).convert("RGB"))
    return grid[-size - 2 : -2, -n * (size + 2) :]


@pytest.mark.parametrize("settings", [PAPER, LEVELS], ids=["paper", "levels"])
def test_fresh_pictures(runtime, tmp_path, monkeypatch, settings):
    settings = settings.but(seed=5, excluded=("Left",), own=(("guidance", 2.0), ("variety", 0.7)))
    made = make(settings, run(settings)[1], runtime, tmp_path, monkeypatch)
    command = shlex.split(made.command)
    assert command[:4] == ["python", "-m", "train", "sample"]
    assert main([*command[3:], "--scale", "1"]) == 0
    assert Image.open("grid.png").crop((2, 2, 34, 34)).tobytes() == Image.open("picture-0.png").tobytes()
    assert made.note == ""


@pytest.mark.parametrize("settings", [PAPER, LEVELS], ids=["paper", "levels"])
def test_a_walk(runtime, tmp_path, monkeypatch, settings):
    chains = run(settings)[1]
    settings = settings.but(required=("Left",), excluded=("Red",))
    made = make(settings, run(settings, chains)[1], runtime, tmp_path, monkeypatch)
    command = shlex.split(made.command)
    assert command[:4] == ["python", "-m", "train", "steer"]
    assert main(command[3:]) == 0
    first = np.asarray(Image.open("picture-0.png"))
    row = last_row("walk.png", settings.chains)
    assert any(np.array_equal(row[:, x : x + 32], first) for x in range(4))


def test_a_walk_that_did_not_wait(runtime, tmp_path, monkeypatch):
    chains = run(LEVELS.but(pause=2))[1]
    settings = LEVELS.but(required=("Left",))
    made = make(settings, run(settings, chains)[1], runtime, tmp_path, monkeypatch)
    assert "steps = [2, None]" in made.python
    assert made.note == (
        "Some changes came before the pictures were done. The Python repeats that; the command line does not."
    )


@pytest.mark.parametrize("view", ["heading", "chain"])
def test_pictures_on_their_way(runtime, tmp_path, monkeypatch, view):
    settings = LEVELS.but(pause=2, view=view)
    made = make(settings, run(settings)[1], runtime, tmp_path, monkeypatch)
    assert made.note.startswith("The pictures are not done yet. The Python stops where they are")


def test_strengths(runtime, tmp_path, monkeypatch):
    settings = LEVELS.but(strengths=(("Red", 3.0),))
    chains = run(settings)[1]
    made = make(settings, chains, runtime, tmp_path, monkeypatch)
    assert made.note == "The command line does not take strengths; the Python does."
    settings = settings.but(required=("Red", "Left"))
    made = make(settings, run(settings, chains)[1], runtime, tmp_path, monkeypatch)
    assert "chains.steer(" in made.python
    assert made.note == "The command line does not take strengths; the Python does."


@pytest.mark.parametrize(
    ("compare", "title"), [("samplers", "Marginalizing"), ("models", "tiny-levels (noise levels)")]
)
def test_of_two_columns_the_first(runtime, tmp_path, monkeypatch, compare, title):
    settings = LEVELS.but(compare=compare, own=(("sampler", "resampling"),))
    made = make(settings, run(settings)[1], runtime, tmp_path, monkeypatch)
    assert made.note == f"This makes the first column alone: {title}."


def test_settings_that_changed_after_the_pictures_had_come(runtime, tmp_path, monkeypatch):
    chains = run(LEVELS)[1]
    made = make(LEVELS.but(own=(("lift", 9.0),)), chains, runtime, tmp_path, monkeypatch)
    assert made.note == "", "what only a change asks for was not felt yet"
    chains = run(LEVELS.but(required=("Left",)), chains)[1]
    made = recipe(LEVELS.but(required=("Left",), own=(("lift", 9.0),)), chains, "tiny-levels")
    assert "cannot be made again, because settings changed on the way" in made.note
    assert recipe(LEVELS.but(required=("Left",), seed=9), chains, "tiny-levels").note


def test_what_cannot_be_made_again_says_so(runtime):
    settings = LEVELS.but(required=("Left",), locked=(1,))
    chains = run(settings, run(LEVELS)[1])[1]
    made = recipe(settings, chains, "tiny-levels")
    assert "cannot be made again, because some pictures were locked" in made.note
    assert "jem_core.sample(" in made.python


def test_the_best_of_many(runtime, tmp_path, monkeypatch):
    chains = run(LEVELS, order=Order("best"))[1]
    made = make(LEVELS, chains, runtime, tmp_path, monkeypatch)
    assert "keep_best=3" in made.python
    assert "--keep-best 3" in made.command
    settings = LEVELS.but(required=("Left",))
    made = recipe(settings, run(settings, chains)[1], "tiny-levels")
    assert "cannot be made again, because they grew out of the best of many" in made.note


def test_the_best_of_many_from_a_photo(runtime):
    settings = LEVELS.but(own=(("start", "photo"),))
    chains = run(settings, order=Order("best"), photo=torch.rand(1, 3, 32, 32))[1]
    assert "because they started from your photo" in recipe(settings, chains, "tiny-levels").note


def test_before_there_are_any_pictures(runtime):
    assert "jem_core.sample(" in recipe(LEVELS, None, "tiny-levels").python
