"""Plotly figures from the files that the evaluation wrote: reliability, ROC, precision-recall, pairs, samplers.

Plotly and our own files only: the report of the command line and the app's screens draw the very same figures. Nothing
else in jem_core imports this module, so that who computes needs no Plotly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from jem_core.calibration import ALL, Calibration

Places = Mapping[str, int] | None  # of models in the palette, by name; without it in their order
Runs = Mapping[str, tuple[Sequence[int], Sequence[float]]]  # steps and shares of models
INK = {"light": "#23262d", "dark": "#ebe8e1"}  # these are the colours of the page's style sheet
SERIES = {
    "light": ("#0f766e", "#c2571d", "#6d3fc0", "#2563b8", "#a03a6b", "#6f7d18", "#8a6d3b", "#3b4252"),
    "dark": ("#4cc4b4", "#ef9a70", "#b79bff", "#77aef5", "#ee8fbd", "#c5d160", "#d9b98a", "#c3cbd9"),
}
MUTED = {"light": "#5b5f68", "dark": "#a9acb5"}
GAP = {"light": "#c62f3b", "dark": "#ff6b74"}
TRACK = {"light": "#e9e5dc", "dark": "#2b2f37"}
GRID = "rgba(128,128,128,.22)"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
HEIGHT = 400
AXES = {  # across, up, the measure of it, and how points are joined
    "roc": ("false_positive_rate", "true_positive_rate", "AUROC", "linear"),
    "pr": ("recall", "precision", "AUPRC", "hv"),
}
TENTHS = [tenth / 10 for tenth in range(0, 11, 2)]


def name_of(attribute: str) -> str:
    """An attribute as a reader would write it: Wearing_Hat is "Wearing hat"."""
    return "all attributes together" if attribute in (ALL, "micro") else attribute.replace("_", " ").capitalize()


def percent(value: float, digits: int = 1) -> str:
    return f"{100 * value:.{digits}f} %"


def _colour(theme: str, place: int) -> str:
    if theme not in SERIES:
        raise ValueError(f"There is no theme {theme!r}; choose {' or '.join(SERIES)}.")
    return SERIES[theme][place % len(SERIES[theme])]


def _colours(names: Iterable[str], theme: str, places: Places) -> dict[str, str]:
    """Of each model its own."""
    return {name: _colour(theme, i if places is None else places[name]) for i, name in enumerate(names)}


def reliability(
    calibration: Calibration | Mapping,
    attribute: str = ALL,
    baseline: Calibration | None = None,
    theme: str = "light",
    names: Sequence[str] = ("This model", "Supervised"),
    places: Sequence[int] = (0, 3),
    label: str = "",
) -> go.Figure:
    """Predicted against actual: points with their 95 % band, gaps to the diagonal, and how many answers there are.

    `baseline` is the calibration of another model, drawn as a line; `places` are the two models' in the palette, and
    `label` is what the reader calls the attribute.
    """
    found = _part(calibration, attribute)
    bins, colour = _filled(found["bins"]), _colour(theme, places[0])
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.8, 0.2], vertical_spacing=0.05)
    line = {"color": MUTED[theme], "dash": "dot"}
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line=line, name="perfect", hoverinfo="skip", showlegend=False)
    _add_gaps(figure, bins, GAP[theme])
    _add_band(figure, bins, colour)
    _add_points(figure, bins, colour, f"{names[0]}, ECE {percent(found['ece'])}")
    if baseline is not None:
        other = _part(baseline, attribute)
        title = f"{names[1]}, ECE {percent(other['ece'])}"
        _add_points(figure, _filled(other["bins"]), _colour(theme, places[1]), title, dash="dash")
    _add_counts(figure, found["histogram"], colour)
    dress(figure, f"Reliability, {label or name_of(attribute)}", theme)
    _shares(figure.update_xaxes, -0.01, 1.01)
    figure.update_xaxes(title_text="predicted", row=2, col=1)
    _shares(figure.update_yaxes, -0.02, 1.02, "actual", row=1, col=1)
    figure.update_yaxes(title_text="answers", nticks=3, row=2, col=1)
    return figure


def _shares(update: Callable, low: float, high: float, title: str | None = None, **where: int) -> None:
    """An axis of shares. Plotly's own format of a percentage has no space before the sign."""
    ticks = {"tickmode": "array", "tickvals": TENTHS, "ticktext": [percent(tenth, 0) for tenth in TENTHS]}
    update(range=[low, high], **ticks, **({"title_text": title} if title else {}), **where)


def _part(calibration: Calibration | Mapping, attribute: str) -> Mapping:
    found = calibration if isinstance(calibration, Calibration) else Calibration(calibration)
    return found.part(attribute)


def _filled(bins: Mapping) -> list[dict]:
    """The bins that hold something, one by one."""
    keys = ("mean_prediction", "positive_rate", "count", "low", "high")
    rows = zip(bins["edges"], bins["edges"][1:], *(bins[key] for key in keys), strict=False)
    return [dict(zip(("start", "end", *keys), row, strict=True)) for row in rows if row[4]]


