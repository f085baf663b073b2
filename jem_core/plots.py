"""Plotly figures from the files that the evaluation wrote: reliability, ROC, precision-recall, pairs, samplers.

Plotly and our own files only: the report of the command line and the app's screens draw the very same figures. Nothing
else in jem_core imports this module, so that who computes needs no Plotly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from jem_core.calibration import ALL, Calibration

COLOURS = ("#2a9d8f", "#d97742", "#7c5cc4", "#64748b")  # ours, the second model, the third, the baseline
GAP, GRID, QUIET = "#dc2626", "rgba(128,128,128,.22)", "#94a3b8"
INK = {"light": "#1f2937", "dark": "#e5e7eb"}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
HEIGHT = 400


def name_of(attribute: str) -> str:
    """An attribute as a reader would write it."""
    return {ALL: "all attributes together", "micro": "all attributes together"}.get(
        attribute, attribute.replace("_", " ")
    )


def reliability(
    calibration: Calibration | Mapping,
    attribute: str = ALL,
    baseline: Calibration | None = None,
    theme: str = "light",
    names: Sequence[str] = ("This model", "Supervised"),
) -> go.Figure:
    """Predicted against actual: points with their 95 % band, gaps to the diagonal, and how many answers there are.

    `baseline` is the calibration of another model, drawn as a line.
    """
    found = _part(calibration, attribute)
    bins, colour = _filled(found["bins"]), COLOURS[0]
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.8, 0.2], vertical_spacing=0.05)
    line = {"color": QUIET, "dash": "dot"}
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line=line, name="perfect", hoverinfo="skip", showlegend=False)
    _add_gaps(figure, bins)
    _add_band(figure, bins, colour)
    _add_points(figure, bins, colour, f"{names[0]}, ECE {percent(found['ece'])}")
    if baseline is not None:
        other = _part(baseline, attribute)
        label = f"{names[1]}, ECE {percent(other['ece'])}"
        _add_points(figure, _filled(other["bins"]), COLOURS[3], label, dash="dash")
    _add_counts(figure, found["histogram"], colour)
    dress(figure, f"Reliability, {name_of(attribute)}", theme)
    figure.update_xaxes(range=[-0.01, 1.01], tickformat=".0%")
    figure.update_xaxes(title="predicted", row=2, col=1)
    figure.update_yaxes(title="actual", range=[-0.02, 1.02], tickformat=".0%", row=1, col=1)
    figure.update_yaxes(title="answers", nticks=3, row=2, col=1)
    return figure


def _part(calibration: Calibration | Mapping, attribute: str) -> Mapping:
    found = calibration if isinstance(calibration, Calibration) else Calibration(calibration)
    return found.part(attribute)


def percent(value: float, digits: int = 1) -> str:
    return f"{100 * value:.{digits}f} %"


def _filled(bins: Mapping) -> list[dict]:
    """The bins that hold something, one by one."""
    keys = ("mean_prediction", "positive_rate", "count", "low", "high")
    rows = zip(bins["edges"], bins["edges"][1:], *(bins[key] for key in keys), strict=False)
    return [dict(zip(("start", "end", *keys), row, strict=True)) for row in rows if row[4]]


def _add_gaps(figure: go.Figure, bins: Sequence[Mapping]) -> None:
    x, y = [], []
    for one in bins:
        x += [one["mean_prediction"], one["mean_prediction"], None]
        y += [one["mean_prediction"], one["positive_rate"], None]
    line = {"color": GAP, "width": 6}
    figure.add_scatter(x=x, y=y, mode="lines", line=line, opacity=0.35, name="gap", hoverinfo="skip", row=1, col=1)


def _add_band(figure: go.Figure, bins: Sequence[Mapping], colour: str) -> None:
    x = [one["mean_prediction"] for one in bins]
    figure.add_scatter(
        x=[*x, *x[::-1]],
        y=[*(one["high"] for one in bins), *(one["low"] for one in reversed(bins))],
        fill="toself",
        fillcolor=colour,
        opacity=0.16,
        line={"width": 0},
        name="95 % interval",
        hoverinfo="skip",
        row=1,
        col=1,
    )


def _add_points(figure: go.Figure, bins: Sequence[Mapping], colour: str, name: str, dash: str = "solid") -> None:
    figure.add_scatter(
        x=[one["mean_prediction"] for one in bins],
        y=[one["positive_rate"] for one in bins],
        mode="lines+markers",
        line={"color": colour, "width": 2, "dash": dash},
        marker={"size": 6},
        name=name,
        customdata=[[one[key] for key in ("start", "end", "count", "low", "high")] for one in bins],
        hovertemplate="%{customdata[2]} answers from %{customdata[0]:.1%} to %{customdata[1]:.1%}:<br>"
        "%{y:.1%} have it (95 %: %{customdata[3]:.1%} to %{customdata[4]:.1%})<extra></extra>",
        row=1,
        col=1,
    )


def _add_counts(figure: go.Figure, histogram: Mapping, colour: str) -> None:
    edges = histogram["edges"]
    figure.add_bar(
        x=[(a + b) / 2 for a, b in pairwise(edges)],
        y=histogram["count"],
        width=edges[1] - edges[0],
        marker={"color": colour, "opacity": 0.45},
        row=2,
        col=1,
        name="answers",
        showlegend=False,
        hovertemplate="%{y} answers around %{x:.0%}<extra></extra>",
    )


def roc(
    curves: Mapping[str, Mapping], attribute: str = "micro", theme: str = "light", values: Mapping | None = None
) -> go.Figure:
    """ROC curves of models, {name: curves.json}; `values` are their AUROC, shown beside the names."""
    figure = go.Figure()
    chance = {"color": QUIET, "dash": "dot"}
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line=chance, name="chance", hoverinfo="skip")
    _add_curves(figure, curves, "roc", attribute, ("false_positive_rate", "true_positive_rate"), "AUROC", values)
    dress(figure, f"ROC, {name_of(attribute)}", theme)
    figure.update_xaxes(title="false positive rate", range=[-0.01, 1.01], tickformat=".0%")
    figure.update_yaxes(title="true positive rate", range=[-0.01, 1.02], tickformat=".0%")
    return figure


def precision_recall(
    curves: Mapping[str, Mapping], attribute: str = "micro", theme: str = "light", values: Mapping | None = None
) -> go.Figure:
    """Precision-recall curves of models, {name: curves.json}; `values` are their AUPRC."""
    figure = go.Figure()
    _add_curves(figure, curves, "pr", attribute, ("recall", "precision"), "AUPRC", values)
    dress(figure, f"Precision and recall, {name_of(attribute)}", theme)
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
            colorbar={"tickformat": ".0%", "title": {"text": "match"}},
            hovertemplate="%{y} and %{x}: %{z:.0%} match the request<br>%{customdata} training images<extra></extra>",
        )
    )
    figure.add_scatter(
        x=[x for x, _ in stars], y=[y for _, y in stars], mode="markers", name="never seen together",
        marker={"symbol": "star", "size": 8, "color": COLOURS[1]}, hoverinfo="skip", showlegend=bool(stars),
    )  # fmt: skip
    dress(figure, f"Pairs of attributes, {pairs['chains']} chain{'s' if pairs['chains'] != 1 else ''} each", theme)
    figure.update_layout(height=max(420, 26 * len(names) + 190))
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
                "color": INK[theme],
                "symmetric": False,
                "array": [rate["high"] - rate["value"] for rate in rates],
                "arrayminus": [rate["value"] - rate["low"] for rate in rates],
            },
            customdata=[rate["of"] for rate in rates],
            hovertemplate="%{y:.1%} of %{customdata} samples<extra>" + name + "</extra>",
        )
    dress(figure, "Matches the request, by sampler and start", theme)
    figure.update_yaxes(range=[0, 1.02], tickformat=".0%", title="match the request")
    return figure


def steering(shares: Mapping[str, Sequence[float]], theme: str = "light") -> go.Figure:
    """The share of pictures that match the whole request after each change, a line for each model."""
    figure = go.Figure()
    for i, (name, values) in enumerate(shares.items()):
        _add_line(figure, list(range(len(values))), values, name, i)
    dress(figure, "Steering: changes one after another", theme)
    figure.update_layout(margin={"b": 72})
    figure.update_xaxes(title="changes made", dtick=1)
    figure.update_yaxes(title="match the request", range=[-0.02, 1.04], tickformat=".0%")
    return figure


def long_run(runs: Mapping[str, tuple[Sequence[int], Sequence[float]]], theme: str = "light") -> go.Figure:
    """The share of pictures that match the request when chains go on and on, a line for each model."""
    figure = go.Figure()
    for i, (name, (steps, values)) in enumerate(runs.items()):
        _add_line(figure, steps, values, name, i)
    dress(figure, "Long runs: chains that go on", theme)
    figure.update_layout(margin={"b": 72})
    figure.update_xaxes(title="further steps", rangemode="tozero")
    figure.update_yaxes(title="match the request", range=[-0.02, 1.04], tickformat=".0%")
    return figure


def _add_line(figure: go.Figure, x: Sequence[float], y: Sequence[float], name: str, i: int) -> None:
    figure.add_scatter(
        x=list(x),
        y=list(y),
        mode="lines+markers",
        name=name,
        line={"color": COLOURS[i % len(COLOURS)], "width": 2.5},
        marker={"size": 7},
        cliponaxis=False,  # the first point stands on the axis
        hovertemplate="%{x}: %{y:.0%}<extra>" + name + "</extra>",
    )


def dress(figure: go.Figure, title: str, theme: str) -> None:
    """One look for all; transparent, so that the page's own background shows. Made to be read at 360 pixels too."""
    if theme not in INK:
        raise ValueError(f"There is no theme {theme!r}; choose {' or '.join(INK)}.")
    figure.update_layout(
        title={"text": title, "x": 0, "xref": "container", "xanchor": "left", "pad": {"l": 8}, "font": {"size": 15}},
        font={"family": FONT, "size": 12.5, "color": INK[theme]},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        margin={"l": 52, "r": 14, "t": 40, "b": 96},
        height=HEIGHT,
        # At the very bottom, whatever the height: two rows on a wide screen, four on a phone.
        legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0, "font": {"size": 12}},
        showlegend=True,
        hoverlabel={"font": {"family": FONT}},
        dragmode=False,
    )
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(gridcolor=GRID, zeroline=False, title_standoff=6, title_font={"size": 13}, fixedrange=True)
