"""Every address that the installed Gradio answers, so that what a new release adds is tried too."""

from __future__ import annotations

import re
from collections.abc import Iterator

import gradio as gr
from gradio.routes import App


def addresses(method: str) -> list[str]:
    """Paths for GET or POST; whatever a route takes from its address is filled in with a word."""
    with gr.Blocks(analytics_enabled=False) as demo:
        gr.HTML("")
    found = {path for path, methods in _routes(App.create_app(demo).routes) if method in methods}
    return sorted(re.sub(r"\{\w+(:path)?\}", "nothing", path) for path in found)


def _routes(routes: list) -> Iterator[tuple[str, set[str]]]:
    for route in routes:
        inner = getattr(route, "original_router", None)  # FastAPI includes a router as a whole
        if inner is not None:
            yield from _routes(inner.routes)
        elif getattr(route, "methods", None):
            yield route.path, route.methods