def _add_gaps(figure: go.Figure, bins: Sequence[Mapping], colour: str) -> None:
    x, y = [], []
    for one in bins:
        x += [one["mean_prediction"], one["mean_prediction"], None]
        y += [one["mean_prediction"], one["positive_rate"], None]
    line = {"color": colour, "width": 6}
    figure.add_scatter(x=x, y=y, mode="lines", line=line, opacity=0.35, name="gap", hoverinfo="skip", row=1, col=1)


def _add_band(figure: go.Figure, bins: Sequence[Mapping], colour: str) -> None:
    x = [one["mean_prediction"] for one in bins]
    figure.add_scatter(
        x=[*x, *x[::-1]],
        y=[*(one["high"] for one in bins), *(one["low"] for one in reversed(bins))],
        mode="lines",
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
        customdata=[
            [f"{one['count']:,}", *(percent(one[key]) for key in ("start", "end", "positive_rate", "low", "high"))]
            for one in bins
        ],
        hovertemplate="%{customdata[0]} answers from %{customdata[1]} to %{customdata[2]}:<br>"
        "%{customdata[3]} have it (95 %: %{customdata[4]} to %{customdata[5]})<extra></extra>",
        row=1,
        col=1,
    )


def _add_counts(figure: go.Figure, histogram: Mapping, colour: str) -> None:
    edges = histogram["edges"]
    middles = [(a + b) / 2 for a, b in pairwise(edges)]
    figure.add_bar(
        x=middles,
        y=histogram["count"],
        width=edges[1] - edges[0],
        marker={"color": colour, "opacity": 0.45},
        row=2,
        col=1,
        name="answers",
        showlegend=False,
        customdata=[percent(middle, 0) for middle in middles],
        hovertemplate="%{y} answers around %{customdata}<extra></extra>",
    )


def roc(
    curves: Mapping[str, Mapping],
    attribute: str = "micro",
    theme: str = "light",
    values: Mapping | None = None,
    places: Places = None,
    label: str = "",
) -> go.Figure:
    """ROC curves of models, {name: curves.json}; `values` are their AUROC, shown beside the names, `places` theirs in
    the palette; `label` is what the reader calls the attribute."""
    figure = go.Figure()
    colours = _colours(curves, theme, places)
    chance = {"color": MUTED[theme], "dash": "dot"}
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line=chance, name="chance", hoverinfo="skip")
    _add_curves(figure, curves, "roc", attribute, values, colours)
    dress(figure, f"ROC, {label or name_of(attribute)}", theme)
    return figure


def precision_recall(
    curves: Mapping[str, Mapping],
    attribute: str = "micro",
    theme: str = "light",
    values: Mapping | None = None,
    places: Places = None,
    label: str = "",
) -> go.Figure:
    """Precision-recall curves of models, as `roc`; `values` are their AUPRC."""
    figure = go.Figure()
    _add_curves(figure, curves, "pr", attribute, values, _colours(curves, theme, places))
    dress(figure, f"Precision and recall, {label or name_of(attribute)}", theme)
    return figure


def _add_curves(
    figure: go.Figure, curves: Mapping, kind: str, attribute: str, values: Mapping | None, colours: Mapping[str, str]
) -> None:
    across, up, measure, shape = AXES[kind]
    for name, table in curves.items():
        if attribute not in table[kind]:
            raise ValueError(f"There is no {kind} curve for {attribute!r}; choose one of {', '.join(table[kind])}.")
        x, y = table[kind][attribute][across], table[kind][attribute][up]
        value = values.get(name) if values else None
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            line={"color": colours[name], "width": 2, "shape": shape},
            name=name if value is None else f"{name}, {measure} {percent(value)}",
            customdata=[f"{percent(a)}, {percent(b)}" for a, b in zip(x, y, strict=True)],
            hovertemplate="%{customdata}<extra>" + name + "</extra>",
        )
    _shares(figure.update_xaxes, -0.01, 1.01, across.replace("_", " "))
    _shares(figure.update_yaxes, -0.01, 1.02, up.replace("_", " "))


