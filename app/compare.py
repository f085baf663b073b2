"""The third screen: the models compared, in tables and curves that stand in their evaluation files."""

from __future__ import annotations

import logging
from pathlib import Path

import gradio as gr
import plotly.graph_objects as go

from app import explain, plots, tables
from app.attributes import caption
from app.catalog import OBJECTIVES as WORDS
from app.reports import OBJECTIVES, TITLES, Family, families, family_of, look, report
from app.runtime import current
from app.settings import short
from app.studio import WIRE

ASSETS = Path(__file__).resolve().parent.parent / "assets"
SCRIPTS = ("base", "compare", "explain")
AVERAGED = "all"
PAPER_ONLY = "paper-"  # families of which we have the paper's figures alone
log = logging.getLogger("gibbs_jem")


def build(demo: gr.Blocks) -> None:
    """Tables above, plots in the middle, the heat map and the pictures below; drawn when the screen is opened."""
    reply = gr.HTML(None, html_template="<i></i>", js_on_load=WIRE.format("onCompare"), elem_classes="gj-wire")
    top = gr.HTML(
        html_template=(ASSETS / "compare.html").read_text(),
        js_on_load="\n".join((ASSETS / f"{name}.js").read_text() for name in SCRIPTS),
        apply_default_css=False,
        elem_id="gj-compare",
    )
    look_of = {"show_label": False, "container": False, "elem_classes": "gj-plot", "visible": False}
    with gr.Row(elem_classes="gjc-plots"):
        reliability = [gr.Plot(**look_of, elem_id=f"gj-reliability-{o}", min_width=300) for o in OBJECTIVES]
    with gr.Row(elem_classes="gjc-plots"):
        curves = [gr.Plot(**look_of, elem_id=f"gj-{name}", min_width=300) for name in ("roc", "pr")]
    variants = gr.Plot(**look_of, elem_id="gj-variants")
    gr.HTML(html_template=(ASSETS / "compare_more.html").read_text(), apply_default_css=False, elem_id="gj-more")
    quiet = {"show_progress": "hidden", "api_visibility": "private", "trigger_mode": "multiple", "queue": False}
    top.open(opened, None, [reply, *reliability, *curves, variants], **quiet)
    top.explain(explained, None, reply, **(quiet | {"queue": True}), concurrency_limit=1, concurrency_id="explain")


def opened(event: gr.EventData) -> tuple:
    """Everything for one data set and one attribute."""
    wish = event._data if isinstance(event._data, dict) else {}
    order = wish.get("order") if isinstance(wish.get("order"), int) else 0
    try:
        known = choices()
        key = wish.get("family") if wish.get("family") is not None else first(known, wish.get("model"))
        if not isinstance(key, str) or key not in known:
            raise ValueError(f"The data set is {short(key)}; choose one of {', '.join(known)}.")
        theme = wish.get("theme") if wish.get("theme") in tuple(plots.INK) else "light"
        family = families(current().catalog).get(key)
        attribute = _attribute(family, wish.get("attribute"))
        figures = draw(family, attribute, theme)
        answer = page_of(key, known, family, attribute)
    except ValueError as error:
        return {"kind": "refused", "order": order, "message": str(error)}, *(gr.skip() for _ in range(6))
    return answer | {"kind": "compare", "order": order}, *figures


def first(known: dict[str, str], model: object) -> str:
    """Where the screen opens: at the model that the address names, or at the first."""
    catalog = current().catalog
    here = isinstance(model, str) and any(entry.name == model for entry in catalog.entries())
    family = family_of(catalog, model) if here else None
    return family.key if family else next(iter(known))


def choices() -> dict[str, str]:
    """The data sets of the models at hand, then those of the paper alone."""
    known = families(current().catalog)
    here = {family.source for family in known.values()}
    only = {
        PAPER_ONLY + source: f"{TITLES[source]} (the paper)" for source in tables.paper()["data"] if source not in here
    }
    return {key: family.title for key, family in known.items()} | only


def page_of(key: str, known: dict[str, str], family: Family | None, attribute: str) -> dict:
    source = family.source if family else key.removeprefix(PAPER_ONLY)
    return {
        "families": [{"key": one, "title": title} for one, title in known.items()],
        "family": key,
        "attribute": attribute,
        "attributes": [{"name": name, "label": caption(name)} for name in (family.attributes if family else ())],
        "prediction": tables.prediction_table(family, source),
        "synthesis": tables.synthesis_table(family) if family else [],
        "pairs": tables.pairs_grid(family) if family else None,
        "missing": tables.missing_words(family) if family else "These are the paper's figures alone.",
        "model": family.main.name if family and family.main.objective != "supervised" else None,
    }


def _attribute(family: Family | None, value: object) -> str:
    names = (AVERAGED, *(family.attributes if family else ()))
    return value if isinstance(value, str) and value in names else AVERAGED


def draw(family: Family | None, attribute: str, theme: str) -> list[dict]:
    """The six plots; one that has no file is hidden."""
    models = family.models if family else {}
    figures: list[go.Figure | None] = []
    for objective in OBJECTIVES:
        found = report(models[objective], "calibration") if objective in models else None
        figures.append(_reliability(found, objective, attribute, theme))
    titles = {o: WORDS.get(o, o) for o in reversed(OBJECTIVES) if o in models}
    found = {titles[o]: report(models[o], "curves") for o in titles}
    found = {title: table for title, table in found.items() if table}
    part = "micro" if attribute == AVERAGED else f"attributes.{attribute}"
    for draw_curve, kind, measure in ((plots.roc, "roc", "auroc"), (plots.precision_recall, "pr", "auprc")):
        name = "micro" if attribute == AVERAGED else attribute
        shown = {title: table for title, table in found.items() if name in table[kind]}
        values = {
            titles[o]: look(report(models[o], "evaluation") or {}, f"prediction.{part}.{measure}.value") for o in titles
        }
        figures.append(draw_curve(shown, name, theme, values) if shown else None)
    rows = look(report(family.main, "evaluation") or {}, "synthesis.samplers_and_starts") if family else None
    figures.append(plots.samplers_and_starts(rows, theme) if rows else None)
    if figures[-1] is not None:  # on a narrow screen the names below stand upright and would meet the legend
        figures[-1].update_layout(legend={"y": 1.0, "yanchor": "bottom"}, margin={"t": 80})
    return [gr.update(value=figure, visible=figure is not None) for figure in figures]


def _reliability(calibration: dict | None, objective: str, attribute: str, theme: str) -> go.Figure | None:
    if calibration is None or (attribute != AVERAGED and attribute not in calibration["attributes"]):
        return None
    name = WORDS.get(objective, objective)
    figure = plots.reliability(calibration, attribute, theme=theme, names=(name, ""))
    figure.update_layout(title={"text": name[:1].upper() + name[1:]}, height=400)
    return figure


def explained(event: gr.EventData) -> dict:
    """How it works, drawn with the live kernel."""
    wish = event._data if isinstance(event._data, dict) else {}
    try:
        names = tuple(current().catalog.attributes())
        name = wish.get("model") if wish.get("model") in names else names[0]
        seed = wish.get("seed") if isinstance(wish.get("seed"), int) and 0 <= wish["seed"] < 2**31 else 0
        return {"kind": "explain", "model": name, "pictures": explain.pictures(current().catalog.bundle(name), seed)}
    except (ValueError, IndexError) as error:
        return {"kind": "refused", "order": None, "message": str(error)}
