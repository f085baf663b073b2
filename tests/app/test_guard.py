"""Requests that make no sense, over real HTTP: each gets a status below 500 and a sentence, and nothing is logged."""

import asyncio
import json
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from types import SimpleNamespace

import httpx
import pytest

from app import guard, mailbox, shell, sweep
from jem_core.bundle import Bundle

LETTER = {"order": 1, "run": "abc", "playing": True, "fresh": 1, "step": 0, "fps": 18, "action": "run"}
WISH = {"model": "tiny", "chains": 1, "speed": 0, "steps": 2}


@pytest.fixture(scope="module")
def site(tiny_bundle: Bundle) -> Iterator[SimpleNamespace]:
    demo = shell.build(shell.options(["--model", str(tiny_bundle.directory)]))
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, server_name="127.0.0.1", **shell.launch_options())
    events = {fn.api_name: index for index, fn in demo.fns.items()}
    with httpx.Client(base_url=f"{url.rstrip('/')}/gradio_api", timeout=60, trust_env=False) as http:
        yield SimpleNamespace(demo=demo, http=http, events=events)
    demo.close()


def post(site: SimpleNamespace, path: str, content: object) -> httpx.Response:
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    return site.http.post(path, content=text, headers={"content-type": "application/json"})


def good(site: SimpleNamespace, name: str = "steer", **changes: object) -> dict:
    inputs = len(site.demo.fns[site.events[name]].inputs)
    body = {"data": [None] * inputs, "event_data": LETTER | {"settings": WISH}, "fn_index": site.events[name]}
    return body | {"session_hash": "visitor1"} | changes


def test_a_good_event_passes_unchanged(site):
    reply = post(site, "/run/predict", good(site)).json()["data"][0]
    assert (reply["kind"], reply["order"]) == ("steered", 1)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"fn_index": 10_000}, "There is no such event."),
        ({"fn_index": "x"}, "There is no such event."),
        ({"fn_index": True}, "There is no such event."),
        ({"data": [1, 2, 3]}, "expected a list of 0 values"),
        ({"data": None}, "data is None"),
        ({"session_hash": "a" * 65}, "session_hash is"),
        ({"session_hash": {"a": 1}}, "session_hash is dict"),
        ({"event_data": {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}}, "No file"),
        ({"event_data": "\ud800"}, "not JSON"),
        ({"event_data": float("nan")}, "not JSON"),
    ],
)
def test_a_body_without_sense_gets_a_sentence(site, changes, sentence):
    answer = post(site, "/run/predict", good(site, **changes))
    assert answer.status_code == 400
    assert sentence in answer.json()["detail"]


@pytest.mark.parametrize("content", ["", "{", "[]", "3", b"\xff\xfe", "[" * 5_000, '"\\ud800"'])
def test_a_body_that_is_no_object_is_refused(site, content):
    assert post(site, "/queue/join", content).status_code == 400


def test_a_deep_body_is_refused(site):
    assert (
        post(site, "/run/predict", json.dumps(good(site))[:-1] + ', "a":' + "[" * 600 + "]" * 600 + "}").status_code
        == 400
    )


def test_a_body_of_any_length_is_not_read(site):
    answer = post(site, "/queue/join", b"1" * (guard.LONGEST_BODY + 1))
    assert answer.status_code == 413


def test_a_huge_number_is_refused_by_the_setting_that_it_is_for(site):
    reply = post(
        site, "/run/predict", good(site, event_data=LETTER | {"settings": WISH | {"guidance": 10**300}})
    ).json()
    assert reply["data"][0]["kind"] == "refused"
    assert "Guidance is" in reply["data"][0]["message"]


@pytest.mark.parametrize("path", ["/upload", "/component_server", "/stream/x", "/vibe-edit", "/queue/else", "/login"])
def test_there_is_nothing_else_to_post_to(site, path):
    assert site.http.post(path, files={"files": b"data"}).status_code == 404


