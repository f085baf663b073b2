"""A real server and a real browser: Debian's chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from driver import Studio
from evaluated import evaluate_prediction

from jem_core.bundle import Bundle
from jem_core.model import JointEnergyModel

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run", "--disable-dev-shm-usage"),
)


@dataclass
class Server:
    """The app in a process of its own."""

    url: str
    process: subprocess.Popen
    log_file: Path

    def log(self) -> str:
        return self.log_file.read_text()

    def cpu_seconds(self) -> float:
        """Processor time of the server so far, from the system's own books."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_server(log_file: Path, models: list[Path], **environment: str) -> Server:
    """`python app.py` with these models besides the bundled ones; waits until it answers."""
    port = free_port()
    command = [sys.executable, str(ROOT / "app.py"), "--port", str(port)]
    for model in models:
        command += ["--model", str(model)]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **environment}
    with log_file.open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=log, stderr=subprocess.STDOUT)
    server = Server(f"http://127.0.0.1:{port}", process, log_file)
    deadline = time.monotonic() + 400
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"The server ended at once:\n{server.log()}")
        try:
            urllib.request.urlopen(f"{server.url}/gradio_api/startup-events", timeout=2)
            return server
        except OSError:
            time.sleep(0.2)
    stop_server(server)
    raise RuntimeError(f"The server did not answer:\n{server.log()}")


def stop_server(server: Server) -> None:
    server.process.send_signal(signal.SIGTERM)
    try:
        server.process.wait(10)
    except subprocess.TimeoutExpired:
        server.process.kill()
        server.process.wait()


@pytest.fixture(scope="session")
def models(tiny_bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two small models with the same attributes: one as Gibbs-JEM, one as factored JEM."""
    torch.manual_seed(1)
    rival = Bundle(
        name="tiny-jem",
        config={**tiny_bundle.config, "objective": "jem"},
        model=JointEnergyModel(tiny_bundle.names, image_size=32, width=4),
        gaussian=tiny_bundle.gaussian,
        buffer=tiny_bundle.buffer,
        support=tiny_bundle.support,
    )
    directory = tmp_path_factory.mktemp("rival") / "tiny-jem"
    rival.write(directory)
    return [tiny_bundle.directory, directory]


@pytest.fixture(scope="session")
def server(models: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = start_server(tmp_path_factory.mktemp("server") / "log.txt", models)
    yield server
    stop_server(server)


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    return {"executable_path": CHROMIUM, "args": list(FLAGS)}


@pytest.fixture
def visit(server: Server, new_context) -> Iterator[Callable[..., Studio]]:
    """Open the first screen as a new visitor; afterwards every page must have been clean."""
    visitors: list[Studio] = []

    def visit(address: str = "", viewport: tuple[int, int] = (1440, 900), **settings: object) -> Studio:
        context = new_context(viewport={"width": viewport[0], "height": viewport[1]}, accept_downloads=True)
        studio = Studio(context.new_page(), server.url)
        visitors.append(studio)
        return studio.open(address, **({"model": "tiny", "chains": 4} | settings if not address else {}))

    yield visit
    for studio in visitors:
        studio.clean()


@pytest.fixture(scope="session")
def evaluated(tiny_bundle, tiny_dataset, tmp_path_factory) -> Path:
    """Two small models with the files of a real evaluation, for the second and third screens."""
    folder = tmp_path_factory.mktemp("evaluated")
    evaluate_prediction(tiny_bundle, tiny_dataset, folder / "tiny-supervised", "supervised")
    return evaluate_prediction(tiny_bundle, tiny_dataset, folder / "tiny", "gibbs-jem", pairs=True)


@pytest.fixture(scope="session")
def page_server(evaluated, tmp_path_factory):
    models = [evaluated, evaluated.parent / "tiny-supervised"]
    server = start_server(tmp_path_factory.mktemp("server") / "log.txt", models)
    yield server
    stop_server(server)


@pytest.fixture
def visitor(page_server, new_context):
    """A new visitor of a screen; afterwards the page must have been clean."""
    pages: list[Studio] = []

    def visit(screen: str) -> object:
        context = new_context(viewport={"width": 1440, "height": 900})
        studio = Studio(context.new_page(), page_server.url)
        pages.append(studio)
        studio.page.goto(f"{page_server.url}/?screen={screen}&model=tiny&chains=4")
        return studio.page

    yield visit
    for studio in pages:
        studio.clean()
    assert "Traceback" not in page_server.log()
