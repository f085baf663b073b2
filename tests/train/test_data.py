"""The command that prepares data, as a user runs it."""

from pathlib import Path

import pytest
from PIL import Image

from jem_core.data.dataset import Dataset
from jem_core.data.held_out import NAMED_LISTS
from train.__main__ import main


def prepare(*arguments: object) -> int:
    return main(["data", *(str(argument) for argument in arguments)])


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    root = tmp_path / "pictures"
    root.mkdir()
    for i in range(20):
        Image.new("RGB", (30, 20), (10 * i, 50, 90)).save(root / f"{i}.png")
    lines = [f"{i}.png,{i % 2},{'' if i == 3 else i % 4 // 3}" for i in range(20)]
    (root / "table.csv").write_text("name,Warm,Big\n" + "\n".join(lines))
    return root


def test_avatars_with_held_out_pairs_and_a_contact_sheet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = tmp_path / "sheet.png"
    arguments = ["avatars", "--n", 60, "--size", 32, "--workers", 1, "--held-out", "avatars-novel"]
    assert prepare(*arguments, "--out", tmp_path / "set", "--preview", sheet) == 0
    dataset = Dataset.open(tmp_path / "set")
    assert len(dataset) == 60
    assert dataset.info["held_out"] == [str(pair) for pair in NAMED_LISTS["avatars-novel"]]
    assert dataset.held_out.any()
    printed = capsys.readouterr()
    assert "Wearing_Hat + Sunglasses" in printed.out
    assert "60 images of 32 px, 21 attributes: train 48, val 6, test 6." in printed.out
    assert "60/60" in printed.err  # the progress bar
    smiling = next(line for line in printed.out.splitlines() if line.startswith("Smiling "))
    assert f"{(dataset.labels[:, dataset.names.index('Smiling')] == 1).mean():.1%}" in smiling
    with Image.open(sheet) as image:
        assert image.width > 8 * 128
        assert image.height > 8 * 128
        assert len(set(image.resize((50, 50)).get_flattened_data())) > 100  # pictures, not a blank page


def test_the_same_seed_gives_the_same_files(tmp_path: Path) -> None:
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        assert (
            prepare("avatars", "--n", 20, "--size", 16, "--seed", seed, "--workers", 1, "--out", tmp_path / name) == 0
        )
    files = {name: {p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} for name in "abc"}
    assert files["a"] == files["b"]
    assert files["a"]["images.npy"] != files["c"]["images.npy"]


def test_a_folder_of_pictures(pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["folder", "--root", pictures, "--size", 16, "--workers", 1, "--held-out", "Warm + Big"]
    assert prepare(*arguments, "--out", tmp_path / "set", "--val", 0.2, "--test", 0.1) == 0
    printed = capsys.readouterr().out
    assert "train 14, val 4, test 2" in printed
    assert "Big           21.1%     5.0%" in printed  # 4 of 19 known, 1 of 20 unknown
    assert "held out in all 4 of 20 images" in printed


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        (["--held-out", "Warm + Hat"], "'Hat', which is not an attribute here"),
        (["--held-out", "celeba"], "no list 'celeba'"),
        (["--size", "4"], "--size 4 is out of range"),
        (["--workers", "0"], "--workers 0"),
        (["--csv", "nowhere.csv"], "no table nowhere.csv"),
        (["--preview", "no/such/place.png"], "no directory no/such"),
        (["--val", "0.9"], "below 1"),
    ],
)
def test_mistakes_are_said_in_a_sentence_and_leave_nothing(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], extra: list[str], sentence: str
) -> None:
    assert prepare("folder", "--root", pictures, "--out", tmp_path / "set", "--workers", 1, *extra) == 2
    assert sentence in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pictures"]


def test_an_older_set_stays_unless_overwriting_is_asked(pictures: Path, tmp_path: Path) -> None:
    arguments = ["folder", "--root", pictures, "--size", 16, "--workers", 1, "--out", tmp_path / "set"]
    assert prepare(*arguments) == 0
    assert prepare(*arguments, "--seed", 1) == 2
    assert Dataset.open(tmp_path / "set").info["options"]["seed"] == 0
    assert prepare(*arguments, "--seed", 1, "--overwrite") == 0
    assert Dataset.open(tmp_path / "set").info["options"]["seed"] == 1


def test_avatars_too_few_to_split(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert prepare("avatars", "-n", 5, "--out", tmp_path / "set") == 2
    assert "ask for 10 or more" in capsys.readouterr().err
