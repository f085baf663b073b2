"""What stands before Gradio: a request that makes no sense gets a sentence, and no handler ever sees it.

Left alone, Gradio meets an unknown event, a missing value or half a surrogate pair with a traceback and status 500,
reads bodies of any length, and stores uploads that no screen of ours asks for.
"""

from __future__ import annotations

import inspect
import json
import re
from collections import Counter
from urllib.parse import parse_qs

import gradio as gr
import orjson
from gradio.block_function import BlockFunction
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.pictures import MOST_BYTES
from app.settings import short

PREFIX = "/gradio_api/"
LONGEST_BODY = MOST_BYTES * 4 // 3 + 2**16  # the largest picture in base64, and a letter around it
SESSION = re.compile(r"[A-Za-z0-9_-]{1,64}")
FILE = b"gradio.FileData"  # the mark by which Gradio knows a path or an address that it is to fetch
GONE = {"msg": "unexpected_error", "message": "This session has ended.", "session_not_found": True, "success": False}

reading: Counter[str] = Counter()  # sessions whose answers somebody is listening to


class Guard:
    """ASGI middleware around the whole app."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path, blocks = scope["path"].rpartition(PREFIX)[2].strip("/"), scope["app"].get_blocks()
        if scope["method"] == "POST":
            refusal, body = await _checked(path, receive, blocks)
            await (refusal or Replay(self.app, body))(scope, receive, send)
            return
        session = _listened_to(path, scope, blocks)
        if session is None:
            await self.app(scope, receive, send)
        elif session not in blocks._queue.pending_messages_per_session:
            await Response(f"data: {json.dumps(GONE)}\n\n", media_type="text/event-stream")(scope, receive, send)
        else:
            await self._listen(session, scope, receive, send)

    async def _listen(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        reading[session] += 1
        try:
            await self.app(scope, receive, send)
        finally:
            reading[session] -= 1
            if not reading[session]:
                del reading[session]


class Replay:
    """The app, with a body that was read already."""

    def __init__(self, app: ASGIApp, body: bytes) -> None:
        self.app, self.body = app, body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        unread = [{"type": "http.request", "body": self.body, "more_body": False}]
        headers = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
        headers.append((b"content-length", str(len(self.body)).encode()))

        async def replay() -> Message:
            return unread.pop() if unread else await receive()

        await self.app(scope | {"headers": headers}, replay, send)


async def _checked(path: str, receive: Receive, blocks: gr.Blocks) -> tuple[Response | None, bytes]:
    """A refusal, or the body as strict JSON: no NaN, no half characters, no number that an answer could not repeat."""
    kind, _, rest = path.partition("/")
    tools = kind == "mcp" and blocks.mcp_server  # what they call comes back here as a call
    plain = kind in ("run", "api", "call", "cancel", "reset") or path == "queue/join"
    if not (plain or tools):
        return _no(404, "There is nothing to post to here."), b""
    body = await _read(receive)
    if body is None:
        return _no(413, f"The request is too long: at most {LONGEST_BODY >> 20} MB are read."), b""
    try:
        values = orjson.loads(body)
        if not isinstance(values, dict):
            raise ValueError(f"The request is a {type(values).__name__}; expected names with values.")
        if kind not in ("cancel", "reset", "mcp"):
            _check_event(kind, rest, values, blocks)
        strict = orjson.dumps(values)
        if FILE in strict:
            raise ValueError("No file and no address is opened here; send a picture's bytes.")
        return None, strict
    except orjson.JSONDecodeError:
        return _no(400, "The request is not JSON."), b""
    except orjson.JSONEncodeError:  # it reads deeper than it writes
        return _no(400, "The request is nested too deeply."), b""
    except ValueError as error:
        return _no(400, str(error)), b""


async def _read(receive: Receive) -> bytes | None:
    """The whole body; None as soon as it is too long."""
    parts, length = [], 0
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        length += len(parts[-1])
        if length > LONGEST_BODY:
            return None
        if not message.get("more_body"):
            return b"".join(parts)


def _check_event(kind: str, rest: str, values: dict, blocks: gr.Blocks) -> None:
    """An event that exists, with as many values as it takes, from a session with a name."""
    session = values.get("session_hash")
    if session is not None and not (isinstance(session, str) and SESSION.fullmatch(session)):
        raise ValueError(f"session_hash is {short(session)}; expected up to 64 letters and digits.")
    index, name = values.get("fn_index"), rest.removeprefix("v2/") if kind == "call" else rest
    if index is None or kind == "call":
        event = next((fn for fn in blocks.fns.values() if fn.api_name == name), None)
    else:
        event = blocks.fns.get(index) if isinstance(index, int) and not isinstance(index, bool) else None
    if event is None:
        raise ValueError("There is no such event.")
    if kind == "call" and rest.startswith("v2/"):
        _check_names(event, values)
        return
    data = values.get("data")
    takes = (len(event.inputs), sum(not block.skip_api for block in event.inputs) if kind == "call" else -1)
    if not isinstance(data, list) or len(data) not in takes:
        raise ValueError(f"data is {short(data)}; expected a list of {len(event.inputs)} values.")


def _check_names(event: BlockFunction, values: dict) -> None:
    """A documented endpoint takes its values by name."""
    if event.api_visibility != "public":
        raise ValueError("There is no such event.")
    parameters = inspect.signature(event.fn).parameters.values()
    unknown = [name for name in values if name not in [one.name for one in parameters]]
    missing = [one.name for one in parameters if one.default is one.empty and one.name not in values]
    if unknown or missing:
        raise ValueError(f"{short((unknown or missing)[0])} is {'not known here' if unknown else 'missing'}.")


def _listened_to(path: str, scope: Scope, blocks: gr.Blocks) -> str | None:
    """The session whose answers a request wants to hear; None for any other request."""
    if path == "queue/data":
        return parse_qs(scope["query_string"].decode("latin-1")).get("session_hash", [""])[0]
    parts = path.removeprefix("call/v2/").removeprefix("call/").split("/")
    if not path.startswith("call/") or len(parts) != 2:
        return None
    event = blocks._queue.event_ids_to_events.get(parts[1])
    waiting = blocks._queue.pending_event_ids_session
    return event.session_hash if event else next((one for one, ids in waiting.items() if parts[1] in ids), parts[1])


def _no(status: int, sentence: str) -> Response:
    return JSONResponse({"detail": sentence}, status)
