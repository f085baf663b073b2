"""python -m train sample: the grid, the animation, and sentences for what cannot be."""

import pytest
from PIL import Image

from train.__main__ import main


@pytest.fixture
def model(tiny_bundle) -> str:
    return str(tiny_bundle.directory)


def test_the_grid_and_the_animation(model, tmp_path, capsys):
    out, gif = tmp_path / "grid.png", tmp_path / "run.gif"
    words = ["sample", model, "--with", "Red", "--without", "Left", "-n", "4", "--steps", "3", "--scale", "1"]
    assert main([*words, "--out", str(out), "--gif", str(gif)]) == 0
    grid, film = Image.open(out), Image.open(gif)
    assert grid.size == (70, 70)  # two by two of 32 pixels, with gaps of 2
    assert film.n_frames == 4  # the start and three steps
    film.seek(3)
    last = film.convert("RGB")
    assert sum(abs(a - b) for a, b in zip(last.getpixel((20, 20)), grid.getpixel((20, 20)), strict=True)) < 60
    assert "Red, not Left: " in capsys.readouterr().out


def test_the_same_seed_gives_the_same_file(model, tmp_path):
    paths = [tmp_path / name for name in ("a.png", "b.png", "c.png")]
    for path, seed in zip(paths, (1, 1, 2), strict=True):
        assert main(["sample", model, "-n", "2", "--steps", "2", "--seed", str(seed), "--out", str(path)]) == 0
    first, again, other = (path.read_bytes() for path in paths)
    assert first == again != other


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--with", "Redd"], "There is no attribute 'Redd'; did you mean Red"),
        (["--with", "Red", "--without", "Red"], "both with and without"),
        (["--gif", "run.mp4"], "must end in .gif or .webp"),
        (["--gif", "run.gif", "--keep-best", "2"], "leave --keep-best out"),
        (["--noise-std", "none"], "--noise-std is none"),
        (["-n", "0"], "n is 0"),
    ],
)
def test_what_cannot_be_is_said(model, tmp_path, monkeypatch, capsys, words, sentence):
    monkeypatch.chdir(tmp_path)
    assert main(["sample", model, *words]) == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
