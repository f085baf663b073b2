"""A run: it steps the chains, reads the mailbox at every step, and hands a frame over some eighteen times a second."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from app import best, gpu
from app.attributes import sentence
from app.chains import Chains, Stepper, begin, begin_again, begin_like, condition_for, keep_locked
from app.film import Film, columns
from app.frames import Recorder
from app.mailbox import Letter, Mailbox
from app.runtime import current
from app.settings import Settings, read

FRAMES_PER_SECOND = 18  # at most; a browser that cannot keep up asks for fewer
SLOWEST = 4  # frames per second even in slow motion, so that a visitor who left is noticed
NAP = 0.03  # seconds between two looks at the mailbox while a slow run waits
KEEP_EVERY = 1.0  # seconds: how often the chains themselves are handed over for safe keeping
# show: the chains as they are, without a step. like, back: see `Order`.
ACTIONS = ("run", "show", "step", "labels", "langevin", "best", "like", "back")
log = logging.getLogger("gibbs_jem")

Step = tuple[dict, Chains | None]  # a frame, and the chains where they are to be kept


@dataclass(frozen=True)
class Order:
    """What a visitor wants to have computed."""

    action: str = "run"
    place: int = 0  # like: the picture that the others are to be like
    state: int = 0  # back: the number of the state to go back to


def stream(box: Mailbox, name: str, chains: Chains | None, photo: Tensor | None, order: Order) -> Iterator[Step]:
    """Frames of one run until it is paused, done or spent. An error becomes a sentence: it never ends the server."""
    run = Run(box, name, chains, photo)
    try:
        yield from run.go(order)
    except ValueError as error:
        yield {"run": name, "status": "error", "message": str(error)}, None
    except Exception:
        log.exception("A run ended in an error")
        message = "Something went wrong on the server, and the pictures stopped. Press Start over to begin again."
        yield {"run": name, "status": "error", "message": message}, None


def _seconds(box: Mailbox, name: str, chains: Chains | None, photo: Tensor | None, order: Order) -> float:
    """How long a borrowed GPU is needed: a run may use its whole budget, a step is over at once."""
    long = order.action in ("run", "best", "like")
    return gpu.run_budget(current().limits.run_seconds) + gpu.SPARE if long else gpu.SPARE


stream = gpu.on_gpu(stream, duration=_seconds)


class Run:
    """The state of `stream`. Only the newest run of a visitor goes on; an older one ends at its next look."""

    def __init__(self, box: Mailbox, name: str, chains: Chains | None, photo: Tensor | None) -> None:
        runtime = current()
        self.catalog, self.limits = runtime.catalog, runtime.limits
        self.box, self.name, self.chains, self.photo = box, name, chains, photo
        self.order = Order()
        self.letter: Letter | None = None
        self.settings: Settings | None = None
        self.stepper: Stepper | None = None
        self.recorder = Recorder()
        self.frame_due = self.keep_due = self.step_due = 0.0
        self.times: deque[float] = deque(maxlen=200)

    def go(self, order: Order) -> Iterator[Step]:
        self.order = order
        if not self.read_mail():
            return
        if order.action == "best":
            yield from best.keep_the_best(self)
        elif order.action in ("run", "like"):
            yield self.frame("running")  # where the chains are before they move
            yield from self._play()
        else:
            if order.action in ("step", "labels", "langevin"):
                self.advance(order.action)
            yield self.stand()

    def _play(self) -> Iterator[Step]:
        began, first = time.monotonic(), self.chains.step
        while True:
            while True:
                if not self.read_mail():
                    return
                now = time.monotonic()
                spent = now - began > gpu.run_budget(self.limits.run_seconds)
                if not self.letter.playing:
                    yield self.stand()
                    return
                if spent or self.chains.step - first >= self.limits.run_steps:
                    yield self.frame("resting", still=True)
                    return
                scripted = bool(self.chains.script)
                if not self.stepper.follow() and (scripted or self.stepper.finished) and not self._goes_on():
                    yield self.stand()
                    return
                if now >= self.step_due:
                    break
                if now >= self.frame_due + 1 / SLOWEST:
                    yield self.frame("running")
                time.sleep(min(NAP, max(0.0, self.step_due - now)))
            self.advance()
            if self.chains.step == self.settings.pause:
                yield self.stand()
                return
            if time.monotonic() >= self.frame_due:
                yield self.frame("running")

    def _goes_on(self) -> bool:
        """After the last change of a link: chains that wander do, all others stand where the link's writer stood."""
        return bool(self.settings.moving) and not self.stepper.finished

    def stand(self, **more: object) -> Step:
        """The last frame of a run: the chains have arrived, or stop on their way."""
        if not self.stepper.finished or self.chains.script:
            return self.frame("paused", still=True, **more)
        self.chains.keep()
        return self.frame("settled", still=True, **more)

    def read_mail(self) -> bool:
        """Read the mailbox and do as it says; False when another run has taken over."""
        letter = self.box.read() or self.letter  # a box that is gone leaves the last letter
        if letter is None or letter.run != self.name:
            return False
        if letter == self.letter:
            return True
        settings = read(letter.settings, self.catalog.attributes())
        if self.chains is None or not self.chains.continue_under(settings, letter.fresh):
            self._begin(settings, letter.fresh)
        script = self.chains.script
        if script and script[-1].condition != condition_for(settings, self.catalog.bundle(settings.model)):
            script.clear()  # a visitor who changes something does not wait for the link's changes
        self.stepper = Stepper(self.catalog, self.chains, settings)
        self.settings, self.letter = settings, letter
        self.step_due = self.frame_due = 0.0  # show the change at once
        return True

    def _begin(self, settings: Settings, fresh: int) -> None:
        """Other chains: fresh ones, or such as a first look at the mailbox asks for."""
        before, order = self.chains, self.order if self.letter is None else Order()
        if order.action == "like" and before is not None:
            chains = begin_like(self.catalog, settings, fresh, before, order.place)
        elif order.action == "back" and before is not None:
            chains = begin_again(before.past.find(order.state), settings, fresh)
        else:
            chains = begin(self.catalog, settings, fresh, self.photo)
            keep_locked(self.catalog, chains, before, settings.locked)
        chains.film = Film(self.limits.film_frames, columns(settings.chains))
        if before is not None:
            chains.past = before.past
        self.chains = chains
        self.recorder.forget()

    def advance(self, action: str = "run") -> None:
        self.stepper.advance(action)
        self.recorder.note(self.chains, self.stepper.level)
        now = time.monotonic()
        self.times.append(now)
        speed = 0 if self.chains.script else self.settings.speed
        # Steps keep to a beat, not to a pause after each; a run that falls behind does not catch up in a rush.
        self.step_due = max(self.step_due + 1 / speed, now) if speed else now

    def frame(self, status: str, still: bool = False, **more: object) -> Step:
        now = time.monotonic()
        self.frame_due = max(self.frame_due + 1 / min(FRAMES_PER_SECOND, self.letter.fps), now)
        chains, memory = self.chains, self.chains.lanes[0].memory
        asked = chains.walk.legs[-1].condition
        frame = self.recorder.take(chains, self.stepper.images(), sentence(asked), still)
        frame |= {"run": self.name, "order": self.letter.order, "fresh": chains.fresh, "status": status}
        frame |= {"with": list(asked.required), "without": list(asked.excluded), "text": sentence(asked)}
        frame |= {"epoch": chains.epoch, "rate": self._rate(now), "at": time.time()}
        frame |= {"done": [memory.place, len(memory.plan)], "left": len(chains.script), **more}
        if still:
            bundle = self.catalog.bundle(self.settings.model)
            frame |= {"walk": chains.walk.text(bundle), "why": chains.walk.why, "best_of": chains.walk.best_of}
            kept = chains.kept[0] if chains.kept and chains.kept[1] == chains.step else None
            frame |= {"state": kept, "states": chains.past.numbers}
        keep = still or (now >= self.keep_due and status == "running")
        if keep:
            self.keep_due = now + KEEP_EVERY
        return frame, chains if keep else None

    def condition(self) -> object:
        return condition_for(self.settings, self.catalog.bundle(self.settings.model))

    def _rate(self, now: float) -> float:
        """Steps per second over the last second or two."""
        recent = [moment for moment in self.times if now - moment < 1.5]
        return round((len(recent) - 1) / (recent[-1] - recent[0]), 1) if len(recent) > 2 else 0.0
