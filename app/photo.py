"""The second screen: a picture, what the model says of it, how often that was right, and edits of it."""

from __future__ import annotations

import logging

import gradio as gr
import plotly.graph_objects as go
from torch import Tensor

from app import answers, api, kinds, reports, static, uploads
from app import parameters as p
from app.catalog import LABELS, Entry
from app.gradio_inside import sent
from app.photo_forget import Forgetting, Ledger
from app.runtime import current
from app.settings import short
from app.studio import WIRE, Wires
from app.uploads import Picture, View
from jem_core import editing, plots
from jem_core.calibration import ALL
from jem_core.condition import Condition
from jem_core.prediction import predict

EVENTS = ("show", "curve", "modify", "studio", "forget")  # that the page sends
VARIANTS = 4
CURVE = 330  # pixels: the rows stay in view below it
log = logging.getLogger("gibbs_jem")


def build(demo: gr.Blocks, wires: Wires) -> None:
    """Lay out the screen; `wires` leads to what the first screen keeps of a picture."""
    limits = current().limits
    picture = gr.State(None, time_to_live=limits.idle_seconds)
    ledger = gr.State(Ledger())
    reply = gr.HTML(None, html_template="<i></i>", js_on_load=WIRE.format("onPhoto"), elem_classes="gj-wire")
    gr.HTML(html_template=_read("photo_hero.html"), apply_default_css=False)
    with gr.Row(elem_classes="gjp-columns", equal_height=False):
        with gr.Column(min_width=320, elem_classes="gjp-left"):
            slot = gr.HTML(
                html_template=_read("photo.html"),
                js_on_load=static.module("photo.js", *EVENTS),
                apply_default_css=False,
                elem_id="gj-photo",
            )
        with gr.Column(min_width=320, elem_classes="gjp-rightmost"):
            with gr.Column(elem_classes="gjp-curve", elem_id="gj-photo-curve"):
                gr.HTML(html_template=_read("photo_curve.html"), apply_default_css=False)
                plot = gr.Plot(show_label=False, container=False, elem_id="gj-photo-plot", elem_classes="gj-plot")
            gr.HTML(html_template=_read("photo_rows.html"), apply_default_css=False, elem_id="gj-photo-rows")
    quiet = {"show_progress": "hidden", "api_visibility": "private", "trigger_mode": "multiple"}
    sampler = {"concurrency_limit": limits.runs_at_once, "concurrency_id": "sampler"}
    slot.show(show, [picture, ledger], [reply, picture, plot], concurrency_limit=2, concurrency_id="predict", **quiet)
    slot.curve(curve, ledger, plot, queue=False, **quiet)
    slot.modify(change, [picture, ledger], reply, api_name="change", **sampler, **quiet)
    slot.studio(to_studio, [picture, ledger], [reply, wires.photo], queue=False, **quiet)
    kept = [reply, picture, plot, wires.photo, wires.chains, wires.frames, wires.reply]
    forgetting = Forgetting(picture, (wires.photo, wires.chains))

    def forget(ledger: Ledger, event: gr.EventData, request: gr.Request) -> tuple:
        """Nothing of the picture stays: not here, and where the first screen began at it, not in chains or frames."""
        _, order = _asked(event)
        began = forgetting.forget(ledger, order, request.session_hash or "")
        return {"kind": "forgotten", "order": order}, None, None, *([None] * 4 if began else [gr.skip()] * 4)

    slot.forget(forget, ledger, kept, queue=False, **quiet)
    demo.load(hello, None, reply, queue=False, show_progress="hidden", api_visibility="private")


def _read(name: str) -> str:
    return (static.ASSETS / name).read_text()


def hello() -> dict:
    catalog, limits = current().catalog, current().limits
    kept = (
        f"JPEG, PNG or WebP, up to {uploads.MOST_BYTES >> 20} MB. Your picture stays in this server's memory, never on "
        f"its disk, and is deleted after {limits.idle_seconds // 60} minutes, or when you press “Delete my picture”."
    )
    models = [_model_facts(catalog.entry(name)) for name in catalog.attributes()]
    return {"kind": "hello", "models": models, "kept": kept, "bytes": uploads.MOST_BYTES, "level": editing.LEVEL}


