"""The third screen: which model is best at what, in words, pictures, tables and curves from the evaluation's files."""

from __future__ import annotations

from functools import lru_cache

import gradio as gr
import plotly.graph_objects as go

from app import gpu, kinds, static, summary, tables
from app.api import as_uris
from app.attributes import caption, sentence
from app.deadlines import Deadline
from app.drawing import draw as draw_samples
from app.gradio_inside import sent
from app.reports import OBJECTIVES, TITLES, Family, calibration, families, family_of, report, stamp, value_at
from app.runtime import current
from app.settings import short
from app.studio import WIRE
from jem_core import plots
from jem_core.calibration import ALL, Calibration
from jem_core.condition import Condition
from jem_core.grids import shown_conditions

PAPER_ALONE = "There is no model of ours here: these are the paper's figures alone."
PAPER_ONLY = "paper-"  # families of which we have the paper's figures alone
PICTURES, CONDITIONS = 6, 6  # of a row, to choose from
OTHER_PLOTS = 5  # besides a reliability plot for each objective


def build(demo: gr.Blocks) -> None:
    """Words, short table and pictures above; steering; folded tables and the map of pairs; curves below."""
    reply = gr.HTML(None, html_template="<i></i>", js_on_load=WIRE.format("onCompare"), elem_classes="gj-wire")
    top = gr.HTML(
        html_template=_read("compare.html"),
        js_on_load=static.module("compare.js", "open", "rows"),
        apply_default_css=False,
        elem_id="gj-compare",
    )
    look = {"show_label": False, "container": False, "elem_classes": "gj-plot", "visible": False, "min_width": 300}
    with gr.Row(elem_classes="gjc-plots"):
        steering = [gr.Plot(**look, elem_id=f"gj-{name}") for name in ("steering", "long-run")]
    gr.HTML(html_template=_read("compare_more.html"), apply_default_css=False, elem_id="gj-more")
    with gr.Row(elem_classes="gjc-plots gjc-folded"):
        reliability = [gr.Plot(**look, elem_id=f"gj-reliability-{o}") for o in OBJECTIVES]
    with gr.Row(elem_classes="gjc-plots gjc-folded"):
        curves = [gr.Plot(**look, elem_id=f"gj-{name}") for name in ("roc", "pr")]
    with gr.Row(elem_classes="gjc-plots gjc-folded"):
        variants = gr.Plot(**look, elem_id="gj-variants")
    quiet = {"show_progress": "hidden", "api_visibility": "private", "trigger_mode": "multiple"}
    top.open(opened, None, [reply, *steering, *reliability, *curves, variants], queue=False, **quiet)
    sampler = {"concurrency_limit": current().limits.runs_at_once, "concurrency_id": "sampler"}
    top.rows(rows, None, reply, **sampler, **quiet)


def _read(name: str) -> str:
    return (static.ASSETS / name).read_text()


def opened(event: gr.EventData) -> tuple:
    """Everything for one data set and one attribute."""
    asked, order = _asked(event)
    try:
        known = choices()
        key = asked.get("family") if asked.get("family") is not None else first(known, asked.get("model"))
        if not isinstance(key, str) or key not in known:
            raise ValueError(f"The data set is {short(key)}; choose one of {', '.join(known)}.")
        theme = asked.get("theme") if asked.get("theme") in tuple(plots.INK) else "light"
        family = families(current().catalog).get(key)
        attribute = _attribute(family, asked.get("attribute"))
        figures = _kept_plots(stamp(family), key, attribute, theme)
        answer = page_of(key, known, family, attribute)
    except ValueError as error:
        refused = {"kind": "refused", "order": order, "message": str(error)}
        return refused, *(gr.skip() for _ in range(len(OBJECTIVES) + OTHER_PLOTS))
    # Gradio empties an update as it sends it, so each visitor gets a new one.
    updates = (gr.update(value=figure, visible=figure is not None) for figure in figures)
    return answer | {"kind": "compare", "order": order}, *updates


def _asked(event: gr.EventData) -> tuple[dict, int]:
    asked = sent(event)
    return asked, asked.get("order") if isinstance(asked.get("order"), int) else 0


def first(known: dict[str, str], model: object) -> str:
    """Where the screen opens: at the model that the address names, or at the first data set with figures to show."""
    catalog = current().catalog
    here = isinstance(model, str) and any(entry.name == model for entry in catalog.entries())
    family = family_of(catalog, model) if here else None
    if family is None:
        measured = (one for one in families(catalog).values() if any(report(e, "evaluation") for e in one.by_age()))
        family = next(measured, None)
    return family.key if family else next(iter(known))


def choices() -> dict[str, str]:
    """The data sets of the models at hand, then those of the paper alone."""
    known = families(current().catalog)
    here = {TITLES.get(family.source, family.source) for family in known.values()}
    alone = [source for source in tables.paper()["data"] if TITLES[source] not in here]
    only = {PAPER_ONLY + source: f"{TITLES[source]} (the paper)" for source in alone}
    return {key: family.title for key, family in known.items()} | only


