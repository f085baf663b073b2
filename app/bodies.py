"""The bodies of requests: counted while they arrive, against a clock, and never parsed where they are large.

Every event fits into 64 KB, but for a picture in base64. Of a longer body the picture is cut out by searching for its
quotation marks, so that what is parsed is short whatever was sent.
"""

from __future__ import annotations

import asyncio
import binascii
import math
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import Receive

from app.decoder import MOST_BYTES
from app.visitors import Full

SMALL = 2**16
LONGEST = MOST_BYTES * 4 // 3 + SMALL  # the largest picture in base64, and a letter around it
SECONDS = 15.0  # for a body to arrive, and one more for every
SLOWEST = 2**15  # bytes of it
OPEN, OPEN_PER_ADDRESS = 128, 24  # bodies that are arriving
LARGE, LARGE_PER_ADDRESS = 6, 2  # of them, longer than 64 KB
BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
SPARE = 2**20  # bytes of a refused body that are still taken in, so that its sender sees why
MOST_MARKS = 4_096  # quotation marks around a picture
PIECE = 2**20  # characters that are decoded in one go: a few milliseconds


class Refused(Exception):
    """A body that is not read further. `hang_up`: its sender would go on for ever."""

    def __init__(self, status: int, sentence: str, hang_up: bool = False) -> None:
        super().__init__(sentence)
        self.status, self.hang_up = status, hang_up


class Left(Exception):
    """The sender hung up."""


class Body:
    """One body on its way; `text`: it is JSON, of which only a picture can be long."""

    def __init__(self, receive: Receive, text: bool) -> None:
        self.receive, self.text, self.data = receive, text, bytearray()
        self._began = time.monotonic()
        self._structure = 0  # characters that no picture has

    async def grow(self, most: int) -> bool:
        """Read until it ends, or is longer than `most`; whether it has ended."""
        try:
            while True:
                # A body may take its time, but not stand still: the longer it is already, the longer it may take.
                left = self._began + SECONDS + len(self.data) / SLOWEST - time.monotonic()
                message = await asyncio.wait_for(self.receive(), max(left, 0.001))
                if message["type"] == "http.disconnect":
                    raise Left
                part = message.get("body", b"")
                self.data += part
                self._structure += len(part.translate(None, BASE64))
                if self.text and self._structure > SMALL:  # a body of nothing else ends here at once
                    raise too_long(SMALL, hang_up=True)
                if not message.get("more_body"):
                    return True
                if len(self.data) > most:
                    return False
        except TimeoutError:
            raise Refused(408, "The request arrives too slowly.", hang_up=True) from None


class Bodies:
    """Counts what is arriving, by address and in all."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        self._large: Counter[str] = Counter()

    async def read(self, receive: Receive, address: str, stated: float, large: bool) -> bytes:
        """A whole body; `stated`: the length that its header says, or infinity; `large`: it may hold a picture."""
        return await self._arrive(receive, address, stated, LONGEST if large else SMALL)

    async def read_file(self, receive: Receive, address: str, stated: float) -> bytes:
        """A whole body that holds a file as it is."""
        return await self._arrive(receive, address, stated, MOST_BYTES + SMALL, text=False)

    async def _arrive(self, receive: Receive, address: str, stated: float, most: int, text: bool = True) -> bytes:
        if most < stated < math.inf:
            raise too_long(most, hang_up=stated > most + SPARE)
        with self._counted(self._open, address, OPEN, OPEN_PER_ADDRESS):
            body = Body(receive, text)
            ended = await body.grow(SMALL)
            if not ended and most > SMALL:
                with self._counted(self._large, address, LARGE, LARGE_PER_ADDRESS):
                    ended = await body.grow(most)
            if len(body.data) > most:
                raise too_long(most, hang_up=not ended)
            return bytes(body.data)

    @contextmanager
    def _counted(self, counts: Counter[str], address: str, most: int, per_address: int) -> Iterator[None]:
        if counts.total() >= most or counts[address] >= per_address:
            raise Full("Too many requests are still arriving.", SECONDS)
        counts[address] += 1
        try:
            yield
        finally:
            counts[address] -= 1
            if not counts[address]:
                del counts[address]


def too_long(most: int, hang_up: bool) -> Refused:
    size = f"{most >> 20} MB" if most >= 2**20 else f"{most >> 10} KB"
    return Refused(413, f"The request is too long: at most {size} are read here.", hang_up)


def cut_out(body: bytes) -> tuple[bytes, slice]:
    """A long body's longest text, and where it stands; Refused where the rest is long too."""
    longest, at = slice(0, 0), body.find(b'"')
    for _ in range(MOST_MARKS):
        end = body.find(b'"', at + 1)
        if at < 0 or end < 0:
            break
        if end - at - 1 > longest.stop - longest.start:
            longest = slice(at + 1, end)
        at = end
    if len(body) - (longest.stop - longest.start) > SMALL:
        raise too_long(SMALL, hang_up=False)
    return body[longest], longest


def decode(text: bytes) -> bytes:
    """A picture's bytes from base64 or a data URI, piece by piece: a thread that does this lets others have a turn."""
    if text[:5] == b"data:":
        text = text[text.find(b",", 0, 200) + 1 :]
    try:
        starts = range(0, len(text), PIECE)
        return b"".join(binascii.a2b_base64(text[start : start + PIECE], strict_mode=True) for start in starts)
    except binascii.Error:
        raise Refused(400, "The picture is incomplete: its bytes are not base64.") from None
