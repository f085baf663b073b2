"""Hostile requests over real HTTP: python tests/load/fuzz.py [--uploads 1000] [--calls 10000] [--seed 0] [--model DIR].

Spoilt pictures go to /predict, to the photo screen's own event and to Gradio's upload route. Then every event of the
app gets wrong types, huge numbers, giant and odd texts, names that look like paths, addresses or Hub ids, missing and
extra keys, deep nesting and bodies that are not JSON; every route of Gradio is asked by GET, spoilt too; and bytes that
are hardly HTTP go to the socket. Prints the answers by kind; the exit code is 1 on any 5xx, on a call without an
answer, on a GET that gives something outside the list, on a traceback in the server's log, or when a good request fails
afterwards.
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
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "jem_core"))

from client import Event, Refused, Server, Tab, events_of, memory, new_http, start_server, stop_server
from hostile import ALLOWED, RAW, WEIGHTS, Call, call, get, good_requests
from mutate_images import good_files, uploads

OWN = "s" * 12  # stands for the session until a worker sends the call
WORKERS = 6  # calls at once: fewer than one address may have
SHORT = {  # what would compute for long is over at once
    "GIBBS_JEM_RUN_STEPS": "3",
    "GIBBS_JEM_RUN_SECONDS": "1",
    "GIBBS_JEM_SAMPLE_STEPS": "3",
    "GIBBS_JEM_CALL_SECONDS": "2",
    "GIBBS_JEM_BEST_OF": "2",
    "GIBBS_JEM_IDLE_SECONDS": "30",
}
HUNG_UP_ON = 2**20  # bytes of an event: the server need not read them all to say no
KINDS = {"event": 0.84, "get": 0.12, "raw": 0.04}


class Found(NamedTuple):
    """What came of all calls."""

    counts: dict[str, Counter]
    bad: list[str]

    def note(self, kind: str, answer: str, what: str) -> None:
        self.counts.setdefault(kind, Counter())[answer] += 1
        if answer.startswith(("status 5", "no answer", "given")):
            self.bad.append(f"{kind}: {answer}: {what[:500]}")


async def answer(tab: Tab, one: Call) -> str:
    """What came back to an event, in two words."""
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
        if len(one.content) > HUNG_UP_ON and isinstance(error, httpx.NetworkError):
            return "hung up"  # in the middle of a body that is much too long
        return f"no answer: {type(error).__name__}"
    refused = isinstance(reply, dict) and (reply.get("kind") == "refused" or reply.get("status") == "error")
    return "refused" if refused else "answered"


async def answer_get(tab: Tab, path: str) -> str:
    """A status; "given" where something came that is not on the list."""
    try:
        url = httpx.URL(str(tab.http.base_url).rstrip("/") + path)
        async with tab.http.stream("GET", url, timeout=20) as response:
            kind = response.headers.get("content-type", "")
            # A stream says that nobody of this name is here, or that the page is heard: any name may be asked for.
            if response.status_code == 200 and url.path not in ALLOWED and not kind.startswith("text/event-stream"):
                return f"given {kind}"
            return f"status {response.status_code}"
    except httpx.InvalidURL:
        return "not an address"
    except httpx.HTTPError as error:
        return f"no answer: {type(error).__name__}"


async def answer_raw(tab: Tab, content: bytes) -> str:
    """Bytes straight to the socket; the server may say no or hang up, and it may wait for more."""
    reader, writer = await asyncio.open_connection(tab.http.base_url.host, tab.http.base_url.port)
    try:
        writer.write(content)
        await writer.drain()
        async with asyncio.timeout(0.5):
            head = await reader.read(100)
        return f"status {head.split()[1].decode()}" if head.startswith(b"HTTP/1.1 ") else "hung up"
    except (TimeoutError, ConnectionError):
        return "waits"
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


def picture_calls(tab: Tab, model: str, count: int, seed: int) -> Iterator[Call]:
    """Spoilt pictures, in turn to the endpoint and to the screen; some as a file to Gradio's own upload route."""
    for number, upload in enumerate(uploads(count, seed)):
        data = base64.b64encode(upload.data).decode()
        kind = upload.kind.split(" of ")[0]
        if number % 13 == 12:  # not in step with the kinds of mutation
            head = f'--x\r\nContent-Disposition: form-data; name="files"; filename="{upload.name}"\r\n\r\n'
            yield Call(kind, "upload", head.encode() + upload.data + b"\r\n--x--\r\n")
        elif number % 2:
            asked = {"order": number, "data": f"data:image/png;base64,{data}", "model": model}
            yield Call(kind, "queue/join", json.dumps(tab.body("show", asked)))
        else:
            yield Call(kind, "queue/join", json.dumps(tab.body("predict", None, [data, model, 1])))


