"""The page's own files: scripts as ES modules, pictures, the icon; and the head of the page that a link preview shows.

They are served under /gj/<version>/, where the version changes with their content: a browser may keep them for good and
never mixes scripts of two versions.
"""

from __future__ import annotations

import hashlib
import html
import os
import re
from functools import cache
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jem_core.places import ASSETS

TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
}
FOLDERS = ("", "covers")
TITLE = "Gibbs-JEM Studio"
DESCRIPTION = "Choose attributes and watch faces form out of noise. Change one, and they change before your eyes."
PREVIEW, ICON = "preview.jpg", "icon.svg"
HOST = re.compile(r"[A-Za-z0-9.\-]{1,200}(:[0-9]{1,5})?")
FOREIGN = re.compile(rb"<meta\s+(?:property|name)=\"(?:og|twitter):[^>]*>\s*")  # Gradio's own words about itself


@cache
def files() -> dict[str, Path]:
    """What is served, by name; nothing else is."""
    found = (path for folder in FOLDERS for path in sorted((ASSETS / folder).glob("*")) if path.suffix in TYPES)
    return {path.relative_to(ASSETS).as_posix(): path for path in found}


@cache
def version() -> str:
    hasher = hashlib.blake2b(digest_size=6)
    for name, path in files().items():
        hasher.update(name.encode() + path.read_bytes())
    return hasher.hexdigest()


def address(name: str) -> str:
    """Where a file is, seen from the root of the page."""
    return f"gj/{version()}/{name}"


def cover(source: str) -> str | None:
    """The picture that stands for the models of some data, where there is one."""
    name = f"covers/{source}.webp"
    return address(name) if name in files() else None


def module(name: str, *events: str) -> str:
    """What a component's script does: load a module and hand it the component. Pages may be mounted under any path.

    Gradio takes a component's events from the words in quotes that it finds in its script.
    """
    named = ", ".join(f"'{event}'" for event in events)
    return (
        f"/* {named} */"
        "const root = (window.gradio_config?.root ?? '').replace(/\\/$/, '');"
        f"import(root + '/{address(name)}').then((module) => module.mount({{ element, trigger, props, watch }}));"
    )


def routes() -> list[Route]:
    return [Route("/gj/{version}/{name:path}", _serve, methods=["GET", "HEAD"])]


async def _serve(request: Request) -> Response:
    path = files().get(request.path_params["name"])
    if path is None:
        return PlainTextResponse("There is no such file.", 404)
    # An old page asks for an old version: it gets what there is, and must ask again the next time.
    known = request.path_params["version"] == version()
    keep = "public, max-age=31536000, immutable" if known else "no-cache"
    return Response(_content(path), media_type=TYPES[path.suffix], headers={"Cache-Control": keep})


@cache
def _content(path: Path) -> bytes:
    return path.read_bytes()


def head() -> str:
    """What the page's head holds besides Gradio's own."""
    scripts = [name for name in files() if name.endswith(".js")]
    preload = "".join(f'<link rel="modulepreload" href="{address(name)}">' for name in scripts)
    return (
        f'<meta name="description" content="{html.escape(DESCRIPTION)}">'
        f'<link rel="icon" type="image/svg+xml" href="{address(ICON)}">{preload}'
    )


class Preview:
    """ASGI middleware: the page speaks of itself where Gradio's template speaks of Gradio, so that a shared link has
    a title, a sentence and a picture of its own."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "").removeprefix(scope.get("root_path", "")).rstrip("/")
        if scope["type"] != "http" or scope["method"] != "GET" or path:
            await self.app(scope, receive, send)
            return
        await self.app(scope, receive, _Rewriter(send, _tags(scope)).send)


class _Rewriter:
    """Holds a page back until it is whole, and sends it with other tags in its head."""

    def __init__(self, send: Send, tags: bytes) -> None:
        self._send, self._tags = send, tags
        self._start: Message | None = None
        self._body = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            kind = Headers(raw=message["headers"]).get("content-type", "")
            if not kind.startswith("text/html"):
                self._tags = b""
            self._start = message
            return
        if message["type"] != "http.response.body" or not self._tags:
            await self._pass_on(message)
            return
        self._body += message.get("body", b"")
        if not message.get("more_body"):
            body = FOREIGN.sub(b"", self._body).replace(b"</head>", self._tags + b"</head>", 1)
            MutableHeaders(scope=self._start)["content-length"] = str(len(body))
            await self._pass_on({"type": "http.response.body", "body": body})

    async def _pass_on(self, message: Message) -> None:
        if self._start is not None:
            start, self._start = self._start, None
            await self._send(start)
        await self._send(message)


def _tags(scope: Scope) -> bytes:
    host = os.environ.get("SPACE_HOST") or Headers(scope=scope).get("host", "")
    root = scope.get("root_path", "").rstrip("/")
    scheme = "https" if "SPACE_HOST" in os.environ else scope.get("scheme", "http")
    origin = f"{scheme}://{host}{root}" if HOST.fullmatch(host) else root
    values = {
        "og:type": "website",
        "og:title": TITLE,
        "og:description": DESCRIPTION,
        "og:image": f"{origin}/{address(PREVIEW)}",
        "twitter:card": "summary_large_image",
        "twitter:title": TITLE,
        "twitter:description": DESCRIPTION,
        "twitter:image": f"{origin}/{address(PREVIEW)}",
    }
    kinds = {name: "property" if name.startswith("og:") else "name" for name in values}
    tags = [f'<meta {kinds[name]}="{name}" content="{html.escape(value)}">' for name, value in values.items()]
    return "".join(tags).encode()
