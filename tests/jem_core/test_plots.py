"""The figures show the files' numbers, in both themes, with and without what is optional."""

import copy
import re
from pathlib import Path

import numpy as np
import pytest

from jem_core import plots
from jem_core.calibration import Calibration, calibration_report
from jem_core.metrics import curves

NAMES = ["Wearing_Hat", "Male"]


@pytest.fixture(scope="module")
def files() -> tuple[dict, dict]:
    rng = np.random.default_rng(0)
    p = rng.random((400, 2))
    labels = (rng.random((400, 2)) < p).astype(int)
    return calibration_report(p, labels, NAMES), curves(p, labels, NAMES)


def by_name(figure, start: str):
    return next(trace for trace in figure.data if trace.name and trace.name.startswith(start))


@pytest.mark.parametrize("attribute", ["all", *NAMES])
def test_reliability_shows_the_bins(files, attribute: str):
    calibration = files[0]
    found = calibration["all"] if attribute == "all" else calibration["attributes"][attribute]
    figure = plots.reliability(calibration, attribute, names=("Ours", "Theirs"))
    points, band, gap = by_name(figure, "Ours"), by_name(figure, "95 %"), by_name(figure, "gap")
    assert list(points.x) == found["bins"]["mean_prediction"]
    assert list(points.y) == found["bins"]["positive_rate"]
    assert points.name == f"Ours, ECE {100 * found['ece']:.1f} %"
    assert list(band.y) == found["bins"]["high"] + found["bins"]["low"][::-1]
    assert gap.y[:2] == (found["bins"]["mean_prediction"][0], found["bins"]["positive_rate"][0])
    assert list(by_name(figure, "answers").y) == found["histogram"]["count"]


def test_reliability_takes_a_baseline(files):
    calibration = files[0]
    plain = plots.reliability(calibration)
    other = Calibration(copy.deepcopy(calibration))
    full = plots.reliability(calibration, baseline=other, names=("A", "B"))
    assert len(full.data) == len(plain.data) + 1
    assert by_name(full, "B, ECE")


@pytest.mark.parametrize(("draw", "kind", "axes"), [
    (plots.roc, "roc", ("false_positive_rate", "true_positive_rate")),
    (plots.precision_recall, "pr", ("recall", "precision")),
])  # fmt: skip
def test_curves_of_several_models(files, draw, kind: str, axes: tuple[str, str]):
    table = files[1]
    figure = draw({"A": table, "B": table}, "Male", values={"A": 0.5, "B": None})
    assert list(by_name(figure, "A").x) == table[kind]["Male"][axes[0]]
    assert list(by_name(figure, "A").y) == table[kind]["Male"][axes[1]]
    assert by_name(figure, "A").name.endswith("50.0 %")
    assert by_name(figure, "B").name == "B"
    assert "Male" in figure.layout.title.text
    named = draw({"A": table}, "Wearing_Hat", label="Hat").layout.title.text
    assert named.endswith(", Hat")
    assert draw({"A": table}, "Wearing_Hat").layout.title.text.endswith(", Wearing hat")


def test_unknown_attributes_and_themes_are_refused(files):
    with pytest.raises(ValueError, match="Wearing_Hat"):
        plots.reliability(files[0], "Hat")
    with pytest.raises(ValueError, match="micro"):
        plots.roc({"A": files[1]}, "Hat")
    with pytest.raises(ValueError, match="light or dark"):
        plots.roc({"A": files[1]}, theme="pink")


def test_themes_differ_in_ink_alone(files):
    light, dark = (plots.reliability(files[0], theme=theme) for theme in ("light", "dark"))
    assert light.layout.font.color != dark.layout.font.color
    assert light.layout.paper_bgcolor == dark.layout.paper_bgcolor == "rgba(0,0,0,0)"


