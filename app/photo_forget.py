"""Nothing of a visitor's picture stays: what is under way with it ends, and what ends later is void.

A picture bears the number of the request that brought it. Whoever answers from one asks the ledger last; whatever has
passed that line when the visitor forgets is waited for, and what it wrote is thrown away with the rest.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import gradio as gr

from app import gradio_inside
from app.mailbox import Mailbox
from app.uploads import Picture
from app.visitors import visitors_of

ENDED = "Your picture was deleted. Choose it again."
FORGOTTEN_RUN = "forgotten"  # the name of a run that nobody started: whoever computes for this visitor ends
PATIENCE = 10.0  # seconds for all of it to end
OF_PICTURE = ("show", "change")  # queued events that hold the picture itself
OF_CHAINS = ("run", "film", "path", "under_the_hood")  # and those that hold what began at it
log = logging.getLogger("gibbs_jem")


@dataclass
class Ledger:
    """What became of a session's pictures. All of its events see the same one, while others change it."""

    forgotten: int = -1  # the number of the newest request to forget: older pictures are void
    lent: bool = False  # the first screen has a picture to begin at
    ending: int = 0  # requests to forget that wait now

    def check(self, picture: Picture | None) -> Picture:
        """The picture, as long as it may be used."""
        if picture is None or self.voids(picture.order):
            raise ValueError(ENDED)
        return picture

    def voids(self, order: int) -> bool:
        """Whether what was asked under this number is void."""
        return order < self.forgotten

    @contextmanager
    def forgets(self, order: int) -> Iterator[None]:
        self.forgotten = max(self.forgotten, order)
        self.ending += 1
        try:
            yield
        finally:
            self.ending -= 1


class Forgetting:
    """Empties what is kept for a session: `picture` of this screen, `began` of the first one where it began at it."""

    def __init__(self, picture: gr.State, began: tuple[gr.State, ...]) -> None:
        self.picture, self.began = picture, began

    def forget(self, ledger: Ledger, order: int, session: str) -> bool:
        """Returns when nothing holds the picture any more; whether chains may have begun at it."""
        blocks = gradio_inside.served_blocks()
        with ledger.forgets(order):
            if blocks is not None:
                self._empty(blocks, session, ledger)  # what begins from now on finds nothing
                if not _ended(blocks, session, ledger):
                    log.warning("A picture was still in use %g seconds after it was to be forgotten", PATIENCE)
                self._empty(blocks, session, ledger)
        lent, ledger.lent = ledger.lent, False
        return lent

    def _empty(self, blocks: gr.Blocks, session: str, ledger: Ledger) -> None:
        gradio_inside.empty(blocks, session, (self.picture, *(self.began if ledger.lent else ())))


def _ended(blocks: gr.Blocks, session: str, ledger: Ledger) -> bool:
    """Wait until nothing is under way with the picture, and end what can be ended; whether all of it did."""
    ends = time.monotonic() + PATIENCE
    while _under_way(blocks, session, ledger):
        if time.monotonic() > ends:
            return False
        time.sleep(0.02)
    return True


def _under_way(blocks: gr.Blocks, session: str, ledger: Ledger) -> bool:
    names = OF_PICTURE + (OF_CHAINS if ledger.lent else ())
    running = gradio_inside.running(gradio_inside.queue_of(blocks))
    events = [event for event in running if event.session_hash == session and event.fn.api_name in names]
    for event in events:
        gradio_inside.stop(event)
    if ledger.lent:
        _end_run(session)
    visit = visitors_of(blocks.app).visits.get(session)
    quick = visit.calls - ledger.ending if visit else 0  # others than this one: "to the studio" holds the picture too
    return bool(events) or quick > 0


def _end_run(session: str) -> None:
    """Said at every look: a run that is just beginning puts its own letter over this one."""
    box = Mailbox(session)
    letter = box.read()
    if letter is not None and letter.run != FORGOTTEN_RUN:
        box.post(replace(letter, run=FORGOTTEN_RUN, playing=False))