def _model_facts(entry: Entry) -> dict:
    rivals = {name: list(entry.data.instead_of(name)) for name in entry.attributes}
    label = LABELS.get(entry.data.source, entry.data.title)
    kind = kinds.word(entry.objective)
    ours = entry.name.startswith(entry.data.source)  # one of a family; else its own name says more
    title = f"{label}: {kind if ours else entry.title}"
    return {"name": entry.name, "title": title, "levels": entry.levels, "rivals": rivals}


def show(picture: Picture | None, ledger: Ledger, event: gr.EventData) -> tuple:
    """A new picture, or the same one seen otherwise: all that the page shows of it."""
    asked, order = _asked(event)
    try:
        fresh = arrive(asked)
        if fresh:
            fresh.order = order
        picture = ledger.check(fresh or picture)
        answer, figure = describe(picture, asked)
        if fresh:
            answer["picture"] = uploads.shown(picture)
        ledger.check(picture)
    except ValueError as error:
        return {"kind": "refused", "order": order, "message": str(error)}, gr.skip(), gr.skip()
    except Exception:
        log.exception("A picture could not be predicted")
        message = "Something went wrong on the server with this picture. Please try another one."
        return {"kind": "refused", "order": order, "message": message}, gr.skip(), gr.skip()
    return answer | {"kind": "photo", "order": order}, picture, figure


def _asked(event: gr.EventData) -> tuple[dict, int]:
    """What the browser sent, and its number; anything may come."""
    asked = sent(event)
    return asked, asked.get("order") if isinstance(asked.get("order"), int) else 0


def arrive(asked: dict) -> Picture | None:
    """The picture that came along, if any."""
    if asked.get("data") is not None:
        return uploads.from_base64(asked["data"])
    if asked.get("example") is not None:
        return uploads.from_example(asked["example"])
    if asked.get("avatar") is not None:
        return uploads.from_avatar(asked["avatar"])
    return None


def describe(picture: Picture, asked: dict) -> tuple[dict, go.Figure | None]:
    if asked.get("model") is None:
        name, reading = answers.choose_and_read(picture)
    else:
        name, reading = model_name(asked["model"]), None
    view = seen(picture, name, asked)
    bundle = current().catalog.bundle(name)
    whole = asked.get("box") is None and not asked.get("face")  # what the choice looked at
    prediction = predict(bundle, view.stored, reading if whole else None)
    gate, truths = answers.gate_words(prediction, view), answers.truths(picture)
    attribute = asked.get("attribute")
    if attribute != ALL and attribute not in bundle.names:
        attribute = prediction.rows[0].name
    answer = {
        "model": name,
        "crop": uploads.as_uri(view.stored),
        "size": {"width": picture.image.width, "height": picture.image.height},
        "box": list(view.box),
        "faces": [list(face.box) for face in picture.faces or []],
        "face": view.face,
        "note": view.note,
        "rows": [answers.row_facts(row, truths.get(row.name)) for row in prediction.rows],
        "attribute": attribute,
        "together": answers.together(bundle.calibration),
        "gate": gate,
        "greyed": gate["verdict"] == "unlike",
    }
    at = None if attribute == ALL else prediction.probabilities[bundle.names.index(attribute)]
    return answer, figure_of(name, attribute, at, asked.get("theme"))


def model_name(value: object) -> str:
    names = tuple(current().catalog.attributes())
    if not isinstance(value, str) or value not in names:
        raise ValueError(f"The model is {short(value)}; choose one of {', '.join(names)}.")
    return value


def seen(picture: Picture, name: str, asked: dict) -> View:
    return uploads.crop_for(picture, current().catalog.entry(name), asked.get("face", 0), asked.get("box"))


