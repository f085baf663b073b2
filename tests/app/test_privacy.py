"""A visitor's picture: never on the disk, and gone from memory and from every reply when it is to be forgotten."""

import asyncio
import base64
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import gradio as gr
import httpx
import numpy as np
import pytest
from load.client import Tab, aside, events_of, new_http, start_server, stop_server
from PIL import Image

from app import api, photo, photo_forget, shell, studio, sweep
from app.parcels import parcels
from jem_core.bundle import Bundle
from tests.app.small_app import until
from tests.jem_core.mutate_images import encode

# Noise, so that no other file can hold these bytes by accident; more than 64 KB, so that it comes beside Gradio, and so
# large that it is kept packed.
PICTURE = encode(Image.fromarray(np.random.default_rng(7).integers(0, 256, (300, 300, 3), dtype=np.uint8)), "PNG")
SMALL_PICTURE = encode(Image.fromarray(np.random.default_rng(8).integers(0, 256, (90, 90, 3), dtype=np.uint8)), "PNG")
SESSION = "photographer"


def letter(order: int, action: str, **settings: object) -> dict:
    values = {"model": "tiny-levels", "chains": 2, "start": "photo", "speed": 0} | settings
    head = {"order": order, "run": f"r{order}", "playing": True, "fresh": 1, "step": 0, "fps": 18}
    return head | {"action": action, "settings": values}


async def last(tab: Tab, name: str, wish: object) -> dict:
    return [value async for value in tab.stream(name, wish)][-1]


async def show_edit_run(tab: Tab, picture: bytes) -> list[dict]:
    """All that a page does with a picture; the replies."""
    data = base64.b64encode(picture).decode()
    replies = [await last(tab, "show", {"order": 1, "data": data, "model": "tiny-levels"})]
    changes = {"order": 2, "model": "tiny-levels", "with": ["Red"], "level": 1.0, "seed": 0}
    replies.append(await last(tab, "change", changes))
    replies.append(await tab.ask("to_studio", {"order": 3, "model": "tiny-levels"}))
    replies.append(await last(tab, "run", letter(1, "run")))
    replies.append(await last(tab, "film", {"format": "gif"}))
    return replies


async def ask_for_everything(tab: Tab) -> list[dict]:
    """Whatever might still hold it."""
    replies = [await last(tab, "film", {"format": "gif"})]
    replies.append(await last(tab, "show", {"order": 5, "model": "tiny-levels"}))
    replies.append(await last(tab, "change", {"order": 6, "model": "tiny-levels", "with": ["Red"], "level": 1.0}))
    replies.append(await tab.ask("to_studio", {"order": 7, "model": "tiny-levels"}))
    replies.append(await last(tab, "run", letter(5, "show")))
    replies.append(await last(tab, "run", letter(6, "back", state=1)))
    return replies


async def visit(url: str, picture: bytes, session: str) -> tuple[list[dict], list[dict], str]:
    async with new_http(url) as http, Tab(http, await events_of(http), session) as tab:
        before = await show_edit_run(tab, picture)
        await tab.ask("forget", {"order": 4})
        after = await ask_for_everything(tab)
        pages = [await http.get(path) for path in ("/", "/config", f"/gradio_api/deep_link?session_hash={session}")]
        return before, after, "".join(page.text for page in pages)


@pytest.fixture(scope="module")
def demo(tiny_levels: Bundle) -> Iterator[gr.Blocks]:
    made = shell.build(shell.options(["--model", str(tiny_levels.directory)]))
    made.launch(prevent_thread_lock=True, quiet=True, server_name="127.0.0.1", **shell.launch_options())
    yield made
    made.close()


