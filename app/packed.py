"""Scripts and styles, compressed once and kept.

Left alone, Gradio compresses them anew for every visitor, on the event loop that serves all the others: a quarter of a
second for its largest script, and whoever asks for it sixty times at once stops the server.
"""

from __future__ import annotations

import asyncio
import gzip
import re
from typing import NamedTuple

from anyio import to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# As many as there are files: an old version of the page's own is "no-cache" and not kept.
KEPT = re.compile(r"/(gj|assets|static|svelte)/.+\.(js|css|json|svg|html|txt)|(/gradio_api)?/theme\.css")
WHOLE = (b"range", b"if-range", b"if-none-match", b"if-modified-since")  # headers that ask for a part, or for nothing
PIECE = 2**16  # bytes that are sent before it is seen whether anybody takes them
LEVEL = 6


class File(NamedTuple):
    """An answer as it goes out."""

    headers: list[tuple[bytes, bytes]]
    body: bytes
    status: int = 200

    async def send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status, "headers": list(self.headers)})
        for start in range(0, len(self.body), PIECE):
            await send({"type": "http.response.body", "body": self.body[start : start + PIECE], "more_body": True})
        await send({"type": "http.response.body", "body": b""})


class Packed:
    """An app whose files go out as they were packed the first time."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._files: dict[str, asyncio.Task[File | None]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "").removeprefix(scope.get("root_path", "").rstrip("/"))
        if scope["type"] != "http" or scope["method"] != "GET" or not KEPT.fullmatch(path):
            await self.app(scope, receive, send)
        elif "gzip" not in Headers(scope=scope).get("accept-encoding", ""):
            await self.app(scope, receive, _as_it_is(send))
        elif file := await asyncio.shield(self._file(path, scope)):  # others wait for it too
            await file.send(send)
        else:
            await self.app(scope, receive, send)

    def _file(self, path: str, scope: Scope) -> asyncio.Task[File | None]:
        if path not in self._files:
            self._files[path] = asyncio.create_task(self._make(scope))
            self._files[path].add_done_callback(lambda made: self._keep(path, made))
        return self._files[path]

    def _keep(self, path: str, made: asyncio.Task[File | None]) -> None:
        if made.cancelled() or made.exception() or made.result() is None:
            del self._files[path]

    async def _make(self, scope: Scope) -> File | None:
        """The file as the app gives it, packed; None for what is not there, or not to be kept."""
        headers = [(name, value) for name, value in scope["headers"] if name not in WHOLE]
        start, body = await whole(self.app, scope | {"headers": headers})
        if start["status"] != 200 or "no-cache" in Headers(raw=start["headers"]).get("cache-control", ""):
            return None
        body = await to_thread.run_sync(gzip.compress, body, LEVEL)
        answer = MutableHeaders(raw=list(start["headers"]))
        answer["Content-Encoding"], answer["Content-Length"] = "gzip", str(len(body))
        answer.add_vary_header("Accept-Encoding")
        return File(answer.raw, body)


def _as_it_is(send: Send) -> Send:
    """`send`, with a name for what is not packed: it tells Gradio not to pack it either."""

    async def named(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)["Content-Encoding"] = "identity"
        await send(message)

    return named


async def whole(app: ASGIApp, scope: Scope) -> tuple[Message, bytes]:
    """What an app answers to a request without a body: the start, and all the rest."""
    start: list[Message] = []
    parts: list[bytes] = []
    unread: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        if not unread:
            await asyncio.Event().wait()  # nobody hangs up: whoever listens for that listens until the answer is whole
        return unread.pop()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            start.append(message)
        else:
            parts.append(message.get("body", b""))

    await app(scope, receive, send)
    return start[0], b"".join(parts)
