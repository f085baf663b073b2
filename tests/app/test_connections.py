"""Connections over real sockets: whoever says nothing, takes nothing or opens too many is hung up on."""

import logging
import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from app import connections, sweep
from tests.app.small_app import Site, running, until

PAGE = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(sweep, "EVERY", 0.2)
    monkeypatch.setattr(connections, "SILENT", 1.0)
    with running() as made:
        yield made


def connect(site: Site, address: str = "127.0.0.1") -> socket.socket:
    wire = socket.socket()
    wire.settimeout(20)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.bind((address, 0))
    wire.connect(("127.0.0.1", int(site.url.rsplit(":", 1)[1])))
    return wire


def open_now(site: Site) -> int:
    return len(site.demo.server.server_state.connections)


def ended(wire: socket.socket) -> bool:
    with wire, suppress(ConnectionResetError):
        return wire.recv(1) == b""
    return True


def test_connections_that_say_nothing_are_closed(site: Site) -> None:
    wires = [connect(site) for _ in range(20)]
    for wire in wires[::2]:
        wire.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
    site.join("frames", [150], "watcher")  # three seconds: a connection that is listening is not silent
    assert site.answers("watcher")[-2]["success"]
    assert all(ended(wire) for wire in wires)


def test_connections_that_take_nothing_are_closed_and_hold_no_place(site: Site) -> None:
    """Many pages asked for on each connection and none read: more than the system keeps on its way."""
    wires = [connect(site, "127.0.0.5") for _ in range(20)]
    for wire in wires:
        wire.sendall(PAGE * 300)
    for _ in range(5):
        began = time.monotonic()
        assert site.http.get("/").status_code == 200
        assert time.monotonic() - began < 5
    assert until(lambda: site.visitors._calls.total() == 0)
    assert until(lambda: open_now(site) <= 1)
    for wire in wires:
        wire.close()


def test_a_connection_in_use_stays(site: Site) -> None:
    with connect(site) as wire:
        for _ in range(12):
            wire.sendall(b"HEAD /nothing HTTP/1.1\r\nHost: x\r\n\r\n")
            assert wire.recv(4096).startswith(b"HTTP/1.1 404")
            time.sleep(0.25)  # longer altogether than one may be silent


def test_one_address_has_so_many_connections(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "PER_ADDRESS", 5)
    monkeypatch.setattr(connections, "SILENT", 30.0)
    guest = connect(site, "127.0.0.6")
    wires = [connect(site, "127.0.0.5") for _ in range(12)]
    assert until(lambda: open_now(site) == 6)
    guest.sendall(b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n")
    assert guest.recv(100).startswith(b"HTTP/1.1 404")
    for wire in (guest, *wires):
        wire.close()


def test_what_anybody_can_send_is_not_logged(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        logging.getLogger("asyncio").warning("socket.send() raised exception.")
        logging.getLogger("asyncio").warning("something else")
    assert caplog.messages == ["something else"]
