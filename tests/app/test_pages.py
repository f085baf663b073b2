"""Pages are put together once for each host, one at a time, and show nothing of whoever asked first."""

import asyncio
import time
from types import SimpleNamespace

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from app.pages import MOST_KEPT, MOST_WAITING_PER_ADDRESS, REST, Page, Pages
from app.visitors import Full

TEXT = "a page " * 10_000
WORK = 0.01  # seconds
GZIP = {"accept-encoding": "gzip, br"}


class Site:
    """An app that counts the pages that it puts together, and how many it does at once."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.at_once = self.most_at_once = 0
        self.app = Starlette(routes=[Route("/{name}", self.page), Route("/", self.page)])
        self.pages = Pages(self.app)

    async def page(self, request: Request) -> Response:
        self.made.append(request.headers["host"])
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(WORK)
        self.at_once -= 1
        if request.path_params.get("name") == "none":
            return PlainTextResponse("There is nothing here.", 404)
        return PlainTextResponse(f"{dict(request.headers)} {request.url.query} {TEXT}")

    def scope(self, host: str, **more: object) -> dict:
        scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "root_path": "", "scheme": "http"}
        described = SimpleNamespace(api_info={})
        return scope | {"headers": [(b"host", host.encode())], "server": ("x", 80), "app": described} | more

    async def __call__(self, scope: dict, receive: object, send: object) -> None:
        page = await self.pages.page(scope | {"app": SimpleNamespace(api_info={})}, "here")
        await page.send(scope, send)


def test_a_page_is_put_together_once_and_goes_out_in_both_ways() -> None:
    site = Site()
    http = TestClient(site)
    for _ in range(3):
        packed, plain = http.get("/", headers=GZIP), http.get("/", headers={"accept-encoding": "br"})
        assert packed.text == plain.text
        assert TEXT in plain.text
        assert packed.headers["content-encoding"] == "gzip"
        assert plain.headers["content-encoding"] == "identity"  # which keeps Gradio from packing it each time
        assert int(packed.headers["content-length"]) < len(TEXT) / 10
        assert packed.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    assert len(site.made) == 1


def test_it_shows_nothing_of_whoever_asked_first() -> None:
    http = TestClient(Site())
    marked = {"cookie": "mark", "x-gradio-server": "http://mark", "referer": "mark", "accept-language": "mark"}
    assert "mark" not in http.get("/?mark", headers=marked).text
    other = http.get("/", headers={"host": "other.example:7860"}).text
    assert "other.example:7860" in other
    assert "other.example" not in http.get("/").text


def test_what_is_not_there_is_not_kept() -> None:
    site = Site()
    http = TestClient(site)
    for _ in range(2):
        answer = http.get("/none", headers=GZIP)
        assert (answer.status_code, answer.text) == (404, "There is nothing here.")
    assert len(site.made) == 2


def test_one_is_put_together_at_a_time_and_an_address_waits_for_few() -> None:
    site = Site()

    async def ask() -> list[Page | BaseException]:
        flood = [site.pages.page(site.scope(f"x{number}"), "flood") for number in range(64)]
        guest = site.pages.page(site.scope("guest"), "guest")
        return await asyncio.gather(*flood, guest, return_exceptions=True)

    *flood, guest = asyncio.run(ask())
    assert isinstance(guest, Page)
    assert site.made.index("guest") == 1  # not behind all the others
    assert site.most_at_once == 1
    assert sum(isinstance(answer, Full) for answer in flood) == 64 - MOST_WAITING_PER_ADDRESS


def test_most_of_the_time_belongs_to_others() -> None:
    site = Site()

    async def ask() -> float:
        began = time.monotonic()
        for number in range(4):
            await site.pages.page(site.scope(f"x{number}"), "flood")
        return time.monotonic() - began

    assert asyncio.run(ask()) > 3 * (1 + REST) * WORK


def test_those_of_one_host_wait_for_the_same_page() -> None:
    site = Site()

    async def ask() -> list[Page]:
        return await asyncio.gather(*(site.pages.page(site.scope("x"), f"address {n}") for n in range(20)))

    assert len({id(page) for page in asyncio.run(ask())}) == 1
    assert site.made == ["x"]


def test_a_class_that_opens_the_page_together_is_served() -> None:
    site = Site()

    async def ask() -> list[Page]:
        return await asyncio.gather(*(site.pages.page(site.scope("x"), "school") for _ in range(30)))

    assert len(asyncio.run(ask())) == 30
    assert site.made == ["x"]
    assert not site.pages._coming


def test_few_are_kept_and_those_in_use_stay() -> None:
    site = Site()

    async def ask() -> None:
        for number in range(MOST_KEPT + 5):
            await site.pages.page(site.scope(f"x{number}"), "here")
            await site.pages.page(site.scope("used"), "there")

    asyncio.run(ask())
    assert site.made.count("used") == 1
    assert len(site.pages._kept) == MOST_KEPT
