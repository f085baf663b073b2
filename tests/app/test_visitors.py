"""One visitor cannot use up what is there for all: sessions, places in the queue, quick calls, memory."""

import asyncio
import gc
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import numpy as np
import pytest
from PIL import Image

from app import sweep
from app.uploads import Picture
from app.visitors import LEAVING, Full
from tests.app.small_app import Site, running, until, working

LIMITS = {"sessions": 12, "sessions_per_address": 6, "events_per_visitor": 3, "events_per_address": 8}


@pytest.fixture
def site() -> Iterator[Site]:
    with running(**LIMITS, calls_at_once=3, calls_per_address=2, call_seconds=3, kept_megabytes_per_address=8) as made:
        yield made


@contextmanager
def open_page(site: Site, session: str, address: str = "127.0.0.1") -> Iterator[None]:
    """A tab that stays open: its heartbeat runs."""
    with site.from_address(address) as http, http.stream("GET", f"/gradio_api/heartbeat/{session}") as beat:
        assert beat.status_code == 200
        lines = beat.iter_lines()  # held: the connection ends with it
        next(lines)
        yield


def told(answer: httpx.Response) -> str:
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) >= 1
    assert "Please try again in about" in answer.json()["detail"]
    return answer.json()["detail"]


def test_the_oldest_idle_session_gives_way_and_a_live_run_does_not(site: Site) -> None:
    """Names that somebody invents used to push live runs out of Gradio's message store: they died with a KeyError."""
    assert site.join("frames", [100], "live").status_code == 200
    with ThreadPoolExecutor(1) as thread:
        watching = thread.submit(site.answers, "live")
        for number in range(40):
            assert site.join("keep", [1], f"new{number}").status_code in (200, 429)
            time.sleep(0.01)
        messages = watching.result(60)
    shown = [one["output"]["data"][0] for one in messages if one["msg"] == "process_generating"]
    assert len(shown) == 100
    assert messages[-2]["success"]
    own = [session for session, visit in site.visitors.visits.items() if visit.address == "127.0.0.1"]
    assert len(own) <= LIMITS["sessions_per_address"]
    assert "live" in own
    assert "new0" not in site.demo.state_holder.session_data
    assert len(site.demo._queue.pending_messages_per_session) <= LIMITS["sessions_per_address"]


def test_a_session_whose_page_is_open_stays_until_it_has_been_quiet_for_long(site: Site) -> None:
    pages = [open_page(site, f"open{number}") for number in range(LIMITS["sessions_per_address"])]
    for page in pages:
        page.__enter__()
    try:
        assert "6 visitors from your network" in told(site.join("keep", [1], "newcomer"))
        with site.from_address("127.0.0.2") as other:
            assert site.join("keep", [1], "elsewhere", other).status_code == 200
        site.visitors.visits["open3"].seen -= LEAVING
        assert site.join("keep", [1], "newcomer").status_code == 200
        assert "open3" not in site.visitors.visits
        assert "open2" in site.visitors.visits
    finally:
        for page in pages:
            page.__exit__(None, None, None)


def test_all_places_taken_by_many_addresses(site: Site) -> None:
    pages = [open_page(site, f"p{number}", f"127.0.0.{10 + number}") for number in range(LIMITS["sessions"])]
    for page in pages:
        page.__enter__()
    try:
        assert "All 12 places are taken" in told(site.join("keep", [1], "newcomer"))
    finally:
        for page in pages:
            page.__exit__(None, None, None)
    assert until(lambda: site.join("keep", [1], "newcomer").status_code == 200)


def test_one_visitor_waits_with_few_events_and_is_told_at_once(site: Site) -> None:
    for _ in range(LIMITS["events_per_visitor"]):
        assert site.join("long", [30], "greedy").status_code == 200
    began = time.monotonic()
    assert "You have 3 requests under way" in told(site.join("long", [30], "greedy"))
    assert time.monotonic() - began < 2
    assert until(lambda: working.count("greedy") == 2)  # the third waits, although there are four places
    time.sleep(0.2)
    assert working.count("greedy") == 2


