"""Pictures are decoded in a process of their own: the next weakness of a decoder ends that process, not the server.

    image = shared().decode(data)  # an upright RGB picture of at most 1024 x 1024; ImageError with a sentence if not

One process serves all, started with the first picture and again after each end. Bytes go in, pixels come out: whatever
it may have become, nothing that it says is trusted further than that.
"""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from PIL import Image

from app.decoder_worker import ANSWER, PICTURE, READY, REQUEST
from jem_core.images import ImageError

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 20 * 2**20
SIDE = 1024
MEGABYTES = 768  # of address space: a progressive JPEG of 64 megapixels needs 670
SECONDS = 10.0
STARTING = 60.0  # seconds: an overloaded machine may take long to start Python
LONGEST_SENTENCE = 1_000
# What Python needs to find its packages. Tokens and passwords stay with the server.
ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "LD_LIBRARY_PATH")
log = logging.getLogger("gibbs_jem")


class Broken(Exception):
    """The process has ended, or talks nonsense."""


class Decoder:
    """One decoder process and the line before it."""

    def __init__(self, seconds: float = SECONDS, megabytes: int = MEGABYTES, side: int = SIDE) -> None:
        self.seconds, self.megabytes, self.side = seconds, megabytes, side
        self.process: subprocess.Popen | None = None
        self._wire: socket.socket | None = None
        self._turn = threading.Lock()

    def decode(self, data: bytes) -> Image.Image:
        """An upright RGB picture without metadata; ImageError if it is refused, or if it breaks the decoder."""
        if len(data) > MOST_BYTES:
            raise ImageError(f"The picture is {len(data) / 2**20:.0f} MB; at most {MOST_BYTES >> 20} MB is allowed.")
        if not self._turn.acquire(timeout=2 * self.seconds):
            raise ImageError("Many pictures are waiting to be decoded. Please try again in a minute.")
        try:
            return self._decode(data)
        except TimeoutError:
            self.close()
            log.warning("A picture took longer than %g seconds to decode; the decoder was ended", self.seconds)
            message = f"The picture takes longer than {self.seconds:g} seconds to decode; send it smaller."
            raise ImageError(message) from None
        except (Broken, OSError) as error:
            self.close()
            log.warning("The decoder ended on a picture (%s); the next one starts it anew", error)
            raise ImageError(
                "The picture cannot be decoded: it is damaged. Save it again and send the new file."
            ) from None
        finally:
            self._turn.release()

    def _decode(self, data: bytes) -> Image.Image:
        if self.process is None or self.process.poll() is not None:
            self._start()
        deadline = time.monotonic() + self.seconds
        self._wire.settimeout(self.seconds)
        self._wire.sendall(REQUEST.pack(len(data)) + data)
        kind, width, height, count = ANSWER.unpack(self._read(ANSWER.size, deadline))
        if kind == PICTURE:
            if not (1 <= width <= self.side and 1 <= height <= self.side and count == width * height * 3):
                raise Broken(f"it said {width} x {height} in {count} bytes")
            return Image.frombytes("RGB", (width, height), self._read(count, deadline))
        if count > LONGEST_SENTENCE:
            raise Broken(f"it said a sentence of {count} bytes")
        raise ImageError(self._read(count, deadline).decode(errors="replace"))

    def _start(self) -> None:
        self.close()
        self._wire, theirs = socket.socketpair()
        command = [sys.executable, "-m", "app.decoder_worker", str(self.megabytes), str(self.side)]
        environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
        with theirs:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
                stdin=theirs,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        if self._read(len(READY), time.monotonic() + STARTING) != READY:
            raise Broken("it did not start")

    def _read(self, count: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < count:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._wire.settimeout(left)
            part = self._wire.recv(min(1 << 20, count - len(data)))
            if not part:
                raise Broken("it closed the line")
            data += part
        return bytes(data)

    def close(self) -> None:
        """End the process; the next picture starts another."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None
        if self.process is not None:
            with suppress(OSError):
                self.process.kill()
            self.process.wait()
            self.process = None


@cache
def shared() -> Decoder:
    """The server's decoder."""
    return Decoder()
