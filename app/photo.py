"""The second screen: a picture, what the model says of it, and how often that was so. The page is assets/photo.*."""

from __future__ import annotations

import logging
from pathlib import Path

import gradio as gr
import plotly.graph_objects as go
from torch import Tensor

from app import pictures, plots, reports
from app.attributes import caption
from app.pictures import Picture, View
from app.runtime import current
from app.settings import short
from app.studio import WIRE, Wires
from jem_core.predict import GATE_AUROC, Prediction, Row, predict

ASSETS = Path(__file__).resolve().parent.parent / "assets"
SCRIPTS = ("base", "photo", "before_after")
VERDICTS = {
    "inside": "Like the held-out images",
    "unusual": "Unusual",
    "unlike": "Unlike anything it was trained on",
}
NO_GUARANTEE = "The percentages carry no guarantee here."
log = logging.getLogger("gibbs_jem")


def build(demo: gr.Blocks, wires: Wires) -> None:
    """Lay out the screen; `wires.photo` is where the first screen looks for a picture to start from."""
    limits = current().limits
    picture = gr.State(None, time_to_live=limits.idle_seconds)
    reply = gr.HTML(None, html_template="<i></i>", js_on_load=WIRE.format("onPhoto"), elem_classes="gj-wire")
    gr.HTML(html_template=(ASSETS / "photo_hero.html").read_text(), apply_default_css=False)
    with gr.Row(elem_classes="gjp-columns", equal_height=False):
        with gr.Column(min_width=320, elem_classes="gjp-left"):
            slot = gr.HTML(
                html_template=(ASSETS / "photo.html").read_text(),
                js_on_load="\n".join((ASSETS / f"{name}.js").read_text() for name in SCRIPTS),
                apply_default_css=False,
                elem_id="gj-photo",
            )
            plot = gr.Plot(show_label=False, container=False, elem_id="gj-photo-plot", elem_classes="gj-plot")
        with gr.Column(min_width=320):
            rows = (ASSETS / "photo_rows.html").read_text()
            gr.HTML(html_template=rows, apply_default_css=False, elem_id="gj-photo-rows")
    quiet = {"show_progress": "hidden", "api_visibility": "private", "trigger_mode": "multiple"}
    slot.show(show, picture, [reply, picture, plot], concurrency_limit=2, concurrency_id="predict", **quiet)
    slot.curve(curve, None, plot, queue=False, **quiet)
    slot.edit(edit, picture, [reply, wires.photo], queue=False, **quiet)
    slot.forget(forget, None, [reply, picture, wires.photo], queue=False, **quiet)
    demo.load(hello, None, reply, queue=False, show_progress="hidden", api_visibility="private")


def hello() -> dict:
    catalog, limits = current().catalog, current().limits
    minutes = limits.idle_seconds // 60
    kept = (
        f"JPEG, PNG or WebP, up to {pictures.MOST_BYTES >> 20} MB. Your picture is kept in this server's memory only, "
        f"never on its disk and in no log, and is forgotten after {minutes} minutes or when you say so."
    )
    models = [{"name": name, "title": catalog.title(name)} for name in catalog.attributes()]
    return {"kind": "hello", "models": models, "kept": kept, "bytes": pictures.MOST_BYTES, "avatars": True}


def show(picture: Picture | None, event: gr.EventData) -> tuple:
    """A new picture, or the same one seen otherwise: all that the page shows of it."""
    wish = event._data if isinstance(event._data, dict) else {}
    order = wish.get("order") if isinstance(wish.get("order"), int) else 0
    try:
        fresh = arrive(wish)
        picture = fresh or picture
        if picture is None:
            raise ValueError("There is no picture any more: it was forgotten. Choose one again.")
        answer, figure = describe(picture, wish)
    except ValueError as error:
        return {"kind": "refused", "order": order, "message": str(error)}, gr.skip(), gr.skip()
    except Exception:
        log.exception("A picture could not be predicted")
        message = "Something went wrong on the server with this picture. Another one may do."
        return {"kind": "refused", "order": order, "message": message}, gr.skip(), gr.skip()
    if fresh:
        answer["picture"] = pictures.shown(picture)
    return answer | {"kind": "photo", "order": order}, picture, figure


def arrive(wish: dict) -> Picture | None:
    """The picture that came along, if any."""
    if wish.get("data") is not None:
        return pictures.from_base64(wish["data"])
    if wish.get("example") is not None:
        return pictures.from_example(wish["example"])
    if wish.get("avatar") is not None:
        return pictures.from_avatar(wish["avatar"])
    return None


def describe(picture: Picture, wish: dict) -> tuple[dict, go.Figure | None]:
    name = model_name(wish.get("model"))
    view = seen(picture, name, wish)
    bundle = current().catalog.bundle(name)
    prediction = predict(bundle, view.stored)
    gate = gate_words(prediction, view)
    attribute = wish.get("attribute")
    if attribute != plots.ALL and attribute not in bundle.names:
        attribute = prediction.rows[0].name
    answer = {
        "model": name,
        "crop": pictures.as_uri(view.stored),
        "size": {"width": picture.image.width, "height": picture.image.height},
        "box": list(view.box),
        "faces": [list(face.box) for face in picture.faces or []],
        "face": view.face,
        "note": view.note,
        "rows": [row_facts(row) for row in prediction.rows],
        "attribute": attribute,
        "together": together(bundle.calibration),
        "gate": gate,
        "greyed": gate["verdict"] == "unlike",
    }
    at = None if attribute == plots.ALL else prediction.probabilities[bundle.names.index(attribute)]
    return answer, figure_of(name, attribute, at, wish.get("theme"))