@pytest.mark.parametrize("picture", [PICTURE, SMALL_PICTURE], ids=["beside Gradio", "through Gradio"])
def test_forgotten_is_forgotten(demo: gr.Blocks, picture: bytes) -> None:
    session = f"{SESSION}-{len(picture)}"
    before, after, pages = aside(asyncio.run, visit(demo.local_url, picture, session))
    kinds = [reply.get("kind") or reply.get("status") for reply in before]
    assert kinds == ["photo", "edited", "studio", "settled", "film"]  # there was something to forget
    said = json.dumps(after)
    assert "data:image" not in said, [reply.get("kind") or reply.get("status") for reply in after]
    assert all((reply.get("kind") or reply.get("status")) in ("refused", "error") for reply in after)
    assert base64.b64encode(picture)[100:160].decode() not in pages
    assert_nothing_is_kept(demo, session)


def assert_nothing_is_kept(demo: gr.Blocks, session: str) -> None:
    state = demo.state_holder.session_data[session]
    assert not any(sweep.weight(value) for value in state.state_data.values())
    held = repr([config.get("props", {}).get("value") for config in state.config_values.values() if config])
    assert "data:image" not in held
    assert not len(parcels)


DATA = base64.b64encode(PICTURE).decode()
CHANGES = {"with": ["Red"], "level": 1.0}
UNDER_WAY = {  # an event that holds the picture, and the function of ours in which it is held up
    "a new picture": ("show", {"data": DATA}, photo, "describe"),
    "another crop": ("show", {"box": [0, 0, 40, 40]}, photo, "describe"),
    "an edit": ("change", CHANGES, api, "change"),
    "to the studio": ("to_studio", {}, photo, "predict"),
    "a run that has not said so yet": ("run", letter(3, "run", speed=2, moving=1), studio, "_letter"),
}


class Hold:
    """A real function that takes as long as a test needs it to be under way."""

    def __init__(self, function: Callable) -> None:
        self.function, self.begun, self.free = function, threading.Event(), threading.Event()

    def __call__(self, *values: object) -> object:
        self.begun.set()
        assert self.free.wait(20)
        return self.function(*values)


async def forget_during(url: str, session: str, name: str, asked: dict, hold: Hold) -> tuple[object, list[dict]]:
    """What an event that is under way when the picture is forgotten answers, and what everything answers afterwards."""
    async with new_http(url) as http, Tab(http, await events_of(http), session) as tab:
        hold.free.set()
        await last(tab, "show", {"order": 1, "data": DATA, "model": "tiny-levels"})
        if name == "run":
            await tab.ask("to_studio", {"order": 2, "model": "tiny-levels"})
        hold.free.clear()
        hold.begun.clear()
        asked = {"order": 3, "model": "tiny-levels"} | asked
        begun = asyncio.create_task(tab.ask(name, asked) if name == "to_studio" else last(tab, name, asked))
        assert await asyncio.to_thread(hold.begun.wait, 20)
        forgetting = asyncio.create_task(tab.ask("forget", {"order": 4}))
        await asyncio.sleep(0.3)
        hold.free.set()
        assert (await forgetting)["kind"] == "forgotten"
        return await begun, await ask_for_everything(tab)


