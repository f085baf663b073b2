"""A browser's side of the conversation without a browser: Gradio's own HTTP requests, as the page sends them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import secrets
import sys
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, TypeVar

import httpx
from gradio_client.utils import apply_diff

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from serve import ROOT, Server, free_port, start_server, stop_server

__all__ = ["ROOT", "Server", "free_port", "start_server", "stop_server"]  # the scripts take them from here
Result = TypeVar("Result")
TIMEOUT = httpx.Timeout(120)


class Event(NamedTuple):
    """One row of the page's config: what a request must say to reach its handler."""

    index: int
    trigger: int | None
    inputs: int


class Refused(Exception):
    """The server said no; `status` is the HTTP status, or 200 where the answer itself was an error."""

    def __init__(self, status: int, text: str, wait: str | None = None, took: float = 0.0) -> None:
        super().__init__(f"{status}: {text[:300]}")
        self.status, self.text = status, text
        self.wait = float(wait or 0)  # seconds after which to ask again, as the server says
        self.took = took  # seconds until it said so


def new_http(url: str, address: str | None = None) -> httpx.AsyncClient:
    """A client, from another address of this machine where one is given: all of 127.0.0.0/8 is its own."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
    transport = httpx.AsyncHTTPTransport(local_address=address, limits=limits)
    return httpx.AsyncClient(base_url=url, timeout=TIMEOUT, transport=transport, trust_env=False)


async def events_of(http: httpx.AsyncClient) -> dict[str, Event]:
    """The app's events by name, from the config that every page load asks for."""
    began = time.monotonic()
    config = checked(await http.get("/config"), time.monotonic() - began).json()
    return {
        row["api_name"]: Event(row["id"], next((target[0] for target in row["targets"]), None), len(row["inputs"]))
        for row in config["dependencies"]
    }


def checked(response: httpx.Response, took: float = 0.0) -> httpx.Response:
    if response.status_code != 200:
        raise Refused(response.status_code, response.text, response.headers.get("retry-after"), took)
    return response


class Tab:
    """One open page: it has a session, keeps a heartbeat, and is gone when the heartbeat ends."""

    def __init__(self, http: httpx.AsyncClient, events: dict[str, Event], session: str = "") -> None:
        self.http, self.events = http, events
        self.session = session or secrets.token_hex(6)
        self._heart: asyncio.Task | None = None

    async def __aenter__(self) -> Tab:
        self._heart = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._heart.cancel()
        with contextlib.suppress(asyncio.CancelledError, httpx.HTTPError):
            await self._heart

    async def _beat(self) -> None:
        async with self.http.stream("GET", f"/gradio_api/heartbeat/{self.session}", timeout=None) as response:
            async for _ in response.aiter_lines():
                pass

    def body(self, name: str, asked: object = None, data: list | None = None) -> dict:
        """What the page posts for an event of this name."""
        event = self.events[name]
        body = {"data": [None] * event.inputs if data is None else data, "event_data": asked, "fn_index": event.index}
        return body | {"trigger_id": event.trigger, "session_hash": self.session}

    async def post(self, path: str, content: str | bytes) -> dict:
        headers = {"content-type": "multipart/form-data; boundary=x" if path == "upload" else "application/json"}
        began = time.monotonic()
        response = await self.http.post(f"/gradio_api/{path}", content=content, headers=headers)
        return checked(response, time.monotonic() - began).json()

    async def ask(self, name: str, asked: object) -> dict:
        """An event that does not wait in the queue."""
        return (await self.post("run/predict", json.dumps(self.body(name, asked))))["data"][0]

    async def stream(self, name: str, asked: object = None, data: list | None = None) -> AsyncIterator[dict]:
        """Join the queue, and give the first output each time that it comes."""
        joined = await self.post("queue/join", json.dumps(self.body(name, asked, data)))
        async for value in self.results(joined["event_id"]):
            yield value

    async def results(self, event_id: str, session: str | None = None) -> AsyncIterator[dict]:
        """What a queued event gives: a generator's later outputs arrive as changes to the one before."""
        value = None
        where = {"session_hash": session or self.session}
        async with self.http.stream("GET", "/gradio_api/queue/data", params=where) as response:
            if response.status_code != 200:
                raise Refused(response.status_code, "queue/data")
            async for line in response.aiter_lines():
                message = json.loads(line[5:]) if line.startswith("data:") else {}
                if message.get("msg") == "unexpected_error":
                    raise Refused(200, str(message.get("message")))
                if message.get("event_id") != event_id:
                    continue
                if message["msg"] == "process_generating":
                    change = message["output"]["data"][0]
                    value = change if value is None else apply_diff(value, change)
                    yield value
                if message["msg"] == "process_completed":
                    if not message["success"]:
                        raise Refused(200, str(message["output"].get("error")))
                    if value is None:
                        yield next(iter(message["output"]["data"]), None)
                    return


def aside(function: Callable[..., Result], *arguments: object) -> Result:
    """Call it in a thread of its own: asyncio.run refuses where a loop runs already, as beside Playwright's."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function, *arguments).result()


def memory(pid: int) -> float:
    """Megabytes that a process and its children hold, from the system's own books."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    children = [child for task in Path(f"/proc/{pid}/task").iterdir() for child in _words(task / "children")]
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20 + sum(memory(int(child)) for child in children)


def percentile(values: list[float], share: float) -> float:
    """Infinity where there is none: nobody was answered."""
    if not values:
        return math.inf
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def _words(path: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return path.read_text().split()
    return []