def pairs_map(pairs: Mapping, theme: str = "light") -> go.Figure:
    """Judged accuracy of every pair of attributes; pairs that training never saw are marked with a star."""
    names = [name_of(name) for name in pairs["names"]]
    place = {name: i for i, name in enumerate(pairs["names"])}
    grid: list[list[float | None]] = [[None] * len(names) for _ in names]
    facts: list[list[str]] = [[""] * len(names) for _ in names]
    stars = []
    for row in pairs["pairs"]:
        a, b = (place[name] for name in row["pair"])
        for i, j in ((a, b), (b, a)):
            grid[i][j] = row["judged_right"]
            facts[i][j] = (
                f"{percent(row['judged_right'], 0)} match the request<br>{row['training_images']:,} training images"
            )
            if not row["training_images"]:
                stars.append((names[j], names[i]))
    figure = go.Figure(
        go.Heatmap(
            z=grid,
            x=names,
            y=names,
            customdata=facts,
            zmin=0,
            zmax=1,
            colorscale=[[0, TRACK[theme]], [1, _colour(theme, 0)]],
            xgap=1,
            ygap=1,
            colorbar={"tickvals": TENTHS, "ticktext": [percent(one, 0) for one in TENTHS], "title": {"text": "match"}},
            hovertemplate="%{y} and %{x}: %{customdata}<extra></extra>",
        )
    )
    figure.add_scatter(
        x=[x for x, _ in stars], y=[y for _, y in stars], mode="markers", name="never seen together",
        marker={"symbol": "star", "size": 8, "color": _colour(theme, 1)}, hoverinfo="skip", showlegend=bool(stars),
    )  # fmt: skip
    dress(figure, f"Pairs of attributes, {pairs['chains']} chain{'s' if pairs['chains'] != 1 else ''} each", theme)
    figure.update_layout(height=max(420, 26 * len(names) + 190))
    figure.update_xaxes(showgrid=False, tickangle=-45)
    figure.update_yaxes(showgrid=False, autorange="reversed")
    return figure


def samplers_and_starts(rows: Sequence[Mapping], theme: str = "light", place: int = 0) -> go.Figure:
    """Judged accuracy of seen and held-out pairs for both samplers and every start, of one model: one colour, hatched
    for what it never saw."""
    figure = go.Figure()
    labels = [f"{row['sampler']},<br>{row['start'].replace('-', ' ')}" for row in rows]
    for key, name, shape in (("seen_pairs", "seen pairs", ""), ("held_out_pairs", "unseen pairs", "/")):
        shown = [(label, row[key]["judged_right"]) for label, row in zip(labels, rows, strict=True) if key in row]
        if not shown:
            continue
        rates = [rate for _, rate in shown]
        figure.add_bar(
            x=[label for label, _ in shown],
            y=[rate["value"] for rate in rates],
            name=name,
            marker={"color": _colour(theme, place), "pattern": {"shape": shape}},
            error_y={
                "type": "data",
                "color": INK[theme],
                "symmetric": False,
                "array": [rate["high"] - rate["value"] for rate in rates],
                "arrayminus": [rate["value"] - rate["low"] for rate in rates],
            },
            customdata=[f"{percent(rate['value'])} of {rate['of']:,} samples" for rate in rates],
            hovertemplate="%{customdata}<extra>" + name + "</extra>",
        )
    dress(figure, "Matches the request, by sampler and start", theme)
    _shares(figure.update_yaxes, 0, 1.02, "match the request")
    return figure


def steering(shares: Mapping[str, Sequence[float]], theme: str = "light", places: Places = None) -> go.Figure:
    """The share of pictures that match the whole request after each change, a line for each model."""
    runs = {name: (list(range(len(values))), values) for name, values in shares.items()}
    figure = _lines("Steering: changes one after another", runs, theme, places)
    return figure.update_xaxes(title_text="changes made", dtick=1)


def long_run(runs: Runs, theme: str = "light", places: Places = None) -> go.Figure:
    """The share of pictures that match the request when chains go on and on, a line for each model."""
    figure = _lines("Long runs: letting chains continue", runs, theme, places)
    return figure.update_xaxes(title_text="further steps", rangemode="tozero")


def _lines(title: str, runs: Runs, theme: str, places: Places) -> go.Figure:
    figure, colours = go.Figure(), _colours(runs, theme, places)
    for name, (x, y) in runs.items():
        figure.add_scatter(
            x=list(x),
            y=list(y),
            mode="lines+markers",
            name=name,
            line={"color": colours[name], "width": 2.5},
            marker={"size": 7},
            cliponaxis=False,  # the first point stands on the axis
            customdata=[percent(value, 0) for value in y],
            hovertemplate="%{x}: %{customdata}<extra>" + name + "</extra>",
        )
    dress(figure, title, theme)
    _shares(figure.update_yaxes, -0.02, 1.04, "match the request")
    return figure.update_layout(margin={"b": 72})


def dress(figure: go.Figure, title: str, theme: str) -> None:
    """One look for all; transparent, so that the page's own background shows. Made to be read at 360 pixels too."""
    figure.update_layout(
        title={"text": title, "x": 0, "xref": "container", "xanchor": "left", "pad": {"l": 8}, "font": {"size": 15}},
        font={"family": FONT, "size": 12.5, "color": INK[theme]},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        margin={"l": 52, "r": 24, "t": 40, "b": 96},  # "100 %" needs room at the right
        height=HEIGHT,
        # At the very bottom, whatever the height: two rows on a wide screen, four on a phone.
        legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0, "font": {"size": 12}},
        showlegend=True,
        hoverlabel={"font": {"family": FONT}},
        dragmode=False,
    )
    for update in (figure.update_xaxes, figure.update_yaxes):
        update(gridcolor=GRID, zeroline=False, title_standoff=6, title_font={"size": 13}, fixedrange=True)
