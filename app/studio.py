"""The first screen: choose attributes, watch the pictures change. The page is assets/studio.*, this its other end."""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import gradio as gr

from app import explain, hood, live, novelty, paths, static
from app.chains import Chains, condition_for, plan
from app.deadlines import Deadline
from app.film import ANIMATIONS
from app.gradio_inside import sent
from app.live import ACTIONS, Order
from app.mailbox import Letter, Mailbox
from app.recipe import recipe
from app.runtime import current
from app.settings import TABLE, Settings, read, short

EVENTS = ("run", "steer", "surprise", "recipe", "path", "hood", "film")
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
    """What other screens may use: the photograph to start from, the chains, and what the page was told last of both."""

    photo: gr.State
    chains: gr.State
    frames: gr.HTML
    reply: gr.HTML


def build(demo: gr.Blocks) -> Wires:
    """Lay out the screen and join its events to the handlers below."""
    limits = current().limits
    chains = gr.State(None, time_to_live=limits.idle_seconds)
    photo = gr.State(None, time_to_live=limits.idle_seconds)
    frames = gr.HTML(None, html_template="<i></i>", js_on_load=WIRE.format("onFrame"), elem_classes="gj-wire")
    reply = gr.HTML(None, html_template="<i></i>", js_on_load=WIRE.format("onReply"), elem_classes="gj-wire")
    page = gr.HTML(
        None,
        html_template=(static.ASSETS / "studio.html").read_text(),
        js_on_load=static.module("studio.js", *EVENTS),
        apply_default_css=False,
        elem_id="gj-studio",
    )
    quiet = {"show_progress": "hidden", "api_visibility": "private", "trigger_mode": "multiple"}
    sampler = {"concurrency_limit": limits.runs_at_once, "concurrency_id": "sampler"}
    page.run(run, [chains, photo], [frames, chains], **sampler, **quiet)
    page.steer(steer, None, reply, queue=False, api_name="post", **quiet)  # /steer is the documented one
    page.surprise(surprise, None, reply, queue=False, **quiet)
    page.recipe(recipes, chains, reply, queue=False, **quiet)
    page.path(path, chains, reply, **sampler, **quiet)
    page.hood(under_the_hood, chains, reply, **sampler, **quiet)
    page.film(film, chains, reply, concurrency_limit=1, concurrency_id="film", **quiet)
    demo.load(hello, None, reply, queue=False, show_progress="hidden", api_visibility="private")
    demo.unload(goodbye)
    return Wires(photo, chains, frames, reply)


def hello() -> dict:
    """All that the page must know, fresh at every visit: a Hub model may have arrived since the last."""
    catalog, limits = current().catalog, current().limits
    table = [asdict(row) | {"choices": list(row.choices)} for row in TABLE]
    chains = next(row for row in table if row["key"] == "chains")
    chains |= {"high": limits.chains, "help": f"At most {limits.chains} on this server"}
    return {
        "kind": "hello",
        "table": table,
        "models": catalog.facts(),
        "device": catalog.device,
        "limits": {"best_of": limits.best_of, "waiting": limits.waiting},
    }


def run(chains: Chains | None, photo: object, event: gr.EventData, request: gr.Request) -> Iterator[tuple]:
    """The one event that computes: a run, a step, half a step, keep-the-best, more like this, or back."""
    try:
        letter, action = _letter(event), _text(event, "action", ACTIONS)
        order = Order(action, _optional(event, "place"), _optional(event, "state"))
        box = Mailbox(request.session_hash or "")
        box.post(letter)
    except ValueError as error:
        yield {"status": "error", "run": str(_get(event, "run"))[:32], "message": str(error)}, gr.skip()
        return
    for frame, kept in live.stream(box, letter.run, chains, photo, order):
        yield frame, gr.skip() if kept is None else kept


