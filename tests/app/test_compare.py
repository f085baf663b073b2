"""The third screen's figures are those of the evaluation files, cell by cell."""

import json
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest
from evaluated import PAIRS, evaluate_prediction

from app import compare, explain, tables
from app.catalog import Catalog
from app.limits import Limits
from app.reports import families, look
from app.runtime import Runtime, current, install
from jem_core.bundle import Bundle
from jem_core.data.dataset import Dataset


@pytest.fixture(scope="module")
def folder(tiny_bundle: Bundle, tiny_dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluated")
    evaluate_prediction(tiny_bundle, tiny_dataset, folder / "tiny", "gibbs-jem", pairs=True)
    evaluate_prediction(tiny_bundle, tiny_dataset, folder / "tiny-supervised", "supervised")
    return folder


@pytest.fixture
def app(folder: Path, tmp_path: Path) -> Path:
    sources = [str(folder / "tiny"), str(folder / "tiny-supervised")]
    install(Runtime(Catalog(sources, bundled=tmp_path, device="cpu"), Limits()))
    return folder


def opened(**wish: object) -> tuple:
    return compare.opened(SimpleNamespace(_data={"order": 1, **wish}))


def value_at(folder: Path, source: str) -> float:
    """The figure that a cell says it was read from."""
    file, path = source.split("#")
    root = tables.PAPER if file == "paper.json" else folder / file
    return look(json.loads(root.read_text()), path)


def test_every_cell_stands_in_a_file(app: Path) -> None:
    page = opened()[0]
    cells = [cell for row in page["prediction"]["rows"] for cell in row["ours"].values()]
    assert len(cells) == 2 * 2 * len(tables.MEASURES)
    for cell in cells:
        assert cell["text"] == f"{100 * value_at(app, cell['from']):.1f} %"
        low = value_at(app, cell["from"].replace(".value", ".low"))
        assert cell["interval"].startswith(f"{100 * low:.1f} % to ")


def test_the_papers_figures_stand_in_its_file_and_are_marked(app: Path) -> None:
    page = opened(family="paper-celeba")[0]
    assert page["prediction"]["ours"] == []
    cells = [cell for row in page["prediction"]["rows"] for cell in row["paper"].values() if cell]
    assert len(cells) == 3 * (5 + 4)
    for cell in cells:
        assert cell["from"].startswith("paper.json#")
        assert cell["text"] == f"{value_at(app, cell['from']):g} %"
    assert "own figures" in page["prediction"]["paper_title"]
    assert "half-open" in page["prediction"]["note"]
    gibbs = next(row for row in page["prediction"]["rows"] if row["key"] == "accuracy")["paper"]["gibbs-jem"]
    assert gibbs["text"] == "84.14 %"


def test_what_is_missing_is_said_and_hidden(app: Path) -> None:
    page, *plots = opened()
    assert "factored JEM" in page["missing"]
    assert [plot["visible"] for plot in plots] == [True, False, True, True, True, False]
    assert page["attributes"][0]["name"] == "Red"


def test_curves_of_one_attribute(app: Path) -> None:
    page, *plots = opened(attribute="Striped", theme="dark")
    assert page["attribute"] == "Striped"
    assert "Striped" in plots[3]["value"].layout.title.text
    auroc = look(
        json.loads((app / "tiny" / "evaluation.json").read_text()), "prediction.attributes.Striped.auroc.value"
    )
    assert any(f"{100 * auroc:.1f} %" in (trace.name or "") for trace in plots[3]["value"].data)


def test_the_heat_map_holds_the_file_and_names_the_model_to_open(app: Path) -> None:
    grid = opened()[0]["pairs"]
    assert grid["model"] == "tiny"
    assert [(cell["pair"], cell["value"]) for cell in grid["cells"]] == [
        (row["pair"], row["judged_right"]) for row in PAIRS["pairs"]
    ]


def test_synthesis_rows_come_from_the_measures(app: Path, tmp_path: Path) -> None:
    evaluation = json.loads((app / "tiny" / "evaluation.json").read_text())
    measure = {"key": "seen_pairs", "measure": "judged right, seen pairs", "value": 0.75, "low": 0.7, "high": 0.8}
    evaluation["measures"].append(measure | {"chains": 40})
    path = app / "tiny" / "evaluation.json"
    before = path.read_text()
    try:
        path.write_text(json.dumps(evaluation))
        rows = opened()[0]["synthesis"]
        assert [row["key"] for row in rows] == ["seen_pairs"]
        assert rows[0]["cell"]["text"] == "75.0 %"
        assert value_at(app, rows[0]["cell"]["from"]) == 0.75
    finally:
        path.write_text(before)


def test_unknown_data_sets_are_refused(app: Path) -> None:
    page, *plots = opened(family="../models")
    assert page["kind"] == "refused"
    assert "choose one of" in page["message"]
    assert all(plot == gr.skip() for plot in plots)


def test_the_address_may_name_the_model(app: Path) -> None:
    (key,) = families(current().catalog)
    assert opened(model="tiny-supervised")[0]["family"] == key
    assert opened(model=["tiny"])[0]["family"] == opened(model="nobody")[0]["family"] == key


def test_models_group_by_data(app: Path) -> None:
    (family,) = families(current().catalog).values()
    assert set(family.models) == {"gibbs-jem", "supervised"}
    assert family.main.name == "tiny"
    assert family.missing() == ["jem"]


def test_how_it_works_in_six_pictures(tiny_bundle: Bundle) -> None:
    pictures = explain.pictures(tiny_bundle, seed=3)
    assert len(pictures) == 6
    assert pictures == explain.pictures(tiny_bundle, seed=3)
    logits, energy, langevin, gibbs, marginalizing, calibration = pictures
    assert len(logits["bars"]) == 6
    assert len(energy["images"]) == len(energy["bars"]) == 4
    assert langevin["images"][0]["src"] != langevin["images"][3]["src"]
    assert len(gibbs["lines"][0]["values"]) == explain.SHOWN_STEPS[-1]
    assert [line["label"] for line in marginalizing["lines"]] == ["marginalizing", "resampling"]
    assert "not evaluated" in calibration["note"]
