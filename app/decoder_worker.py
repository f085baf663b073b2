"""What runs in the decoder's process: pictures come in as bytes, pixels or one sentence go out, nothing else.

It has no torch, no secrets in its environment, no right to write a file, and a limit of memory. Started by app.decoder.
"""

from __future__ import annotations

import socket
import struct
import sys
from contextlib import suppress

from jem_core.images import ImageError, read_image

REQUEST = struct.Struct(">Q")  # how many bytes follow
ANSWER = struct.Struct(">cIIQ")  # a picture or a sentence, width, height, how many bytes follow
PICTURE, SENTENCE, READY = b"P", b"S", b"R"
MOST_FILES = 16
TOO_LARGE = "The picture needs more memory than it may have here; send it smaller, or save it as an ordinary JPEG."


def read_exactly(source: socket.socket, count: int) -> bytes | None:
    """So many bytes; None when the other side has gone."""
    data = bytearray()
    while len(data) < count:
        part = source.recv(min(1 << 20, count - len(data)))
        if not part:
            return None
        data += part
    return bytes(data)


def answer(data: bytes, side: int) -> tuple[bytes, bytes]:
    """The header and the body that go back."""
    try:
        image = read_image(data, max_bytes=len(data), working_side=side)
        return ANSWER.pack(PICTURE, *image.size, image.width * image.height * 3), image.tobytes()
    except ImageError as error:
        sentence = TOO_LARGE if isinstance(error.__cause__, MemoryError) else str(error)
    except MemoryError:
        sentence = TOO_LARGE
    body = sentence.encode()
    return ANSWER.pack(SENTENCE, 0, 0, len(body)), body


def give_up_rights(megabytes: int) -> None:
    """Less memory, no file that grows, few open files, no core dump; what a system does not know is left out."""
    try:
        import resource
    except ImportError:
        return
    wanted = {"RLIMIT_AS": megabytes << 20, "RLIMIT_FSIZE": 0, "RLIMIT_CORE": 0, "RLIMIT_NOFILE": MOST_FILES}
    for name, value in wanted.items():
        with suppress(AttributeError, ValueError, OSError):
            resource.setrlimit(getattr(resource, name), (value, value))


def main(megabytes: int, side: int) -> None:
    with socket.socket(fileno=sys.stdin.fileno()) as server:
        read_image_once(side)
        give_up_rights(megabytes)
        server.sendall(READY)
        while (head := read_exactly(server, REQUEST.size)) is not None:
            data = read_exactly(server, REQUEST.unpack(head)[0])
            if data is None:
                return
            for part in answer(data, side):
                server.sendall(part)
            del data, part  # nothing of a picture waits for the next one


def read_image_once(side: int) -> None:
    """Pillow loads its decoders when they are first used: let that be before the rights are gone."""
    import io

    from PIL import Image

    for kind in ("JPEG", "PNG", "WEBP"):
        target = io.BytesIO()
        Image.new("RGB", (8, 8)).save(target, kind)
        answer(target.getvalue(), side)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
