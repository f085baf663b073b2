"""The third screen's figures are those of the evaluation files, cell by cell."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest
from evaluated import PAIRS, evaluate_prediction

from app import compare, explain, summary, tables
from app.catalog import Catalog
from app.limits import Limits
from app.reports import families, value_at
from app.runtime import Runtime, current, install
from jem_core.bundle import Bundle
from jem_core.data.dataset import Dataset
from jem_core.data.facts import DataFacts


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


def figure_at(folder: Path, source: str) -> float:
    """The figure that a cell says it was read from."""
    file, path = source.split("#")
    root = tables.PAPER if file == "paper.json" else folder / file
    return value_at(json.loads(root.read_text()), path)


def test_every_cell_stands_in_a_file(app: Path) -> None:
    page = opened()[0]
    cells = [cell for row in page["prediction"]["rows"] for cell in row["ours"].values()]
    assert len(cells) == 2 * 2 * len(tables.MEASURES)
    for cell in cells:
        assert cell["text"] == f"{100 * figure_at(app, cell['from']):.1f} %"
        low = figure_at(app, cell["from"].replace(".value", ".low"))
        assert cell["interval"].startswith(f"{100 * low:.1f} % to ")


def test_the_papers_figures_stand_in_its_file_and_are_marked(app: Path) -> None:
    page = opened(family="paper-celeba")[0]
    assert page["prediction"]["ours"] == []
    cells = [cell for row in page["prediction"]["rows"] for cell in row["paper"].values() if cell]
    assert len(cells) == 3 * (5 + 4)
    for cell in cells:
        assert cell["from"].startswith("paper.json#")
        assert cell["text"] == f"{figure_at(app, cell['from']):g} %"
    assert "own figures" in page["prediction"]["paper_title"]
    assert "half-open" in page["prediction"]["note"]
    gibbs = next(row for row in page["prediction"]["rows"] if row["key"] == "accuracy")["paper"]["gibbs-jem"]
    assert gibbs["text"] == "84.14 %"


def test_what_is_missing_is_said_and_hidden(app: Path) -> None:
    page, *plots = opened()
    assert "factored JEM" in page["missing"]
    # Steering and long runs; reliability of supervised, JEM, Gibbs-JEM and noise levels; ROC, PR; samplers and starts.
    assert [plot["visible"] for plot in plots] == [False, False, True, False, True, False, True, True, False]
    assert page["attributes"][0]["name"] == "Red"


def test_curves_of_one_attribute(app: Path) -> None:
    page, *plots = opened(attribute="Striped", theme="dark")
    assert page["attribute"] == "Striped"
    roc = plots[6]["value"]
    assert "Striped" in roc.layout.title.text
    auroc = figure_at(app, "tiny/evaluation.json#prediction.attributes.Striped.auroc.value")
    assert any(f"{100 * auroc:.1f} %" in (trace.name or "") for trace in roc.data)


def test_the_heat_map_holds_the_file_and_names_the_model_to_open(app: Path) -> None:
    grid = opened()[0]["pairs"]
    assert grid["model"] == "tiny"
    assert [(cell["pair"], cell["value"]) for cell in grid["cells"]] == [
        (row["pair"], row["judged_right"]) for row in PAIRS["pairs"]
    ]


@contextmanager
def evaluation(folder: Path, name: str = "tiny", **more: object) -> Iterator[None]:
    """The evaluation with something more in it, for a while."""
    path = folder / name / "evaluation.json"
    before = path.read_text()
    try:
        path.write_text(json.dumps(json.loads(before) | more))
        yield
    finally:
        path.write_text(before)


def test_synthesis_rows_come_from_the_measures(app: Path) -> None:
    measure = {"key": "seen_pairs", "measure": "judged right, seen pairs", "value": 0.75, "low": 0.7, "high": 0.8}
    measures = [measure | {"chains": 40}]
    with evaluation(app, measures=measures):
        rows = opened()[0]["synthesis"]
        assert [(row["key"], row["measure"]) for row in rows] == [("seen_pairs", "match the request, seen pairs")]
        assert rows[0]["cell"]["text"] == "75.0 %"
        assert figure_at(app, rows[0]["cell"]["from"]) == 0.75


def accuracy(folder: Path, name: str) -> float:
    return figure_at(folder, f"{name}/evaluation.json#prediction.micro.accuracy.value")


def test_the_paragraph_is_written_from_the_figures(app: Path) -> None:
    words = opened()[0]["paragraph"]
    assert words.startswith(f"Gibbs-JEM gets {100 * accuracy(app, 'tiny'):.1f} % of the labels right")
    assert f"(the supervised model: {100 * accuracy(app, 'tiny-supervised'):.1f} %)" in words
    assert "Its percentages are off by" in words
    assert re.search(r"The paper has no figures for [^.;]+\.$", words)
    share = {"judged_right": {"value": 0.62}}
    judged = {"seen_pairs": {"summary": {"judged_right": {"value": 0.875}}}, "held_out_pairs": {"summary": share}}
    with evaluation(app, synthesis=judged, steering={"after_last": {"value": 0.51}, "judged_right": [1.0, 0.7, 0.51]}):
        page = opened()[0]
    assert "Asked for two attributes at once, 88 % of its pictures match." in page["paragraph"]
    assert "For pairs that training never showed, 62 % match." in page["paragraph"]
    assert "After 2 changes in a row, 51 % of the pictures from Gibbs-JEM still match" in page["paragraph"]
    rows = {row["key"]: row for row in page["headline"]["rows"]}
    assert rows["seen"]["cells"] == {"gibbs-jem": "87.5 %"}
    assert rows["steered"]["cells"] == {"gibbs-jem": "51.0 %"}
    assert rows["accuracy"]["paper"] is None


def test_the_paper_stands_beside_ours_where_it_has_the_data(app: Path) -> None:
    (family,) = families(current().catalog).values()
    family = replace(family, source="celeba")
    words = summary.paragraph(family)
    ours = 100 * accuracy(app, "tiny")
    side = "more" if ours > 84.14 else "fewer"
    assert f"our best one gets {side} labels right ({ours:.1f} % against 84.1 %)" in words
    assert re.search(
        r"percentages are (more|less) honest \(off by \S+ points against 2.8, in the paper's bins\)", words
    )
    assert {row["key"]: row["paper"] for row in summary.headline(family)["rows"]}["ece_paper"] == "2.8 %"


@pytest.mark.parametrize(
    ("accuracy", "error", "words"),
    [
        (0.9, 0.01, "more labels right (90.0 % against 84.1 %), and our percentages are more honest"),
        (0.9, 0.05, "more labels right (90.0 % against 84.1 %), but our percentages are less honest"),
        (0.8412, 0.0281, "as many labels right (84.1 % against 84.1 %), and our percentages are just as honest"),
    ],
)
def test_what_looks_the_same_as_the_papers_figure_is_called_level(
    app: Path, monkeypatch: pytest.MonkeyPatch, accuracy: float, error: float, words: str
) -> None:
    (family,) = families(current().catalog).values()
    values = {"accuracy": accuracy, "ece_paper": error}
    monkeypatch.setattr(summary, "_makers", lambda _, measure: {"gibbs-jem": values.get(measure.key, 0.5)})
    assert words in summary._paper(replace(family, source="celeba"))


def test_another_data_set_answers_where_the_paper_has_no_figures(app: Path) -> None:
    (family,) = families(current().catalog).values()
    words = summary.paragraph(family, [family, replace(family, source="celeba")])
    assert re.search(r"no figures for [^;]+; compared with its own model on CelebA, our best one gets ", words)


def test_models_that_make_pictures_are_held_against_each_other(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (family,) = families(current().catalog).values()
    monkeypatch.setattr(summary, "figures", lambda _, measure: {"gibbs-jem": 0.9, "supervised": 0.8})
    monkeypatch.setattr(summary, "_makers", summary.figures)
    assert summary._accuracy(family).startswith(
        "Of the models that make pictures, Gibbs-JEM predicts labels best: 90.0 %"
    )
    assert "Gibbs-JEM is best: 90 % of its pictures match, 10 points ahead" in summary._pairs(family)
    words = "percentages come from the supervised model: off by 80.0 points on average (Gibbs-JEM: 90.0)."
    assert summary._calibration(family) == f"The most honest {words}"


def test_how_far_ahead_the_best_is(app: Path) -> None:
    (family,) = families(current().catalog).values()
    measure = summary.MEASURES[0]
    found = {"gibbs-jem": 0.9, "supervised": 0.863}
    assert summary._ahead(family, found, measure).startswith(", 3.7 points ahead of the supervised model")
    assert summary._ahead(family, {"gibbs-jem": 0.9}, measure) == ""
    assert (
        summary._ahead(family, {"gibbs-jem": 0.9, "supervised": 0.8999}, measure) == ", level with the supervised model"
    )


@pytest.mark.parametrize(
    "broken", [{}, {"steering": []}, {"steering": {"judged_right": [None]}, "long_run": {"steps": 3}}]
)
def test_steering_and_long_runs_are_drawn_where_they_were_measured(app: Path, broken: dict) -> None:
    steering = {"judged_right": [{"value": 1.0}, {"value": 0.5}], "after_last": 0.5}
    with evaluation(app, steering=steering, long_run={"steps": [0, 100], "judged_right": [1.0, 0.9]}):
        _, first, second, *_ = opened()
    assert list(first["value"].data[0].y) == [1.0, 0.5]
    assert list(second["value"].data[0].x) == [0, 100]
    with evaluation(app, **broken):
        _, first, second, *_ = opened()
    assert not first["visible"]
    assert not second["visible"]


def test_rows_of_pictures_have_one_condition_and_one_seed(app: Path) -> None:
    page = opened()[0]
    asked = {"order": 3, "family": page["family"], "condition": 1, "seed": 4}
    answer = compare.rows(SimpleNamespace(_data=asked))
    assert [row["title"] for row in answer["rows"]] == ["Gibbs-JEM"]  # a classifier makes none
    assert len(answer["rows"][0]["images"]) == compare.PICTURES
    assert len(page["conditions"]) == compare.CONDITIONS
    another = compare.rows(SimpleNamespace(_data=asked | {"seed": 5}))
    assert another["rows"][0]["images"] != answer["rows"][0]["images"]
    for bad in ({"condition": 99}, {"seed": -1}, {"family": ["x"]}, {"condition": True}):
        assert compare.rows(SimpleNamespace(_data=asked | bad))["kind"] == "refused"


def test_pairs_that_cannot_be_true_are_left_out(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DataFacts, "rivals", lambda self, name: ("Bright",) if name == "Red" else ())
    assert [cell["pair"] for cell in opened()[0]["pairs"]["cells"]] == [["Red", "Striped"]]


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
    assert family.missing() == ["jem", "denoising"]


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
    assert "has not been evaluated" in calibration["note"]


def test_how_noise_levels_work_in_six_pictures(tiny_levels: Bundle) -> None:
    pictures = explain.pictures(tiny_levels, seed=3)
    assert pictures == explain.pictures(tiny_levels, seed=3)
    _, _, lifting, down, both, _ = pictures
    assert len(lifting["images"]) == 2 * len(explain.SHOWN_LEVELS)
    levels = down["lines"][0]["values"]
    assert levels == sorted(levels, reverse=True)
    assert levels[-1] == 0
    assert len(down["images"]) == len(explain.SHOWN_STEPS)
    assert [line["label"] for line in both["lines"]] == ["marginalizing", "resampling"]
