"""The app's own page over real HTTP: what makes no sense gets a status below 500 and a sentence, and no log entry."""

import asyncio
import json
import logging
import re
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace

import httpx
import pytest
from gradio_client import Client
from load.gradio_routes import addresses
from load.hostile import ALLOWED, RAW

from app import mailbox, shell, sweep
from app.bodies import SMALL
from app.headers import SAFETY
from app.visitors import visitors_of
from jem_core.bundle import Bundle

LETTER = {"order": 1, "run": "abc", "playing": True, "fresh": 1, "step": 0, "fps": 18, "action": "run"}
SETTINGS = {"model": "tiny", "chains": 1, "speed": 0, "pause": 2}
# Every GET route of Gradio that this page does not need, and some that never were.
CLOSED = (
    *("file=http://127.0.0.1:9/x", "file=/etc/passwd", "file=app.py", "file/etc/passwd", "proxy=http://127.0.0.1:9/x"),
    *("deep_link?session_hash=visitor1", "upload_progress?upload_id=1", "stream/a/b/1/playlist.m3u8", "queue/status"),
    *("custom_component/a/client/component/x.js", "runs", "run-history/records", "token", "user", "login_check"),
    *("dev/reload", "vibe-code", "profiling/summary", "mcp/", "mcp/sse", "mcp/schema", "%2e%2e/config", "nothing"),
)
CLOSED_OUTSIDE = (
    *("/monitoring", "/monitoring/summary", "/monitoring/x", "/pwa_icon", "/docs", "/redoc", "/openapi.json", "/login"),
    *("/assets/%2e%2e/routes.py", "/static/%2e%2e/index.html", "/gj/%2e%2e/app.py", "//etc/passwd", "/x"),
)


@pytest.fixture(scope="module")
def site(tiny_bundle: Bundle) -> Iterator[SimpleNamespace]:
    demo = shell.build(shell.options(["--model", str(tiny_bundle.directory)]))
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, server_name="127.0.0.1", **shell.launch_options())
    events = {fn.api_name: index for index, fn in demo.fns.items()}
    root = url.rstrip("/")
    with httpx.Client(base_url=f"{root}/gradio_api", timeout=60, trust_env=False) as http:
        yield SimpleNamespace(demo=demo, http=http, events=events, url=root, visitors=visitors_of(demo.app))
    demo.close()