def test_one_address_never_holds_every_place(site: Site) -> None:
    """However much one address asks for, another's run begins at once."""
    for visitor in range(4):
        for _ in range(2):
            assert site.join("long", [30], f"greedy{visitor}").status_code == 200
    assert "8 requests from your network" in told(site.join("long", [30], "greedy4"))
    assert until(lambda: len(working) == 3)
    time.sleep(0.2)
    assert len(working) == 3
    with site.from_address("127.0.0.2") as other:
        began = time.monotonic()
        assert site.join("frames", [3], "guest", other).status_code == 200
        assert site.answers("guest", other)[-2]["success"]
        assert time.monotonic() - began < 5


def test_whose_address_has_less_comes_first(site: Site) -> None:
    for visitor in range(3):
        assert site.join("long", [0.6], f"one{visitor}").status_code == 200
    assert until(lambda: len(working) == 3)
    for visitor in range(3):
        assert site.join("long", [30], f"one{visitor}").status_code == 200
    with site.from_address("127.0.0.2") as second, site.from_address("127.0.0.3") as third:
        for number in range(2):
            assert site.join("long", [30], f"two{number}", second).status_code == 200
        assert site.join("long", [30], "three", third).status_code == 200
        assert until(lambda: "three" in working)
        assert until(lambda: "two0" in working)
        assert len([session for session in working if session.startswith("one")]) <= 3


def test_a_hang_up_ends_the_work(site: Site) -> None:
    """Within two seconds, where it used to compute to its end."""
    assert site.join("long", [30], "leaver").status_code == 200
    assert until(lambda: "leaver" in working)
    with site.http.stream("GET", "/gradio_api/queue/data?session_hash=leaver") as lines:
        next(lines.iter_lines())
    began = time.monotonic()
    assert until(lambda: "leaver" not in working, 5)
    assert time.monotonic() - began < 2


