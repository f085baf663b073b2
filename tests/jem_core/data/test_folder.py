"""Own pictures: everything people put into a folder and a table, right or wrong."""

import unicodedata
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jem_core.data import folder
from jem_core.data.dataset import Dataset, write_dataset

COLOUR = (200, 100, 50)


def save(path: Path, colour: tuple[int, int, int] = COLOUR, size: tuple[int, int] = (40, 40)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path, quality=95)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Twelve PNGs a00 to a11 in shades of red, and a table with two attributes."""
    root = tmp_path / "pictures"
    for i in range(12):
        save(root / f"a{i:02}.png", (20 * i, 0, 0))
    lines = [f"a{i:02}.png,{i % 2},{'yes' if i % 3 == 0 else 'no'}" for i in range(12)]
    (root / "labels.csv").write_text("file,Odd,Third\n" + "\n".join(lines) + "\n")
    return root


def prepare(root: Path, out: Path, **options: object) -> Dataset:
    return write_dataset(out, folder.source(root, 16, workers=1, **options))


def refused(root: Path, tmp_path: Path, message: str, **options: object) -> None:
    """The folder is refused with this sentence, and nothing but the folder itself is left."""
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ValueError, match=message):
        prepare(root, tmp_path / "out", **options)
    assert sorted(tmp_path.iterdir()) == before


def test_a_plain_folder_works(root: Path, tmp_path: Path) -> None:
    dataset = prepare(root, tmp_path / "out")
    assert dataset.names == ("Odd", "Third")
    assert dataset.labels.tolist() == [[i % 2, int(i % 3 == 0)] for i in range(12)]
    assert [int(image[0, 0, 0]) for image in dataset.images] == [20 * i for i in range(12)]
    assert np.bincount(dataset.split).tolist() == [10, 1, 1]
    assert folder.source(root, 16).notes == ()


@pytest.mark.parametrize(
    ("cell", "label"),
    [
        ("1", 1),
        ("0", 0),
        ("yes", 1),
        ("NO", 0),
        ("True", 1),
        ("false", 0),
        ("", -1),
        (" 1 ", 1),
        ("1.0", 1),
        ("nan", -1),
    ],
)
def test_values_as_people_write_them(root: Path, tmp_path: Path, cell: str, label: int) -> None:
    (root / "labels.csv").write_text(f"file,A,B\na00.png,{cell},1\na01.png,1,0\na02.png,0,1\n")
    assert prepare(root, tmp_path / "out").labels[0].tolist() == [label, 1]


def test_a_value_that_is_neither_is_named(root: Path, tmp_path: Path) -> None:
    text = (root / "labels.csv").read_text()
    (root / "labels.csv").write_text(text.replace("a04.png,0", "a04.png,maybe"))
    refused(root, tmp_path, r"labels\.csv, row 6 \(a04\.png\): Odd is 'maybe'; write 0 or 1")


def test_a_file_that_is_not_there_is_named(root: Path, tmp_path: Path) -> None:
    with (root / "labels.csv").open("a") as file:
        file.write("ghost.png,1,0\n")
    refused(root, tmp_path, r"labels\.csv, row 14: there is no picture 'ghost\.png'")


def test_no_picture_outside_the_folder_is_read(root: Path, tmp_path: Path) -> None:
    save(tmp_path / "secret.png")
    for name in ("../secret.png", str(tmp_path / "secret.png")):
        (root / "labels.csv").write_text(f"file,A\n{name},1\n")
        refused(root, tmp_path, r"row 2: there is no picture .*secret\.png")


def test_a_broken_picture_is_named_with_its_row(root: Path, tmp_path: Path) -> None:
    picture = tmp_path / "whole.jpg"
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(picture)
    whole = picture.read_bytes()
    with (root / "labels.csv").open("a") as file:
        file.write("broken.jpg,1,0\n")
    for broken in (whole[: len(whole) // 2], b"no picture", b""):
        (root / "broken.jpg").write_bytes(broken)
        refused(root, tmp_path, r"labels\.csv, row 14: .*broken\.jpg: ")


def test_a_broken_picture_is_named_from_another_process_too(root: Path, tmp_path: Path) -> None:
    (root / "a03.png").write_bytes((root / "a03.png").read_bytes()[:60])
    with pytest.raises(ValueError, match=r"labels\.csv, row 5: .*a03\.png: "):
        write_dataset(tmp_path / "out", folder.source(root, 16, workers=2))
    assert not (tmp_path / "out").exists()


def test_repeated_rows_count_once_and_contradictions_are_named(root: Path, tmp_path: Path) -> None:
    text = (root / "labels.csv").read_text()
    (root / "labels.csv").write_text(text + "a05.png,1,no\n")
    source = folder.source(root, 16, workers=1)
    assert source.n == 12
    assert source.notes == ("1 repeated rows of labels.csv were counted once.",)
    (root / "labels.csv").write_text(text + "a05.png,0,no\n")
    refused(root, tmp_path, r"rows 7 and 14 give a05\.png different labels")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("file,A\n", "header but no rows"),
        ("file\na00.png\n", "single column"),
        ("file,A,A\na00.png,1,0\n", "'A' appears twice"),
        ("file,A,\na00.png,1,0\n", "column 3 of the header has no name"),
        ("file,A\na00.png,1\na01.png\n", r"row 3 \(a01\.png\): 1 cells, but the header has 2"),
        ("file,A\n,1\n", "row 2: the file name is empty"),
        ('file,A\na00.png,"1\na01.png,0\n', "row 3 is not valid CSV"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(root: Path, tmp_path: Path, text: str, message: str) -> None:
    (root / "labels.csv").write_text(text)
    refused(root, tmp_path, message)


def test_a_table_in_another_encoding_is_refused(root: Path, tmp_path: Path) -> None:
    (root / "labels.csv").write_bytes("file,Größe\na00.png,1\n".encode("latin-1"))
    refused(root, tmp_path, "not UTF-8")


def test_the_table_must_be_named_when_there_are_several(root: Path, tmp_path: Path) -> None:
    (root / "labels.csv").rename(root / "first.csv")
    (root / "second.csv").write_text("file,New\na00.png,1\na01.png,0\n")
    refused(root, tmp_path, "2 CSV files; name the table with --csv")
    source = folder.source(root, 16, table=root / "second.csv", workers=1)
    assert source.names == ("New",)
    assert source.notes == (f"10 pictures of {root} are not named in second.csv and were left out.",)
    (root / "first.csv").unlink()
    (root / "second.csv").unlink()
    refused(root, tmp_path, "no CSV file")
    refused(tmp_path / "nowhere", tmp_path, "There is no directory")


def test_spreadsheets_and_other_systems(root: Path, tmp_path: Path) -> None:
    """A byte order mark, semicolons, CRLF, folders, backslashes, other case, no ending: all are what people have."""
    save(root / "sub" / "B.JPG")
    text = "\ufeffBild;A\r\na00.png;1\r\nsub\\b.jpg;0\r\n./a01.PNG;1\r\na02;0\r\n"
    (root / "labels.csv").write_text(text, encoding="utf-8", newline="")
    dataset = prepare(root, tmp_path / "out")
    assert dataset.names == ("A",)
    assert dataset.labels[:, 0].tolist() == [1, 0, 1, 0]
    assert [int(image[0, 0, 0]) for image in dataset.images] == [0, 200, 20, 40]


def test_a_bare_name_may_live_in_a_subfolder_unless_two_do(root: Path, tmp_path: Path) -> None:
    save(root / "images" / "x.png", (9, 9, 9))
    (root / "labels.csv").write_text("file,A\nx.png,1\na00.png,0\n")
    assert int(prepare(root, tmp_path / "out").images[0, 0, 0, 0]) == 9
    save(root / "others" / "x.png")
    with pytest.raises(ValueError, match=r"'x\.png' may mean images/x\.png and others/x\.png; write the path"):
        folder.source(root, 16)
    (root / "labels.csv").write_text("file,A\nothers/x.png,1\nimages/x.png,0\n")
    assert folder.source(root, 16).n == 2


def test_names_that_are_not_ascii(root: Path, tmp_path: Path) -> None:
    """Accents may be stored composed or decomposed; both are the same name to people."""
    save(root / unicodedata.normalize("NFD", "Zoë.png"), (7, 7, 7))
    save(root / "猫 写真.png", (8, 8, 8))
    table = f"file,Größe,猫\n{unicodedata.normalize('NFC', 'Zoë.png')},1,0\n猫 写真.png,0,1\n"
    (root / "labels.csv").write_text(table, encoding="utf-8")
    dataset = prepare(root, tmp_path / "out")
    assert dataset.names == ("Größe", "猫")
    assert [int(image[0, 0, 0]) for image in dataset.images] == [7, 8]


def test_pictures_of_every_kind_become_rgb(root: Path, tmp_path: Path) -> None:
    Image.new("L", (40, 40), 90).save(root / "grey.png")
    Image.new("CMYK", (40, 40), (0, 255, 255, 0)).save(root / "cmyk.jpg", quality=95)
    Image.new("RGBA", (40, 40), (0, 0, 255, 0)).save(root / "clear.png")
    Image.new("RGBA", (40, 40), (0, 0, 255, 255)).save(root / "solid.png")
    Image.fromarray(np.full((40, 40), 0x4000, np.uint16)).save(root / "deep.png")
    Image.new("P", (40, 40), 0).save(root / "palette.png")
    Image.new("RGB", (40, 40), COLOUR).save(root / "web.webp", lossless=True)
    files = ["grey.png", "cmyk.jpg", "clear.png", "solid.png", "deep.png", "palette.png", "web.webp"]
    (root / "labels.csv").write_text("file,A\n" + "".join(f"{file},{i % 2}\n" for i, file in enumerate(files)))
    dataset = prepare(root, tmp_path / "out")
    centres = dataset.images[:, :, 8, 8].astype(int)
    expected = [(90, 90, 90), (255, 0, 0), (255, 255, 255), (0, 0, 255), (64, 64, 64), (0, 0, 0), COLOUR]
    assert np.abs(centres - np.array(expected)).max() <= 3, centres.tolist()


def test_crops(root: Path) -> None:
    picture = np.zeros((40, 80, 3), np.uint8)
    picture[:, 20:60] = 255
    Image.fromarray(picture).save(root / "wide.png")
    (root / "labels.csv").write_text("file,A\nwide.png,1\na00.png,0\n")
    images = {crop: next(iter(folder.source(root, 16, crop=crop, workers=1).rows))[0] for crop in ("centre", "stretch")}
    assert images["centre"].min() == 255
    assert images["stretch"][:, 8, 0].max() == 0
    assert images["stretch"][:, 8, 8].min() == 255


def test_columns_can_be_chosen_and_filtered(root: Path) -> None:
    (root / "labels.csv").write_text("file,A,Comment,B\na00.png,1,nice,0\na01.png,0,bad,1\na02.png,0,,1\n")
    source = folder.source(root, 16, columns=folder.Columns(["B", "A"]), workers=1)
    assert source.names == ("B", "A")
    assert [label.tolist() for _, label in source.rows] == [[0, 1], [1, 0], [1, 0]]
    assert folder.source(root, 16, columns=folder.Columns(["B", "A"], 0.5)).names == ("B",)
    with pytest.raises(ValueError, match=r"no column 'C'.*A, Comment, B"):
        folder.source(root, 16, columns=folder.Columns(["C"]))


def test_attributes_that_teach_nothing_are_mentioned(root: Path) -> None:
    (root / "labels.csv").write_text("file,A,B\na00.png,1,1\na01.png,,0\na02.png,1,0\n")
    notes = folder.source(root, 16).notes
    assert any(note.startswith("A has the same value") for note in notes)
    assert not any(note.startswith("B ") for note in notes)
