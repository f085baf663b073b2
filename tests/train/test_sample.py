"""python -m train sample: the grid, the animation, and sentences for what cannot be."""

import argparse

import pytest
from PIL import Image

from jem_core.condition import Condition
from jem_core.settings import TABLE, Setting, kind_of
from train.__main__ import main
from train.options import add_settings, given_settings, option


@pytest.fixture(params=["tiny_bundle", "tiny_levels"])
def model(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param).directory)


def test_the_grid_and_the_animation(model, tmp_path, capsys):
    out, gif = tmp_path / "grid.png", tmp_path / "run.gif"
    words = ["sample", model, "--with", "Red", "--without", "Left", "-n", "4", "--steps", "5", "--scale", "1"]
    assert main([*words, "--out", str(out), "--gif", str(gif)]) == 0
    grid, film = Image.open(out), Image.open(gif)
    assert grid.size == (70, 70)  # two by two of 32 pixels, with gaps of 2
    assert film.n_frames == 6  # the start and five steps
    film.seek(5)
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
        (["--with", "Red", "--without", "Red"], "both required and excluded"),
        (["--gif", "run.mp4"], "must end in .gif or .webp"),
        (["--gif", "run.gif", "--keep-best", "2"], "leave --keep-best out"),
        (["--guidance", "none"], "guidance is 'none'; expected a number"),
        (["--steps", "2.5"], "steps is '2.5'; expected a whole number"),
        (["--steps", "-1"], "steps is -1; expected a whole number from 0"),
        (["--variety", "nan"], "variety is nan; expected a number from 0 to 2"),
        (["-n", "0"], "-n is 0 and --keep-best 1; expected whole numbers of at least 1"),
        (["--keep-best", "0"], "--keep-best 0; expected whole numbers of at least 1"),
    ],
)
def test_what_cannot_be_is_said(model, tmp_path, monkeypatch, capsys, words, sentence):
    monkeypatch.chdir(tmp_path)
    assert main(["sample", model, *words]) == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "words", "sentence"),
    [
        ("tiny_bundle", ["--noise-std", "none"], "noise_std is 'none'; expected a number"),
        (
            "tiny_bundle",
            ["--lift", "2"],
            "lift means nothing to a model with no noise levels; its settings are sampler",
        ),
        ("tiny_bundle", ["--start", "noise"], "start is 'noise', which a model with no noise levels does not have"),
        ("tiny_levels", ["--grad-coef", "1"], "grad_coef means nothing to a model with noise levels"),
        ("tiny_levels", ["--start-level", "0"], "start_level is 0.0; expected a number from 0.02 to 40"),
        ("tiny_levels", ["--start-level", "inf"], "start_level is inf"),
        ("tiny_levels", ["--start", "uniform"], "choose one of conditional, informed, noise, images"),
    ],
)
def test_a_setting_of_the_other_kind_of_model_is_said(request, tmp_path, monkeypatch, capsys, kind, words, sentence):
    monkeypatch.chdir(tmp_path)
    assert main(["sample", str(request.getfixturevalue(kind).directory), *words]) == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def words_for(setting: Setting) -> tuple[str, object]:
    """A value as it is typed, and what it means."""
    if setting.kind == "choice":
        return ("informed",) * 2 if setting.key == "start" else (list(setting.choices)[-1],) * 2
    middle = (setting.low + setting.high) / 2
    return (str(int(middle)), int(middle)) if setting.kind == "whole" else (f"{middle}", middle)


@pytest.mark.parametrize("setting", TABLE, ids=[setting.key for setting in TABLE])
def test_every_setting_is_an_option_that_reaches_its_models(setting, tiny_bundle, tiny_levels):
    parser = argparse.ArgumentParser()
    add_settings(parser)
    word, value = words_for(setting)
    given = given_settings(parser.parse_args([option(setting.key), word]))
    assert given == {setting.key: value}
    assert given_settings(parser.parse_args([])) == {}
    for bundle in (tiny_bundle, tiny_levels):
        if setting.applies(kind_of(bundle.levels)):
            assert bundle.chains(Condition.free(bundle.names), 1, **given).settings[setting.key] == value
        else:
            with pytest.raises(ValueError, match=f"{setting.key} means nothing"):
                bundle.chains(Condition.free(bundle.names), 1, **given)


def test_the_filter_keeps_the_surest(model, tmp_path):
    path = tmp_path / "best.png"
    assert (
        main(["sample", model, "--with", "Red", "-n", "2", "--keep-best", "3", "--steps", "2", "--out", str(path)]) == 0
    )
    assert Image.open(path).size[0] > 2 * 32
