"""The first screen: toggle attributes, watch the chains change. The page is assets/studio.*, this its other end."""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import gradio as gr

from app import live, novelty, recipe
from app.chains import ACTIONS, Chains, condition_for, plan
from app.film import ANIMATIONS
from app.mailbox import Letter, Mailbox
from app.runtime import current
from app.settings import TABLE, Settings, read, short

ASSETS = Path(__file__).resolve().parent.parent / "assets"
SCRIPTS = ("base", "store", "chips", "grid", "plots", "detail", "controls", "studio")
RUN_NAME = re.compile(r"[a-z0-9]{1,32}")
# A component without looks whose value goes on to the page's script; what comes before the script is there is held.
WIRE = (
    "const page = window.gibbsJem ??= {{}};"
    "const hand = () => {{ const value = props.value; if (!value) return;"
    " if (page.{0}) page.{0}(value); else page.held_{0} = value; }};"
    "watch('value', hand); hand();"
)


@dataclass(frozen=True)
class Wires:
    """What other screens may use: the photograph to start from, and the chains."""

    photo: gr.State
    chains: gr.State


def build(demo: gr.Blocks) -> Wires:
    """Lay out the screen and join its events to the handlers below."""
    limits = current().limits
    chains = gr.State(None, time_to_live=limits.idle_seconds)
    photo = gr.State(None, time_to_live=limits.idle_seconds)
    frames = gr.HTML(None, html_template="<i></i>", js_on_load=WIRE.format("onFrame"), elem_classes="gj-wire")
    reply = gr.HTML(None, html_template="<i></i>", js_on_load=WIRE.format("onReply"), elem_classes="gj-wire")
    script = "\n".join((ASSETS / f"{name}.js").read_text() for name in SCRIPTS)
    page = gr.HTML(
        None,
        html_template=(ASSETS / "studio.html").read_text(),
        js_on_load=script,
        apply_default_css=False,
        elem_id="gj-studio",
    )
    quiet = {"show_progress": "hidden", "api_visibility": "private", "trigger_mode": "multiple"}
    page.run(
        run, [chains, photo], [frames, chains], concurrency_limit=limits.runs_at_once, concurrency_id="sampler", **quiet
    )
    page.steer(steer, None, reply, queue=False, **quiet)
    page.surprise(surprise, None, reply, queue=False, **quiet)
    page.film(film, chains, reply, concurrency_limit=1, concurrency_id="film", **quiet)
    demo.load(hello, None, reply, queue=False, show_progress="hidden", api_visibility="private")
    demo.unload(goodbye)
    return Wires(photo, chains)


def hello() -> dict:
    """All that the page must know, fresh at every visit: a Hub model may have arrived since the last."""
    catalog, limits = current().catalog, current().limits
    table = [
        {"key": s.key, "kind": s.kind, "label": s.label, "default": s.default, "low": s.low, "high": s.high}
        | {"choices": list(s.choices), "restarts": s.restarts, "own": s.own}
        for s in TABLE
    ]
    next(row for row in table if row["key"] == "chains")["high"] = limits.chains
    return {
        "kind": "hello",
        "table": table,
        "models": catalog.facts(),
        "device": catalog.device,
        "limits": {"best_of": limits.best_of},
    }


def run(chains: Chains | None, photo: object, event: gr.EventData, request: gr.Request) -> Iterator[tuple]:
    """The one event that computes: a run, a step, half a step, or keep-the-best."""
    try:
        letter, action = _letter(event), _text(event, "action", ACTIONS)
        box = Mailbox(request.session_hash or "")
        box.post(letter)
    except ValueError as error:
        yield {"status": "error", "run": str(_get(event, "run"))[:32], "message": str(error)}, gr.skip()
        return
    for frame, kept in live.stream(box, letter.run, chains, photo, action):
        yield frame, gr.skip() if kept is None else kept


