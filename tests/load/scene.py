"""What every attack has: the server, what must not be seen of it, and somebody else who uses the page meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from client import Event, Server, Tab, new_http

ATTACKER, GUEST, SLOW, ACCOMPLICE = (f"127.0.9.{number}" for number in (1, 2, 3, 4))
WITHIN = {"guest p99": 0.25, "memory": 400.0, "first frame": 5.0, "hang-up": 2.0}  # seconds; megabytes


@dataclass
class Report:
    """What was seen, and what must not be."""

    rows: dict[str, str] = field(default_factory=dict)
    bad: list[str] = field(default_factory=list)

    def measure(self, name: str, value: float, most: float, unit: str) -> None:
        self.rows[name] = f"{value:.2f} {unit} (at most {most:g})"
        if value > most:
            self.bad.append(f"{name}: {value:.2f} {unit}, more than {most:g}")


@dataclass
class Setup:
    """The server, the page's events, and what to ask for."""

    server: Server
    events: dict[str, Event]
    model: str
    name: str
    seconds: int  # that one call may take
    best: int = 10  # of how many the best may be kept

    def largest(self, tab: Tab) -> dict:
        """As many chains and steps as are allowed."""
        asked = [[self.name], [], 64, self.model, 0, self.best, None, 1000, None, None, None]
        return tab.body("synthesize", None, asked)

    def letter(self, action: str, **settings: object) -> dict:
        values = {"model": self.model, "with": [self.name]} | settings
        head = {"order": 1, "run": "abc", "playing": True, "fresh": 1, "step": 0, "fps": 18, "action": action}
        return head | {"settings": values}


@contextlib.asynccontextmanager
async def guest(setup: Setup) -> AsyncIterator[list[float]]:
    """Somebody else, who toggles attributes all the while; the seconds that each answer took."""
    took: list[float] = []

    async def use() -> None:
        async with new_http(setup.server.url, GUEST) as http:
            tab = Tab(http, setup.events)
            while True:
                began = time.monotonic()
                reply = await tab.ask("surprise", {"model": setup.model})
                took.append(time.monotonic() - began)
                assert reply["kind"] in ("surprise", "refused"), reply
                await asyncio.sleep(0.02)

    task = asyncio.create_task(use())
    await asyncio.sleep(0.5)
    try:
        yield took
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
