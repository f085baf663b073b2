"""One visitor against the server: python tests/load/attacks.py [--only NAME] [--sessions 5000] [--endless 200].

Attacks, one after another, each from one address, while somebody at another uses the page:
brackets: bodies of 27 MB of "[]," to every POST path of Gradio, one by one and eight at once.
sessions: thousands of new sessions that send pictures, and hundreds of bodies that never end, beside a live run.
greed: the largest syntheses and keep-the-best that fit into the queue.
hang-up: the same, and the caller leaves.
files: the largest script, over sixty-four connections at once, packed in every way; and pages, of one host and of many.
deaf: hundreds of connections that ask and never read the answers.
Prints one table; the exit code is 1 where a promise of SECURITY.md is broken. All on loopback; it ends by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import io
import json
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent))

import floods
from client import Refused, Server, Tab, events_of, memory, new_http, percentile, start_server, stop_server
from gradio_routes import addresses
from scene import ACCOMPLICE, ATTACKER, GUEST, SLOW, WITHIN, Report, Setup, guest

NAMED = ("run/predict", "api/steer", "call/synthesize", "call/predict", "call/v2/predict")  # besides Gradio's routes
ATTACKS = ("brackets", "sessions", "greed", "hang-up", "files", "deaf")
KINDS = ("synthesize", "keep-the-best")
PAUSE = 12  # the step at which a guest's run stands
AT_ONCE = 8  # of the attacker's requests
PICTURES_AT_ONCE = 24  # from each of two addresses: more than one may have under way
IMPATIENCE = 0.2  # seconds that who sends pictures waits after a refusal, whatever it says
HEAD = b"POST /gradio_api/queue/join HTTP/1.1\r\nHost: x\r\nContent-Length: 26000000\r\n\r\n"
ENDLESS = HEAD + b'{"data":["' + b"A" * 9_000


async def brackets(setup: Setup, report: Report, megabytes: int) -> None:
    bomb = b"[" + b"[]," * (megabytes * 2**20 // 3) + b"[]]"
    statuses: Counter[str] = Counter()

    async def throw(path: str) -> None:
        statuses[await asyncio.to_thread(throw_at, setup.server.url, path, bomb)] += 1

    async with guest(setup) as calm:
        await asyncio.sleep(5)
    report.rows["before: guest's answers, p99"] = f"{percentile(calm, 0.99):.2f} s"
    async with guest(setup) as took:
        paths = [f"/gradio_api/{path}" for path in NAMED] + addresses("POST")
        for path in paths:
            await throw(path)
        for path in paths:
            await asyncio.gather(*(throw(path) for _ in range(AT_ONCE)))
    report.rows["brackets: answers"] = str(dict(statuses))
    if set(statuses) - {"400", "404", "413", "429", "hung up"}:
        report.bad.append(f"brackets were answered with {dict(statuses)}")
    report.measure("brackets: guest's answers, p99", percentile(took, 0.99), WITHIN["guest p99"], "s")


def throw_at(url: str, path: str, body: bytes) -> str:
    """By a plain socket, so that this process, in which the guest is too, has no work with it."""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", httpx.URL(url).port), 60, source_address=(ATTACKER, 0)) as wire:
        try:
            wire.sendall(head)
            wire.sendall(body)
            return wire.recv(100).split()[1].decode()
        except (ConnectionError, IndexError):  # it hung up, which says enough
            return "hung up"


async def sessions(setup: Setup, report: Report, count: int, endless: int) -> None:
    """Pictures of 1,200 x 900 pixels, each under a new name; a guest's run must lose no frame.

    Far more come than can be looked at: most must be refused at once, or this takes an hour.
    """
    noise = np.random.default_rng(0).integers(0, 256, (90, 120, 3), dtype=np.uint8)
    target = io.BytesIO()
    Image.fromarray(noise).resize((1200, 900)).save(target, "JPEG", quality=70)
    asked = {"order": 1, "data": base64.b64encode(target.getvalue()).decode(), "model": setup.model}
    async with new_http(setup.server.url, GUEST) as http:  # what is loaded with the first picture is not the attack's
        _ = [value async for value in Tab(http, setup.events).stream("show", asked)]
    before, sizes, statuses, began = memory(setup.server.process.pid), [0.0], Counter(), time.monotonic()
    numbers = iter(range(count))

    async def send(http: httpx.AsyncClient) -> None:
        for _ in numbers:
            tab = Tab(http, setup.events)
            try:
                reply = [value async for value in tab.stream("show", asked)][-1]
                statuses[reply["kind"]] += 1
            except Refused as refused:
                statuses[f"status {refused.status}"] += 1
                await asyncio.sleep(IMPATIENCE)
            sizes.append(memory(setup.server.process.pid))

    # From two addresses: one alone never holds both places in which pictures are looked at.
    first, second = (new_http(setup.server.url, address) for address in (ATTACKER, ACCOMPLICE))
    async with hanging(setup, endless), live(setup) as frames, first, second:
        await asyncio.gather(*(send(http) for http in (first, second) for _ in range(PICTURES_AT_ONCE)))
    report.rows["sessions: answers"] = f"{dict(statuses)} in {time.monotonic() - began:.0f} s"
    report.rows["sessions: live runs of a guest that ended well"] = str(len(frames))
    if not frames or not all(frames):
        report.bad.append("a guest's live run lost frames")
    if any(name.startswith("status 5") for name in statuses):
        report.bad.append(f"sessions: {dict(statuses)}")
    report.measure("sessions: memory", max(sizes) - before, WITHIN["memory"], "MB more")


@contextlib.asynccontextmanager
async def hanging(setup: Setup, count: int) -> AsyncIterator[None]:
    """Bodies that never end."""
    port = httpx.URL(setup.server.url).port
    local = (SLOW, 0)  # or they would keep the attacker's own pictures out
    wires = [await asyncio.open_connection("127.0.0.1", port, local_addr=local) for _ in range(count)]
    for _, writer in wires:
        writer.write(ENDLESS)
    try:
        yield
    finally:
        for _, writer in wires:
            writer.close()


@contextlib.asynccontextmanager
async def live(setup: Setup) -> AsyncIterator[list[bool]]:
    """A guest's runs, one after another: whether each came to its end with every step on some frame."""
    ended: list[bool] = []
    leaving = asyncio.Event()

    async def watch() -> None:
        async with new_http(setup.server.url, GUEST) as http, Tab(http, setup.events) as tab:
            while not leaving.is_set():
                asked = setup.letter("run", chains=4, speed=10, pause=PAUSE, steps=20, seed=len(ended))
                asked |= {"run": f"r{len(ended)}", "order": len(ended), "fresh": len(ended)}
                frames = [{**frame} async for frame in tab.stream("run", asked)]
                ended.append(nothing_lost(frames, PAUSE))

    task = asyncio.create_task(watch())
    try:
        yield ended
    finally:
        leaving.set()
        await task


