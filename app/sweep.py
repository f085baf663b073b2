"""What visitors leave behind is swept up: sessions, answers that nobody fetched, letters, pictures.

Gradio forgets a State when its time is over, but keeps the last frame, plot and answer of up to ten thousand sessions;
the State of a closed tab it keeps for an hour, and answers that nobody listens to for ever.
"""

from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import gc
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

import gradio as gr
import numpy as np
from anyio import to_thread
from fastapi import FastAPI
from PIL import Image
from torch import Tensor

from app import mailbox
from app.addresses import with_host
from app.connections import PER_ADDRESS, Connections, allow_connections, log_no_noise
from app.gradio_inside import drop_unread, end_all, states, under_way, unread
from app.parcels import parcels
from app.visitors import Visitors, visitors_of

EVERY = 1.0  # seconds
MOST_UNREAD = 150  # answers: some eight seconds of frames that nobody fetched, then their run ends
UNHEARD = 30.0  # seconds that a call may run without anybody who waits for its answer
ARENAS, M_ARENA_MAX = 2, -8  # heaps of glibc, and its number for that setting
DEEPEST = 12  # how far a kept value is looked into
log = logging.getLogger("gibbs_jem")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Sweeps as long as the server runs."""
    allow_connections()
    share_memory()
    settle()
    log_no_noise()
    app.middleware_stack = with_host(app.middleware_stack)
    task = asyncio.create_task(_often(app))
    yield
    gc.unfreeze()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _often(app: FastAPI) -> None:
    connections = Connections()
    while True:
        await asyncio.sleep(EVERY)
        try:
            visitors = visitors_of(app)
            connections.per_address = 0 if visitors.limits.behind_proxy else PER_ADDRESS
            connections.hang_up(getattr(visitors.blocks, "server", None))
            if await sweep(visitors, visitors.limits.idle_seconds):
                await to_thread.run_sync(give_memory_back)
        except Exception:
            log.exception("What visitors left behind could not be swept up")


async def sweep(visitors: Visitors, idle_seconds: float) -> int:
    """End the runs that nobody watches; forget whoever was not here for `idle_seconds`. How many were forgotten.

    What takes time, looking into what is kept and deleting files, is done in a thread: one of those in which handlers
    run, because the pool lets idle ones go, and the megabytes that each has of torch, only when it is used.
    """
    await _end_unwatched(visitors)
    now = time.monotonic()
    late = [one for one in visitors.idle(visitors.visits) if now - visitors.visits[one].seen > idle_seconds]
    unknown = _unknown(visitors)
    for session in (*late, *unknown):
        visitors.forget(session)
    for session, size in (await to_thread.run_sync(weights, visitors.blocks)).items():
        if session in visitors.visits:
            visitors.visits[session].kept = size
    forgotten = len(late) + len(unknown) + visitors.relieve()
    parcels.throw_away()
    left, visitors.left = visitors.left, []
    await to_thread.run_sync(mailbox.empty, left, time.time() - idle_seconds)
    return forgotten


async def _end_unwatched(visitors: Visitors) -> None:
    """Runs whose frames pile up, and calls whose callers never came for the answer."""
    queue = visitors.queue
    for session, messages in unread(queue).items():
        if messages > MOST_UNREAD:
            await end_all(queue, session)
            drop_unread(queue, session)
    for session in visitors.unheard(UNHEARD):
        await end_all(queue, session)


def _unknown(visitors: Visitors) -> list[str]:
    """Sessions that only Gradio knows: those of people who were forgotten while their last answer was on its way."""
    known = {event.session_hash for event in under_way(visitors.queue)} | set(visitors.visits)
    return list({*unread(visitors.queue), *states(visitors.blocks)} - known)


def weights(blocks: gr.Blocks) -> dict[str, int]:
    """Bytes that are kept for each session."""
    return {session: sum(weight(value) for value in values) for session, values in states(blocks).items()}


def weight(value: object, depth: int = 0) -> int:
    """Bytes of the tensors, pictures and texts in a value."""
    if isinstance(value, Tensor | np.ndarray):
        return value.nbytes
    if isinstance(value, Image.Image):
        return value.width * value.height * (1 if len(value.getbands()) == 1 else 4)  # Pillow keeps three as four
    if isinstance(value, bytes | str):
        return len(value)
    if depth > DEEPEST:
        return 0
    if isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, list | tuple | set):
        parts = list(value)
    elif dataclasses.is_dataclass(value):
        parts = [getattr(value, field.name) for field in dataclasses.fields(value)]
    else:
        parts = list(getattr(value, "__dict__", {}).values())
    return sum(weight(part, depth + 1) for part in parts)


def share_memory() -> None:
    """Left alone, glibc gives nearly every thread a heap of its own, and each keeps what its largest picture took."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS)


def settle() -> None:
    """What is there at the start stays: half a million objects that Python need not look through again and again."""
    gc.collect()
    gc.freeze()


def give_memory_back() -> None:
    """What circles kept alive, and what many threads have freed: glibc keeps that for later, and the process only
    grows. Where there is no glibc nothing happens."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
