"""Bodies of requests, over real HTTP: long, endless, slow and many; nobody else notices."""

import base64
import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx
import numpy as np
import pytest
from PIL import Image

from app import bodies, parcels
from app.bodies import Refused, cut_out, decode
from app.firewall import ARRIVING
from tests.app.small_app import Site, running, until
from tests.jem_core.mutate_images import encode

PATHS = ("queue/join", "run/predict", "run/quick", "api/quick", "call/long", "call/v2/long", "call/show", "cancel")
PATHS += ("reset", "upload", "component_server", "stream/x", "stream/x/close", "process_recording", "vibe-edit")
BOMB = b"[" + b"[]," * (9 * 2**20) + b"[]]"  # 27 MB that take an ordinary parser ten seconds

HEAD = b"POST /gradio_api/queue/join HTTP/1.1\r\nHost: x\r\nContent-Length: 26000000\r\n\r\n"  # and then very little


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with running() as made:
        yield made


@pytest.fixture(scope="module")
def picture() -> str:
    """Noise of 1,000 x 900 pixels: more than two megabytes of PNG."""
    noise = np.random.default_rng(0).integers(0, 256, (900, 1000, 3), dtype=np.uint8)
    return base64.b64encode(encode(Image.fromarray(noise), "PNG")).decode()


def slowest(site: Site, stop: threading.Event) -> float:
    """The longest that somebody else waited for an answer meanwhile."""
    longest, body = 0.0, {"data": ["x"], "fn_index": site.fn("quick"), "session_hash": "bystander"}
    with site.from_address("127.0.0.2") as http:
        while not stop.is_set():
            began = time.monotonic()
            assert http.post("/gradio_api/run/predict", json=body).status_code == 200
            longest = max(longest, time.monotonic() - began)
            time.sleep(0.01)
    return longest


def send(site: Site, path: str, content: bytes) -> int:
    """The status; a server that hangs up on such a body has said enough."""
    try:
        return httpx.post(f"{site.url}/gradio_api/{path}", content=content, timeout=60, trust_env=False).status_code
    except httpx.TransportError:
        return 0


def test_27_megabytes_of_brackets_stop_nobody(site: Site) -> None:
    stop = threading.Event()
    with ThreadPoolExecutor(9) as threads:
        waited = threads.submit(slowest, site, stop)
        found = [send(site, path, BOMB) for path in PATHS]
        found += list(threads.map(lambda _: send(site, "queue/join", BOMB), range(8)))
        stop.set()
    assert set(found) <= {413, 404, 429, 0}
    assert waited.result() < 2  # five to fourteen seconds, when they were parsed; tests/load holds it to 250 ms


def test_brackets_are_refused_before_they_have_all_arrived(site: Site) -> None:
    with socket.create_connection(("127.0.0.1", int(site.url.rsplit(":", 1)[1])), timeout=20) as wire:
        wire.sendall(HEAD + BOMB[:140_000])
        assert wire.recv(100).startswith(b"HTTP/1.1 413")


def test_a_body_longer_than_any_picture_is_not_read(site: Site) -> None:
    assert send(site, "queue/join", b"1" * (bodies.LONGEST + 1)) in (413, 0)
    assert send(site, "run/quick", b'{"data":["' + b"x" * bodies.SMALL + b'"]}') == 413


def test_a_large_picture_comes_through_beside_gradio(site: Site, picture: str) -> None:
    assert len(picture) > 2_000_000
    for text in (picture, f"data:image/png;base64,{picture}"):
        assert site.join("show", [text], "photographer").status_code == 200
        answer = site.answers("photographer")[-2]["output"]["data"][0]
        assert answer == {"width": 1000, "waiting": 0}  # taken out, nothing of it left
    small = base64.b64encode(encode(Image.new("RGB", (30, 20)), "PNG")).decode()
    assert site.join("show", [small], "photographer").status_code == 200
    assert site.answers("photographer")[-2]["output"]["data"][0]["width"] == 30


def test_a_picture_goes_only_where_pictures_go(site: Site, picture: str) -> None:
    assert site.join("keep", [picture], "wrong").status_code == 413
    answer = site.http.post("/gradio_api/call/long", json={"data": [picture]})
    assert answer.status_code == 413
    assert site.http.post("/gradio_api/call/show", json={"data": [picture, picture]}).status_code == 413
    assert site.join("show", ["ü" * 100_000], "wrong").status_code in (400, 413)
    assert "not base64" in site.join("show", ["A" * 100_001], "wrong").json()["detail"]
    assert not len(parcels.parcels)


