"""Hostile requests over real HTTP: python tests/load/fuzz.py [--uploads 1000] [--calls 10000] [--seed 0] [--model DIR].

Spoilt pictures go to /predict, to the photo screen's own event and to Gradio's upload route; then every event of the
app gets wrong types, huge numbers, giant and odd texts, names that look like paths, addresses or Hub ids, missing and
extra keys, deep nesting, and bodies that are no JSON. Prints the answers by kind; the exit code is 1 on any 5xx, on a
call without an answer, on a traceback in the server's log, or when a good request fails afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import itertools
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "jem_core"))

from client import Event, Refused, Server, Tab, events_of, memory, new_http, start_server, stop_server
from mutate_images import good_files, uploads

OWN = "s" * 12  # stands for the session until a worker sends the call
WORKERS = 6  # calls at once: fewer than the queue has places, so that none is refused for being one too many
SHORT = {  # what would compute for long is over at once
    "GIBBS_JEM_RUN_STEPS": "3",
    "GIBBS_JEM_RUN_SECONDS": "1",
    "GIBBS_JEM_SAMPLE_STEPS": "3",
    "GIBBS_JEM_BEST_OF": "2",
    "GIBBS_JEM_IDLE_SECONDS": "30",
}
WEIGHTS = {"steer": 40, "run": 12, "synthesize": 12, "surprise": 8, "predict": 8, "show": 5, "edit": 5, "film": 2}
WEIGHTS |= {"curve": 5, "forget": 3, "opened": 2, "hello": 1, "goodbye": 1, "explained": 0.1}
QUEUED = ("run", "synthesize", "predict", "show", "film", "explained", "goodbye")
PATHS = ("run/predict", "queue/join", "run/steer", "run/synthesize", "api/nothing", "call/synthesize")
PATHS += ("call/v2/predict", "call/nothing", "cancel", "reset", "upload", "component_server", "stream/x", "login")


class Call(NamedTuple):
    """One request: the event's name or a path, and a body that may be anything."""

    kind: str
    path: str
    content: str | bytes


def odd_values(rng: random.Random) -> list:
    """Values that no handler expects."""
    nested: object = 1
    for _ in range(rng.choice((3, 60, 400))):
        nested = [nested] if rng.random() < 0.5 else {"a": nested}
    file = {"path": "/etc/passwd", "url": "http://127.0.0.1:9/x", "meta": {"_type": "gradio.FileData"}}
    numbers = [-1, 0, 2, 1.5, -0.0, 1e308, -1e308, float("nan"), float("inf"), 2**53, 2**63, 2**64, 10**30, 10**400]
    texts = ["", " ", "0", "NaN", "\x00", "\ud800", "💥" * 40, "a" * 5_000, "';--", "<script>", "{0.__class__}", "%s%n"]
    texts += ["a" * 3_000_000] if rng.random() < 0.01 else []
    places = ["/etc/passwd", "../../../etc/passwd", "file:///etc/passwd", "http://127.0.0.1:9/x", "hf-hub:owner/name"]
    places += ["owner/name@main", "C:\\x", "avatars/../avatars", "avatars\n", "AVATARS", "~/.ssh/id_rsa"]
    others = [None, True, False, [], {}, [[]], [None] * 300, {"": ""}, file, {"__type__": "update"}, nested]
    return [rng.choice(part) for part in (numbers, texts, places, others, others)]


def spoil(value: object, rng: random.Random) -> object:
    """A wish with some part of it replaced, dropped or added, anywhere inside."""
    odd = rng.choice(odd_values(rng))
    if isinstance(value, dict) and value and rng.random() < 0.93:
        key, copy = rng.choice(list(value)), dict(value)
        way = rng.random()
        if way < 0.75:
            copy[key] = spoil(value[key], rng)
        elif way < 0.88:
            del copy[key]
        else:
            copy[str(rng.choice(odd_values(rng)))[:300]] = odd
        return copy
    if isinstance(value, list) and value and rng.random() < 0.85:
        at = rng.randrange(len(value))
        changed = [spoil(value[at], rng)] if rng.random() < 0.8 else rng.choice(([], [value[at], odd]))
        return value[:at] + changed + value[at + 1 :]
    return odd


