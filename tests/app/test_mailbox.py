"""The mailbox: newest letter wins, no path from a visitor, readable across a fork."""

import os
import pickle
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from app import mailbox
from app.mailbox import Letter, Mailbox, folder

LETTER = Letter(order=1, run="a", playing=True, fresh=1, settings={"chains": 4})


def test_a_letter_comes_out_as_it_went_in():
    box = Mailbox("one")
    assert box.post(LETTER)
    assert box.read() == LETTER
    box.drop()
    assert box.read() is None
    box.drop()  # twice is no error


def test_a_late_letter_never_undoes_a_newer_one():
    box = Mailbox("late")
    box.post(replace(LETTER, order=5))
    assert not box.post(replace(LETTER, order=4, run="b"))
    assert box.read().run == "a"
    assert box.post(replace(LETTER, order=6, run="c"))
    assert box.read().run == "c"


def test_a_visitors_name_is_never_a_path():
    for name in ("../../etc/passwd", "/etc/passwd", "a/b", "", "x" * 10_000, "\0"):
        path = Mailbox(name).path
        assert path.parent == folder()
        assert len(path.name) == 32
    assert Mailbox("one").path != Mailbox("two").path


def test_a_box_can_be_handed_to_another_process():
    box = Mailbox("pickled")
    box.post(LETTER)
    assert pickle.loads(pickle.dumps(box)).read() == LETTER


def test_a_forked_process_reads_and_leaves_the_boxes_behind(tmp_path: Path):
    box = Mailbox("forked")
    box.post(LETTER)
    answer = tmp_path / "answer"
    child = os.fork()
    if child == 0:
        answer.write_text(str(box.read().order))
        os._exit(0)
    os.waitpid(child, 0)
    assert answer.read_text() == "1"
    assert box.read() == LETTER


def test_first_letters_of_one_moment_share_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A visitor's run and wish arrive together at a new server; in two folders the run would never be steered."""

    def slow(prefix: str) -> str:
        place = tmp_path / f"{prefix}{time.monotonic_ns()}"
        time.sleep(0.05)
        place.mkdir()
        return str(place)

    monkeypatch.setattr(mailbox, "_folder", None)
    monkeypatch.setattr(tempfile, "mkdtemp", slow)
    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(lambda _: folder(), range(4)))) == 1