def brightness(colour: str) -> float:
    """The relative luminance of WCAG."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def style_sheet() -> dict[str, dict[str, str]]:
    """The colours of both themes, as the page has them."""
    text = (Path(__file__).parents[2] / "assets" / "style.css").read_text()
    blocks = dict(zip(("light", "dark"), re.findall(r"\{([^{}]*--gj-series-1[^{}]*)\}", text), strict=True))
    return {theme: dict(re.findall(r"--gj-([\w-]+): (#[0-9a-f]{6})", block)) for theme, block in blocks.items()}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_palette_is_the_one_of_the_page_and_can_be_read(theme: str):
    page = style_sheet()[theme]
    assert list(plots.SERIES[theme]) == [page[f"series-{i}"] for i in range(1, 9)]
    alike = {"ink": plots.INK, "muted": plots.MUTED, "bad": plots.GAP, "track": plots.TRACK}
    assert {name: table[theme] for name, table in alike.items()} == {name: page[name] for name in alike}
    card = brightness(page["card"])
    for colour in (*plots.SERIES[theme], plots.INK[theme]):
        low, high = sorted((brightness(colour), card))
        assert (high + 0.05) / (low + 0.05) >= 3, colour


def test_a_model_has_one_colour_on_every_plot(files):
    places, table = {"Ours": 0, "Theirs": 2}, files[1]
    shares = {"Theirs": [1.0, 0.9], "Ours": [0.8, 0.5]}
    for theme in ("light", "dark"):
        figures = [
            plots.steering(shares, theme, places),
            plots.long_run({name: ([0, 100], values) for name, values in shares.items()}, theme, places),
            plots.roc({"Theirs": table, "Ours": table}, "Male", theme, places=places),
            plots.precision_recall({"Theirs": table, "Ours": table}, "Male", theme, places=places),
            plots.reliability(files[0], "all", files[0], theme, names=("Theirs", "Ours"), places=(2, 0)),
        ]
        for figure in figures:
            assert by_name(figure, "Theirs").line.color == plots.SERIES[theme][2]
            assert by_name(figure, "Ours").line.color == plots.SERIES[theme][0]


def test_percentages_are_written_as_on_the_page(files):
    rate = {"value": 0.5, "low": 0.4, "high": 0.7, "of": 40}
    figures = [
        plots.reliability(files[0]),
        plots.roc({"A": files[1]}),
        plots.precision_recall({"A": files[1]}),
        plots.steering({"A": [1.0, 0.9]}),
        plots.samplers_and_starts([{"sampler": "s", "start": "b", "seen_pairs": {"judged_right": rate}}]),
        plots.pairs_map({"names": ["A", "B"], "chains": 4, "pairs": [
            {"pair": ["A", "B"], "judged_right": 0.5, "training_images": 0}
        ]}),
    ]  # fmt: skip
    for figure in figures:
        text = figure.to_json()
        assert "80 %" in text
        assert not re.search(r"\d%", text)
        assert ".0%" not in text
        axes = [axis for axis in (*figure.select_xaxes(), *figure.select_yaxes()) if axis.title.text]
        assert {axis.title.font.size for axis in axes} <= {13}  # one look


def test_pairs_map_is_symmetric_and_marks_the_unseen():
    names = ["A", "B", "C"]
    rows = [("A", "B", 0.5, 10), ("A", "C", 1.0, 0), ("B", "C", 0.0, 3)]
    pairs = [{"pair": [a, b], "judged_right": rate, "training_images": n} for a, b, rate, n in rows]
    figure = plots.pairs_map({"names": names, "pairs": pairs, "chains": 4})
    assert [list(row) for row in figure.data[0].z] == [[None, 0.5, 1.0], [0.5, None, 0.0], [1.0, 0.0, None]]
    assert set(zip(figure.data[1].x, figure.data[1].y, strict=True)) == {("A", "C"), ("C", "A")}


def test_samplers_and_starts_have_error_bars():
    rate = {"value": 0.5, "low": 0.4, "high": 0.7, "of": 40}
    rows = [{"sampler": "resampling", "start": "buffer-match", "seen_pairs": {"judged_right": rate}}]
    figure = plots.samplers_and_starts(rows)
    (bar,) = figure.data
    assert bar.y == (0.5,)
    assert bar.error_y.array[0] == pytest.approx(0.2)
    assert bar.error_y.arrayminus[0] == pytest.approx(0.1)


def test_empty_bins_are_not_drawn():
    p = np.r_[np.full(300, 0.01), np.full(40, 0.99)]
    calibration = calibration_report(p[:, None], (p > 0.5).astype(int)[:, None], ["A"])
    assert 0 in calibration["attributes"]["A"]["bins"]["count"]
    points = by_name(plots.reliability(calibration, "A", names=("Ours", "")), "Ours")
    assert None not in (*points.x, *points.y)
    assert sum(int(row[0]) for row in points.customdata) == 340


def test_lines_of_steering_and_long_runs():
    figure = plots.steering({"A": [1.0, 0.9], "B": [0.8, 0.5]})
    assert [list(trace.y) for trace in figure.data] == [[1.0, 0.9], [0.8, 0.5]]
    assert list(figure.data[0].x) == [0, 1]
    figure = plots.long_run({"A": ([0, 100], [1.0, 0.9])}, "dark")
    assert list(figure.data[0].x) == [0, 100]


def test_no_gradio_is_needed():
    import subprocess
    import sys

    loaded = "{name.split('.')[0] for name in sys.modules}"
    code = f"import sys; import jem_core.plots; sys.exit(bool({loaded} & {{'gradio', 'torch'}}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
