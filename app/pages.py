"""Pages, put together once for each name that this server goes by, and kept.

Left alone, Gradio puts a page together anew for everybody who asks, in as many threads as there are requests: whoever
asks over sixty connections at once takes more than a second from all the others.
"""

from __future__ import annotations

import asyncio
import gzip
import time
from collections import Counter, OrderedDict
from typing import NamedTuple

from anyio import to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Scope, Send

from app.addresses import PROTOCOL
from app.gradio_inside import forget_description
from app.packed import LEVEL, File, whole
from app.visitors import Full

MOST_KEPT = 32  # anybody may invent names of this server; it has few
MOST_WAITING, MOST_WAITING_PER_ADDRESS = 64, 8
PATIENCE = 3.0  # seconds
REST = 4  # times as long as a page took before the next one is begun: most of the time belongs to all the others

Key = tuple[str, str, str, bytes, bytes]


class Page(NamedTuple):
    """A page for whoever takes it as it is, and for whoever takes it packed."""

    plain: File
    packed: File

    async def send(self, scope: Scope, send: Send) -> None:
        packed = "gzip" in Headers(scope=scope).get("accept-encoding", "")
        await (self.packed if packed else self.plain).send(send)


class Pages:
    """The pages of an app. One is put together at a time, and each address waits for one."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._kept: OrderedDict[Key, Page] = OrderedDict()  # the one that was asked for longest ago first
        self._making: set[str] = set()  # addresses
        self._coming: Counter[Key] = Counter()
        self._waiting: Counter[str] = Counter()  # by address
        self._turn = asyncio.Lock()  # first come, first served
        self._rests_until = 0.0

    async def page(self, scope: Scope, address: str) -> Page:
        """The page that a request asks for; Full where too many wait for one that is not there yet."""
        stated = dict(scope["headers"])
        # Nothing else of a request may show in a page: it is not only for whoever asked first.
        key = scope["method"], scope["path"], scope["scheme"], stated.get(b"host", b""), stated.get(PROTOCOL, b"")
        if key not in self._kept:
            return await self._wait(key, scope, address)
        self._kept.move_to_end(key)
        return self._kept[key]

    async def _wait(self, key: Key, scope: Scope, address: str) -> Page:
        patience = time.monotonic() + PATIENCE
        # A class that opens the page together waits for the same one.
        few = key in self._coming or self._waiting[address] < MOST_WAITING_PER_ADDRESS
        full = self._waiting.total() >= MOST_WAITING or not few
        self._waiting[address] += 1
        try:
            while key not in self._kept and address in self._making:
                if full or time.monotonic() > patience:
                    raise Full("The server is busy.", PATIENCE)
                await asyncio.sleep(0.02)
            return self._kept.get(key) or await self._in_turn(key, scope, address)
        finally:
            self._waiting[address] -= 1
            self._waiting += Counter()  # without those that are zero

    async def _in_turn(self, key: Key, scope: Scope, address: str) -> Page:
        self._making.add(address)
        self._coming[key] += 1
        try:
            async with self._turn:
                return self._kept.get(key) or await self._rest_and_make(key, scope)
        finally:
            self._making.discard(address)
            self._coming -= Counter([key])

    async def _rest_and_make(self, key: Key, scope: Scope) -> Page:
        await asyncio.sleep(self._rests_until - time.monotonic())
        began = time.monotonic()
        try:
            return await self._make(key, scope)
        finally:
            now = time.monotonic()
            self._rests_until = now + REST * (now - began)

    async def _make(self, key: Key, scope: Scope) -> Page:
        *_, host, protocol = key
        headers = [(b"host", host), *([(PROTOCOL, protocol)] if protocol else [])]
        forget_description(scope["app"])
        # What stands in the address is for the page's own script; Gradio would look for a stored page there.
        start, body = await whole(self.app, scope | {"headers": headers, "query_string": b""})
        status, given = start["status"], list(start["headers"])
        packed = await to_thread.run_sync(gzip.compress, body, LEVEL)
        page = Page(_file(status, given, body, "identity"), _file(status, given, packed, "gzip"))
        if status == 200:
            self._kept[key] = page
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return page


def _file(status: int, headers: list[tuple[bytes, bytes]], body: bytes, packing: str) -> File:
    answer = MutableHeaders(raw=list(headers))
    answer["Content-Encoding"], answer["Content-Length"] = packing, str(len(body))
    answer.add_vary_header("Accept-Encoding")
    return File(answer.raw, body, status)
