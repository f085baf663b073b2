"""Floods of ordinary requests, as two parts of attacks.py.

files: the largest script, over sixty-four connections at once, packed in every way; and pages, under
    one name of this server and under many.
deaf: hundreds of connections that ask and never read the answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from importlib.util import find_spec
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parent))

from client import Refused, Tab, memory, new_http, percentile
from scene import ATTACKER, WITHIN, Report, Setup, guest

HAMMER = Path(__file__).with_name("hammer.py")
CONNECTIONS = 64
SECONDS = 8
DEAF = 600  # connections: more than one address may have
PATIENCE = 40  # seconds after which nobody waits for them any more
PAGE = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def largest_script() -> str:
    """Where the largest file is that the page may ask for."""
    folder = Path(find_spec("gradio").origin).parent / "templates" / "frontend"
    return f"/assets/{max((folder / 'assets').glob('*.js'), key=lambda path: path.stat().st_size).name}"


def flooded() -> list[tuple[str, str, str]]:
    """Host, path and packing. A page stands for its host, so that each new one is put together anew."""
    scripts = [("x", largest_script(), packing) for packing in ("gzip", "br", "x")]
    return [*scripts, ("x", "/", "gzip"), ("x", "/", "br"), ("x#", "/", "gzip"), ("x#", "/config", "gzip")]


async def files(setup: Setup, report: Report) -> None:
    port = httpx.URL(setup.server.url).port
    for host, path, packing in flooded():
        async with guest(setup) as took:
            # In a process of its own: here it would take the guest's time.
            words = (str(HAMMER), str(port), ATTACKER, host, path, packing, str(CONNECTIONS), str(SECONDS))
            hammer = await asyncio.create_subprocess_exec(sys.executable, *words, stdout=asyncio.subprocess.PIPE)
            done, _ = await hammer.communicate()
        name = f"files: {path[:12]} {packing} {host}"
        report.rows[f"{name}, answers"] = done.decode().strip()
        if "200" not in done.decode():
            report.bad.append(f"{name}: nobody was answered")
        report.measure(f"{name}, guest's answers, p99", percentile(took, 0.99), WITHIN["guest p99"], "s")


async def deaf(setup: Setup, report: Report) -> None:
    """Pages and scripts that nobody reads, runs that nobody watches; then the server must be rid of them."""
    port, pid = httpx.URL(setup.server.url).port, setup.server.process.pid
    before, files_before, sizes = memory(pid), open_files(pid), [0.0]
    script = f"GET {largest_script()} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    async with guest(setup) as took:
        # The runs first: with the others the attacker has more connections than it may have, and is hung up on.
        wires = await unwatched_runs(setup, port)
        wires += [await asyncio.to_thread(ask_and_never_read, port, PAGE * 40) for _ in range(DEAF // 2)]
        wires += [await asyncio.to_thread(ask_and_never_read, port, script) for _ in range(DEAF // 2)]
        opened = open_files(pid) - files_before
        for _ in range(PATIENCE):
            await asyncio.sleep(1)
            sizes.append(memory(pid))
        left = open_files(pid) - files_before
    for wire in wires:
        wire.close()
    report.rows["deaf: connections, and those left after a while"] = f"{opened}, {left}"
    if left > DEAF / 10:
        report.bad.append(f"{left} connections are still open to somebody who reads nothing")
    report.measure("deaf: memory", max(sizes) - before, WITHIN["memory"], "MB more")
    report.measure("deaf: guest's answers, p99", percentile(took, 0.99), WITHIN["guest p99"], "s")


def ask_and_never_read(port: int, request: bytes) -> socket.socket:
    wire = socket.socket()
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.bind((ATTACKER, 0))
    wire.connect(("127.0.0.1", port))
    wire.sendall(request)
    return wire


async def unwatched_runs(setup: Setup, port: int) -> list[socket.socket]:
    """Few chains, so that many frames pile up: what a large grid takes to compute is not what is measured here."""
    wires = []
    async with new_http(setup.server.url, ATTACKER) as http:
        for _ in range(8):
            tab = Tab(http, setup.events)
            body = tab.body("run", setup.letter("run", chains=8, speed=0, steps=1000))
            with contextlib.suppress(Refused):
                await tab.post("queue/join", json.dumps(body))
            listen = f"GET /gradio_api/queue/data?session_hash={tab.session} HTTP/1.1\r\nHost: x\r\n\r\n"
            wires.append(await asyncio.to_thread(ask_and_never_read, port, listen.encode()))
    return wires


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
