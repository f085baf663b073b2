"""UT Zappos50K in a made folder of the published layout, with missing values."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jem_core.data import utzappos
from jem_core.data.dataset import write_dataset

HEADER = "CID,Category,SubCategory,HeelHeight,Insole,Closure,Gender,Material,ToeStyle"
ROWS = (  # twenty shoes: numbers 3 and 4 miss a value, 19 is the only sandal, 5 and 6 carry two values at once
    [f"10{i:02}-{i},Shoes,Oxfords,,,Lace up,Men,Leather," for i in range(3)]
    + ["1003-3,Shoes,Oxfords,Flat,,Lace up,,Leather,Round Toe", "1004-4,Shoes,Oxfords,,,,Men,Leather,"]
    + [
        "1005-5,Shoes,Heels,,,Slip-On;Buckle,Women;Girls,Leather;Suede,",
        "1006-6,Shoes,Heels,,,Slip-On,Women,Suede;Leather,",
    ]
    + [f"10{i:02}-{i},Boots,Mid-Calf,High,Padded,Slip-On,Women,Suede,Snip" for i in range(7, 19)]
    + ["1019-19,Sandals,Mid-Calf,,,Slip-On,Women,Suede,"]
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "zappos"
    (root / "ut-zap50k-data").mkdir(parents=True)
    (root / "ut-zap50k-data" / "meta-data.csv").write_text("\n".join([HEADER, *ROWS]) + "\n")
    for i, row in enumerate(ROWS):
        number, category, kind = row.split(",")[:3]
        folder = root / "ut-zap50k-images-square" / category / kind / "Dr%2E Brand%2E"
        folder.mkdir(parents=True, exist_ok=True)
        shade = 10 * i + 20
        Image.new("RGB", (136, 136), (shade, shade, shade)).save(folder / f"{number.replace('-', '.')}.jpg")
    return root


def test_rows_with_missing_values_are_dropped_as_in_the_paper(root: Path, tmp_path: Path) -> None:
    source = utzappos.source(root, 16, workers=1)
    dataset = write_dataset(tmp_path / "out", source)
    kept = [i for i in range(20) if i not in (3, 4)]
    assert len(dataset) == 18
    assert [round((int(image.mean()) - 20) / 10) for image in dataset.images] == kept  # each row its own picture
    assert dataset.names == (
        "Category_Boots",
        "Category_Shoes",
        "SubCategory_Heels",
        "SubCategory_Mid-Calf",
        "SubCategory_Oxfords",
        "Closure_Lace_up",
        "Closure_Slip-On",
        "Gender_Men",
        "Gender_Women",
        "Material_Leather",
        "Material_Suede",
    )  # Sandals, Buckle and Girls are below 10 %; HeelHeight, Insole and ToeStyle are never used
    assert not (dataset.labels < 0).any()
    assert source.notes == ("2 of 20 rows have missing values and were dropped.",)
    assert np.bincount(dataset.split).tolist() == [15, 1, 2]


def test_one_hot_columns_carry_every_value_of_a_cell(root: Path) -> None:
    ids, names, labels = utzappos.read_table(root / "ut-zap50k-data" / "meta-data.csv")
    assert len(ids) == 20
    table = {name: labels[:, i] for i, name in enumerate(names)}
    both = ids.index("1005-5")
    ones = {name for name in names if table[name][both] == 1}
    assert ones == {
        "Category_Shoes",
        "SubCategory_Heels",
        "Closure_Slip-On",
        "Closure_Buckle",
        "Gender_Women",
        "Gender_Girls",
        "Material_Leather",
        "Material_Suede",
    }
    assert not any(name.startswith(("HeelHeight", "Insole", "ToeStyle")) for name in names)


def test_missing_values_can_be_kept_as_unknown(root: Path, tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "out", utzappos.source(root, 16, missing="keep", workers=1))
    assert len(dataset) == 20
    unknown = {(int(i), dataset.names[k]) for i, k in np.argwhere(dataset.labels < 0)}
    gender = {(3, name) for name in dataset.names if name.startswith("Gender_")}
    closure = {(4, name) for name in dataset.names if name.startswith("Closure_")}
    assert unknown == gender | closure
    assert dataset.labels[3, dataset.names.index("Category_Shoes")] == 1
    with pytest.raises(ValueError, match="missing is 'guess'; choose drop or keep"):
        utzappos.source(root, 16, missing="guess")


def test_the_filter_is_ten_percent_of_the_rows_left(root: Path) -> None:
    names = utzappos.source(root, 16, least=0.05, workers=1).names
    assert {"Category_Sandals", "Closure_Buckle", "Gender_Girls"} <= set(names)
    with pytest.raises(ValueError, match="at least 95%"):
        utzappos.source(root, 16, least=0.95)


def test_what_is_missing_or_broken_is_named(root: Path, tmp_path: Path) -> None:
    picture = next(root.rglob("1007.7.jpg"))
    whole = picture.read_bytes()
    picture.write_bytes(whole[:-300])
    with pytest.raises(ValueError, match=r"1007\.7\.jpg"):
        write_dataset(tmp_path / "out", utzappos.source(root, 16, workers=1))
    assert not (tmp_path / "out").exists()
    picture.unlink()
    with pytest.raises(ValueError, match="no picture for the ids 1007-7"):
        utzappos.source(root, 16)
    table = root / "ut-zap50k-data" / "meta-data.csv"
    table.write_text(HEADER + "\n")
    with pytest.raises(ValueError, match="no rows"):
        utzappos.source(root, 16)
    table.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="needs CID"):
        utzappos.source(root, 16)
    with pytest.raises(ValueError, match=r"holds neither meta-data\.csv"):
        utzappos.source(tmp_path, 16)
