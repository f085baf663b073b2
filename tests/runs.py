"""Runs of the app without a browser, for its tests."""

from dataclasses import replace

from app.live import Order, stream
from app.mailbox import Letter, Mailbox
from app.settings import Settings
from jem_core.chains import Chains

PAPER = Settings(model="tiny", chains=4, speed=0, required=("Red",))
LEVELS = PAPER.but(model="tiny-levels")


def letter_of(settings: Settings, **changes) -> Letter:
    return replace(Letter(order=1, run="r", playing=True, fresh=1, settings=settings.values()), **changes)


def run(settings: Settings, chains=None, order=None, session="test", photo=None, **changes):
    """The frames of a run and the chains that it leaves."""
    box = Mailbox(session)
    box.drop()
    box.post(letter_of(settings, **changes))
    frames, kept = [], chains
    for frame, left in stream(box, "r", chains, photo, order or Order()):
        frames.append(frame)
        kept = left or kept
    return frames, kept


def pictures(chains, runtime, heading=True):
    lane = chains.lanes[0]
    return Chains(runtime.catalog.bundle(lane.model), lane.memory).images(heading)
