"""Connections that say nothing or take nothing are closed: uvicorn waits for them for ever."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from uvicorn import Server
    from uvicorn.protocols.http.h11_impl import H11Protocol

SILENT = 30.0  # seconds that a connection may stay open without a whole request, or without taking of its answer
PER_ADDRESS = 512  # open connections: those of as many visitors as one address may have
MOST_FILES = 65_536
NOISE = (
    "Invalid HTTP request",
    "Unsupported upgrade request",
    "No supported WebSocket library",
    "socket.send() raised",
)


class Connections:
    """The open connections of a server, and since when nothing moved on each."""

    def __init__(self, per_address: int = PER_ADDRESS) -> None:
        self.per_address = per_address  # 0: as many as come, because all come from a proxy
        self._still: WeakKeyDictionary[H11Protocol, tuple[tuple, float]] = WeakKeyDictionary()

    def hang_up(self, server: Server | None) -> None:
        """On whoever is silent or deaf, and on one address's connections beyond those that it may have."""
        if server is None:
            return
        by_address = defaultdict(list)
        for connection in list(server.server_state.connections):
            if self._rests(connection) > SILENT:
                _close(connection)
            else:
                by_address[connection.client[0] if connection.client else ""].append(connection)
        for own in by_address.values():
            if self.per_address and len(own) > self.per_address:
                own.sort(key=_answering)  # those that wait for nothing go first
                for connection in own[: len(own) - self.per_address]:
                    connection.transport.abort()

    def _rests(self, connection: H11Protocol) -> float:
        """Seconds since something moved; none while it is this server's turn."""
        now, unsent = time.monotonic(), connection.transport.get_write_buffer_size()
        if _answering(connection) and not unsent:
            self._still.pop(connection, None)
            return 0.0
        seen = id(connection.cycle), _answering(connection), unsent
        before, since = self._still.get(connection, (None, now))
        if seen != before:
            since = now
            self._still[connection] = seen, now
        return now - since


def _answering(connection: H11Protocol) -> bool:
    return connection.cycle is not None and not connection.cycle.response_complete


def _close(connection: H11Protocol) -> None:
    if connection.transport.get_write_buffer_size():
        connection.transport.abort()  # or it would wait until all is sent
    else:
        connection.transport.close()


def allow_connections() -> None:
    """As many open files as the system allows: 1,024, where many begin, are four hundred open pages."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def log_no_noise() -> None:
    """What anybody can send, or leave unread, is no news: a line for each such request would fill the disk."""
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(NOISE)
