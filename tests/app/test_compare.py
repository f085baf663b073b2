"""The third screen's figures are those of the evaluation files, cell by cell."""

import json
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest
from evaluated import PAIRS, evaluation

from app import compare, explain, kinds, summary, tables
from app.reports import families, value_at
from app.runtime import current
from jem_core.bundle import Bundle
from jem_core.objectives import OBJECTIVES, Supervised


def opened(**wish: object) -> tuple:
    return compare.opened(SimpleNamespace(_data={"order": 1, **wish}))


def figure_at(folder: Path, source: str) -> float:
    """The figure that a cell says it was read from."""
    file, path = source.split("#")
    root = tables.PAPER if file == "paper.json" else folder / file
    return value_at(json.loads(root.read_text()), path)


def test_every_cell_stands_in_a_file(compared: Path) -> None:
    page = opened()[0]
    cells = [cell for row in page["prediction"]["rows"] for cell in row["ours"].values()]
    assert len(cells) == 2 * (2 * len(tables.MEASURES) + 1)
    for cell in cells:
        assert cell["text"] == f"{100 * figure_at(compared, cell['from']):.1f} %"
        if "#prediction." in cell["from"]:
            low = figure_at(compared, cell["from"].replace(".value", ".low"))
            assert cell["interval"].startswith(f"{100 * low:.1f} % to ")


def test_the_papers_figures_stand_in_its_file_and_are_marked(compared: Path) -> None:
    page = opened(family="paper-celeba")[0]
    assert page["prediction"]["ours"] == []
    cells = [cell for row in page["prediction"]["rows"] for cell in row["paper"].values() if cell]
    assert len(cells) == 3 * (5 + 4)
    for cell in cells:
        assert cell["from"].startswith("paper.json#")
        assert cell["text"] == f"{figure_at(compared, cell['from']):g} %"
    assert "own figures" in page["prediction"]["paper_title"]
    assert "half-open" in page["prediction"]["note"]
    gibbs = next(row for row in page["prediction"]["rows"] if row["key"] == "accuracy")["paper"]["gibbs-jem"]
    assert gibbs["text"] == "84.14 %"


def test_what_is_missing_is_said_and_hidden(compared: Path) -> None:
    page, *plots = opened()
    assert "factored JEM" in page["missing"]
    # Steering and long runs; reliability of supervised, JEM, Gibbs-JEM and noise levels; ROC, PR; samplers and starts.
    assert [plot["visible"] for plot in plots] == [False, False, True, False, True, False, True, True, False]
    assert page["attributes"][0]["name"] == "Red"


def test_curves_of_one_attribute(compared: Path) -> None:
    page, *plots = opened(attribute="Striped", theme="dark")
    assert page["attribute"] == "Striped"
    roc = plots[6]["value"]
    assert roc.layout.title.text == "ROC, Striped"
    auroc = figure_at(compared, "tiny/evaluation.json#prediction.attributes.Striped.auroc.value")
    assert any(f"{100 * auroc:.1f} %" in (trace.name or "") for trace in roc.data)


def test_the_heat_map_holds_the_file_and_names_the_model_to_open(compared: Path) -> None:
    grid = opened()[0]["pairs"]
    assert grid["model"] == "tiny"
    assert [(cell["pair"], cell["value"]) for cell in grid["cells"]] == [
        (row["pair"], row["judged_right"]) for row in PAIRS["pairs"]
    ]


def test_synthesis_rows_come_from_the_measures(compared: Path) -> None:
    measure = {"key": "seen_pairs", "measure": "judged right, seen pairs", "value": 0.75, "low": 0.7, "high": 0.8}
    measures = [measure | {"chains": 40}]
    with evaluation(compared, measures=measures):
        rows = opened()[0]["synthesis"]
        assert [(row["key"], row["measure"]) for row in rows] == [("seen_pairs", "matches the request: seen pairs")]
        assert rows[0]["cell"]["text"] == "75.0 %"
        assert figure_at(compared, rows[0]["cell"]["from"]) == 0.75


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        ("steering, judged right, mean over all toggles", "matches the request: steering, mean over all toggles"),
        ("wandering, judged right after 100 steps", "matches the request: wandering after 100 steps"),
        ("edits, judged right", "matches the request: edits"),
        ("judged right, triples with a held-out pair", "matches the request: triples with an unseen pair"),
        ("factored JEM, direct sampling: judged right, held-out pairs",
         "matches the request: factored JEM, direct sampling, unseen pairs"),
        ("precision, judge features", "precision, judge features"),
    ],
)  # fmt: skip
def test_measures_are_called_as_on_the_other_screens(measure: str, words: str) -> None:
    assert tables.said(measure) == words


