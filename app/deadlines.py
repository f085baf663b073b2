"""Work that computes asks at every step whether it may go on: its time may be over, or nobody may be waiting any more.

deadline = Deadline(limits.call_seconds)
sample(..., progress=lambda done, total: deadline.check())
"""

from __future__ import annotations

import time

from app.gradio_inside import still_wanted


class TimeUp(ValueError):
    """A piece of work took longer than it may."""


class Gone(ValueError):
    """Nobody waits for the answer any more."""


class Deadline:
    """How long one piece of work may take."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return self._ends - time.monotonic()

    @property
    def over(self) -> bool:
        """Whether to stop: the time is up, or the caller has gone."""
        return self.left <= 0 or not still_wanted()

    def check(self) -> None:
        """Raise a sentence where the work must stop."""
        if not still_wanted():
            raise Gone("The caller has gone.")
        if self.left <= 0:
            raise TimeUp(
                f"This takes longer than {self.seconds:g} seconds, the most that one request may use here. "
                "Ask for fewer images or fewer steps, or keep the best of fewer."
            )
