"""Pictures of a run: tiles, thinning, animations."""

import io
from itertools import pairwise

import numpy as np
import pytest
import torch
from PIL import Image

from app.film import MOST_BYTES, PROBE, SIZES, Film, animate, columns, jpeg, png, tile


def test_tiles_stand_in_reading_order():
    x = torch.arange(5).float().view(5, 1, 1, 1).expand(5, 3, 8, 8) / 255
    sheet = tile(x)
    assert sheet.shape == (16, 24, 3)
    assert [int(sheet[8 * (i // 3), 8 * (i % 3), 0]) for i in range(6)] == [0, 1, 2, 3, 4, 0]
    assert [columns(n) for n in (1, 2, 4, 5, 9, 16, 64)] == [1, 2, 2, 3, 3, 4, 8]


def test_a_chain_that_is_not_finite_still_has_a_picture():
    assert tile(torch.full((1, 3, 4, 4), float("nan"))).max() == 0


def test_png_is_exact_and_jpeg_is_close():
    sheet = np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8)
    smooth = np.ascontiguousarray(np.broadcast_to(np.linspace(0, 255, 64).astype(np.uint8)[:, None, None], (64, 64, 3)))
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(png(sheet)))), sheet)
    assert np.abs(np.asarray(Image.open(io.BytesIO(jpeg(smooth)))).astype(int) - smooth).max() < 12


def test_a_long_film_is_thinned_and_keeps_its_span():
    film = Film(most=10)
    for step in range(200):
        film.add(step, "", [b""])
    steps = [frame[0] for frame in film.frames]
    assert len(steps) <= 11
    assert steps[0] == 0
    assert steps[-1] > 150
    gaps = {b - a for a, b in pairwise(steps)}
    assert len(gaps) == 1


@pytest.mark.parametrize("kind", ["gif", "webp"])
@pytest.mark.parametrize("lanes", [1, 2])
def test_animations_open_and_have_their_frames(kind, lanes):
    film = Film()
    for step in range(6):
        sheet = np.full((64, 64, 3), 40 * step, np.uint8)
        film.add(step, "a caption that is much too long for so small a picture " * 3, [jpeg(sheet)] * lanes)
    picture = Image.open(io.BytesIO(film.animation(kind)))
    assert picture.format == kind.upper()
    assert picture.n_frames == 6
    assert picture.width >= 256


@pytest.mark.parametrize("lanes", [1, 2])
def test_neighbouring_pictures_do_not_bleed(lanes):
    """Black beside white: up to their common edge each is itself, as far as a GIF can say it."""
    x = torch.tensor([0.0, 1.0, 1.0, 0.0]).view(4, 1, 1, 1).expand(4, 3, 32, 32)
    film = Film(across=columns(4))
    for step in range(2):
        film.add(step, "", [jpeg(tile(x))] * lanes)
    still = np.asarray(Image.open(io.BytesIO(film.animation("gif"))).convert("L")).astype(int)
    side = 512 // (2 * lanes)
    rows, edge = slice(0, side - 1), side
    assert still[rows, edge - 3 : edge].max() < 12
    assert still[rows, edge : edge + 3].min() > 243
    assert still[side - 3 : side, : side - 1].max() < 12


@pytest.mark.parametrize("kind", ["gif", "webp"])
def test_an_animation_can_be_sent_to_a_friend(kind, monkeypatch):
    """Noise is the worst case: it cannot be made small, so there is less of it. All in small, for it takes long."""
    monkeypatch.setattr("app.film.MOST_BYTES", MOST_BYTES // 40)
    monkeypatch.setattr("app.film.SIZES", tuple((count // 3, side // 4) for count, side in SIZES))
    film, rng = Film(), np.random.default_rng(0)
    for step in range(40):
        film.add(step, "noise", [jpeg(rng.integers(0, 256, (64, 64, 3), np.uint8))])
    sent = film.animation(kind)
    assert 20_000 < len(sent) <= MOST_BYTES // 40
    assert Image.open(io.BytesIO(sent)).width < SIZES[0][1] // 4


def test_a_path_goes_there_and_back():
    pictures = [np.full((64, 64, 3), 60 * i, np.uint8) for i in range(4)]
    moving = Image.open(io.BytesIO(animate(pictures, between=2)))
    assert moving.n_frames == 2 * (3 * 3 + 1) - 2
    brightness = []
    for i in range(moving.n_frames):
        moving.seek(i)
        brightness.append(np.asarray(moving.convert("L")).mean())
    assert np.argmax(brightness) == 9
    assert brightness[:10] == sorted(brightness[:10])


def test_an_animation_needs_a_run_and_a_known_kind():
    with pytest.raises(ValueError, match="nothing to animate"):
        Film().animation("gif")
    with pytest.raises(ValueError, match="choose gif or webp"):
        Film().animation("mp4")


@pytest.mark.parametrize("kind", ["gif", "webp"])
def test_an_animation_asks_before_every_picture_whether_to_go_on(kind):
    """And not only before it begins: a GIF of noise takes twenty seconds."""
    film, asked = Film(), []
    for step in range(20):
        film.add(step, "darker", [jpeg(np.full((64, 64, 3), 250 - 10 * step, np.uint8))])
    film.animation(kind, lambda: asked.append(1))
    assert len(asked) >= 20 + (PROBE - 1) + (20 - 1)  # stills, a few of them as a probe, then all
    left = [None] * (20 + PROBE + 5)
    with pytest.raises(IndexError):
        film.animation(kind, left.pop)
