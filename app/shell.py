"""The whole app: one page with a tab for each screen, and how it is started."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
from collections.abc import Sequence

from app.cache import VARIABLE, writable_cache

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # no request leaves the machine
os.environ[VARIABLE] = writable_cache()

import gradio as gr
import torch
from starlette.middleware import Middleware

from app import api, compare, firewall, mailbox, photo, static, studio, sweep
from app.catalog import Catalog
from app.limits import Limits
from app.runtime import Runtime, install

TITLE = static.TITLE
MODELS_VARIABLE = "GIBBS_JEM_MODEL"
STYLES = ("style.css", "studio.css", "screens.css")


def options(arguments: Sequence[str] = (), prog: str = "python app.py", more: str = "") -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=prog, description=f"{TITLE}: steer Langevin chains in the browser.", epilog=more
    )
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="NAME|DIRECTORY|hf-hub:owner/name",
        help="a bundled model to open first, or another model to add; may be repeated "
        f"(also: {MODELS_VARIABLE}, separated by commas)",
    )
    parser.add_argument("--host", default=os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"))
    parser.add_argument("--port", type=int, default=int(os.environ.get("GRADIO_SERVER_PORT", "7860")))
    parser.add_argument("--device", default=None, help="cpu or cuda; what is there by default")
    return parser.parse_args(list(arguments))


def build(chosen: argparse.Namespace | None = None) -> gr.Blocks:
    """The page with all its screens, ready to be launched or mounted."""
    chosen = chosen or options()
    listed = [part.strip() for part in os.environ.get(MODELS_VARIABLE, "").split(",") if part.strip()]
    catalog = Catalog([*listed, *chosen.model], device=chosen.device)
    limits = Limits.from_environment(catalog.device)
    install(Runtime(catalog, limits))
    with gr.Blocks(title=TITLE, fill_width=True, delete_cache=(600, 600), analytics_enabled=False) as demo:
        gr.HTML(
            html_template=(static.ASSETS / "header.html").read_text(),
            js_on_load=static.module("header.js"),
            apply_default_css=False,
        )
        with gr.Column(elem_id="gj-screen-studio"):
            wires = studio.build(demo)
        with gr.Column(elem_id="gj-screen-photo", elem_classes="gj-screen"):
            photo.build(demo, wires)
        with gr.Column(elem_id="gj-screen-compare", elem_classes="gj-screen"):
            compare.build(demo)
        api.build()
    demo.queue(default_concurrency_limit=2, max_size=limits.waiting, api_open=False)  # nobody computes past the queue
    return demo


def launch_options() -> dict:
    """Looks and safety, the same wherever the page is served."""
    return {
        "theme": gr.themes.Base(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]),
        "css": "".join((static.ASSETS / name).read_text() for name in STYLES),
        "head": static.head(),
        "favicon_path": str(static.ASSETS / static.ICON),
        "footer_links": ["api"],
        "run_history": False,
        "ssr_mode": False,
        "strict_cors": True,
        "max_file_size": "20mb",
        "enable_monitoring": False,
        "show_error": False,
        "app_kwargs": {
            "middleware": [Middleware(firewall.Firewall), Middleware(static.Preview)],
            "lifespan": sweep.lifespan,
            "routes": static.routes(),
        },
    }


def launch(demo: gr.Blocks, chosen: argparse.Namespace) -> None:
    if "OMP_NUM_THREADS" not in os.environ:
        # One core is left to encode and serve: sampling in as many threads as cores waits for the slowest of them.
        torch.set_num_threads(max(1, (os.cpu_count() or 2) - 1))
    signal.signal(signal.SIGTERM, _end)
    demo.launch(server_name=chosen.host, server_port=chosen.port, **launch_options())


def _end(*_: object) -> None:
    """At once, whatever is running: a polite end waits ten seconds for open pages, a hasty one aborts in torch."""
    mailbox.remove_folder()
    for worker in multiprocessing.active_children():  # ZeroGPU's: no longer ours to end once this process is gone
        worker.kill()
    os._exit(0)
