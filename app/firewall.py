"""What stands before Gradio: a request that makes no sense gets a sentence, and no handler ever sees it.

Left alone, Gradio fetches any address for anybody (`file=`), writes a visitor's page to disk and gives it out by link
(`deep_link`), reads bodies of any length and parses them while everybody waits, remembers as many sessions as somebody
invents, and meets an unknown event, a missing value or half a surrogate pair with a traceback and status 500.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import secrets
from urllib.parse import parse_qs

import gradio as gr
import orjson
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import bodies, events, gradio_inside, inbox
from app.addresses import address_of, believable
from app.headers import with_safety
from app.packed import Packed
from app.pages import Pages
from app.parcels import parcels
from app.visitors import Full, Visitors, visitors_of

API = "/gradio_api/"
NAME = r"[A-Za-z0-9_-]{1,64}"
# All that is ever answered to GET. The page and its own files; Gradio's scripts and styles; what describes the
# endpoints to a program; the streams on which answers come.
PAGES = re.compile(r"/|/config/?|/gradio_api/info/?|/gradio_api/openapi\.json")
FILES = re.compile(
    r"/(gj|assets|static|svelte)(/[\w@-][\w.@-]{0,150}){1,8}|(/gradio_api)?/theme\.css|/favicon\.ico"
    r"|/robots\.txt|/manifest\.json|/gradio_api/startup-events|/gradio_api/app_id/?",
    re.ASCII,
)
HEARTBEAT = re.compile(rf"/gradio_api/heartbeat/(?P<session>{NAME})")
ANSWERS = re.compile(rf"/gradio_api/(queue/data|call/(v2/)?{NAME}/(?P<event>{NAME}))")
EVENTS = re.compile(rf"/gradio_api/(?P<kind>run|api|call|call/v2)/(?P<name>{NAME})/?|/gradio_api/(?P<queue>queue/join)")
ENDINGS = re.compile(r"/gradio_api/(cancel|reset)/?")
TOOLS = re.compile(r"/gradio_api/mcp(/[\w-]+)*/?")  # only where they were asked for
SESSION = re.compile(NAME)
GONE = {"msg": "unexpected_error", "message": "This session has ended.", "session_not_found": True, "success": False}
ARRIVING = bodies.Bodies()


class Firewall:
    """ASGI middleware around the whole app."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = Packed(app)
        self.pages = Pages(app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            visitors = visitors_of(scope["app"])
            behind = bool(visitors.limits.behind_proxy)
            address = address_of(scope, behind)
            request = Request(self, scope | {"headers": believable(scope, behind)}, receive, visitors, address)
            await request.answer(with_safety(send))
        else:  # a WebSocket: nothing here listens to one
            await send({"type": "websocket.close", "code": 1000})


class Request:
    """One request on its way to the app, or to a refusal."""

    def __init__(self, wall: Firewall, scope: Scope, receive: Receive, visitors: Visitors, address: str) -> None:
        self.app, self.pages, self.scope, self.receive = wall.app, wall.pages, scope, receive
        self.visitors, self.address = visitors, address
        self.path = scope["path"].removeprefix(scope.get("root_path", "").rstrip("/")) or "/"
        self.blocks: gr.Blocks = scope["app"].get_blocks()
        self.parcel = ""  # the picture that came along

    async def answer(self, send: Send) -> None:
        try:
            refusal = await self._pass_on(send)
        except bodies.Left:
            return
        except bodies.Refused as error:
            refusal = no(error.status, str(error), error.hang_up)
        except Full as error:
            refusal = no(429, str(error), hang_up=self.scope["method"] == "POST", seconds=error.seconds)
        if refusal:
            parcels.drop(self.parcel)
            await refusal(self.scope, self.receive, send)

    async def _pass_on(self, send: Send) -> Response | None:
        tools = self.blocks.mcp_server and TOOLS.fullmatch(self.path)
        if self.scope["method"] in ("GET", "HEAD"):
            return await self._get(send, bool(tools))
        if self.scope["method"] == "POST":
            return await self._post(send, bool(tools))
        if tools and self.scope["method"] == "DELETE":
            await self.app(self.scope, self.receive, send)
            return None
        return no(404, "There is nothing here.")

    # GET.

    async def _get(self, send: Send, tools: bool) -> Response | None:
        if FILES.fullmatch(self.path):
            await self.app(self.scope, self.receive, send)
        elif PAGES.fullmatch(self.path):
            page = await self.pages.page(self.scope, self.address)
            await page.send(self.scope, send)
        elif beat := HEARTBEAT.fullmatch(self.path):
            with self.visitors.listening(beat["session"], self.address, answers=False):
                await self.app(self.scope, self.receive, send)
        elif found := ANSWERS.fullmatch(self.path):
            return await self._listen(found["event"], send)
        elif tools:
            await self.app(self.scope, self.receive, send)
        else:
            return no(404, "There is nothing here.")
        return None

    async def _listen(self, event: str | None, send: Send) -> Response | None:
        """Answers to a session; whoever listens to nobody is told so, as Gradio's own client understands it."""
        queue = self.visitors.queue
        session = gradio_inside.session_of(queue, event) if event else self._query("session_hash")
        if not gradio_inside.has_box(queue, session):
            return Response(f"data: {json.dumps(GONE)}\n\n", media_type="text/event-stream")
        with self.visitors.listening(session, self.address, answers=True):
            await self.app(self.scope, self.receive, send)
        return None

    def _query(self, name: str) -> str:
        return parse_qs(self.scope["query_string"].decode("latin-1")).get(name, [""])[0]

    # POST.

    async def _upload(self) -> Response:
        """A picture that a program hands in before its call: it waits as a parcel, whose name is given as its path."""
        body = await ARRIVING.read_file(self.receive, self.address, self._stated())
        name = parcels.put(inbox.only_file(body, Headers(scope=self.scope)), self.address)
        if name is None:
            raise Full("Too many pictures are waiting.", 10)
        return JSONResponse([name])

    async def _post(self, send: Send, tools: bool) -> Response | None:
        if inbox.UPLOAD.fullmatch(self.path):
            return await self._upload()
        called, ending = EVENTS.fullmatch(self.path), ENDINGS.fullmatch(self.path)
        if not (called or ending or tools):
            return no(404, "There is nothing to post to here.", hang_up=self._stated() > bodies.SPARE)
        # Pictures come through the queue. The page says in the body which event it means, a call in its address.
        named = called and called["kind"] in ("call", "call/v2") and events.takes_picture(called["name"])
        large = tools or bool(named or (called and called["queue"]))
        values = await self._read(large)
        if called is None:
            if ending:
                gradio_inside.end(self.visitors.queue, values)
            await self._replay(values, send)
            return None
        event = events.find(self.blocks, called["name"], called["kind"], values)
        session = self._session(values, called["kind"])
        if called["kind"] == "call/v2":
            values = {"data": events.in_order(event, values)}
            self.scope = self.scope | {"path": f"{API}call/{called['name']}", "raw_path": b""}
        events.check_data(event, values, by_name=called["kind"] in ("call", "call/v2"))
        values["session_hash"] = session
        held = Held()
        if called["kind"] in ("run", "api"):
            async with self.visitors.call(session, self.address):
                await self._replay(values, held.take)
        else:
            with self.visitors.joining(session, self.address, event.concurrency_id):
                await self._replay(values, held.take)
        await held.send_on(send)
        return None

    def _session(self, values: dict, kind: str | None) -> str | None:
        """The name that a page gave itself; a plain call gets one, so that it counts as a visit too."""
        session = None if kind == "call/v2" else values.get("session_hash")
        if session is None and kind in ("call", "call/v2"):
            return secrets.token_hex(8)
        if session is None and kind in ("run", "api"):
            return None
        if not isinstance(session, str) or not SESSION.fullmatch(session):
            raise bodies.Refused(400, f"session_hash is {events.short(session)}; expected up to 64 letters and digits.")
        return session

    async def _read(self, large: bool) -> dict:
        """The body as strict JSON: no NaN, no half characters, no file and no address to open, no picture inside."""
        body = await ARRIVING.read(self.receive, self.address, self._stated(), large)
        if len(body) > bodies.SMALL:
            text, place = bodies.cut_out(body)
            name = parcels.put(await asyncio.to_thread(bodies.decode, text), self.address)
            if name is None:
                raise Full("Too many pictures are waiting.", 10)
            self.parcel = name
            body = body[: place.start] + name.encode() + body[place.stop :]
            if not self._may_hold_picture(body):
                raise bodies.too_long(bodies.SMALL, hang_up=False)
        return events.parse(body)

    def _stated(self) -> float:
        """The length of the body as its header says it; one that says nothing may be endless."""
        length = Headers(scope=self.scope).get("content-length", "")
        return int(length) if length.isdecimal() else math.inf

    def _may_hold_picture(self, body: bytes) -> bool:
        """Whether a queued event, which says in its body which one it is, is one that takes a picture."""
        values = events.parse(body)
        if not self.path.endswith("queue/join"):
            return True
        return events.takes_picture(events.find(self.blocks, None, None, values).api_name)

    async def _replay(self, values: dict, send: Send) -> None:
        """The app, with a body that was read already."""
        body = orjson.dumps({name: value for name, value in values.items() if name != "session_hash" or value})
        unread = [{"type": "http.request", "body": body, "more_body": False}]
        headers = [(name, value) for name, value in self.scope["headers"] if name not in events.BODY_HEADERS]
        headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]

        async def replay() -> Message:
            return unread.pop() if unread else await self.receive()

        await self.app(self.scope | {"headers": headers}, replay, send)


class Held:
    """An answer that is sent when the place in which it was made is free again: whoever takes it slowly holds none."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def take(self, message: Message) -> None:
        self.messages.append(message)

    async def send_on(self, send: Send) -> None:
        for message in self.messages:
            await send(message)


def no(status: int, sentence: str, hang_up: bool = False, seconds: int | None = None) -> Response:
    """A refusal, under both names by which Gradio's page looks for its words."""
    headers = {"Retry-After": str(seconds)} if seconds else {}
    if hang_up:
        headers["Connection"] = "close"
    return JSONResponse({"detail": sentence, "error": sentence}, status, headers)
