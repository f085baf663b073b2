"""Plotly figures from the files that the evaluation wrote: reliability, ROC, precision-recall, pairs, samplers.

Plotly and our own files only, so that the report and the app draw the very same figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import plotly.graph_objects as go
from plotly.subplots import make_subplots

COLOURS = ("#2563eb", "#d97706", "#64748b", "#0d9488")  # ours, the second model, the baseline, one more
GAP, GRID = "#dc2626", "rgba(128,128,128,.22)"
INK = {"light": "#1f2937", "dark": "#e5e7eb"}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
ALL = "all"


def name_of(attribute: str) -> str:
    """An attribute as a reader would write it."""
    return {ALL: "all attributes together", "micro": "all attributes together"}.get(
        attribute, attribute.replace("_", " ")
    )


def reliability(
    calibration: Mapping,
    attribute: str = ALL,
    baseline: Mapping | None = None,
    at: float | None = None,
    theme: str = "light",
    names: Sequence[str] = ("Model", "Supervised"),
) -> go.Figure:
    """What was said against what was so: points with their 95 % band, gaps to the diagonal, and how often it is said.

    `baseline` is the calibration of another model, drawn as a line. `at` marks one prediction.
    """
    found = part(calibration, attribute)
    bins, colour = found["bins"], COLOURS[0]
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.78, 0.22], vertical_spacing=0.05)
    figure.add_scatter(
        x=[0, 1], y=[0, 1], mode="lines", line={"color": "#94a3b8", "dash": "dot"}, name="perfect", hoverinfo="skip"
    )
    _add_gaps(figure, bins)
    _add_band(figure, bins, colour)
    _add_points(figure, bins, colour, f"{names[0]}, ECE {percent(found['ece'])}")
    if baseline is not None:
        other = part(baseline, attribute)
        _add_points(figure, other["bins"], COLOURS[2], f"{names[1]}, ECE {percent(other['ece'])}", dash="dash")
    edges, count = found["histogram"]["edges"], found["histogram"]["count"]
    centres = [(a + b) / 2 for a, b in pairwise(edges)]
    figure.add_bar(
        x=centres, y=count, width=edges[1] - edges[0], marker={"color": colour, "opacity": 0.45}, row=2, col=1,
        name="how often", showlegend=False, hovertemplate="%{y} predictions around %{x:.0%}<extra></extra>",
    )  # fmt: skip
    if at is not None:
        label = f"this picture: {percent(at, 0)}"
        figure.add_vline(x=at, line={"color": COLOURS[1], "width": 2}, annotation_text=label, row=1, col=1)
    _dress(figure, f"Reliability, {name_of(attribute)}", theme)
    figure.update_xaxes(range=[-0.01, 1.01], tickformat=".0%")
    figure.update_xaxes(title="the model says", row=2, col=1)
    figure.update_yaxes(title="it is so", range=[-0.02, 1.02], tickformat=".0%", row=1, col=1)
    figure.update_yaxes(title="count", nticks=3, row=2, col=1)
    return figure


def part(calibration: Mapping, attribute: str) -> Mapping:
    """The entry of one attribute, or of all together."""
    if attribute == ALL:
        return calibration["all"]
    if attribute not in calibration["attributes"]:
        choices = ", ".join([ALL, *calibration["attributes"]])
        raise ValueError(f"There is no calibration for {attribute!r}; choose one of {choices}.")
    return calibration["attributes"][attribute]


def percent(value: float, digits: int = 1) -> str:
    return f"{100 * value:.{digits}f} %"


def _add_gaps(figure: go.Figure, bins: Mapping) -> None:
    x, y = [], []
    for said, was in zip(bins["mean_prediction"], bins["positive_rate"], strict=True):
        x += [said, said, None]
        y += [said, was, None]
    line = {"color": GAP, "width": 7}
    figure.add_scatter(x=x, y=y, mode="lines", line=line, opacity=0.35, name="gap", hoverinfo="skip", row=1, col=1)


def _add_band(figure: go.Figure, bins: Mapping, colour: str) -> None:
    x = bins["mean_prediction"]
    figure.add_scatter(
        x=[*x, *x[::-1]],
        y=[*bins["high"], *bins["low"][::-1]],
        fill="toself",
        fillcolor=colour,
        opacity=0.16,
        line={"width": 0},
        name="95 % interval",
        hoverinfo="skip",
        row=1,
        col=1,
    )


def _add_points(figure: go.Figure, bins: Mapping, colour: str, name: str, dash: str = "solid") -> None:
    spans = list(zip(bins["edges"], bins["edges"][1:], bins["count"], bins["low"], bins["high"], strict=False))
    figure.add_scatter(
        x=bins["mean_prediction"],
        y=bins["positive_rate"],
        mode="lines+markers",
        line={"color": colour, "width": 2, "dash": dash},
        marker={"size": 7},
        name=name,
        customdata=spans,
        hovertemplate="%{customdata[2]} images scored %{customdata[0]:.1%} to %{customdata[1]:.1%}:<br>"
        "%{y:.1%} have it (95 %: %{customdata[3]:.1%} to %{customdata[4]:.1%})<extra></extra>",
        row=1,
        col=1,
    )


def roc(
    curves: Mapping[str, Mapping], attribute: str = "micro", theme: str = "light", values: Mapping | None = None
) -> go.Figure:
    """ROC curves of models, {name: curves.json}; `values` are their AUROC, shown beside the names."""
    figure = go.Figure()
    chance = {"color": "#94a3b8", "dash": "dot"}
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line=chance, name="chance", hoverinfo="skip")
    _add_curves(figure, curves, "roc", attribute, ("false_positive_rate", "true_positive_rate"), "AUROC", values)
    _dress(figure, f"ROC, {name_of(attribute)}", theme)
    figure.update_xaxes(title="false positive rate", range=[-0.01, 1.01], tickformat=".0%")
    figure.update_yaxes(title="true positive rate", range=[-0.01, 1.02], tickformat=".0%")
    return figure


def precision_recall(
    curves: Mapping[str, Mapping], attribute: str = "micro", theme: str = "light", values: Mapping | None = None
) -> go.Figure:
    """Precision-recall curves of models, {name: curves.json}; `values` are their AUPRC."""
    figure = go.Figure()
    _add_curves(figure, curves, "pr", attribute, ("recall", "precision"), "AUPRC", values)
    _dress(figure, f"Precision and recall, {name_of(attribute)}", theme)
    figure.update_xaxes(title="recall", range=[-0.01, 1.01], tickformat=".0%")
    figure.update_yaxes(title="precision", range=[-0.01, 1.02], tickformat=".0%")
    return figure


def _add_curves(
    figure: go.Figure,
    curves: Mapping,
    kind: str,
    attribute: str,
    axes: tuple[str, str],
    measure: str,
    values: Mapping | None,
) -> None:
    for i, (name, table) in enumerate(curves.items()):
        if attribute not in table[kind]:
            raise ValueError(f"There is no {kind} curve for {attribute!r}; choose one of {', '.join(table[kind])}.")
        curve = table[kind][attribute]
        label = f"{name}, {measure} {percent(values[name])}" if values and values.get(name) is not None else name
        figure.add_scatter(
            x=curve[axes[0]],
            y=curve[axes[1]],
            mode="lines",
            line={"color": COLOURS[i % len(COLOURS)], "width": 2, "shape": "hv" if kind == "pr" else "linear"},
            name=label,
            hovertemplate="%{x:.1%}, %{y:.1%}<extra>" + name + "</extra>",
        )


def pairs_map(pairs: Mapping, theme: str = "light") -> go.Figure:
    """Judged accuracy of every pair of attributes; pairs that training never saw are marked with a star."""
    names = [name_of(name) for name in pairs["names"]]
    place = {name: i for i, name in enumerate(pairs["names"])}
    grid: list[list[float | None]] = [[None] * len(names) for _ in names]
    seen: list[list[int | None]] = [[None] * len(names) for _ in names]
    stars = []
    for row in pairs["pairs"]:
        a, b = (place[name] for name in row["pair"])
        for i, j in ((a, b), (b, a)):
            grid[i][j], seen[i][j] = row["judged_right"], row["training_images"]
            if not row["training_images"]:
                stars.append((names[j], names[i]))
    figure = go.Figure(
        go.Heatmap(
            z=grid,
            x=names,
            y=names,
            customdata=seen,
            zmin=0,
            zmax=1,
            colorscale="Blues",
            xgap=1,
            ygap=1,
            colorbar={"tickformat": ".0%", "title": {"text": "judged right"}},
            hovertemplate="%{y} and %{x}: %{z:.0%} judged right<br>%{customdata} training images<extra></extra>",
        )
    )
    figure.add_scatter(
        x=[x for x, _ in stars], y=[y for _, y in stars], mode="markers", name="never seen together",
        marker={"symbol": "star", "size": 8, "color": COLOURS[1]}, hoverinfo="skip", showlegend=bool(stars),
    )  # fmt: skip
    _dress(figure, f"Pairs of attributes, {pairs['chains']} chain{'s' if pairs['chains'] != 1 else ''} each", theme)
    figure.update_layout(height=max(420, 26 * len(names) + 190), legend={"y": -0.32})
    figure.update_xaxes(showgrid=False, tickangle=-45)
    figure.update_yaxes(showgrid=False, autorange="reversed")
    return figure


def samplers_and_starts(rows: Sequence[Mapping], theme: str = "light") -> go.Figure:
    """Judged accuracy of seen and held-out pairs for both samplers and every start."""
    figure = go.Figure()
    labels = [f"{row['sampler']},<br>{row['start'].replace('-', ' ')}" for row in rows]
    for i, (key, name) in enumerate((("seen_pairs", "seen pairs"), ("held_out_pairs", "held-out pairs"))):
        shown = [(label, row[key]["judged_right"]) for label, row in zip(labels, rows, strict=True) if key in row]
        if not shown:
            continue
        rates = [rate for _, rate in shown]
        figure.add_bar(
            x=[label for label, _ in shown],
            y=[rate["value"] for rate in rates],
            name=name,
            marker={"color": COLOURS[i]},
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [rate["high"] - rate["value"] for rate in rates],
                "arrayminus": [rate["value"] - rate["low"] for rate in rates],
            },
            customdata=[rate["of"] for rate in rates],
            hovertemplate="%{y:.1%} of %{customdata} samples<extra>" + name + "</extra>",
        )
    _dress(figure, "Judged right, by sampler and start", theme)
    figure.update_yaxes(range=[0, 1.02], tickformat=".0%", title="judged right")
    return figure


def _dress(figure: go.Figure, title: str, theme: str) -> None:
    """One look for all; transparent, so that the page's own background shows."""
    if theme not in INK:
        raise ValueError(f"There is no theme {theme!r}; choose {' or '.join(INK)}.")
    figure.update_layout(
        title={"text": title, "x": 0.02, "font": {"size": 16}},
        font={"family": FONT, "size": 13, "color": INK[theme]},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        margin={"l": 60, "r": 20, "t": 50, "b": 50},
        height=460,
        legend={"orientation": "h", "y": -0.2, "x": 0},
        showlegend=True,
        hoverlabel={"font": {"family": FONT}},
    )
    figure.update_xaxes(gridcolor=GRID, zeroline=False)
    figure.update_yaxes(gridcolor=GRID, zeroline=False)