def good_wishes(model: str, name: str, picture: str) -> dict[str, tuple[object, list | None]]:
    """For every event what a page would send: event data, or the arguments of a documented endpoint."""
    settings = {"model": model, "with": [name], "without": [], "chains": 1, "speed": 0, "steps": 1, "seed": 1}
    settings |= {"sampler": "resampling", "start": "informed", "compare": "none", "guidance": 2}
    letter = {"order": 1, "run": "abc", "playing": True, "fresh": 1, "step": 0, "fps": 18, "settings": settings}
    photo = {"order": 1, "model": model, "attribute": name, "theme": "dark", "face": 0, "box": [0, 0, 20, 20]}
    return {
        "steer": (letter, None),
        "run": (letter | {"action": "run"}, None),
        "surprise": ({"model": model}, None),
        "film": ({"format": "gif"}, None),
        "show": (photo | {"data": picture}, None),
        "curve": ({"model": model, "attribute": name, "at": 0.5, "theme": "light"}, None),
        "edit": (photo, None),
        "forget": ({"order": 1}, None),
        "opened": ({"order": 1, "family": None, "model": model, "attribute": name, "theme": "dark"}, None),
        "explained": ({"model": model, "seed": 1}, None),
        "hello": (None, None),
        "goodbye": (None, None),
        "synthesize": (None, [[name], [], 1, model, 1, "marginalizing", "informed", 0, 1, 1.0, 0.8]),
        "predict": (None, [picture, model, 1]),
    }


def call(tab: Tab, good: dict[str, tuple], rng: random.Random) -> Call:
    """One fuzzed call: mostly a spoilt wish in a good body, now and then a spoilt body or no body at all."""
    name = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    wish, data = good[name]
    if rng.random() < 0.9:
        wish, data = (wish, spoil(data, rng)) if data else (spoil(wish, rng), data)
    body: object = tab.body(name, wish, data if data is None or isinstance(data, list) else [data])
    path = "queue/join" if name in QUEUED else "run/predict"
    way = rng.random()
    if way < 0.08:
        name, body = "body", spoil({key: value for key, value in body.items() if rng.random() < 0.9}, rng)
    if way < 0.03:
        name, path = "path", rng.choice(PATHS)
    content = json.dumps(body)
    if 0.08 <= way < 0.12:
        cut = content[: rng.randrange(len(content))]
        name, content = "no JSON", rng.choice((cut, cut, rng.randbytes(50), "[" * 5_000, "", "9" * 5_000, '"\\ud800"'))
    return Call(name, path, content)


async def answer(tab: Tab, one: Call) -> str:
    """What came back, in two words."""
    try:
        reply = await tab.post(one.path, one.content)
        if one.path == "queue/join" and isinstance(reply, dict) and "event_id" in reply:
            async with asyncio.timeout(60):
                session = json.loads(one.content)["session_hash"]
                reply = [value async for value in tab.results(reply["event_id"], session)][-1]
        else:
            reply = reply["data"][0] if isinstance(reply, dict) and reply.get("data") else reply
    except Refused as refusal:
        return "refused" if refusal.status == 200 else f"status {refusal.status}"
    except (TimeoutError, httpx.HTTPError) as error:
        return f"no answer: {type(error).__name__}"
    refused = isinstance(reply, dict) and (reply.get("kind") == "refused" or reply.get("status") == "error")
    return "refused" if refused else "answered"


def picture_calls(tab: Tab, model: str, count: int, seed: int) -> Iterator[Call]:
    """Spoilt pictures, in turn to the endpoint and to the screen; some as a file to Gradio's own upload route."""
    for number, upload in enumerate(uploads(count, seed)):
        data = base64.b64encode(upload.data).decode()
        kind = upload.kind.split(" of ")[0]
        if number % 13 == 12:  # not in step with the kinds of mutation
            head = f'--x\r\nContent-Disposition: form-data; name="files"; filename="{upload.name}"\r\n\r\n'
            yield Call(kind, "upload", head.encode() + upload.data + b"\r\n--x--\r\n")
        elif number % 2:
            wish = {"order": number, "data": f"data:image/png;base64,{data}", "model": model}
            yield Call(kind, "queue/join", json.dumps(tab.body("show", wish)))
        else:
            yield Call(kind, "queue/join", json.dumps(tab.body("predict", None, [data, model, 1])))


