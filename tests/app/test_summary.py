"""What the third screen says of the figures: who is best, who is level, and what cannot be compared."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from evaluated import evaluation

from app import summary
from app.figures import Figure, leaders, level
from app.reports import Family, families, value_at
from app.runtime import current


@pytest.fixture
def family(compared: Path) -> Family:
    (family,) = families(current().catalog).values()
    return family


def stored(folder: Path, path: str) -> object:
    return value_at(json.loads((folder / "tiny" / "evaluation.json").read_text()), path)


def measured(monkeypatch: pytest.MonkeyPatch, **found: dict[str, Figure]) -> None:
    """The family's figures are these, by measure; it has no others."""
    monkeypatch.setattr(summary, "figures", lambda _, measure: found.get(measure.key, {}))


def test_the_paragraph_is_written_from_the_figures(family: Family, compared: Path) -> None:
    words = summary.paragraph(family)
    share = 100 * stored(compared, "prediction.micro.accuracy.value")
    assert words.startswith(f"Gibbs-JEM and the supervised model predict labels equally well: {share:.1f} % right.")
    assert "come from Gibbs-JEM and the supervised model, which are level: off by" in words
    assert re.search(r"The paper has no figures for [^.;]+\.$", words)
    share = {"judged_right": {"value": 0.62}}
    judged = {"seen_pairs": {"summary": {"judged_right": {"value": 0.875}}}, "held_out_pairs": {"summary": share}}
    with evaluation(
        compared, synthesis=judged, steering={"after_last": {"value": 0.51}, "judged_right": [1.0, 0.7, 0.51]}
    ):
        words, table = summary.paragraph(family), summary.headline(family)
    assert "Asked for two attributes at once, 87.5 % of its pictures match." in words
    assert "For pairs never seen in training, 62.0 % match." in words
    assert "After 2 changes in a row, 51.0 % of the pictures from Gibbs-JEM still match" in words
    rows = {row["key"]: row for row in table["rows"]}
    assert rows["seen"]["cells"] == {"gibbs-jem": "87.5 %"}
    assert rows["steered"]["cells"] == {"gibbs-jem": "51.0 %"}
    assert rows["accuracy"]["paper"] is None


def test_a_model_alone_is_not_called_the_best(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch, accuracy={"gibbs-jem": Figure(0.9)}, ece={"gibbs-jem": Figure(0.0123)})
    words = "Gibbs-JEM gets 90.0 % of the labels right. Its percentages are off by 1.2 points on average."
    assert summary.paragraph(family).startswith(words)


@pytest.mark.parametrize(
    ("one", "other", "tied"),
    [
        (Figure(0.8653, 0.8632, 0.8672), Figure(0.8492, 0.8469, 0.8515), False),
        (Figure(0.0060, 0.0046, 0.0073), Figure(0.0063, 0.0047, 0.0080), True),  # shown alike
        (Figure(0.9957, 0.9875, 0.9985), Figure(0.9857, 0.9639, 0.9944), True),  # the intervals overlap
        (Figure(0.9), Figure(0.8999), True),
        (Figure(0.9), Figure(0.898), False),
        (Figure(0.9), Figure(0.898, 0.89, 0.91), True),  # the paper's, without an interval, in ours
    ],
)
def test_which_figures_are_level(one: Figure, other: Figure, tied: bool) -> None:
    assert level(one, other) == level(other, one) == tied
    assert len(leaders({"a": one, "b": other})) == (2 if tied else 1)


