"""The newest letter of a visitor, as a small file that the running sampler reads at every step.

A file, because it crosses the fork in which a ZeroGPU sampler runs; replaced in one move, so that no reader sees half
a letter. It holds only a path, so it can be handed to another process.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

_folder: Path | None = None
_owner = 0  # the process that made it
_making = threading.Lock()  # a visitor's first run and first letter come at the same moment and must share a folder
_writing = threading.Lock()  # letters are written by the server's process alone
MOST_KEPT = 1_000
_kept: dict[str, Letter] = {}  # letters that could not be written: the disk is full
log = logging.getLogger("gibbs_jem")


def folder() -> Path:
    """A private directory of this server, removed when it ends."""
    global _folder, _owner
    with _making:
        if _folder is None:
            try:
                _folder = Path(tempfile.mkdtemp(prefix="gibbs-jem-mail-"))
            except OSError:
                _folder = Path(os.devnull) / "mail"  # nothing can be written there: letters stay in memory
            _owner = os.getpid()
            atexit.register(remove_folder)
        return _folder


def remove_folder() -> None:
    """When the server ends. A forked sampler inherits this and must not empty the server's mailboxes when it exits."""
    if _folder is not None and os.getpid() == _owner:
        shutil.rmtree(_folder, ignore_errors=True)


def empty(sessions: Iterable[str], since: float) -> None:
    """Throw away the letters of these sessions, and those that are older than `since`: not every visitor says goodbye.

    A run whose box is gone goes on with its last letter.
    """
    for session in sessions:
        Mailbox(session).drop()
    with suppress(FileNotFoundError, NotADirectoryError):  # a box that was just emptied; letters that stay in memory
        for box in folder().iterdir():
            if box.stat().st_mtime < since:
                box.unlink()


@dataclass(frozen=True)
class Letter:
    """What a visitor wants now. `order` counts the visitor's letters: a late one never undoes a newer one."""

    order: int
    run: str  # the run that may compute; an older run of the same visitor ends when it sees another name here
    playing: bool
    fresh: int  # counts resets: another number begins new chains
    settings: dict = field(default_factory=dict)
    fps: int = 18  # frames per second that the browser can take


class Mailbox:
    """One visitor's box."""

    def __init__(self, session: str) -> None:
        # The session's name comes from the browser: only its hash ever names a file.
        self.path = folder() / hashlib.sha256(session.encode()).hexdigest()[:32]

    def post(self, letter: Letter) -> bool:
        """Put a letter in, unless a newer one is there already."""
        with _writing:
            present = self.read()
            if present is not None and present.order > letter.order:
                return False
            partial = self.path.with_suffix(".partial")
            try:
                partial.write_text(json.dumps(asdict(letter)))
                partial.replace(self.path)
                _kept.pop(self.path.name, None)
            except OSError as error:
                if not _kept:
                    log.warning("Letters stay in memory, because %s cannot be written: %s", self.path.parent, error)
                _kept[self.path.name] = letter
                if len(_kept) > MOST_KEPT:
                    del _kept[next(iter(_kept))]
        return True

    def read(self) -> Letter | None:
        """The newest letter; None when there is none (the visitor has left)."""
        if self.path.name in _kept:
            return _kept[self.path.name]
        with suppress(FileNotFoundError, NotADirectoryError):
            return Letter(**json.loads(self.path.read_text()))
        return None

    def drop(self) -> None:
        _kept.pop(self.path.name, None)
        with suppress(OSError):
            self.path.unlink()
