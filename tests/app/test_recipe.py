"""The recipes that the page shows make the very pictures on screen, or say that they cannot."""

import shlex

import numpy as np
import pytest
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
    made = recipe(settings, chains.walk, source)
    monkeypatch.chdir(tmp_path)
    exec(compile(made.python, "recipe", "exec"), {})
    for i, image in enumerate(pictures(chains, runtime)):
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
    assert made.note.endswith("The Python takes that into account; the command line does not.")


def test_strengths(runtime, tmp_path, monkeypatch):
    settings = LEVELS.but(strengths=(("Red", 3.0),))
    made = make(settings, run(settings)[1], runtime, tmp_path, monkeypatch)
    assert made.note == "The command line does not take strengths; the Python does."


def test_what_cannot_be_made_again_says_so(runtime):
    settings = LEVELS.but(required=("Left",), locked=(1,))
    chains = run(settings, run(LEVELS)[1])[1]
    made = recipe(settings, chains.walk, "tiny-levels")
    assert "cannot be made again, because some pictures were locked" in made.note
    assert "jem_core.sample(" in made.python


def test_the_best_of_many(runtime):
    _, chains = run(LEVELS, order=Order("best"))
    made = recipe(LEVELS, chains.walk, "tiny-levels")
    assert "keep_best=3" in made.python
    assert "--keep-best 3" in made.command


def test_before_there_are_any_pictures(runtime):
    assert "jem_core.sample(" in recipe(LEVELS, None, "tiny-levels").python