def figure_of(name: str, attribute: str, at: float | None, theme: object) -> go.Figure | None:
    """The reliability plot, with a line where this picture stands; None where the model was not evaluated, or where no
    test picture had a known label."""
    catalog = current().catalog
    entry = catalog.entry(name)
    calibration = reports.calibration(entry)
    if calibration is None or attribute not in (ALL, *calibration.names):
        return None
    theme = theme if isinstance(theme, str) and theme in plots.INK else "light"
    colours = (kinds.place(entry.objective), kinds.baseline_place())
    beside = reports.baseline(catalog, name)
    if beside is not None and attribute not in (ALL, *beside.names):
        beside = None
    figure = plots.reliability(calibration, attribute, beside, theme, places=colours)
    if at is not None:
        _mark(figure, at, plots.INK[theme])
    return figure.update_layout(title=None, height=CURVE, margin={"t": 8})  # the page says what it is


def _mark(figure: go.Figure, at: float, colour: str) -> None:
    """A line where this picture stands."""
    # A model is never certain, whatever its last digit says.
    said = "< 1 %" if at < 0.01 else "> 99 %" if at > 0.99 else plots.percent(at, 0)
    figure.add_vline(
        x=at,
        line={"color": colour, "width": 2},
        annotation={"text": f"this picture: {said}", "font": {"color": colour}},
        annotation_position="bottom left" if at > 0.5 else "top right",  # inside the plot and off the curve
        row=1,
        col=1,
    )


def curve(ledger: Ledger, event: gr.EventData) -> object:
    """The plot of another attribute; whatever is not known leaves the plot as it is."""
    asked, order = _asked(event)
    try:
        at = asked.get("at")
        good = isinstance(at, int | float) and not isinstance(at, bool) and 0 <= at <= 1
        name, attribute = model_name(asked.get("model")), str(asked.get("attribute"))[:200]
        figure = figure_of(name, attribute, at if good else None, asked.get("theme"))
        return gr.skip() if figure is None or ledger.voids(order) else figure
    except ValueError:
        return gr.skip()


def change(picture: Picture | None, ledger: Ledger, event: gr.EventData) -> dict:
    """The picture with some attributes changed, several times over."""
    asked, order = _asked(event)
    try:
        ledger.check(picture)
        name = model_name(asked.get("model"))
        names = current().catalog.entry(name).attributes
        changes = Condition.from_lists(
            names, p.listed("Added", asked.get("with")), p.listed("Removed", asked.get("without"))
        )
        if not (changes.required or changes.excluded):
            raise ValueError(api.NO_CHANGE)
        level = p.number("How much may change", asked.get("level"), 0.1, api.HIGHEST_LEVEL)
        seed = p.whole("Seed", asked.get("seed", 0), 0, api.SEEDS)
        view = seen(picture, name, asked)
        images, said = api.change(name, view.stored, changes, VARIANTS, seed, level, editing.ANCHOR)
        ledger.check(picture)
    except ValueError as error:
        return {"kind": "refused", "order": order, "message": str(error)}
    asked_for = [(k, value) for k, value in enumerate(changes.values) if value >= 0]
    has = [all((row[k] > 0.5) == bool(value) for k, value in asked_for) for row in said.tolist()]
    return {"kind": "edited", "order": order, "images": api.as_uris(images), "has": has}


def to_studio(picture: Picture | None, ledger: Ledger, event: gr.EventData) -> tuple[dict, Tensor | object]:
    """The picture as the start of the chains on the first screen, with what the model sees in it as the condition."""
    asked, order = _asked(event)
    try:
        ledger.check(picture)
        name = model_name(asked.get("model"))
        view = seen(picture, name, asked)
        condition = predict(current().catalog.bundle(name), view.stored).condition()
        ledger.lent = True  # before the last look: whoever forgets sees either this, or an answer that is void
        ledger.check(picture)
    except ValueError as error:
        return {"kind": "refused", "order": order, "message": str(error)}, gr.skip()
    start = (view.stored.float()[None] + 0.5) / 256
    answer = {"kind": "studio", "order": order, "model": name}
    return answer | {"with": list(condition.required), "without": list(condition.excluded)}, start