async def fuzz(server: Server, args: argparse.Namespace) -> tuple[dict[str, Counter], list[str]]:
    """All uploads, then all calls; counts by what was sent, and what must not be."""
    counts: dict[str, Counter] = {}
    bad: list[str] = []
    async with new_http(server.url) as http:
        events = await events_of(http)
        tab = Tab(http, events, OWN)
        facts = (await tab.ask("hello", None))["models"][0]
        model, name = facts["name"], facts["names"][0]
        pictures = picture_calls(tab, model, args.uploads, args.seed)
        await send(http, events, ((f"upload: {one.kind}", one) for one in pictures), counts, bad)
        good_picture = base64.b64encode(good_files(np.random.default_rng(args.seed))["jpeg"])
        rng, good = random.Random(args.seed), good_wishes(model, name, good_picture.decode())
        made = (call(tab, good, rng) for _ in range(args.calls))
        await send(http, events, ((f"call: {one.kind}", one) for one in made), counts, bad)
        bad += [sentence async for sentence in still_good(Tab(http, events), good)]
    return counts, bad


async def send(http: httpx.AsyncClient, events: dict[str, Event], calls: Iterator, counts: dict, bad: list) -> None:
    """A few at a time, each worker with a session of its own."""

    async def work() -> None:
        tab = Tab(http, events)
        for number in itertools.count(1):
            kind, one = next(calls, (None, None))
            if one is None:
                return
            if number % 50 == 0:
                tab = Tab(http, events)
            content = one.content.replace(OWN, tab.session) if isinstance(one.content, str) else one.content
            found = await answer(tab, one._replace(content=content))
            counts.setdefault(kind, Counter())[found] += 1
            if found.startswith(("status 5", "no answer")):
                bad.append(f"{kind} {one.path}: {found}: {str(content)[:500]}")

    await asyncio.gather(*(work() for _ in range(WORKERS)))


async def still_good(tab: Tab, good: dict[str, tuple]):
    """A sentence for each good request that is not answered as it should be."""
    for name in ("run", "synthesize", "predict", "show", "steer"):
        wish, data = good[name]
        path = "queue/join" if name in QUEUED else "run/predict"
        if await answer(tab, Call(name, path, json.dumps(tab.body(name, wish, data)))) != "answered":
            yield f"a good {name} got no good answer afterwards"


def options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uploads", type=int, default=1_000)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", action="append", default=[], help="a model to aim at, besides the bundled ones")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    args = options(words)
    with tempfile.TemporaryDirectory() as folder:
        server = start_server(Path(folder) / "log.txt", [Path(model) for model in args.model], **SHORT)
        before, began = memory(server.process.pid), time.monotonic()
        try:
            counts, bad = asyncio.run(fuzz(server, args))
            size = memory(server.process.pid)
        finally:
            stop_server(server)
        log = server.log()
    report(counts, bad, log)
    print(f"{time.monotonic() - began:.0f} seconds; memory {before:.0f} -> {size:.0f} MB")
    return 1 if bad or "Traceback" in log else 0


def report(counts: dict[str, Counter], bad: list[str], log: str) -> None:
    for kind in sorted(counts):
        found = ", ".join(f"{name} {count}" for name, count in sorted(counts[kind].items()))
        print(f"{kind:28}{counts[kind].total():6}  {found}")
    total = sum(counts.values(), Counter())
    print(f"{'all':28}{total.total():6}  {', '.join(f'{name} {count}' for name, count in sorted(total.items()))}")
    print(f"tracebacks in the log: {log.count('Traceback (most recent call last)')}")
    endings = Counter(part.strip().splitlines()[-1][:150] for part in tracebacks(log))
    for ending, count in endings.most_common(20):
        print(f"  {count} x {ending}")
    for sentence in bad[:20]:
        print(f"  {sentence}")


def tracebacks(log: str) -> Iterator[str]:
    """The last line of each is what went wrong."""
    for part in log.split("Traceback (most recent call last):")[1:]:
        lines = part.splitlines()[1:]
        body = list(itertools.takewhile(lambda line: line.startswith((" ", "\t")) or not line, lines))
        yield "\n".join([*body, *lines[len(body) : len(body) + 1]]) or part


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