def test_an_uploaded_file_is_a_parcel_in_memory(site: Site) -> None:
    """What Gradio's own client does with a file before it calls; Gradio itself would write it to the disk."""
    data = encode(Image.new("RGB", (40, 30)), "PNG")
    for content, status in (
        (data, 200),
        (b"MZ", 415),
        (b"RIFF1234AVI ", 415),
        (b"", 415),
        (data + bytes(21 << 20), 413),
    ):
        answer = httpx.post(f"{site.url}/gradio_api/upload", files={"files": ("a.png", content)}, timeout=60)
        assert answer.status_code == status
        if status == 200:
            (name,) = answer.json()
    file = {"path": name, "meta": {"_type": "gradio.FileData"}}
    assert site.join("show", [file], "uploader").status_code == 200
    assert site.answers("uploader")[-2]["output"]["data"][0] == {"width": 40, "waiting": 0}
    two = [("files", ("a.png", data)), ("files", ("b.png", data))]
    assert httpx.post(f"{site.url}/gradio_api/upload", files=two).status_code == 400
    assert site.join("show", [file | {"path": "/etc/passwd"}], "uploader").status_code == 400


def test_a_parcel_that_nobody_has_handed_in_is_a_sentence(site: Site) -> None:
    site.join("show", ["parcel:" + "0" * 32], "guesser")
    answer = site.answers("guesser")[-2]["output"]["data"][0]
    assert "Please send it again" in answer["refused"]


def test_bodies_that_never_end_are_counted_and_end(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty of one address: a few are waited for, for a while, the others told at once; another address is served."""
    monkeypatch.setattr(bodies, "SECONDS", 3.0)
    place = ("127.0.0.1", int(site.url.rsplit(":", 1)[1]))
    head = HEAD + b'{"data":["' + b"A" * 5_000
    wires = [socket.create_connection(place, timeout=20) for _ in range(60)]
    for wire in wires:
        wire.sendall(head)
    with site.from_address("127.0.0.2") as other:
        assert site.join("frames", [2], "bystander", other).status_code == 200
        assert site.answers("bystander", other)[-2]["success"]
    statuses = []
    for wire in wires:
        with wire:
            statuses.append(int(wire.recv(100).split()[1]))
    assert statuses.count(408) <= bodies.OPEN_PER_ADDRESS
    assert statuses.count(429) >= 60 - bodies.OPEN_PER_ADDRESS
    assert statuses.count(408) + statuses.count(429) == 60
    assert until(lambda: not ARRIVING._open)


def test_few_large_bodies_arrive_at_once(site: Site) -> None:
    place = ("127.0.0.1", int(site.url.rsplit(":", 1)[1]))
    head = HEAD + b'{"data":["' + b"A" * 99_000
    wires = [socket.create_connection(place, timeout=20) for _ in range(5)]
    for wire in wires:
        wire.sendall(head)
    assert until(lambda: ARRIVING._large.total() == bodies.LARGE_PER_ADDRESS)
    told = 0
    for wire in wires:
        wire.settimeout(1)
        with suppress(TimeoutError):
            told += wire.recv(100).startswith(b"HTTP/1.1 429")
        wire.close()
    assert told == 3
    assert until(lambda: not ARRIVING._large)  # whoever hangs up is not waited for


def test_the_longest_text_is_cut_out() -> None:
    body = json.dumps({"a": ["short", "A" * 70_000], "b": 'with a " in it'}).encode()
    text, place = cut_out(body)
    assert text == b"A" * 70_000
    rest = json.loads(body[: place.start] + b"parcel" + body[place.stop :])
    assert rest == {"a": ["short", "parcel"], "b": 'with a " in it'}
    long = b"A" * 70_000
    for bad in (long, b'"' * 70_000, b'"' + long, b'["' + long + b'","' + long + b'"]'):
        with pytest.raises(Refused, match="at most 64 KB"):
            cut_out(bad)


def test_a_picture_is_decoded_in_pieces() -> None:
    data = np.random.default_rng(1).bytes(3 * bodies.PIECE)
    assert decode(base64.b64encode(data)) == data
    assert decode(b"data:image/png;base64," + base64.b64encode(data[:10])) == data[:10]
    for bad in (b"A", b"AAA\nAAAA", b"data:,," + b"A" * 5, b"\xff" * 8):
        with pytest.raises(Refused, match="not base64"):
            decode(bad)


def test_parcels_are_handed_out_once_and_thrown_away(monkeypatch: pytest.MonkeyPatch) -> None:
    store = parcels.Parcels()
    name = store.put(b"one", "a")
    assert store.take("some text") is None
    assert store.take(name) == b"one"
    with pytest.raises(ValueError, match="send it again"):
        store.take(name)
    monkeypatch.setattr(parcels, "MOST_BYTES_PER_ADDRESS", 10)
    monkeypatch.setattr(parcels, "MOST_BYTES", 25)
    assert store.put(b"12345678", "a")
    assert store.put(b"123", "a") is None
    assert store.put(b"12345678", "b")
    assert store.put(b"12345678", "c")
    assert store.put(b"12345678", "d") is None
    monkeypatch.setattr(parcels, "SECONDS", -1.0)
    old = store.put(b"1", "d")
    store.throw_away()
    assert len(store) == 3
    with pytest.raises(ValueError, match="send it again"):
        store.take(old)