async def fuzz(server: Server, args: argparse.Namespace) -> Found:
    """All uploads, then all calls."""
    found = Found({}, [])
    async with new_http(server.url) as http:
        events = await events_of(http)
        tab = Tab(http, events, OWN)
        facts = (await tab.ask("hello", None))["models"][0]
        model, name = facts["name"], facts["names"][0]
        pictures = picture_calls(tab, model, args.uploads, args.seed)
        await send(http, events, (("upload", one) for one in pictures), found)
        picture = base64.b64encode(good_files(np.random.default_rng(args.seed))["jpeg"]).decode()
        rng, good = random.Random(args.seed), good_requests(model, name, picture)
        found.bad.extend(left_out(events, good))
        await send(http, events, mixed(tab, good, rng, args.calls), found)
        found.bad.extend([sentence async for sentence in still_good(Tab(http, events), good)])
    return found


def left_out(events: Iterable[str], good: dict[str, tuple]) -> list[str]:
    """A sentence for each event of the app that no call is made of, and for each that there is no more."""
    lists = {"the fuzzer's weights": set(WEIGHTS), "its good requests": set(good)}
    return [f"{name} is not both an event and in {what}" for what, known in lists.items() for name in known ^ {*events}]


def mixed(tab: Tab, good: dict[str, tuple], rng: random.Random, count: int) -> Iterator[tuple[str, object]]:
    for kind in rng.choices(list(KINDS), list(KINDS.values()), k=count):
        if kind == "get":
            yield kind, get(rng)
        elif kind == "raw":
            yield kind, rng.choice(RAW)
        else:
            yield kind, call(tab, good, rng)


async def send(http: httpx.AsyncClient, events: dict[str, Event], calls: Iterator, found: Found) -> None:
    """A few at a time, each worker with a session of its own."""

    async def work() -> None:
        tab = Tab(http, events)
        for number in itertools.count(1):
            kind, one = next(calls, (None, None))
            if kind is None:
                return
            if number % 50 == 0:
                tab = Tab(http, events)
            if kind == "get":
                found.note("get", await answer_get(tab, one), one)
            elif kind == "raw":
                found.note("raw", await answer_raw(tab, one), repr(one))
            else:
                content = one.content.replace(OWN, tab.session) if isinstance(one.content, str) else one.content
                replied = await answer(tab, one._replace(content=content))
                found.note(f"{kind}: {one.kind}", replied, f"{one.path} {content!s}")

    await asyncio.gather(*(work() for _ in range(WORKERS)))


async def still_good(tab: Tab, good: dict[str, tuple]):
    """A sentence for each good request that is not answered as it should be."""
    for name in ("run", "synthesize", "steer", "predict", "show", "post"):
        asked, data = good[name]
        path = "run/predict" if name == "post" else "queue/join"
        if await answer(tab, Call(name, path, json.dumps(tab.body(name, asked, data)))) != "answered":
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
            found = asyncio.run(fuzz(server, args))
            size = memory(server.process.pid)
        finally:
            stop_server(server)
        log = server.log()
    report(found, log)
    print(f"{time.monotonic() - began:.0f} seconds; memory {before:.0f} -> {size:.0f} MB")
    return 1 if found.bad or "Traceback" in log else 0


def report(found: Found, log: str) -> None:
    for kind in sorted(found.counts):
        answers = ", ".join(f"{name} {count}" for name, count in sorted(found.counts[kind].items()))
        print(f"{kind:28}{found.counts[kind].total():6}  {answers}")
    total = sum(found.counts.values(), Counter())
    print(f"{'all':28}{total.total():6}  {', '.join(f'{name} {count}' for name, count in sorted(total.items()))}")
    print(f"tracebacks in the log: {log.count('Traceback (most recent call last)')}")
    endings = Counter(part.strip().splitlines()[-1][:150] for part in tracebacks(log))
    for ending, count in endings.most_common(20):
        print(f"  {count} x {ending}")
    for sentence in found.bad[:20]:
        print(f"  {sentence}")


def tracebacks(log: str) -> Iterator[str]:
    """The last line of each is what went wrong."""
    for part in log.split("Traceback (most recent call last):")[1:]:
        lines = part.splitlines()[1:]
        body = list(itertools.takewhile(lambda line: line.startswith((" ", "\t")) or not line, lines))
        yield "\n".join([*body, *lines[len(body) : len(body) + 1]]) or part


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