def model_name(value: object) -> str:
    names = tuple(current().catalog.attributes())
    if value is None and names:
        return names[0]
    if not isinstance(value, str) or value not in names:
        raise ValueError(f"Model is {short(value)}; choose one of {', '.join(names)}.")
    return value


def seen(picture: Picture, name: str, wish: dict) -> View:
    return pictures.look(picture, current().catalog.entry(name), wish.get("face", 0), wish.get("box"))


def row_facts(row: Row) -> dict:
    """A row as the page draws it."""
    facts: dict = {"name": row.name, "label": caption(row.name), "p": round(row.probability, 6), "enough": row.enough}
    facts |= {"sentence": row.sentence(), "surprise": round(row.surprise, 4), "count": None}
    if row.span is not None:
        facts |= {"count": row.count, "rate": row.rate, "low": row.interval[0], "high": row.interval[1]}
        facts |= {"from": row.span[0], "to": row.span[1]}
    return facts


def gate_words(prediction: Prediction, view: View) -> dict:
    """The gate's verdict in words; a photograph without a face is none that a model of faces was trained on."""
    reading = prediction.reading
    values = [f"{kind} {value:.2f}" for kind, value in prediction.gate_auroc.items()]
    auroc = f"How well it tells strangers from held-out images, AUROC: {', '.join(values)}." if values else ""
    if view.lost:
        return {"verdict": "unlike", "title": "No face", "sentence": NO_GUARANTEE, "auroc": ""}
    if reading is None:
        missing = f"its gate reaches no AUROC of {GATE_AUROC:g}" if values else "it was not evaluated"
        sentence = f"How usual this picture is, this model cannot say: {missing}."
        return {"verdict": None, "title": "No verdict", "sentence": sentence, "auroc": ""}
    ranks = (
        f"log p\u0303(x) is above {reading.score_percentile:.0f} % of held-out images, "
        f"its gradient norm above {reading.gradient_percentile:.0f} %."
    )
    sentence = f"{NO_GUARANTEE} Its {ranks}" if reading.verdict == "unlike" else f"Its {ranks}"
    return {"verdict": reading.verdict, "title": VERDICTS[reading.verdict], "sentence": sentence, "auroc": auroc}


def together(calibration: dict | None) -> str:
    if calibration is None:
        return "This model has no calibration file."
    count = sum(calibration["all"]["bins"]["count"])
    return (
        f"All attributes of {calibration['images']:,} held-out images, {count:,} predictions in all: "
        f"the expected calibration error is {plots.percent(calibration['all']['ece'])}."
    )


def figure_of(name: str, attribute: str, at: float | None, theme: object) -> go.Figure | None:
    """The reliability plot, with a line where this picture stands; None for a model that was not evaluated."""
    catalog = current().catalog
    calibration = reports.report(catalog.entry(name), "calibration")
    if calibration is None:
        return None
    figure = plots.reliability(
        calibration,
        attribute,
        baseline=reports.baseline(catalog, name),
        at=at,
        theme=theme if isinstance(theme, str) and theme in plots.INK else "light",
        names=(catalog.title(name), "Supervised"),
    )
    figure.update_layout(height=430)
    if at is not None and at > 0.5:  # the words stay inside the plot
        figure.update_annotations(xanchor="right")
    return figure


def curve(event: gr.EventData) -> object:
    """The plot of another attribute; whatever is not known leaves the plot as it is."""
    wish = event._data if isinstance(event._data, dict) else {}
    try:
        at = wish.get("at")
        good = isinstance(at, int | float) and not isinstance(at, bool) and 0 <= at <= 1
        figure = figure_of(
            model_name(wish.get("model")), str(wish.get("attribute"))[:200], at if good else None, wish.get("theme")
        )
        return gr.skip() if figure is None else figure
    except ValueError:
        return gr.skip()


def edit(picture: Picture | None, event: gr.EventData) -> tuple[dict, Tensor | object]:
    """The picture as the start of chains, and what the model sees in it as the wish to begin with."""
    wish = event._data if isinstance(event._data, dict) else {}
    order = wish.get("order") if isinstance(wish.get("order"), int) else 0
    try:
        if picture is None:
            raise ValueError("There is no picture any more: it was forgotten. Choose one again.")
        name = model_name(wish.get("model"))
        view = seen(picture, name, wish)
        condition = predict(current().catalog.bundle(name), view.stored).condition()
    except ValueError as error:
        return {"kind": "refused", "order": order, "message": str(error)}, gr.skip()
    start = (view.stored.float()[None] + 0.5) / 256
    answer = {"kind": "edit", "order": order, "model": name, "crop": pictures.as_uri(view.stored)}
    return answer | {"with": list(condition.wanted), "without": list(condition.unwanted)}, start


def forget(event: gr.EventData) -> tuple:
    order = event._data.get("order") if isinstance(event._data, dict) else 0
    return {"kind": "forgotten", "order": order if isinstance(order, int) else 0}, None, None