@pytest.fixture
def logged() -> Iterator[list[logging.LogRecord]]:
    """What the server itself writes to its log."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append
    logging.getLogger("uvicorn.error").addHandler(handler)
    yield records
    logging.getLogger("uvicorn.error").removeHandler(handler)


def post(site: SimpleNamespace, path: str, content: object) -> httpx.Response:
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    return site.http.post(path, content=text, headers={"content-type": "application/json"})


def good(site: SimpleNamespace, name: str = "post", **changes: object) -> dict:
    inputs = len(site.demo.fns[site.events[name]].inputs)
    body = {"data": [None] * inputs, "event_data": LETTER | {"settings": SETTINGS}, "fn_index": site.events[name]}
    return body | {"session_hash": "visitor1"} | changes


@pytest.mark.parametrize("more", [{}, {"note": '"path":"x"'}, {"path": 7}])
def test_a_good_event_passes_unchanged(site, more):
    letter = LETTER | {"settings": SETTINGS} | more
    reply = post(site, "/run/predict", good(site, event_data=letter)).json()["data"][0]
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
        ({"session_hash": "ä"}, "session_hash is"),
        ({"session_hash": {"a": 1}}, "session_hash is dict"),
        ({"event_data": {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}}, "No file"),
        ({"event_data": {"order": {"path": "/etc/passwd", "meta": {"_type": "x"}}}}, "No file"),
        ({"event_data": [{"path": "http://127.0.0.1:9/x"}]}, "No file"),
        ({"event_data": "\ud800"}, "not JSON"),
        ({"event_data": float("nan")}, "not JSON"),
    ],
)
def test_a_body_without_sense_gets_a_sentence(site, changes, sentence):
    answer = post(site, "/run/predict", good(site, **changes))
    assert answer.status_code == 400
    assert sentence in answer.json()["detail"]
    assert answer.json()["error"] == answer.json()["detail"]  # Gradio's page looks for either


@pytest.mark.parametrize("content", ["", "{", "[]", "3", b"\xff\xfe", "[" * 5_000, '"\\ud800"'])
def test_a_body_that_is_no_object_is_refused(site, content):
    assert post(site, "/queue/join", content).status_code == 400


def test_a_deep_body_is_refused(site):
    deep = json.dumps(good(site))[:-1] + ', "a":' + "[" * 600 + "]" * 600 + "}"
    assert post(site, "/run/predict", deep).status_code == 400


def test_an_event_fits_into_64_kilobytes(site):
    assert post(site, "/run/predict", good(site, event_data="x" * SMALL)).status_code == 413
    assert post(site, "/queue/join", good(site, "run", event_data="x" * SMALL)).status_code in (400, 413)


def test_a_huge_number_is_refused_by_the_setting_that_it_is_for(site):
    event = LETTER | {"settings": SETTINGS | {"guidance": 10**300}}
    reply = post(site, "/run/predict", good(site, event_data=event)).json()["data"][0]
    assert reply["kind"] == "refused"
    assert "Guidance is" in reply["message"]


@pytest.mark.parametrize("path", CLOSED)
def test_what_the_page_does_not_need_is_not_there(site, path):
    assert site.http.get(f"/{path}").status_code == 404


@pytest.mark.parametrize("path", addresses("GET"))
def test_every_address_of_gradio_is_on_the_list_or_not_there(site, path):
    """Whatever a new release of Gradio adds."""
    with site.http.stream("GET", httpx.URL(site.url + path)) as answer:
        assert (answer.status_code == 200) == (path in ALLOWED)
        assert answer.status_code in (200, 404)


@pytest.mark.parametrize("path", addresses("POST"))
def test_every_address_that_takes_a_body_is_on_the_list_or_not_there(site, path):
    answer = site.http.post(httpx.URL(site.url + path), content="{}", headers={"content-type": "application/json"})
    taken = re.fullmatch(r"/gradio_api/(api|run|call|call/v2|queue|cancel|reset|upload)(/.*)?", path)
    assert answer.status_code in ((200, 400, 422) if taken else (404,))


@pytest.mark.parametrize("raw", RAW, ids=range(len(RAW)))
def test_bytes_that_are_hardly_http_are_no_error_of_the_server(site, raw, logged):
    with socket.create_connection(("127.0.0.1", httpx.URL(site.url).port), timeout=1) as wire, suppress(OSError):
        wire.sendall(raw)
        assert not wire.recv(100).startswith(b"HTTP/1.1 5")
    assert not [record.getMessage() for record in logged]


@pytest.mark.parametrize("path", CLOSED_OUTSIDE)
def test_nor_is_anything_outside_its_programming_interface(site, path):
    assert site.http.get(httpx.URL(site.url + path)).status_code == 404


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_not_there(site, method):
    assert site.http.request(method, "/queue/join").status_code in (404, 405)


@pytest.mark.parametrize("path", ["/component_server", "/stream/x", "/login", "/process_recording", "/mcp/"])
def test_nothing_else_takes_a_body(site, path):
    assert post(site, path, {}).status_code == 404


def test_no_event_passes_the_queue(site):
    body = {"data": [[], [], 1, "tiny", 0, 1, None, 1, None, None, None]}
    assert post(site, "/run/synthesize", body).status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [({"required": [], "n": 1, "steps": 1}, 200), ({"n": 1}, 400), ({"required": [], "owner": "me"}, 400)],
)
def test_a_documented_endpoint_by_names(site, body, status):
    assert post(site, "/call/v2/synthesize", body).status_code == status


def test_a_private_event_is_not_called_by_names(site):
    assert post(site, "/call/v2/forget", {}).status_code == 400


@pytest.mark.parametrize("path", ["/queue/data?session_hash=nobody", "/call/synthesize/nothing", "/queue/data"])
def test_who_listens_to_nobody_is_told_so(site, path):
    answer = site.http.get(path)
    assert answer.status_code == 200
    assert json.loads(answer.text[5:])["session_not_found"]


def test_every_answer_carries_the_safety_headers(site):
    answers = [site.http.get(httpx.URL(site.url + path)) for path in ("/", "/config", "/theme.css", "/nothing")]
    answers.append(post(site, "/run/predict", good(site)))
    for answer in answers:
        for name, value in SAFETY.items():
            assert answer.headers[name] == value
    policy = SAFETY["Content-Security-Policy"]
    assert "frame-ancestors 'self' https://huggingface.co" in policy  # where a Space is shown
    assert "connect-src 'self' data: blob:" in policy  # and nothing is sent elsewhere


def test_gradios_own_client_finds_its_way(site):
    client = Client(site.url, verbose=False)
    endpoints = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert {"/synthesize", "/predict"} <= set(endpoints)
    answer = client.predict(["Red"], n=2, model="tiny", steps=2, api_name="/synthesize")
    assert len(answer["images"]) == 2
    job = client.submit(["Red"], n=1, model="tiny", steps=2, api_name="/synthesize")
    assert job.result(60)["condition"] == "Red"
    session = client.session_hash
    assert session in site.visitors.visits
    client.close()


def test_a_plain_call_counts_as_a_visit_and_is_answered(site):
    before = set(site.visitors.visits)
    event = post(site, "/call/synthesize", {"data": [["Red"], [], 1, "tiny", 0, 1, None, 2, None, None, None]}).json()
    answer = site.http.get(f"/call/synthesize/{event['event_id']}").text
    assert answer.startswith("event: complete")
    assert len(set(site.visitors.visits) - before) == 1


def run_to_its_end(site: SimpleNamespace, session: str) -> None:
    assert post(site, "/queue/join", good(site, "run", session_hash=session)).status_code == 200
    with site.http.stream("GET", f"/queue/data?session_hash={session}") as stream:
        assert any("process_completed" in line for line in stream.iter_lines())


def test_whoever_is_gone_is_forgotten_and_whoever_is_here_is_not(site):
    """A session, its unread answers and its letter go when their time is over."""
    for session in ("leaver01", "stayer01"):
        run_to_its_end(site, session)
    holder, queue = site.demo.state_holder, site.demo._queue
    assert {"leaver01", "stayer01"} <= set(holder.session_data)
    assert mailbox.Mailbox("leaver01").read() is not None
    site.visitors.visits["leaver01"].seen -= 3_600
    asyncio.run(sweep.sweep(site.visitors, 600))
    assert "leaver01" not in holder.session_data
    assert "leaver01" not in queue.pending_messages_per_session
    assert mailbox.Mailbox("leaver01").read() is None
    assert "stayer01" in holder.session_data
    assert mailbox.Mailbox("stayer01").read() is not None


async def until_finished(queue: object) -> None:
    for _ in range(600):
        if not queue.event_ids_to_events:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("runs did not finish")


def test_a_run_that_nobody_watches_ends(site, monkeypatch):
    monkeypatch.setattr(sweep, "MOST_UNREAD", 5)
    monkeypatch.setattr(sweep, "EVERY", 0.1)
    endless = LETTER | {"run": "endless", "settings": SETTINGS | {"pause": 0, "steps": 1000, "chains": 2, "speed": 20}}
    assert post(site, "/queue/join", good(site, "run", session_hash="unwatched", event_data=endless)).status_code == 200
    asyncio.run(until_finished(site.demo._queue))  # much sooner than the run's own limit of three minutes


def test_memory_is_given_back_when_somebody_was_forgotten(site, monkeypatch):
    given = []
    monkeypatch.setattr(sweep, "EVERY", 0.1)
    monkeypatch.setattr(sweep, "give_memory_back", lambda: given.append(True))
    assert post(site, "/run/predict", good(site, session_hash="forgotten")).status_code == 200
    site.visitors.visits["forgotten"].seen -= 3_600
    deadline = time.monotonic() + 20
    while not given and time.monotonic() < deadline:
        time.sleep(0.05)
    assert given
    assert "forgotten" not in site.demo.state_holder.session_data


def test_old_letters_are_thrown_away(site):
    assert post(site, "/run/predict", good(site, session_hash="old")).status_code == 200
    assert mailbox.Mailbox("old").read() is not None
    asyncio.run(sweep.sweep(site.visitors, -5))
    assert mailbox.Mailbox("old").read() is None


def test_what_is_kept_of_a_visitor_is_weighed(site):
    run_to_its_end(site, "heavy")
    weight = sweep.weights(site.demo)["heavy"]
    image = 3 * 32 * 32 * 4  # one chain in float32
    assert image < weight < 1_000 * image
