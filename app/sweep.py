"""What visitors leave behind is swept up: sessions, answers that nobody fetched, letters.

Gradio forgets a State when its time is over, but keeps the last frame, plot and answer of up to ten thousand sessions;
the State of a closed tab it keeps for an hour, and answers that nobody listens to for ever.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta

import gradio as gr
from fastapi import FastAPI

from app import guard, mailbox
from app.runtime import current

EVERY = 2.0  # seconds
MOST_UNREAD = 150  # answers: some eight seconds of frames that nobody fetched, then their run ends
log = logging.getLogger("gibbs_jem")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Sweeps as long as the server runs."""
    task = asyncio.create_task(_often(app))
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _often(app: FastAPI) -> None:
    while True:
        await asyncio.sleep(EVERY)
        try:
            if await sweep(app.get_blocks(), current().limits.idle_seconds):
                await asyncio.to_thread(give_memory_back)
        except Exception:
            log.exception("What visitors left behind could not be swept up")


async def sweep(blocks: gr.Blocks, idle_seconds: float) -> int:
    """End the runs that nobody watches; forget whoever was not here for `idle_seconds`. How many were forgotten."""
    holder, queue = blocks.state_holder, blocks._queue
    for session, unread in list(queue.pending_messages_per_session.items()):
        if unread.qsize() > MOST_UNREAD:
            await queue.clean_events(session_hash=session)
            while not unread.empty():
                unread.get_nowait()
    busy = {event.session_hash for event in queue.event_ids_to_events.values()} | set(guard.reading)
    since = datetime.now() - timedelta(seconds=idle_seconds)
    forgotten = 0
    for session in {*queue.pending_messages_per_session, *holder.session_data} - busy:
        if holder.time_last_used.get(session, datetime.min) < since:
            for left in (queue.pending_messages_per_session, queue.pending_event_ids_session):
                left.pop(session, None)
            holder.session_data.pop(session, None)
            holder.time_last_used.pop(session, None)
            forgotten += 1
    _empty_old_boxes(since.timestamp())
    return forgotten


def give_memory_back() -> None:
    """What many threads have freed, glibc keeps for later, and the process only grows; elsewhere nothing happens."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _empty_old_boxes(since: float) -> None:
    """Not every visitor says goodbye; a run whose box is gone goes on with its last wish."""
    with suppress(FileNotFoundError, NotADirectoryError):  # a box that was just emptied; letters that stay in memory
        for box in mailbox.folder().iterdir():
            if box.stat().st_mtime < since:
                box.unlink()
