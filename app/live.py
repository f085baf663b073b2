"""A run: it steps the chains, reads the mailbox at every step, and hands a frame over some eighteen times a second."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator

from torch import Tensor

from app import best, gpu
from app.chains import Chains, Stepper, begin, condition_for
from app.film import Film
from app.frames import Recorder
from app.mailbox import Letter, Mailbox
from app.runtime import current
from app.settings import Settings, read

FRAMES_PER_SECOND = 18  # at most; a browser that cannot keep up asks for fewer
SLOWEST = 4  # frames a second even in slow motion, so that a visitor who left is noticed
NAP = 0.03  # seconds between two looks at the mailbox while a slow run waits
KEEP_EVERY = 1.0  # seconds: how often the chains themselves are handed over for safe keeping
ARRIVED = "The chains have arrived. Toggle an attribute, or press Continue."
log = logging.getLogger("gibbs_jem")

Step = tuple[dict, Chains | None]  # a frame, and the chains where they are to be kept


def stream(box: Mailbox, name: str, chains: Chains | None, photo: Tensor | None, action: str) -> Iterator[Step]:
    """Frames of one run until it is paused, done or spent. An error becomes a sentence: it never ends the server."""
    run = Run(box, name, chains, photo)
    try:
        yield from run.go(action)
    except ValueError as error:
        yield {"run": name, "status": "error", "message": str(error)}, None
    except Exception:
        log.exception("A run ended in an error")
        message = "The chains stopped: something went wrong on the server. Reset begins anew."
        yield {"run": name, "status": "error", "message": message}, None


def _seconds(box: Mailbox, name: str, chains: Chains | None, photo: Tensor | None, action: str) -> float:
    """How long a borrowed GPU is needed: a run may use its whole budget, a step is over at once."""
    return gpu.run_budget(current().limits.run_seconds) + gpu.SPARE if action in ("run", "best") else gpu.SPARE


stream = gpu.on_gpu(stream, duration=_seconds)


class Run:
    """The state of `stream`. Only the newest run of a visitor goes on; an older one ends at its next look."""

    def __init__(self, box: Mailbox, name: str, chains: Chains | None, photo: Tensor | None) -> None:
        runtime = current()
        self.catalog, self.limits = runtime.catalog, runtime.limits
        self.box, self.name, self.chains, self.photo = box, name, chains, photo
        self.letter: Letter | None = None
        self.settings: Settings | None = None
        self.stepper: Stepper | None = None
        self.recorder = Recorder()
        self.caption = ""
        self.since = 0  # the step at which this run began, or was asked for something else
        self.frame_due = self.keep_due = self.step_due = 0.0
        self.times: deque[float] = deque(maxlen=200)

    def go(self, action: str) -> Iterator[Step]:
        if not self.look():
            return
        if action == "best":
            yield from best.keep_the_best(self)
            return
        if action != "run":
            if action != "look":
                self.advance(action)
            yield self.frame("paused", still=True)
            return
        yield self.frame("running")  # where the chains are before they move
        yield from self._play()

    def _play(self) -> Iterator[Step]:
        began, first = time.monotonic(), self.chains.step
        while True:
            while True:
                if not self.look():
                    return
                now = time.monotonic()
                if not self.letter.playing:
                    yield self.frame("paused", still=True)
                    return
                if (
                    now - began > gpu.run_budget(self.limits.run_seconds)
                    or self.chains.step - first >= self.limits.run_steps
                ):
                    yield self.frame("resting", still=True)
                    return
                if self.arrived():
                    yield self.frame("resting", still=True, message=ARRIVED)
                    return
                if now >= self.step_due:
                    break
                if now >= self.frame_due + 1 / SLOWEST:
                    yield self.frame("running")
                time.sleep(min(NAP, max(0.0, self.step_due - now)))
            self.advance()
            if self.chains.step == self.settings.steps:
                yield self.frame("paused", still=True)
                return
            if time.monotonic() >= self.frame_due:
                yield self.frame("running")

    def arrived(self) -> bool:
        """Energies go on falling when the faces are long there, and colours burn: so chains rest under a met wish."""
        wish = self.settings
        own = self.catalog.bundle(wish.model).sampling["steps"]
        rest = own if wish.rest is None else wish.rest
        return not wish.steps and 0 < rest <= self.chains.step - self.since

    def look(self) -> bool:
        """Read the mailbox and do as it says; False when another run has taken over."""
        letter = self.box.read() or self.letter  # a box that is gone leaves the last wish
        if letter is None or letter.run != self.name:
            return False
        if letter == self.letter:
            return True
        settings = read(letter.settings, self.catalog.attributes())
        chains = self.chains
        if chains is None or not chains.continue_under(settings, letter.fresh):
            chains = begin(self.catalog, settings, letter.fresh, self.photo)
            chains.film = Film(most=self.limits.film_frames)
            self.recorder.forget()
        self.stepper = Stepper(self.catalog, chains, settings)
        if settings != self.settings:
            self.since = chains.step
        self.chains, self.settings, self.letter = chains, settings, letter
        self.caption = str(condition_for(settings, self.catalog.bundle(settings.model)))
        self.step_due = self.frame_due = 0.0  # show the change at once
        return True

    def advance(self, action: str = "run") -> None:
        self.stepper.advance(self.chains, action)
        self.recorder.note(self.chains)
        now = time.monotonic()
        self.times.append(now)
        speed = self.settings.speed
        # Steps keep to a beat, not to a pause after each; a run that falls behind does not catch up in a rush.
        self.step_due = max(self.step_due + 1 / speed, now) if speed else now

    def frame(self, status: str, still: bool = False, **more: object) -> Step:
        now = time.monotonic()
        self.frame_due = max(self.frame_due + 1 / min(FRAMES_PER_SECOND, self.letter.fps), now)
        frame = self.recorder.take(self.chains, self.caption, still)
        frame |= {"run": self.name, "order": self.letter.order, "fresh": self.chains.fresh, "status": status}
        frame |= {"with": list(self.settings.wanted), "without": list(self.settings.unwanted), "rate": self._rate(now)}
        frame |= {"steered": self.chains.steered, "text": self.caption, "at": time.time(), **more}
        keep = still or now >= self.keep_due
        if keep:
            self.keep_due = now + KEEP_EVERY
        return frame, self.chains if keep else None

    def _rate(self, now: float) -> float:
        """Steps a second over the last second or two."""
        recent = [moment for moment in self.times if now - moment < 1.5]
        return round((len(recent) - 1) / (recent[-1] - recent[0]), 1) if len(recent) > 2 else 0.0
