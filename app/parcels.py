"""Pictures on their way from a request to the handler that decodes them: beside Gradio, not through it.

Gradio would parse a picture's text several times on the way and keep copies of it with the event. Here the bytes wait
under a name that nobody can guess, are handed out once, and are thrown away when nobody comes for them.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass

PREFIX = "parcel:"
MOST_BYTES = 128 * 2**20  # of all
MOST_BYTES_PER_ADDRESS = 48 * 2**20
SECONDS = 120.0


@dataclass(frozen=True)
class Parcel:
    data: bytes
    address: str
    ends: float


class Parcels:
    """Handed in on the server's event loop, taken out by handlers in their threads: each move is one dict operation."""

    def __init__(self) -> None:
        self._waiting: dict[str, Parcel] = {}

    def put(self, data: bytes, address: str) -> str | None:
        """A name for these bytes; None where too many are waiting already."""
        self.throw_away()
        waiting = list(self._waiting.values())
        own = sum(len(one.data) for one in waiting if one.address == address)
        total = sum(len(one.data) for one in waiting)
        if own + len(data) > MOST_BYTES_PER_ADDRESS or total + len(data) > MOST_BYTES:
            return None
        name = PREFIX + secrets.token_hex(16)
        self._waiting[name] = Parcel(data, address, time.monotonic() + SECONDS)
        return name

    def take(self, name: str) -> bytes | None:
        """The bytes under this name, once; None for a text that is not the name of a parcel."""
        if not name.startswith(PREFIX):
            return None
        parcel = self._waiting.pop(name, None)
        if parcel is None:
            raise ValueError("The picture waited too long and was forgotten. Please send it again.")
        return parcel.data

    def drop(self, name: str) -> None:
        self._waiting.pop(name, None)

    def throw_away(self) -> None:
        """Those that nobody came for in time."""
        now = time.monotonic()
        for name, parcel in list(self._waiting.items()):
            if parcel.ends < now:
                self._waiting.pop(name, None)

    def __len__(self) -> int:
        return len(self._waiting)


parcels = Parcels()
