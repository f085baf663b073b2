"""The whole app as on a ZeroGPU Space, in the browser: the chains run in forked workers, the page notices nothing."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from driver import Studio

ROOT = Path(__file__).resolve().parents[2]
APP = "import runpy; from tests.app import zero_gpu; zero_gpu.start(); runpy.run_path('app.py', run_name='__main__')"


@pytest.fixture
def space(models: list[Path], tmp_path: Path) -> Iterator[tuple[str, int, Path]]:
    """The address of the app, its process and its log."""
    pytest.importorskip("spaces", reason="the package of ZeroGPU is not installed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url, log = f"http://127.0.0.1:{port}", tmp_path / "log.txt"
    command = [sys.executable, "-c", APP, "--port", str(port), "--model", str(models[0])]
    settings = {"OMP_NUM_THREADS": "2", "PYTHONUNBUFFERED": "1"}
    with log.open("w") as target:
        process = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | settings, stdout=target, stderr=target, start_new_session=True
        )
    try:
        deadline = time.monotonic() + 400
        while True:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            try:
                urllib.request.urlopen(url, timeout=2).read()
                break
            except OSError:
                time.sleep(0.2)
        yield url, process.pid, log
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its workers too
        process.wait()


def workers(server: int) -> list[int]:
    """The processes that the server has forked."""
    children = Path(f"/proc/{server}/task").glob("*/children")
    return [int(child) for listed in children for child in listed.read_text().split()]


def test_chains_run_are_steered_and_pause_in_a_worker(space: tuple[str, int, Path], new_context) -> None:
    url, server, log = space
    assert workers(server) == []
    settings = {"model": "tiny-levels", "chains": 4, "moving": 1, "with": ["Red"]}
    studio = Studio(new_context().new_page(), url).open(**settings)
    studio.wait_step(5)
    assert len(workers(server)) == 1
    before = studio.page.evaluate("window.gibbsJem.counters.shownStep")
    order = studio.store("order")
    studio.chip("Framed").click()
    studio.until("(order) => window.gibbsJem.counters.shownOrder > order", order)
    assert studio.page.evaluate("window.gibbsJem.counters.shownStep") >= before, "the same chains go on"
    studio.pause()
    paused, digest = studio.step, studio.digest
    studio.fold_out(".gj-hood")
    studio.act("step")
    assert studio.step == paused + 1, "a step goes on from the chains that a worker gave back"
    assert studio.digest != digest
    studio.clean()
    paused = studio.step
    studio.press("main")
    studio.wait_step(paused + 3)
    running = workers(server)
    assert running
    os.kill(server, signal.SIGTERM)
    deadline = time.monotonic() + 10
    while any(alive(process) for process in (server, *running)):
        assert time.monotonic() < deadline, "the end of the server must be the end of its workers"
        time.sleep(0.1)
    assert "Traceback" not in log.read_text()


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
