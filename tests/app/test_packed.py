"""Scripts and styles go out packed, as they were, and are packed once."""

import asyncio
import gzip

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from app.packed import PIECE, Packed

TEXT = "const one = 1;\n" * 20_000
made: list[str] = []


async def file(request: Request) -> Response:
    made.append(request.url.path)
    if request.path_params["name"] == "streamed.js":
        return StreamingResponse(iter([TEXT]), media_type="text/javascript")
    await asyncio.sleep(0.05)
    if request.path_params["name"] == "none.js":
        return PlainTextResponse("There is no such file.", 404)
    keep = "no-cache" if "old" in request.url.path else "public"
    return Response(TEXT, media_type="text/javascript", headers={"Cache-Control": keep, "ETag": "x"})


@pytest.fixture
def http() -> TestClient:
    made.clear()
    return TestClient(Packed(Starlette(routes=[Route("/{folder}/{name}", file)])))


def test_a_script_is_packed_once_and_is_what_it_was(http: TestClient) -> None:
    for _ in range(3):
        answer = http.get("/assets/a.js", headers={"accept-encoding": "gzip, br"})
        assert answer.text == TEXT
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.headers["vary"] == "Accept-Encoding"
        assert answer.headers["content-type"].startswith("text/javascript")
        assert (answer.headers["cache-control"], answer.headers["etag"]) == ("public", "x")
        assert int(answer.headers["content-length"]) < len(TEXT) / 10
    assert made == ["/assets/a.js"]


def test_an_answer_that_listens_whether_anybody_hangs_up_is_packed_too(http: TestClient) -> None:
    answer = http.get("/assets/streamed.js", headers={"accept-encoding": "gzip"})
    assert (answer.text, answer.headers["content-encoding"]) == (TEXT, "gzip")


def test_a_part_of_it_is_not_given(http: TestClient) -> None:
    answer = http.get("/assets/a.js", headers={"accept-encoding": "gzip", "range": "bytes=0-1,0-2,0-3"})
    assert (answer.status_code, answer.text) == (200, TEXT)


def test_who_takes_no_gzip_gets_it_as_it_is(http: TestClient) -> None:
    answer = http.get("/assets/a.js", headers={"accept-encoding": "br"})
    assert answer.text == TEXT
    assert answer.headers["content-encoding"] == "identity"  # which keeps Gradio from packing it each time


@pytest.mark.parametrize("path", ["/gj/none.js", "/old/a.js", "/assets/a.png", "/gradio_api/a.js"])
def test_what_is_not_a_file_to_keep_is_not_kept(http: TestClient, path: str) -> None:
    for _ in range(2):
        answer = http.get(path, headers={"accept-encoding": "gzip"})
        assert "gzip" not in answer.headers.get("content-encoding", "")
    assert made.count(path) >= 2


def test_an_old_version_is_not_kept(http: TestClient) -> None:
    packed = Packed(Starlette(routes=[Route("/gj/old/{name}", file)]))
    http = TestClient(packed)
    for _ in range(2):
        assert http.get("/gj/old/a.js", headers={"accept-encoding": "gzip"}).text == TEXT
    assert not packed._files


def test_many_who_ask_at_once_wait_for_the_same_work() -> None:
    made.clear()
    packed = Packed(Starlette(routes=[Route("/{folder}/{name}", file)]))
    scope = {"type": "http", "method": "GET", "path": "/assets/a.js", "query_string": b"", "root_path": ""}
    scope |= {"headers": [(b"accept-encoding", b"gzip")], "server": ("x", 80), "scheme": "http", "http_version": "1.1"}

    async def ask() -> list[dict]:
        sent: list[dict] = []

        async def send(message: dict) -> None:
            sent.append(message)

        await packed(dict(scope), None, send)
        return sent

    async def ask_often() -> list[list[dict]]:
        return await asyncio.gather(*(ask() for _ in range(20)))

    for start, *bodies in asyncio.run(ask_often()):
        assert start["status"] == 200
        assert all(len(message["body"]) <= PIECE for message in bodies)
        assert gzip.decompress(b"".join(message["body"] for message in bodies)) == TEXT.encode()
    assert len(made) == 1