def test_memory_and_the_gate_stand_in_the_tables(compared: Path) -> None:
    nearest = {"samples_median": 0.1487, "real_median": 0.1671, "samples": 500}
    with (
        evaluation(compared, fidelity={"nearest_training_image": nearest}, gate={"worst_auroc": 0.9844}),
        evaluation(compared, "tiny-supervised", gate={"worst_auroc": 0.5}),
    ):
        page = opened()[0]
        rows = {row["key"]: row for row in page["synthesis"]}
        assert (rows["samples_median"]["cell"]["text"], rows["samples_median"]["chains"]) == ("0.149", 500)
        assert rows["real_median"]["cell"]["text"] == "0.167"
        assert figure_at(compared, rows["real_median"]["cell"]["from"]) == 0.1671
        gate = page["prediction"]["rows"][-1]
    assert {o: cell["text"] for o, cell in gate["ours"].items()} == {"gibbs-jem": "98.4 %", "supervised": "50.0 %"}
    assert gate["best"] == ["gibbs-jem"]


@pytest.mark.parametrize(
    "broken", [{}, {"steering": []}, {"steering": {"judged_right": [None]}, "long_run": {"steps": 3}}]
)
def test_steering_and_long_runs_are_drawn_where_they_were_measured(compared: Path, broken: dict) -> None:
    steering = {"judged_right": [{"value": 1.0}, {"value": 0.5}], "after_last": 0.5}
    with evaluation(compared, steering=steering, long_run={"steps": [0, 100], "judged_right": [1.0, 0.9]}):
        _, first, second, *_ = opened()
    assert list(first["value"].data[0].y) == [1.0, 0.5]
    assert list(second["value"].data[0].x) == [0, 100]
    with evaluation(compared, **broken):
        _, first, second, *_ = opened()
    assert not first["visible"]
    assert not second["visible"]


def test_rows_of_pictures_have_one_condition_and_one_seed(compared: Path) -> None:
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


@pytest.mark.parametrize("knows", ["tiny", "tiny-supervised"])
def test_pairs_that_cannot_be_true_are_left_out(compared: Path, knows: str) -> None:
    """Whichever model says so: one of the first format says nothing. Such a pair was never seen, but gets no star."""
    entry = current().catalog.entry(knows)
    entry.config = entry.config | {"data": entry.config["data"] | {"groups": [["Striped", "Red"]]}}
    assert entry.data.rivals("Red") == ("Striped",)
    assert [cell["pair"] for cell in opened()[0]["pairs"]["cells"]] == [["Red", "Bright"]]


def test_unknown_data_sets_are_refused(compared: Path) -> None:
    page, *plots = opened(family="../models")
    assert page["kind"] == "refused"
    assert "choose one of" in page["message"]
    assert all(plot == gr.skip() for plot in plots)


def test_the_address_may_name_the_model(compared: Path) -> None:
    (key,) = families(current().catalog)
    assert opened(model="tiny-supervised")[0]["family"] == key
    assert opened(model=["tiny"])[0]["family"] == opened(model="nobody")[0]["family"] == key


def test_an_objective_from_outside_is_shown_by_its_plain_name(compared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OBJECTIVES, "smoothed", type("Smoothed", (Supervised,), {"name": "smoothed"}))
    (family,) = families(current().catalog).values()
    entry = family.models["supervised"]
    entry.config = entry.config | {"objective": "smoothed"}
    (family,) = families(current().catalog).values()
    assert [model["title"] for model in summary.headline(family)["models"]] == ["Gibbs-JEM", "Smoothed"]
    assert "Smoothed and Gibbs-JEM predict labels equally well" in summary.paragraph(family)
    assert family.main.name == "tiny"  # the new one makes no pictures
    plots = compare.draw(family, "all", "light")
    assert len(plots) == len(OBJECTIVES) + compare.OTHER_PLOTS
    assert len([plot for plot in plots if plot]) == 4


def test_every_model_has_a_colour_of_its_own(compared: Path) -> None:
    assert sorted(map(kinds.place, OBJECTIVES)) == list(range(len(OBJECTIVES)))
    for theme in ("light", "dark"):
        _, _, _, supervised, _, gibbs, _, roc, pr, _ = opened(theme=theme)
        colours = {trace.name.split(",")[0]: trace.line.color for trace in (*roc["value"].data, *pr["value"].data)}
        for name, plot in (("Supervised", supervised), ("Gibbs-JEM", gibbs)):
            line = next(trace for trace in plot["value"].data if trace.name.startswith(f"{name}, ECE"))
            assert line.line.color == colours[name]
        assert colours["Supervised"] != colours["Gibbs-JEM"]


def test_models_group_by_data(compared: Path) -> None:
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
    assert "What you asked for (red) stays fixed." in gibbs["text"]
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
