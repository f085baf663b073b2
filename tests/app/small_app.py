"""A small Gradio page behind the app's own firewall: events of every kind whose work a test can see and hold up."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import gradio as gr
import httpx
from starlette.middleware import Middleware

from app import runtime, sweep
from app.deadlines import Deadline
from app.firewall import Firewall
from app.limits import Limits
from app.parcels import parcels
from app.uploads import from_base64
from app.visitors import Visitors, visitors_of

working: list[str] = []  # sessions whose long work is under way


def quick(value: str) -> dict:
    return {"heard": value[:20]}


def show(data: str) -> dict:
    try:
        picture = from_base64(data)
    except ValueError as error:
        return {"refused": str(error)}
    return {"width": picture.image.width, "waiting": len(parcels)}


def keep(count: int, kept: bytes | None) -> tuple[dict, bytes]:
    """So many bytes stay with the session."""
    return {"before": len(kept or b"")}, bytes(count)


def frames(count: int) -> Iterator[dict]:
    for number in range(count):
        time.sleep(0.02)
        yield {"frame": number}


def long(seconds: float, request: gr.Request) -> str:
    """Work that asks at every step whether it may go on."""
    deadline = Deadline(runtime.current().limits.call_seconds)
    working.append(request.session_hash)
    try:
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            deadline.check()
            time.sleep(0.02)
        return "done"
    except ValueError as error:
        raise gr.Error(str(error), print_exception=False) from error
    finally:
        working.remove(request.session_hash)


def build() -> gr.Blocks:
    with gr.Blocks(analytics_enabled=False) as demo:
        text, number, out = gr.Textbox(), gr.Number(), gr.JSON()
        kept = gr.State(None, time_to_live=900)
        private = {"api_visibility": "private"}
        text.change(quick, text, out, queue=False, api_name="quick", **private)
        text.submit(show, text, out, api_name="show", concurrency_limit=2, concurrency_id="predict", **private)
        number.change(keep, [number, kept], [out, kept], api_name="keep", concurrency_limit=8, **private)
        number.submit(frames, number, out, api_name="frames", concurrency_limit=4, concurrency_id="sampler", **private)
        gr.api(long, api_name="long", concurrency_limit=4, concurrency_id="sampler")
    demo.queue(max_size=64, api_open=False)
    return demo


class Site(SimpleNamespace):
    """A running page: its address, and its other side."""

    url: str
    demo: gr.Blocks
    visitors: Visitors
    http: httpx.Client

    def fn(self, name: str) -> int:
        return next(index for index, fn in self.demo.fns.items() if fn.api_name == name)

    def join(self, name: str, data: list, session: str, http: httpx.Client | None = None) -> httpx.Response:
        data = data + [None] * (len(self.demo.fns[self.fn(name)].inputs) - len(data))
        body = {"data": data, "fn_index": self.fn(name), "session_hash": session, "event_data": None}
        return (http or self.http).post("/gradio_api/queue/join", json=body)

    def answers(self, session: str, http: httpx.Client | None = None) -> list[dict]:
        """All messages of a session until its events are done."""
        with (http or self.http).stream("GET", f"/gradio_api/queue/data?session_hash={session}") as lines:
            return [json.loads(line[5:]) for line in lines.iter_lines() if line.startswith("data:")]

    def from_address(self, address: str) -> httpx.Client:
        """A client with another address of this machine: all of 127.0.0.0/8 is its own."""
        return httpx.Client(base_url=self.url, timeout=60, transport=httpx.HTTPTransport(local_address=address))


@contextmanager
def running(**limits: int) -> Iterator[Site]:
    runtime.install(runtime.Runtime(None, Limits(**limits)))
    demo = build()
    _, url, _ = demo.launch(
        prevent_thread_lock=True,
        quiet=True,
        server_name="127.0.0.1",
        ssr_mode=False,
        show_error=False,
        app_kwargs={"middleware": [Middleware(Firewall)], "lifespan": sweep.lifespan},
    )
    url = url.rstrip("/")
    try:
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as http:
            yield Site(url=url, demo=demo, visitors=visitors_of(demo.app), http=http)
    finally:
        demo.close()


def until(condition: object, seconds: float = 20.0) -> bool:
    """Wait for something to become true."""
    ends = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > ends:
            return False
        threading.Event().wait(0.02)
    return True
