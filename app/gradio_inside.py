"""What we use of Gradio beyond its documentation, all in one place.

A new release of Gradio may change any of it: tests/app/test_gradio_inside.py says by name what is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import gradio as gr
from gradio.block_function import BlockFunction
from gradio.context import LocalContext, get_blocks_context
from gradio.queueing import Event, Queue
from gradio.routes import App
from gradio.utils import LRUCache


def sent(event: gr.EventData) -> dict:
    """What the browser sent with an event. Anything may come; what is not names with values counts as nothing."""
    return event._data if isinstance(event._data, dict) else {}


def queue_of(blocks: gr.Blocks) -> Queue:
    return blocks._queue


def served_blocks() -> gr.Blocks | None:
    """The app whose event the calling thread serves."""
    return LocalContext.blocks.get(None)


def still_wanted() -> bool:
    """Whether somebody waits for the event that the calling thread serves; outside an event of the queue: yes.

    Gradio marks an event when its listener hangs up, and forgets it when it is cancelled; `stop` marks it too.
    """
    blocks, event_id = served_blocks(), LocalContext.event_id.get(None)
    if blocks is None or event_id is None:
        return True
    event = queue_of(blocks).event_ids_to_events.get(event_id)
    return event is not None and event.alive and not getattr(event, "stopped", False)


def stop(event: Event) -> None:
    """Its work is not wanted any more, but its page still hears of its end: a dead event would be waited for."""
    event.stopped = True


def under_way(queue: Queue) -> list[Event]:
    """Events that wait or run."""
    return list(queue.event_ids_to_events.values())


def running(queue: Queue) -> list[Event]:
    return [event for job in queue.active_jobs for event in job or ()]


def waiting(queue: Queue, concurrency_id: str) -> tuple[int, int]:
    """How many events wait for a place of this kind, and how many such places there are."""
    line = queue.event_queue_per_concurrency_id.get(concurrency_id)
    return (len(line.queue), line.concurrency_limit or 1) if line else (0, 1)


def free_places(queue: Queue) -> Iterator[tuple[str, list[Event], int | None]]:
    """The kinds of places of which one is free and wanted: name, who waits, and how many there are (None: no limit)."""
    for concurrency_id, line in queue.event_queue_per_concurrency_id.items():
        most = line.concurrency_limit
        if line.queue and (most is None or line.current_concurrency < most):
            yield concurrency_id, line.queue, most


def mean_seconds(queue: Queue) -> float | None:
    """How long an event takes; None as long as none has ended."""
    took = [time.avg_time for time in queue.process_time_per_fn.values() if time.count]
    return sum(took) / len(took) if took else None


def session_of(queue: Queue, event_id: str) -> str:
    """The session that an event belongs to, running or finished."""
    event = queue.event_ids_to_events.get(event_id)
    waiting = queue.pending_event_ids_session
    return event.session_hash if event else next((one for one, ids in waiting.items() if event_id in ids), event_id)


def end(queue: Queue, values: dict) -> None:
    """A caller does not want an event any more: what computes it sees that at its next step (app.deadlines)."""
    event_id = values.get("event_id")
    event = queue.event_ids_to_events.get(event_id) if isinstance(event_id, str) else None
    if event is not None and event.session_hash == values.get("session_hash"):
        event.alive = False


class Boxes(LRUCache):
    """Gradio's message boxes. Of two who listen to one session and hang up together, the second has none to delete."""

    def __delitem__(self, session: str) -> None:
        if session in self:
            super().__delitem__(session)


def take_over(queue: Queue, next_events: Callable, boxes: int) -> None:
    """Let `next_events` choose what runs next, keep so many message boxes, and let the queue itself do less."""
    queue.get_events = next_events
    queue.pending_messages_per_session = Boxes(boxes)
    queue.sleep_when_free = 0.005  # it asks for the next event a thousand times per second otherwise
    # A table of the last 10,000 events with their sessions, worked through after each: nobody reads it here.
    queue.ANALYTICS_MAX_EVENTS, queue.ANAYLTICS_CACHE_FREQUENCY = 1, 2**62


def has_box(queue: Queue, session: str) -> bool:
    """Whether answers are kept for a session."""
    return session in queue.pending_messages_per_session


def unread(queue: Queue) -> dict[str, int]:
    """By session, how many messages wait to be fetched."""
    return {session: box.qsize() for session, box in list(queue.pending_messages_per_session.items())}


def drop_unread(queue: Queue, session: str) -> None:
    box = queue.pending_messages_per_session.get(session)
    while box is not None and not box.empty():
        box.get_nowait()


async def end_all(queue: Queue, session: str) -> None:
    """End every event of a session, whether it waits or runs."""
    await queue.clean_events(session_hash=session)


def states(blocks: gr.Blocks) -> dict[str, list]:
    """By session, the values that its states keep."""
    sessions = list(blocks.state_holder.session_data.items())
    return {session: list(state.state_data.values()) for session, state in sessions}


def empty(blocks: gr.Blocks, session: str, kept: Iterable[gr.State]) -> None:
    """Nothing is in these states of a session any more, from now on."""
    if session in blocks.state_holder:
        state = blocks.state_holder[session]
        for one in kept:
            state[one._id] = None


def forget_session(blocks: gr.Blocks, session: str) -> None:
    """All that Gradio keeps of a session: its states, and answers that it did not fetch."""
    queue, holder = queue_of(blocks), blocks.state_holder
    for store in (queue.pending_messages_per_session, queue.pending_event_ids_session, holder.session_data):
        store.pop(session, None)
    holder.time_last_used.pop(session, None)


def forget_description(app: App) -> None:
    """Gradio keeps the endpoints' description for all, with the address by which the first caller knew the server."""
    app.api_info = None


def event_for(function: Callable) -> BlockFunction:
    """The event of the app under construction that calls a function."""
    return next(event for event in get_blocks_context().fns.values() if event.fn is function)


def describe(component: gr.components.Component, **facts: object) -> None:
    """Add to what the API page and the client's `view_api` say of a component."""
    component._api_info = {**component._api_info, **facts}
