"""The app in a process of its own, and how chromium is started: for the browser tests and for the measurements."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

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

    def megabytes(self) -> float:
        """Memory that the server holds now."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


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
