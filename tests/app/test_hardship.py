"""A full disk, a cache that cannot be written, and an end by signal: one sentence, and the chains go on."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from load.client import Tab, aside, events_of, free_port, new_http

from app import mailbox
from app.cache import VARIABLE
from app.mailbox import Letter, Mailbox
from jem_core.bundle import Bundle

ROOT = Path(__file__).parents[2]
WISH = {"order": 1, "run": "a", "playing": True, "fresh": 1, "fps": 18, "step": 0, "action": "run"}


def no_room() -> None:
    """As on a full disk: no file can grow by a byte, wherever it is."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


async def last_frame(url: str) -> dict:
    async with new_http(url) as http, Tab(http, await events_of(http)) as tab:
        wish = WISH | {"settings": {"model": "tiny", "chains": 2, "seed": 3, "pause": 4, "with": ["Red"]}}
        return [frame async for frame in tab.stream("run", wish)][-1]


@pytest.mark.parametrize("trouble", ["a full disk", "a cache that is no directory"])
def test_the_app_says_so_and_samples(trouble: str, tiny_bundle: Bundle, tmp_path: Path) -> None:
    port = free_port()
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    environment = os.environ | {"OMP_NUM_THREADS": "1", VARIABLE: str(blocked / "cache")}
    process = subprocess.Popen(
        [sys.executable, "app.py", "--port", str(port), "--model", str(tiny_bundle.directory)],
        cwd=ROOT,
        env=environment,
        preexec_fn=no_room if trouble == "a full disk" else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_until_it_answers(process, f"http://127.0.0.1:{port}")
        frame = aside(asyncio.run, last_frame(f"http://127.0.0.1:{port}"))
        assert (frame["status"], frame["step"]) == ("paused", 4)
    finally:
        process.terminate()
        said, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "cannot be written" in said
    assert "Traceback" not in said


def wait_until_it_answers(process: subprocess.Popen, url: str) -> None:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stdout.read()
        try:
            urllib.request.urlopen(f"{url}/gradio_api/startup-events", timeout=2)
            return
        except OSError:
            time.sleep(0.2)
    raise AssertionError("the app did not answer")


def test_letters_stay_in_memory_when_they_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setattr(mailbox, "_folder", blocked / "mail")
    monkeypatch.setattr(mailbox, "_kept", {})
    box, letter = Mailbox("visitor"), Letter(5, "run", True, 0, {"with": ["Red"]})
    assert box.read() is None
    assert box.post(letter)
    assert box.read() == letter
    assert not box.post(Letter(4, "run", False, 0)), "a late letter never undoes a newer one"
    assert Mailbox("another").read() is None
    box.drop()
    assert box.read() is None
    assert caplog.text.count("Letters stay in memory") == 1
    for number in range(mailbox.MOST_KEPT + 20):
        Mailbox(str(number)).post(letter)
    assert len(mailbox._kept) == mailbox.MOST_KEPT
