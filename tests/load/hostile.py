"""What a hostile visitor sends: spoilt events, addresses that nobody should ask for, bytes that are hardly HTTP."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from client import Tab
from gradio_routes import addresses

WEIGHTS = {"post": 40, "run": 12, "synthesize": 12, "surprise": 8, "predict": 8, "show": 5, "to_studio": 5, "film": 2}
WEIGHTS |= {"curve": 5, "forget": 3, "opened": 2, "rows": 2, "recipes": 3, "path": 2, "under_the_hood": 2, "change": 3}
WEIGHTS |= {"hello": 1, "hello_1": 1, "goodbye": 1, "edit": 3, "steer": 8}  # hello_1 is the photo screen's own
OUTSIDE_THE_QUEUE = ("post", "surprise", "recipes", "hello", "hello_1", "curve", "to_studio", "forget", "opened")
PATHS = ("run/predict", "queue/join", "run/steer", "run/synthesize", "api/nothing", "call/synthesize")
PATHS += ("call/v2/predict", "call/nothing", "cancel", "reset", "upload", "component_server", "stream/x", "login")
# What Gradio gives: the page, what describes it to a program, and streams, which say that nobody of this name is here.
ALLOWED = (
    *("/", "/config", "/config/", "/favicon.ico", "/manifest.json", "/robots.txt", "/theme.css"),
    *("/gradio_api/info", "/gradio_api/info/", "/gradio_api/openapi.json", "/gradio_api/startup-events"),
    *("/gradio_api/app_id", "/gradio_api/app_id/", "/gradio_api/theme.css", "/gradio_api/queue/data"),
    *("/gradio_api/call/nothing/nothing", "/gradio_api/call/v2/nothing/nothing", "/gradio_api/heartbeat/nothing"),
)
NOT_ALLOWED = (
    *("/gradio_api/file=http://127.0.0.1:9/x", "/gradio_api/file=/etc/passwd", "/gradio_api/file=app.py"),
    *("/gradio_api/file=assets/models/avatars/config.json", "/gradio_api/file/etc/passwd"),
    *("/gradio_api/proxy=http://127.0.0.1:9/", "/gradio_api/deep_link?session_hash=a", "/gradio_api/queue/status"),
    *("/gradio_api/upload_progress?upload_id=1", "/gradio_api/stream/a/b/1/playlist.m3u8", "/monitoring"),
    *("/gradio_api/custom_component/a/client/component/x.js", "/monitoring/summary", "/gradio_api/runs"),
    *("/gradio_api/token", "/gradio_api/user", "/gradio_api/dev/reload", "/gradio_api/vibe-code"),
    *("/gradio_api/profiling/traces", "/gradio_api/mcp/", "/gradio_api/mcp/sse", "/pwa_icon/64"),
    *("/assets/", "/static/", "/gj/", "/assets/%2e%2e/routes.py", "/static/%2e%2e/%2e%2e/routes.py"),
    *("/gj/x/%2e%2e/%2e%2e/app.py", "/gj/%2e%2e/app.py", "//etc/passwd", "/svelte/%2e%2e/x"),
    *("/gradio_api/heartbeat/", "/gradio_api/heartbeat/a%2Fb", "/gradio_api/call/synthesize"),
    *("/gradio_api/call/synthesize/%00", "/\u00fc", "/%ff%fe", "/" + "a" * 5_000),
)
NOT_ALLOWED += tuple(path for path in addresses("GET") if path not in ALLOWED)
HEAD = b"POST /gradio_api/queue/join HTTP/1.1\r\nHost: x\r\n"
RAW = (
    b"\x00" * 300,
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 200_000,
    b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    HEAD + b"Content-Length: -5\r\n\r\n{}",
    HEAD + b"Content-Length: 99999999999999999999\r\n\r\n{}",
    HEAD + b"Content-Length: 10\r\n\r\n{}",
    HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffffffff\r\n{}",
    HEAD + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00",
    HEAD + b"Expect: 100-continue\r\nContent-Length: 70000\r\n\r\n",
    b"GET /gradio_api/queue/data HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
)


SURPRISE = b'\r\nContent-Length: 32\r\n\r\n{"data":[],"session_hash":"odd"}'
RAW += (
    b"GET / HTTP/1.0\r\n\r\n",
    b"GET / HTTP/1.0\r\nOrigin: http://x\r\n\r\n",
    b"OPTIONS / HTTP/1.0\r\nOrigin: http://x\r\nAccess-Control-Request-Method: GET\r\n\r\n",
    *(
        start + b" HTTP/1.1\r\n" + name + b": " + host + SURPRISE
        for start in (b"GET /config", b"POST /gradio_api/run/surprise")
        for name in (b"Host", b"Host: x\r\nX-Gradio-Server")
        for host in (b"[", b"x:99999", b"\xff", b"a@b/", b"a b", b"a:b", b"http://a:b", b"\x7f")
    ),
    *(b"GET / HTTP/1.1\r\nHost: x\r\nOrigin: " + origin + b"\r\n\r\n" for origin in (b"http://[", b"null", b"\xff")),
    b"GET /assets/index.js HTTP/1.1\r\nHost: x\r\nRange: bytes=" + b"0-1," * 9_000 + b"0-2\r\n\r\n",
    b"GET /static/" + b"a" * 300 + b".js HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n",
    b"GET /assets" + b"/a" * 3_000 + b".js HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n",
    *(
        method + b" HTTP/1.1\r\nHost: x\r\n\r\n"
        for method in (b"OPTIONS *", b"CONNECT a:1", b"TRACE /", b"GET http://x/")
    ),
)


class Call(NamedTuple):
    """One request for an event: its name or a path, and a body that may be anything."""

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
    places += ["parcel:" + "0" * 32, "parcel:", "gj/x"]
    others = [None, True, False, [], {}, [[]], [None] * 300, {"": ""}, file, {"__type__": "update"}, nested]
    return [rng.choice(part) for part in (numbers, texts, places, others, others)]


def spoil(value: object, rng: random.Random) -> object:
    """A value with some part of it replaced, dropped or added, anywhere inside."""
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


def good_requests(model: str, name: str, picture: str) -> dict[str, tuple[object, list | None]]:
    """For every event what a page would send: event data, or the arguments of a documented endpoint."""
    settings = {"model": model, "with": [name], "without": [], "chains": 1, "speed": 0, "pause": 1, "seed": 1}
    settings |= {"sampler": "resampling", "start": "conditional", "compare": "none", "guidance": 2}
    letter = {"order": 1, "run": "abc", "playing": True, "fresh": 1, "step": 0, "fps": 18, "settings": settings}
    photo = {"order": 1, "model": model, "attribute": name, "theme": "dark", "face": 0, "box": [0, 0, 20, 20]}
    end = {"with": [name], "without": [], "state": 1, "place": 0}
    return {
        "post": (letter, None),
        "run": (letter | {"action": "run", "place": 0, "state": 1}, None),
        "surprise": ({"model": model}, None),
        "recipes": ({"settings": settings}, None),
        "path": ({"settings": settings, "a": end, "b": {"with": [], "without": [name]}}, None),
        "under_the_hood": ({"settings": settings, "place": 0, "all": False}, None),
        "film": ({"format": "gif"}, None),
        "show": (photo | {"data": picture}, None),
        "curve": ({"model": model, "attribute": name, "at": 0.5, "theme": "light"}, None),
        "change": (photo | {"with": [name], "without": [], "level": 1.0, "seed": 0}, None),
        "to_studio": (photo, None),
        "forget": ({"order": 1}, None),
        "opened": ({"order": 1, "family": None, "model": model, "attribute": name, "theme": "dark"}, None),
        "rows": ({"order": 1, "family": None, "condition": 0, "seed": 1}, None),
        "hello": (None, None),
        "hello_1": (None, None),
        "goodbye": (None, None),
        "synthesize": (None, [[name], [], 1, model, 0, 1, "marginalizing", 1, 1.0, "conditional", 0.8]),
        "steer": (None, [f"{name}; -{name}", 1, model, 0, "marginalizing", 1, 1.0, None]),
        "predict": (None, [picture, model, 1]),
        "edit": (None, [picture, [name], [], 1, 1.0, 0.5, model, 1, 0]),
    }


def call(tab: Tab, good: dict[str, tuple], rng: random.Random) -> Call:
    """One fuzzed call: mostly a spoilt request in a good body, now and then a spoilt body or no body at all."""
    name = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    asked, data = good[name]
    if rng.random() < 0.9:
        asked, data = (asked, spoil(data, rng)) if data else (spoil(asked, rng), data)
    body: object = tab.body(name, asked, data if data is None or isinstance(data, list) else [data])
    path = "run/predict" if name in OUTSIDE_THE_QUEUE else "queue/join"
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


def get(rng: random.Random) -> str:
    """An address, mostly one that must not be answered, now and then spoilt."""
    if rng.random() < 0.25:
        return rng.choice(ALLOWED)
    path = rng.choice(NOT_ALLOWED)
    if rng.random() < 0.4:
        at = rng.randrange(1, len(path) + 1)
        path = path[:at] + rng.choice(("/", "..", "%2e%2e/", "//", "%00", "?", "#", ";", "\\", "%2f", " ")) + path[at:]
    return path