def steer(event: gr.EventData, request: gr.Request) -> dict:
    """A wish that changed: into the mailbox with it, and back with the badge and the recipes."""
    try:
        letter = _letter(event)
        Mailbox(request.session_hash or "").post(letter)
        return {"kind": "steered", "order": letter.order} | describe(_settings(letter.settings), _step(event))
    except ValueError as error:
        return {"kind": "refused", "order": short(_get(event, "order")), "message": str(error)}


def describe(settings: Settings, step: int) -> dict:
    """What the page says of some settings besides the chains themselves."""
    catalog = current().catalog
    bundle = catalog.bundle(settings.model)
    langevin, _ = bundle.langevin(**settings.langevin())
    steps = step or settings.steps or bundle.sampling["steps"]
    source = catalog.source(settings.model)
    return {
        "badge": novelty.badge(bundle, condition_for(settings, bundle)),
        "temperature": f"{langevin.temperature:.2g}",
        "python": recipe.as_python(settings, source, steps),
        "command": recipe.as_command(settings, source, steps),
    }


def surprise(event: gr.EventData) -> dict:
    """A combination that training never showed."""
    try:
        name = _text(event, "model", tuple(current().catalog.attributes()))
        condition = novelty.surprise(current().catalog.bundle(name), random.Random())
        wishes = {"with": list(condition.wanted), "without": list(condition.unwanted)}
        return {"kind": "surprise", "order": random.random(), **wishes}
    except ValueError as error:
        return {"kind": "refused", "message": str(error)}


def film(chains: Chains | None, event: gr.EventData) -> dict:
    """The run so far as an animation."""
    try:
        kind = _text(event, "format", tuple(ANIMATIONS))
        if chains is None:
            raise ValueError("There is no run to animate yet: let the chains take a few steps first.")
        data = base64.b64encode(chains.film.animation(kind)).decode()
        return {
            "kind": "film",
            "order": random.random(),
            "format": kind,
            "src": f"data:{ANIMATIONS[kind]};base64,{data}",
        }
    except ValueError as error:
        return {"kind": "refused", "order": random.random(), "message": str(error)}


def goodbye(request: gr.Request) -> None:
    """The tab was closed: its box goes; its run has ended already, and its chains are forgotten after a while."""
    Mailbox(request.session_hash or "").drop()


def _get(event: gr.EventData, key: str) -> object:
    """What the browser sent under this name; anything may come."""
    data = event._data
    return data.get(key) if isinstance(data, dict) else None


def _text(event: gr.EventData, key: str, choices: tuple[str, ...]) -> str:
    value = _get(event, key)
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{key} is {short(value)}; choose one of {', '.join(choices)}.")
    return value


def _count(event: gr.EventData, key: str) -> int:
    value = _get(event, key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
        raise ValueError(f"{key} is {short(value)}; expected a whole number of at least 0.")
    return value


def _step(event: gr.EventData) -> int:
    return min(_count(event, "step"), current().limits.sample_steps)


def _settings(values: object) -> Settings:
    runtime = current()
    settings = read(values, runtime.catalog.attributes(), runtime.limits.chains)
    condition_for(settings, runtime.catalog.bundle(settings.model))  # refuses names that the model does not know
    plan(runtime.catalog, settings)  # refuses a comparison that has no second model
    return settings


def _letter(event: gr.EventData) -> Letter:
    """The visitor's wish, every part of it checked."""
    name = _get(event, "run")
    if not isinstance(name, str) or not RUN_NAME.fullmatch(name):
        raise ValueError(f"run is {short(name)}; expected up to 32 small letters and digits.")
    return Letter(
        order=_count(event, "order"),
        run=name,
        playing=_get(event, "playing") is True,
        fresh=_count(event, "fresh"),
        settings=_settings(_get(event, "settings")).values(),
        fps=max(1, min(_count(event, "fps"), live.FRAMES_PER_SECOND)),
    )
