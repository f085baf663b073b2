"""python -m train steer: a row for each toggle, arrays that agree with it, and sentences for what cannot be."""

import numpy as np
import pytest
from PIL import Image

from jem_core.bundle import Bundle
from jem_core.condition import Condition
from jem_core.walks import arrive
from tests.conftest import TINY_NAMES
from train.__main__ import main

WALK = "Red+Bright; -Bright; +Framed; ~Red"


@pytest.fixture(params=["tiny_bundle", "tiny_levels"])
def bundle(request: pytest.FixtureRequest) -> Bundle:
    return request.getfixturevalue(request.param)


def steer(bundle: Bundle, folder, name: str = "walk", *words: str) -> dict:
    paths = ["--out", str(folder / f"{name}.png"), "--npz", str(folder / f"{name}.npz")]
    assert main(["steer", str(bundle.directory), "--walk", WALK, "-n", "3", "--steps", "4", *paths, *words]) == 0
    with np.load(folder / f"{name}.npz", allow_pickle=False) as arrays:
        return dict(arrays)


def test_a_row_for_each_toggle(bundle, tmp_path, capsys):
    found = steer(bundle, tmp_path)
    assert found["images"].shape == (4, 3, 3, 32, 32)
    assert found["images"].dtype == np.uint8
    assert found["conditions"].dtype == np.int8
    rows = [dict(zip(TINY_NAMES, row, strict=True)) for row in found["conditions"].tolist()]
    asked = [{name: value for name, value in row.items() if value != -1} for row in rows]
    assert asked == [
        {"Red": 1, "Bright": 1},
        {"Red": 1, "Bright": 0},
        {"Red": 1, "Bright": 0, "Framed": 1},
        {"Bright": 0, "Framed": 1},
    ]
    sheet = Image.open(tmp_path / "walk.png")
    assert sheet.size[1] == 4 * 34 + 2
    last = np.asarray(sheet)[-34:-2, -34:-2].transpose(2, 0, 1)
    assert np.array_equal(last, found["images"][-1, -1])
    assert "Diverged: 0 of 12" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["walk.npz", "walk.png"]


@pytest.mark.usefixtures("one_thread")
def test_it_is_what_steering_does(bundle, tmp_path):
    """The same toggles by hand, bit for bit; and another seed is another walk."""
    found = steer(bundle, tmp_path, "walk", "--seed", "3")
    chains = bundle.chains(Condition.from_lists(bundle.names, ["Red", "Bright"]), 3, seed=3, steps=4)
    for row, values in enumerate(found["conditions"].tolist()):
        if row:
            chains.steer(Condition(bundle.names, tuple(values)))
        arrive(chains)
        pictures = (chains.images().clamp(0, 1) * 255).round().byte().numpy()
        assert np.array_equal(pictures, found["images"][row])
    again, other = (steer(bundle, tmp_path, "more", "--seed", seed)["images"] for seed in ("3", "4"))
    assert np.array_equal(again, found["images"])
    assert not np.array_equal(other, found["images"])


def test_a_longer_walk_changes_nothing_that_came_before(tiny_levels, tmp_path):
    short = tmp_path / "short.npz"
    words = ["-n", "3", "--steps", "4", "--out", str(tmp_path / "short.png"), "--npz", str(short)]
    assert main(["steer", str(tiny_levels.directory), "--walk", "Red+Bright; -Bright", *words]) == 0
    with np.load(short, allow_pickle=False) as arrays:
        assert np.array_equal(arrays["images"], steer(tiny_levels, tmp_path)["images"][:2])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--walk", "Red; +Redd"], "There is no attribute 'Redd'; did you mean Red"),
        (["--walk", "Red", "-n", "0"], "n is 0; expected a whole number of at least 1"),
        (["--walk", "Red", "--lift", "0"], "lift is 0.0; expected a number from 0.02 to 40"),
        (["--walk", "Red", "--lift", "inf"], "lift is inf"),
        (["--walk", "Red", "--noise-std", "0.1"], "noise_std means nothing to a model with noise levels"),
    ],
)
def test_what_cannot_be_is_said_and_leaves_nothing(tiny_levels, tmp_path, monkeypatch, capsys, words, sentence):
    monkeypatch.chdir(tmp_path)
    assert main(["steer", str(tiny_levels.directory), *words]) == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