def steer(event: gr.EventData, request: gr.Request) -> dict:
    """Something changed: into the mailbox with it, and back with the badge."""
    try:
        letter = _letter(event)
        Mailbox(request.session_hash or "").post(letter)
        settings = _settings(letter.settings)
        bundle = current().catalog.bundle(settings.model)
        badge = novelty.badge(bundle, condition_for(settings, bundle))
        asked = {"model": settings.model, "with": list(settings.required), "without": list(settings.excluded)}
        return {"kind": "steered", "order": letter.order, "badge": badge, "asked": asked}
    except ValueError as error:
        return _refused(error)


def surprise(event: gr.EventData) -> dict:
    """A combination that training never showed."""
    try:
        name = _text(event, "model", tuple(current().catalog.attributes()))
        condition = novelty.surprise(current().catalog.bundle(name), random.Random())
        asked = {"with": list(condition.required), "without": list(condition.excluded)}
        return {"kind": "surprise", "order": random.random(), **asked}
    except ValueError as error:
        return _refused(error)


def recipes(chains: Chains | None, event: gr.EventData) -> dict:
    """How to make what is on screen without the app."""
    try:
        settings = _settings(_get(event, "settings"))
        made = recipe(settings, chains, current().catalog.source(settings.model))
        return {"kind": "recipe", "order": random.random(), **asdict(made)}
    except ValueError as error:
        return _refused(error)


def path(chains: Chains | None, event: gr.EventData) -> dict:
    """From A to B."""
    try:
        settings = _settings(_get(event, "settings"))
        bundle = current().catalog.bundle(settings.model)
        ends = [paths.read_end(_get(event, name), chains, bundle) for name in ("a", "b")]
        return {"kind": "path", "order": random.random(), **paths.draw_path(settings, *ends)}
    except ValueError as error:
        return _refused(error, "path")


def under_the_hood(chains: Chains | None, event: gr.EventData) -> dict:
    """One step taken apart, and how it all works in six pictures where they are asked for."""
    try:
        settings = _settings(_get(event, "settings"))
        if chains is None:
            raise ValueError("There are no pictures yet; wait for the first ones.")
        deadline = Deadline(current().limits.call_seconds)
        steps = hood.take_apart(chains, settings, _optional(event, "place"), deadline)
        bundle = current().catalog.bundle(settings.model)
        six = explain.pictures(bundle, settings.seed, deadline.check) if _get(event, "all") is True else []
        return {"kind": "hood", "order": random.random(), "steps": steps, "six": six}
    except ValueError as error:
        return _refused(error, "hood")


def film(chains: Chains | None, event: gr.EventData) -> dict:
    """The run so far as an animation."""
    try:
        kind = _text(event, "format", tuple(ANIMATIONS))
        if chains is None:
            raise ValueError("There is nothing to animate yet: let the pictures take a few steps first.")
        deadline = Deadline(current().limits.call_seconds)
        data = base64.b64encode(chains.film.animation(kind, deadline.check)).decode()
        src = f"data:{ANIMATIONS[kind]};base64,{data}"
        return {"kind": "film", "order": random.random(), "format": kind, "src": src}
    except ValueError as error:
        return _refused(error, "film")


def goodbye(request: gr.Request) -> None:
    """The tab was closed: its box goes; its run has ended already, and its chains are forgotten after a while."""
    Mailbox(request.session_hash or "").drop()


def _refused(error: ValueError, about: str = "") -> dict:
    return {"kind": "refused", "order": random.random(), "about": about, "message": str(error)}


def _get(event: gr.EventData, key: str) -> object:
    """What the browser sent under this name; anything may come."""
    return sent(event).get(key)


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


def _optional(event: gr.EventData, key: str) -> int:
    return 0 if _get(event, key) is None else _count(event, key)


def _settings(values: object) -> Settings:
    runtime = current()
    settings = read(values, runtime.catalog.attributes(), runtime.limits.chains)
    condition_for(settings, runtime.catalog.bundle(settings.model))  # refuses names that the model does not know
    plan(runtime.catalog, settings)  # refuses a comparison that has no second model
    return settings


def _letter(event: gr.EventData) -> Letter:
    """What the visitor wants, every part of it checked."""
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