@pytest.mark.parametrize("what", UNDER_WAY)
def test_what_is_under_way_brings_nothing_back(demo: gr.Blocks, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    name, asked, place, function = UNDER_WAY[what]
    hold = Hold(getattr(place, function))
    monkeypatch.setattr(place, function, hold)
    session = what.replace(" ", "-")
    answer, after = aside(asyncio.run, forget_during(demo.local_url, session, name, asked, hold))
    assert "data:image" not in json.dumps(after), [reply.get("kind") or reply.get("status") for reply in after]
    if name == "change":
        assert answer["message"] == "The caller has gone."  # it was ended, not waited for
    assert answer.get("kind") == "refused" or answer.get("status") == "running"  # the run had begun, and then ended
    assert_nothing_is_kept(demo, session)


def test_who_deletes_twice_at_once_does_not_wait_for_himself(demo: gr.Blocks) -> None:
    async def come(url: str) -> list[dict]:
        async with new_http(url) as http, Tab(http, await events_of(http), "hasty") as tab:
            await last(tab, "show", {"order": 1, "data": DATA, "model": "tiny-levels"})
            wishes = [tab.ask("forget", {"order": order}) for order in (2, 3)]
            return await asyncio.wait_for(asyncio.gather(*wishes), photo_forget.PATIENCE / 2)

    assert [reply["kind"] for reply in aside(asyncio.run, come(demo.local_url))] == ["forgotten", "forgotten"]
    assert_nothing_is_kept(demo, "hasty")


def test_a_picture_that_was_on_its_way_is_not_kept(demo: gr.Blocks) -> None:
    """It was sent before the visitor had everything forgotten, and arrives afterwards."""

    async def come(url: str) -> list[dict]:
        async with new_http(url) as http, Tab(http, await events_of(http), "slow-line") as tab:
            await tab.ask("forget", {"order": 4})
            late = await last(tab, "show", {"order": 3, "data": DATA, "model": "tiny-levels"})
            return [late, *await ask_for_everything(tab)]

    replies = aside(asyncio.run, come(demo.local_url))
    assert {reply.get("kind") or reply.get("status") for reply in replies} <= {"refused", "error"}
    assert_nothing_is_kept(demo, "slow-line")


def test_when_the_time_is_over_everything_is_forgotten(demo: gr.Blocks) -> None:
    async def come(url: str) -> None:
        async with new_http(url) as http, Tab(http, await events_of(http), "leaver") as tab:
            await show_edit_run(tab, SMALL_PICTURE)

    aside(asyncio.run, come(demo.local_url))
    visitors = demo.app.state.visitors
    assert sweep.weights(demo)["leaver"] > 0

    def swept() -> bool:  # nobody is forgotten while an answer is on its way, and the last one may be
        for visit in visitors.visits.values():
            visit.seen -= 10_000
        asyncio.run(sweep.sweep(visitors, 900))
        return "leaver" not in demo.state_holder.session_data

    assert until(swept)
    assert "leaver" not in demo._queue.pending_messages_per_session


def test_nothing_of_it_is_ever_on_the_disk(tiny_levels: Bundle, tmp_path: Path) -> None:
    """Before it is forgotten, too: every file of the server's temporary folders is read, and its log."""
    place = tmp_path / "tmp"
    place.mkdir()
    variables = {"TMPDIR": str(place), "GRADIO_TEMP_DIR": str(place / "gradio"), "HOME": str(place)}
    server = start_server(tmp_path / "log.txt", [tiny_levels.directory], **variables)

    async def come() -> dict[Path, bytes]:
        async with new_http(server.url) as http, Tab(http, await events_of(http), SESSION) as tab:
            await show_edit_run(tab, PICTURE)
            link = await http.get(f"/gradio_api/deep_link?session_hash={SESSION}")
            assert link.status_code == 404
            files = [path for path in (*place.rglob("*"), tmp_path / "log.txt") if path.is_file()]
            return {path: path.read_bytes() for path in files}

    try:
        contents = aside(asyncio.run, come())
    finally:
        stop_server(server)
    assert any("gibbs-jem-mail" in str(path) for path in contents)  # its letters are there
    text = base64.b64encode(PICTURE)
    for path, content in contents.items():
        assert PICTURE[200:260] not in content, path
        assert text[400:460] not in content, path
        assert b"data:image" not in content, path
        assert path.suffix not in (".png", ".jpg", ".webp", ".gif"), path


def test_no_link_to_a_page_is_given_out(demo: gr.Blocks) -> None:
    with httpx.Client(base_url=demo.local_url, trust_env=False) as http:
        assert http.get("gradio_api/deep_link", params={"session_hash": SESSION}).status_code == 404
        stored = http.get("", params={"deep_link": "abc"})
        assert '"deep_link_state":"none"' in stored.text.replace(" ", "")
