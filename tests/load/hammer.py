"""Ask for one address again and again: python tests/load/hammer.py PORT FROM HOST PATH PACKING CONNECTIONS SECONDS.

A # in HOST is another number each time. Prints how often each status came. A program of its own,
which needs nothing but Python, so that it is at work at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
from collections import Counter

PIECE = 2**20


async def hammer(port: int, address: str, request: bytes, connections: int, seconds: float) -> dict[str, int]:
    """Every answer is read to its end."""
    found: Counter[str] = Counter()
    numbers = itertools.count()

    async def ask() -> None:
        while True:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0), limit=PIECE)
            with contextlib.suppress(ConnectionError):
                writer.write(request.replace(b"#", str(next(numbers)).encode()))
                status = (await reader.read(PIECE))[9:12].decode()
                while await reader.read(PIECE):
                    pass
                found[status] += 1
            writer.close()

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.gather(*(ask() for _ in range(connections)))
    return dict(found)


if __name__ == "__main__":
    port, address, host, path, packing, connections, seconds = sys.argv[1:]
    head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: {packing}\r\nConnection: close\r\n\r\n"
    print(asyncio.run(hammer(int(port), address, head.encode(), int(connections), float(seconds))))