def page_of(key: str, known: dict[str, str], family: Family | None, attribute: str) -> dict:
    source = family.source if family else key.removeprefix(PAPER_ONLY)
    return {
        "families": [{"key": one, "title": title} for one, title in known.items()],
        "family": key,
        "paragraph": summary.paragraph(family, families(current().catalog).values()) if family else PAPER_ALONE,
        "headline": summary.headline(family) if family else None,
        "conditions": [sentence(condition) for condition in conditions(family)] if family else [],
        "attribute": attribute,
        "attributes": [{"name": name, "label": caption(name)} for name in (family.attributes if family else ())],
        "prediction": tables.prediction_table(family, source),
        "synthesis": tables.synthesis_table(family) if family else [],
        "pairs": tables.pairs_grid(family) if family else None,
        "missing": tables.missing_words(family) if family else "",
    }


def _attribute(family: Family | None, value: object) -> str:
    names = (ALL, *(family.attributes if family else ()))
    return value if isinstance(value, str) and value in names else ALL


def generators(family: Family) -> dict[str, str]:
    """The models of a family that make pictures, by objective, the newest kind first."""
    return {entry.objective: entry.name for entry in family.by_age() if entry.generates}


def conditions(family: Family) -> list[Condition]:
    """What rows of pictures may be asked for: common attributes, pairs, and pairs that training never saw."""
    names = generators(family).values()
    return shown_conditions(current().catalog.bundle(next(iter(names))), CONDITIONS) if names else []


def rows(event: gr.EventData) -> dict:
    """The same condition and the same seed, a row of pictures for each model of the family."""
    asked, order = _asked(event)
    try:
        family = families(current().catalog).get(asked.get("family") if isinstance(asked.get("family"), str) else "")
        known = conditions(family) if family else []
        number, seed = asked.get("condition"), asked.get("seed")
        good = all(isinstance(value, int) and not isinstance(value, bool) and value >= 0 for value in (number, seed))
        if not good or number >= len(known) or seed >= 2**31:
            raise ValueError("There is no such row of pictures.")
        found = [
            {"title": kinds.title(objective), "images": list(_row(name, known[number].values, seed))}
            for objective, name in generators(family).items()
        ]
    except ValueError as error:
        return {"kind": "refused", "order": order, "message": str(error)}
    return {"kind": "rows", "order": order, "condition": number, "seed": seed, "rows": found}


@lru_cache(maxsize=192)
def _row(name: str, values: tuple[int, ...], seed: int) -> tuple[str, ...]:
    return tuple(_drawn(name, values, seed))


def _drawn(name: str, values: tuple[int, ...], seed: int) -> list[str]:
    bundle = current().catalog.bundle(name)
    deadline = Deadline(current().limits.call_seconds)
    return as_uris(draw_samples(bundle, Condition(bundle.names, values), PICTURES, seed, 1, deadline).images)


_drawn = gpu.on_gpu(_drawn, duration=lambda name, values, seed: gpu.time_for(PICTURES * 100))


@lru_cache(maxsize=192)
def _kept_plots(stamp: tuple, key: str, attribute: str, theme: str) -> tuple[go.Figure | None, ...]:
    """Drawing them takes a third of a second, and anybody may ask for them again and again."""
    return tuple(draw(families(current().catalog).get(key), attribute, theme))


def draw(family: Family | None, attribute: str, theme: str) -> list[go.Figure | None]:
    """All plots; None for one that has no file. A model is called the same, and has one colour, on all of them."""
    models = family.models if family else {}
    lines = summary.curves(family) if family else {"steering": {}, "long_run": {}}
    steering, runs = ({kinds.title(o): line for o, line in lines[key].items()} for key in ("steering", "long_run"))
    places = {kinds.title(o): kinds.place(o) for o in OBJECTIVES}
    figures: list[go.Figure | None] = [
        plots.steering(steering, theme, places) if steering else None,
        plots.long_run(runs, theme, places) if runs else None,
    ]
    for objective in OBJECTIVES:
        found = calibration(models[objective]) if objective in models else None
        figures.append(_reliability(found, objective, attribute, theme))
    figures += _curves(models, attribute, theme, places)
    figures.append(_variants(family, theme))
    return figures


def _curves(models: dict, attribute: str, theme: str, places: dict[str, int]) -> list[go.Figure | None]:
    titles = {o: kinds.title(o) for o in reversed(OBJECTIVES) if o in models}
    found = {titles[o]: report(models[o], "curves") for o in titles}
    name, part = ("micro", "micro") if attribute == ALL else (attribute, f"attributes.{attribute}")
    figures = []
    for draw_curve, kind, measure in ((plots.roc, "roc", "auroc"), (plots.precision_recall, "pr", "auprc")):
        shown = {title: table for title, table in found.items() if table and name in table[kind]}
        values = {
            titles[o]: value_at(report(models[o], "evaluation") or {}, f"prediction.{part}.{measure}.value")
            for o in titles
        }
        label = "" if attribute == ALL else caption(attribute)
        figures.append(draw_curve(shown, name, theme, values, places, label) if shown else None)
    return figures


def _reliability(found: Calibration | None, objective: str, attribute: str, theme: str) -> go.Figure | None:
    if found is None or (attribute != ALL and attribute not in found.names):
        return None
    name = kinds.title(objective)
    figure = plots.reliability(found, attribute, theme=theme, names=(name, ""), places=(kinds.place(objective),))
    return figure.update_layout(title={"text": name})


def _variants(family: Family | None, theme: str) -> go.Figure | None:
    tried = value_at(report(family.main, "evaluation") or {}, "synthesis.samplers_and_starts") if family else None
    return plots.samplers_and_starts(tried, theme, kinds.place(family.main.objective)) if tried else None