def nothing_lost(frames: list[dict], pause: int) -> bool:
    """Whether every frame arrived: each says which steps were taken since the one before it."""
    steps = [step for frame in frames for step in frame.get("steps", [])]
    return steps == list(range(1, pause + 1)) and frames[0]["step"] == 0 and frames[-1]["status"] == "paused"


async def greed(setup: Setup, report: Report) -> None:
    """Whatever fits into the queue, syntheses and keep-the-best in turn; then a guest comes."""
    statuses: Counter[str] = Counter()
    async with new_http(setup.server.url, ATTACKER) as http:
        began, ended = time.monotonic(), {}
        watching = []
        for number in range(24):
            tab, kind = Tab(http, setup.events), KINDS[number % 2]
            try:
                event = await join(setup, tab, kind)
                watching.append(asyncio.create_task(until_done(tab, event, kind, ended)))
            except Refused as refused:
                statuses[f"status {refused.status}"] += 1
        await asyncio.sleep(1)
        async with new_http(setup.server.url, GUEST) as other:
            came = time.monotonic()
            stream = Tab(other, setup.events).stream("run", setup.letter("run", chains=16))
            await anext(stream)
            report.measure("greed: a guest's first frame", time.monotonic() - came, WITHIN["first frame"], "s")
            await stream.aclose()
        while set(ended) < set(KINDS) and time.monotonic() - began < 3 * setup.seconds:
            await asyncio.sleep(0.1)
        for kind in KINDS:
            took = ended.get(kind, time.monotonic()) - began
            report.measure(f"greed: the largest {kind}", took, setup.seconds + 15, "s")
        await leave(watching)
    report.rows["greed: taken into the queue, refused"] = f"{len(watching)}, {dict(statuses)}"