def test_nobody_computes_past_the_queue(site):
    assert (
        post(
            site, "/run/synthesize", {"data": [[], [], 1, "tiny", 1, "marginalizing", "informed", 0, 1, 1, 1]}
        ).status_code
        == 404
    )


@pytest.mark.parametrize(
    ("body", "status"),
    [({"wanted": [], "n": 1, "steps": 1}, 200), ({"n": 1}, 400), ({"wanted": [], "owner": "me"}, 400)],
)
def test_a_documented_endpoint_by_names(site, body, status):
    assert post(site, "/call/v2/synthesize", body).status_code == status


@pytest.mark.parametrize("path", ["/queue/data?session_hash=nobody", "/call/synthesize/nothing", "/queue/data"])
def test_who_listens_to_nobody_is_told_so(site, path, caplog):
    answer = site.http.get(path)
    assert answer.status_code == 200
    assert json.loads(answer.text[5:])["session_not_found"]


def test_whoever_is_gone_is_forgotten_and_whoever_is_here_is_not(site):
    """A session, its unread answers and its letter go when their time is over; one that is listened to stays."""
    for session in ("leaver01", "listener1"):
        assert post(site, "/run/predict", good(site, session_hash=session)).status_code == 200
        assert post(site, "/queue/join", good(site, "run", session_hash=session)).status_code == 200
    holder, queue = site.demo.state_holder, site.demo._queue
    with site.http.stream("GET", "/queue/data?session_hash=listener1") as stream:
        next(line for line in stream.iter_lines() if "process_completed" in line)
        guard.reading["listener1"] += 1
        asyncio.run(until_finished(queue))  # a run that goes on would say that its visitor is here
        for session in ("leaver01", "listener1"):
            holder.time_last_used[session] = datetime.now() - timedelta(hours=1)
        assert asyncio.run(sweep.sweep(site.demo, 600)) >= 0  # the server's own sweep may have come first
    del guard.reading["listener1"]
    assert "leaver01" not in holder.session_data
    assert "leaver01" not in queue.pending_messages_per_session
    assert {"listener1", "visitor1"} <= set(holder.session_data)
    assert mailbox.Mailbox("visitor1").read() is not None


async def until_finished(queue: object) -> None:
    for _ in range(600):
        if not queue.event_ids_to_events:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("runs did not finish")


def test_a_run_that_nobody_watches_ends(site, monkeypatch):
    monkeypatch.setattr(sweep, "MOST_UNREAD", 5)
    monkeypatch.setattr(sweep, "EVERY", 0.1)
    endless = LETTER | {"run": "endless", "settings": WISH | {"steps": 0, "chains": 2, "speed": 100}}
    assert post(site, "/queue/join", good(site, "run", session_hash="unwatched", event_data=endless)).status_code == 200
    asyncio.run(until_finished(site.demo._queue))  # much sooner than the run's own limit of three minutes


def test_memory_is_given_back_when_somebody_was_forgotten(site, monkeypatch):
    given = []
    monkeypatch.setattr(sweep, "EVERY", 0.1)
    monkeypatch.setattr(sweep, "give_memory_back", lambda: given.append(True))
    assert post(site, "/run/predict", good(site, session_hash="forgotten")).status_code == 200
    site.demo.state_holder.time_last_used["forgotten"] = datetime.now() - timedelta(hours=1)
    deadline = time.monotonic() + 20
    while not given and time.monotonic() < deadline:
        time.sleep(0.05)
    assert given
    assert "forgotten" not in site.demo.state_holder.session_data


def test_old_letters_are_thrown_away(site, monkeypatch):
    assert post(site, "/run/predict", good(site, session_hash="old")).status_code == 200
    assert mailbox.Mailbox("old").read() is not None
    asyncio.run(sweep.sweep(site.demo, -5))
    assert mailbox.Mailbox("old").read() is None