def test_a_tie_is_said_and_marked_as_one(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    errors = {
        "jem": Figure(0.0060, 0.0046, 0.0073),
        "gibbs-jem": Figure(0.0063, 0.0047, 0.0080),
        "denoising": Figure(0.0097, 0.0082, 0.0113),
    }
    shares = {"gibbs-jem": Figure(0.9957, 0.9875, 0.9985), "jem": Figure(0.9857, 0.9639, 0.9944)}
    measured(monkeypatch, ece=errors, seen=shares, unseen={"gibbs-jem": Figure(0.93), "jem": Figure(0.84)})
    assert summary._calibration(family) == (
        "The most honest percentages come from factored JEM and Gibbs-JEM, which are level: off by 0.6 points on "
        "average, ahead of the noise-level model (1.0)."
    )
    assert summary._pairs(family) == (
        "Asked for two attributes at once, Gibbs-JEM and factored JEM are level: 99.6 % and 98.6 % of their pictures "
        "match. For pairs never seen in training, Gibbs-JEM is best: 93.0 % match, 9.0 points ahead of factored JEM."
    )
    rows = {row["key"]: row for row in summary.headline(family)["rows"]}
    assert rows["ece"]["best"] == ["jem", "gibbs-jem"]
    assert rows["seen"]["best"] == ["gibbs-jem", "jem"]
    assert rows["unseen"]["best"] == ["gibbs-jem"]


def test_the_words_name_whom_the_table_marks(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    """A classifier counts in both, or in neither."""
    errors = {"gibbs-jem": Figure(0.004), "supervised": Figure(0.0026)}
    measured(monkeypatch, accuracy={"gibbs-jem": Figure(0.9), "supervised": Figure(0.863)}, ece=errors)
    words = summary.paragraph(family)
    assert "Gibbs-JEM predicts labels best: 90.0 % right, 3.7 points ahead of the supervised model." in words
    assert "percentages come from the supervised model: off by 0.3 points on average, 0.1 points ahead" in words
    rows = {row["key"]: row for row in summary.headline(family)["rows"]}
    assert (rows["accuracy"]["best"], rows["ece"]["best"]) == (["gibbs-jem"], ["supervised"])


def test_an_error_below_what_is_shown_is_not_nothing(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch, ece={"gibbs-jem": Figure(0.0003), "supervised": Figure(0.02)})
    assert "off by less than 0.1 points on average" in summary._calibration(family)
    assert summary.headline(family)["rows"][0]["cells"]["gibbs-jem"] == "< 0.1 %"


def test_models_measured_unlike_are_said_to_be(family: Family, compared: Path) -> None:
    assert summary.unlike(family) == ""
    prediction = stored(compared, "prediction")
    with evaluation(compared, prediction=prediction | {"images": 5292}, judge={"trained_on": {"rows": 56000}}):
        words = summary.unlike(family)  # one judge alone differs from nobody
    tested = f"5,292 images (Gibbs-JEM) or {prediction['images']} (the supervised model)"
    assert words == f"Compare with care: the models were tested on {tested}."


def test_two_of_three_are_the_others(family: Family) -> None:
    for objective, images in (("gibbs-jem", 12259), ("supervised", 12259), ("denoising", 42663)):
        entry = family.models.get(objective, family.main)
        data = entry.config["data"] | {"train_images": images}
        family.models[objective] = replace(entry, config=entry.config | {"data": data})
    assert summary.unlike(family) == (
        "Compare with care: the models were trained on 42,663 images (the noise-level model) or 12,259 (the others)."
    )


def test_the_paper_stands_beside_ours_where_it_has_the_data(family: Family, compared: Path) -> None:
    family = replace(family, source="celeba")
    words = summary.paragraph(family)
    ours = 100 * stored(compared, "prediction.micro.accuracy.value")
    side = "more" if ours > 84.14 else "fewer"
    assert f"our Gibbs-JEM gets {side} labels right ({ours:.1f} % against 84.1 %)" in words
    assert re.search(
        r"percentages are (more|less) honest \(off by \S+ points against 2.8, in the paper's bins\)", words
    )
    assert {row["key"]: row["paper"] for row in summary.headline(family)["rows"]}["ece_paper"] == "2.8 %"


@pytest.mark.parametrize(
    ("accuracy", "error", "words"),
    [
        (0.9, 0.01, "more labels right (90.0 % against 84.1 %), and its percentages are more honest"),
        (0.9, 0.05, "more labels right (90.0 % against 84.1 %), but its percentages are less honest"),
        (0.8412, 0.0281, "as many labels right (84.1 % against 84.1 %), and its percentages are just as honest"),
    ],
)
def test_one_model_of_ours_is_compared_with_the_papers(
    family: Family, compared: Path, accuracy: float, error: float, words: str
) -> None:
    """The newest kind in both figures, although another has the smaller error."""
    given = {"accuracy": {"value": accuracy}, "ece_paper": {"value": error}}
    better = {"accuracy": {"value": 0.99}, "ece_paper": {"value": 0.0001}}
    older = family.models["supervised"]
    older.config = older.config | {"objective": "jem"}
    family = replace(family, source="celeba", models={"jem": older, "gibbs-jem": family.main})
    with (
        evaluation(compared, prediction={"micro": given}),
        evaluation(compared, "tiny-supervised", prediction={"micro": better}),
    ):
        assert f"our Gibbs-JEM gets {words}" in summary._paper(family)


def test_another_data_set_answers_where_the_paper_has_no_figures(family: Family) -> None:
    words = summary.paragraph(family, [family, replace(family, source="celeba")])
    assert re.search(r"no figures for [^;]+; compared with its own model on CelebA, our Gibbs-JEM gets ", words)
