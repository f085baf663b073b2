"""Who is here, and what each may use: sessions, places in the queue, quick calls, memory.

Gradio remembers sessions by names that the browser chooses, 2,000 of their message boxes and 10,000 of their states,
and drops the oldest whether it is in use or not. Here a session is admitted before Gradio hears of it. Where a limit is
reached the oldest idle one gives way; where none is idle, the newcomer is told at once, and when to come again.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import gradio as gr
from fastapi import FastAPI
from gradio.queueing import Event, Queue

from app.gradio_inside import (
    forget_session,
    free_places,
    mean_seconds,
    queue_of,
    running,
    take_over,
    under_way,
    waiting,
)
from app.limits import Limits
from app.runtime import current

LEAVING = 120.0  # seconds without a request after which an open page may give way to somebody else
PATIENCE = 1.5  # seconds that a quick call waits for its turn
MOST_PATIENT = 4  # so many wait for each one that runs
STREAMS_PER_VISITOR = 6  # heartbeats and answers that one page listens to; a page has one of each
RUNNING_PER_VISITOR = 2  # the run that begins and the one that it replaces
TAKES = 20.0  # seconds that an event takes, as long as none has ended


class Full(Exception):
    """No place; the words say why, `seconds` when to ask again."""

    def __init__(self, words: str, seconds: float) -> None:
        self.seconds = max(1, round(seconds))
        wait = f"{self.seconds} seconds" if self.seconds < 90 else f"{round(self.seconds / 60)} minutes"
        wait = "a second" if self.seconds == 1 else wait
        super().__init__(f"{words} Please try again in about {wait}.")


@dataclass
class Visit:
    """What is known of one session."""

    address: str
    seen: float = field(default_factory=time.monotonic)  # its last request
    streams: int = 0  # connections that are open to listen
    answers: int = 0  # of them, those that wait for the answer to an event
    joining: int = 0  # events on their way into the queue
    calls: int = 0  # quick events that run now
    heard: float = field(default_factory=time.monotonic)  # when it last listened for answers, or asked for something
    kept: int = 0  # bytes of chains and pictures

    @property
    def busy(self) -> bool:
        return bool(self.joining or self.calls or self.answers)


class Visitors:
    """All that are here. Everything is called from the server's event loop, so that nothing needs a lock."""

    def __init__(self, blocks: gr.Blocks, limits: Limits) -> None:
        self.blocks, self.limits = blocks, limits
        self.visits: dict[str, Visit] = {}  # by session, the one seen longest ago first
        self.left: list[str] = []  # sessions that were forgotten, until their letters are thrown away too
        self._calls: Counter[str] = Counter()  # by address
        self._patient = 0  # calls that wait for their turn
        take_over(self.queue, self.next_events, boxes=2 * limits.sessions)

    @property
    def queue(self) -> Queue:
        return queue_of(self.blocks)

    # Sessions.

    def admit(self, session: str, address: str) -> Visit:
        """The visit of a session, from now on the one seen last; Full where there is no place for a new one."""
        visit = self.visits.pop(session, None)
        if visit is None:
            self._make_room(address)
            visit = Visit(address)
        visit.address, visit.seen = address, time.monotonic()
        self.visits[session] = visit
        return visit

    def _make_room(self, address: str) -> None:
        own = [session for session, visit in self.visits.items() if visit.address == address]
        if len(own) >= self.limits.sessions_per_address:
            words = f"{len(own)} visitors from your network are here already, the limit for one network."
            self._give_way(own, words)
        if len(self.visits) >= self.limits.sessions:
            self._give_way(self.visits, f"All {len(self.visits)} places are taken.")

    def _give_way(self, sessions: Iterable[str], words: str) -> None:
        idle = self.idle(sessions)
        gone = [session for session in idle if not self.visits[session].streams]
        waits = [LEAVING - (time.monotonic() - self.visits[session].seen) for session in idle]
        late = [session for session, wait in zip(idle, waits, strict=True) if wait <= 0]
        if not gone and not late:
            raise Full(words, min(waits, default=LEAVING / 2))
        self.forget((gone or late)[0])

    def idle(self, sessions: Iterable[str]) -> list[str]:
        """Those of whom nothing runs or waits, the one seen longest ago first."""
        busy = {event.session_hash for event in under_way(self.queue)}
        return [session for session in sessions if session not in busy and not self.visits[session].busy]

    def unheard(self, seconds: float) -> list[str]:
        """Sessions that asked for something and have not listened for the answer for so long."""
        now, asked = time.monotonic(), {event.session_hash for event in under_way(self.queue)}
        visits = {session: self.visits[session] for session in asked if session in self.visits}
        return [session for session, visit in visits.items() if not visit.answers and now - visit.heard > seconds]

    def forget(self, session: str) -> None:
        """Every trace of a session: its chains, its picture, its last frame, answers that it did not fetch."""
        forget_session(self.blocks, session)
        self.visits.pop(session, None)
        self.left.append(session)

    @contextmanager
    def listening(self, session: str, address: str, answers: bool) -> Iterator[None]:
        """A connection on which a session listens: for answers, or only to say that its page is open."""
        visit = self.admit(session, address)
        if visit.streams >= STREAMS_PER_VISITOR:
            raise Full("This page is already connected.", 5)
        visit.streams += 1
        visit.answers += answers
        try:
            yield
        finally:
            visit.streams -= 1
            visit.answers -= answers
            visit.seen = visit.heard = time.monotonic()

    # Events.

    @contextmanager
    def joining(self, session: str, address: str, concurrency_id: str) -> Iterator[None]:
        """An event on its way into the queue."""
        visit = self.admit(session, address)
        asked = Counter(event.session_hash for event in under_way(self.queue))
        mine = asked[session] + visit.joining
        theirs = sum(asked[name] + other.joining for name, other in self.visits.items() if other.address == address)
        wait = self.wait_for(concurrency_id)
        if mine >= self.limits.events_per_visitor:
            raise Full(f"You have {mine} request{'' if mine == 1 else 's'} under way already.", wait)
        if theirs >= self.limits.events_per_address:
            what, are = ("request", "is") if theirs == 1 else ("requests", "are")
            raise Full(f"{theirs} {what} from your network {are} under way already.", wait)
        before = len(self.queue)
        if before + sum(other.joining for other in self.visits.values()) >= self.limits.waiting:
            raise Full(f"The server is full: {before} requests are waiting.", wait)
        visit.joining += 1
        visit.heard = time.monotonic()
        try:
            yield
        finally:
            visit.joining -= 1

    def wait_for(self, concurrency_id: str) -> float:
        """About how many seconds until a place in the queue is free."""
        before, at_once = waiting(self.queue, concurrency_id)
        return min((mean_seconds(self.queue) or TAKES) * (1 + before) / at_once, self.limits.run_seconds)

    @asynccontextmanager
    async def call(self, session: str | None, address: str) -> AsyncIterator[None]:
        """A quick event: a few at once, the others wait a moment."""
        visit = self.admit(session, address) if session else Visit(address)
        visit.calls += 1
        try:
            await self._wait_to_call(address)
            self._calls[address] += 1
            try:
                yield
            finally:
                self._calls[address] -= 1
                self._calls += Counter()  # without those that are zero
        finally:
            visit.calls -= 1

    async def _wait_to_call(self, address: str) -> None:
        patience = time.monotonic() + PATIENCE
        self._patient += 1
        try:
            while not self._may_call(address):
                if time.monotonic() > patience or self._patient > MOST_PATIENT * self.limits.calls_at_once:
                    raise Full("The server is busy.", PATIENCE)
                await asyncio.sleep(0.02)
        finally:
            self._patient -= 1

    def _may_call(self, address: str) -> bool:
        few = self._calls.total() < self.limits.calls_at_once
        return few and self._calls[address] < self.limits.calls_per_address

    # Turns.

    def next_events(self) -> tuple[list[Event], bool, str] | None:
        """What the queue runs next, in the place of Gradio's own choice, which is first come, first served.

        First comes whose address has the fewest events running, then whose session has. Where several run at once, one
        place of each kind is never held by the same address as all the others.
        """
        now_running = running(self.queue)
        for concurrency_id, line, most in free_places(self.queue):
            here = [event for event in now_running if event.concurrency_id == concurrency_id]
            addresses = Counter(self.address(event.session_hash) for event in here)
            sessions = Counter(event.session_hash for event in here)

            def held(event: Event, addresses: Counter = addresses, sessions: Counter = sessions) -> tuple[int, int]:
                return addresses[self.address(event.session_hash)], sessions[event.session_hash]

            share = len(line) if most is None else max(1, most - 1)
            free = [event for event in line if held(event)[0] < share and held(event)[1] < RUNNING_PER_VISITOR]
            if free:
                chosen = min(free, key=held)  # of equals the first
                line.remove(chosen)
                return [chosen], False, concurrency_id
        return None

    def address(self, session: str) -> str:
        visit = self.visits.get(session)
        return visit.address if visit else ""

    # Memory.

    def relieve(self) -> int:
        """Forget the oldest idle visitors where more is kept than may be. How many were forgotten."""
        forgotten = 0
        addresses = Counter()
        for visit in self.visits.values():
            addresses[visit.address] += visit.kept
        for address, kept in addresses.items():
            own = [session for session, visit in self.visits.items() if visit.address == address]
            forgotten += self._relieve(own, kept - (self.limits.kept_megabytes_per_address << 20))
        total = sum(visit.kept for visit in self.visits.values())
        return forgotten + self._relieve(list(self.visits), total - (self.limits.kept_megabytes << 20))

    def _relieve(self, sessions: list[str], beyond: int) -> int:
        forgotten = 0
        if beyond > 0:
            heavy = [session for session in self.idle(sessions) if self.visits[session].kept]
            for session in sorted(heavy, key=lambda session: self.visits[session].streams > 0):  # absent ones first
                if beyond <= 0:
                    break
                beyond -= self.visits[session].kept
                self.forget(session)
                forgotten += 1
        return forgotten


def visitors_of(app: FastAPI) -> Visitors:
    """The visitors of a running app."""
    if not hasattr(app.state, "visitors"):
        app.state.visitors = Visitors(app.get_blocks(), current().limits)
    return app.state.visitors