def test_work_that_nobody_waits_for_ends(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for and never listened to: what runs ends, what waits is taken out of the queue."""
    monkeypatch.setattr(sweep, "EVERY", 0.1)
    monkeypatch.setattr(sweep, "UNHEARD", 0.6)
    for _ in range(3):
        assert site.join("long", [30], "silent").status_code == 200
    assert until(lambda: working.count("silent") == 2)
    assert until(lambda: "silent" not in working and not site.demo._queue.event_ids_to_events, 3)
    assert site.join("long", [1.2], "listener").status_code == 200
    assert site.answers("listener")[-2]["success"]


def test_two_who_listen_to_one_session_may_hang_up_together(site: Site, capfd: pytest.CaptureFixture) -> None:
    """Gradio deletes the session's messages for each of them, and logged a KeyError for the second."""
    site.join("long", [2], "shared")
    streams = [site.http.stream("GET", "/gradio_api/queue/data?session_hash=shared") for _ in range(2)]
    for stream in streams:
        stream.__enter__()
    for stream in streams:
        stream.__exit__(None, None, None)
    assert until(lambda: "shared" not in working, 3)
    assert "Traceback" not in "".join(capfd.readouterr())


def test_a_cancelled_event_ends(site: Site) -> None:
    event = site.join("long", [30], "changer").json()["event_id"]
    assert until(lambda: "changer" in working)
    body = {"session_hash": "changer", "fn_index": site.fn("long"), "event_id": event}
    assert site.http.post("/gradio_api/cancel", json=body | {"session_hash": "stranger"}).status_code == 200
    assert "changer" in working
    assert site.http.post("/gradio_api/cancel", json=body).status_code == 200
    assert until(lambda: "changer" not in working, 2)


def test_work_ends_when_its_time_is_up(site: Site) -> None:
    assert site.join("long", [60], "slow").status_code == 200
    began = time.monotonic()
    last = site.answers("slow")[-2]
    assert time.monotonic() - began < 8
    assert not last["success"]
    assert "longer than 3 seconds" in last["output"]["error"]


def test_quick_calls_take_turns(site: Site) -> None:
    """A flood from one address leaves places to others; what cannot wait is told."""
    body = {"data": ["x"], "fn_index": site.fn("quick"), "session_hash": "flood"}
    statuses: list[int] = []

    def call() -> None:
        with site.from_address("127.0.0.1") as http:
            statuses.append(http.post("/gradio_api/run/predict", json=body).status_code)

    with ThreadPoolExecutor(10) as threads:
        for _ in range(60):
            threads.submit(call)
    assert len(statuses) == 60
    assert set(statuses) <= {200, 429}
    assert statuses.count(200) >= 10
    assert until(lambda: not site.visitors._calls)
    assert until(lambda: not site.visitors._patient)


def test_a_call_that_cannot_wait_is_told(site: Site) -> None:
    async def crowd() -> list[str]:
        visitors, said, release = site.visitors, [], asyncio.Event()

        async def one(address: str) -> None:
            try:
                async with visitors.call(None, address):
                    await release.wait()
            except Full as error:
                said.append(str(error))

        tasks = [asyncio.create_task(one("a")) for _ in range(2)]  # as many as one address may have
        tasks.append(asyncio.create_task(one("b")))
        tasks += [asyncio.create_task(one("c")) for _ in range(4 * visitors.limits.calls_at_once + 1)]
        await asyncio.sleep(0.1)
        assert len(said) == 1  # one too many to wait
        release.set()
        await asyncio.gather(*tasks)
        return said

    assert "The server is busy" in asyncio.run(crowd())[0]


def test_what_is_kept_is_bounded(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight megabytes for one address: the fourth visitor with three pushes the first out."""
    monkeypatch.setattr(sweep, "EVERY", 0.2)
    for number in range(4):
        assert site.join("keep", [3 << 20], f"heavy{number}").status_code == 200
        site.answers(f"heavy{number}")
    with site.from_address("127.0.0.2") as other:
        site.join("keep", [3 << 20], "other", other)
        site.answers("other", other)
    holder = site.demo.state_holder.session_data
    assert until(lambda: "heavy0" not in holder and "heavy1" not in holder)
    assert {"heavy2", "heavy3", "other"} <= set(holder)
    assert sum(sweep.weights(site.demo).values()) == 9 << 20


def test_a_page_may_not_listen_a_hundred_times(site: Site) -> None:
    with site.from_address("127.0.0.1") as http:
        beats = [http.stream("GET", "/gradio_api/heartbeat/page") for _ in range(8)]
        statuses = [beat.__enter__().status_code for beat in beats]
        for beat in beats:
            beat.__exit__(None, None, None)
    assert statuses == [200] * 6 + [429] * 2


def test_how_long_to_wait_is_said_in_words() -> None:
    assert str(Full("No.", 0.2)) == "No. Please try again in about a second."
    assert str(Full("No.", 240)).endswith("in about 4 minutes.")


def test_a_picture_weighs_what_pillow_keeps_of_it() -> None:
    """Three bands are kept as four: 3 MB that count as 2.3 are a hundred megabytes too many of all."""
    assert sweep.weight(Picture(Image.new("RGB", (100, 80)))) == 4 * 100 * 80
    assert sweep.weight(Image.new("L", (100, 80))) == 100 * 80


def test_a_large_picture_is_kept_small_and_looks_the_same_each_time() -> None:
    given = Image.linear_gradient("L").resize((1024, 768)).convert("RGB")
    picture = Picture(given)
    assert picture.image.size == (1024, 768)
    assert sweep.weight(picture) < 300_000
    assert picture.image.tobytes() == picture.image.tobytes()
    difference = np.asarray(picture.image).astype(int) - np.asarray(given)
    assert np.abs(difference).mean() < 0.7


def test_what_was_there_at_the_start_is_not_looked_through_for_circles(site: Site) -> None:
    """A quarter of a second, in which nobody else is served."""
    assert gc.get_freeze_count() > len(gc.get_objects())


def test_memory_that_only_a_circle_keeps_is_given_back() -> None:
    class Frame:
        """What an exception leaves behind: it holds itself."""

    frame = Frame()
    frame.itself = frame
    gone = weakref.ref(frame)
    gc.disable()  # or Python may be quicker
    try:
        del frame
        sweep.give_memory_back()
        assert gone() is None
    finally:
        gc.enable()