async def join(setup: Setup, tab: Tab, kind: str) -> str:
    """The largest synthesis or keep-the-best; the name of its event."""
    best = setup.letter("best", chains=64, steps=1000, speed=0)
    body = setup.largest(tab) if kind == "synthesize" else tab.body("run", best)
    return (await tab.post("queue/join", json.dumps(body)))["event_id"]


async def until_done(tab: Tab, event: str, kind: str, ended: dict[str, float]) -> None:
    """Listen to the end; `ended` takes the moment of the first end of each kind."""
    with contextlib.suppress(Refused):
        async for _ in tab.results(event):
            pass
    ended.setdefault(kind, time.monotonic())


async def leave(watching: list[asyncio.Task]) -> None:
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)


async def hang_up(setup: Setup, report: Report) -> None:
    """One of three callers leaves; its place must be free for a fourth, who waits for it. Then all leave."""
    for kind in KINDS:
        async with new_http(setup.server.url, ATTACKER) as http:
            tabs = [Tab(http, setup.events) for _ in range(4)]  # one address has three places of four
            events = [await join(setup, tab, kind) for tab in tabs]
            pairs = list(zip(tabs, events, strict=True))
            watching = [asyncio.create_task(until_done(*pair, kind, {})) for pair in pairs[:3]]
            waiting = asyncio.create_task(until_started(*pairs[3]))
            await asyncio.sleep(3)
            if waiting.done():
                report.bad.append(f"hang-up: a fourth {kind} of one address did not wait")
            began = time.monotonic()
            await leave(watching[:1])
            await waiting
            report.measure(f"hang-up: the place of a {kind}", time.monotonic() - began, WITHIN["hang-up"], "s")
            await leave(watching)
        await asyncio.sleep(WITHIN["hang-up"])
        before = setup.server.cpu_seconds()
        await asyncio.sleep(2)
        report.measure(f"hang-up: {kind} goes on", (setup.server.cpu_seconds() - before) / 2, 0.5, "cores")


async def until_started(tab: Tab, event: str) -> None:
    where = {"session_hash": tab.session}
    async with tab.http.stream("GET", "/gradio_api/queue/data", params=where) as response:
        async for line in response.aiter_lines():
            if event in line and "process_starts" in line:
                return


async def attack(server: Server, args: argparse.Namespace, seconds: int) -> Report:
    report = Report()
    async with new_http(server.url) as http:
        events = await events_of(http)
        models = (await Tab(http, events).ask("hello", None))["models"]
        await Tab(http, events).ask("surprise", {"model": models[0]["name"]})  # a model is read when it is first used
    setup = Setup(server, events, models[0]["name"], models[0]["names"][0], seconds, args.best)
    attacks = {
        "brackets": lambda: brackets(setup, report, args.megabytes),
        "sessions": lambda: sessions(setup, report, args.sessions, args.endless),
        "greed": lambda: greed(setup, report),
        "hang-up": lambda: hang_up(setup, report),
        "files": lambda: floods.files(setup, report),
        "deaf": lambda: floods.deaf(setup, report),
    }
    for name in args.only or attacks:
        shown = set(report.rows)
        await attacks[name]()
        for row in report.rows:
            if row not in shown:
                print(f"{row:50}{report.rows[row]}", flush=True)
    if "Traceback" in server.log():
        report.bad.append("there is a traceback in the server's log")
    return report


def options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=5_000)
    parser.add_argument("--endless", type=int, default=200)
    parser.add_argument("--megabytes", type=int, default=27)
    parser.add_argument("--best", type=int, default=10, help="of how many the server keeps the best, at most")
    parser.add_argument("--only", action="append", choices=ATTACKS, help="one attack instead of all; may be repeated")
    parser.add_argument("--model", action="append", default=[], help="a model to aim at, besides the bundled ones")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    args, seconds = options(words), 20
    variables = {"GIBBS_JEM_CALL_SECONDS": str(seconds), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        server = start_server(Path(folder) / "log.txt", [Path(model) for model in args.model], **variables)
        try:
            report = asyncio.run(attack(server, args, seconds))
        finally:
            stop_server(server)
    for sentence in report.bad:
        print(f"BROKEN: {sentence}")
    return 1 if report.bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
