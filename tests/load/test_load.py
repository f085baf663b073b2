"""The load scripts in small, against one server: enough to see that they work and that they can fail."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from jem_core.bundle import Bundle
from tests.load import attacks, fuzz, hostile, visitors
from tests.load.client import aside

QUICK = {"GIBBS_JEM_RUN_SECONDS": "5", "GIBBS_JEM_RUN_STEPS": "150", "GIBBS_JEM_CALL_SECONDS": "5"}
QUICK |= {"GIBBS_JEM_BEST_OF": "2", "GIBBS_JEM_IDLE_SECONDS": "1"}


@pytest.fixture(scope="module")
def model(tiny_bundle: Bundle) -> str:
    return str(tiny_bundle.directory)


@pytest.fixture(scope="module")
def server(model: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[visitors.Server]:
    folder = tmp_path_factory.mktemp("load")
    server = visitors.start_server(folder / "log.txt", [Path(model)], TMPDIR=str(folder), **QUICK)
    yield server
    assert list(folder.glob("gibbs-jem-mail-*"))
    visitors.stop_server(server)
    assert not list(folder.glob("gibbs-jem-mail-*"))  # a server that is told to end leaves no letters
    assert server.process.returncode == 0


def test_visitors_keep_to_their_own_chains(server: visitors.Server, model: str) -> None:
    # So short a visit says nothing of memory: the whole script does.
    small = [
        "--visitors",
        "3",
        "--minutes",
        "0.05",
        "--model",
        model,
        "--idle",
        "1",
        "--growth",
        "50",
        "--steady",
        "50",
    ]
    args = visitors.options(small)
    figures, rows, good = aside(visitors.measure, server, args)
    assert good, rows
    assert figures.finished >= 6
    assert figures.steer
    assert figures.steps > 0


def test_chains_of_another_seed_are_noticed(server: visitors.Server) -> None:
    settings = visitors.requests(1, aside(asyncio.run, visitors.models_of(server)))
    crowd = visitors.crowd(server, settings, [["0" * 16] * len(visitors.PAUSES)], 0)
    figures, _ = aside(asyncio.run, crowd)
    assert len(figures.crossed) == len(visitors.PAUSES)


def test_an_event_that_is_not_fuzzed_is_noticed() -> None:
    good = hostile.good_requests("avatars", "Smiling", "")
    assert not fuzz.left_out(good, good)
    events = [*(name for name in good if name != "steer"), "brand_new"]
    assert {sentence.split()[0] for sentence in fuzz.left_out(events, good)} == {"steer", "brand_new"}


def test_no_hostile_request_breaks_the_server(server: visitors.Server, model: str) -> None:
    args = fuzz.options(["--uploads", "20", "--calls", "200", "--model", model])
    found = aside(asyncio.run, fuzz.fuzz(server, args))
    total = sum(found.counts.values(), Counter())
    assert total.total() == 220
    assert total["answered"] > 10
    assert total["refused"] > 50
    assert total["status 400"] > 5
    assert found.counts["get"]["status 404"] > 5
    assert found.counts["raw"]
    assert found.counts["event: steer"]
    assert not found.bad
    assert "Traceback" not in server.log()


def test_one_visitor_does_not_stop_the_others(server: visitors.Server, model: str, monkeypatch) -> None:
    monkeypatch.setitem(attacks.WITHIN, "guest p99", 2.0)  # a busy machine; the whole script holds it to 250 ms
    monkeypatch.setattr(attacks.floods, "CONNECTIONS", 8)
    monkeypatch.setattr(attacks.floods, "SECONDS", 4)
    small = ["--sessions", "90", "--endless", "60", "--megabytes", "4", "--best", "2", "--model", model]
    chosen = [word for name in ("brackets", "sessions", "greed", "hang-up", "files") for word in ("--only", name)]
    args = attacks.options([*small, *chosen])  # tests/app/test_connections.py has the deaf ones
    report = aside(asyncio.run, attacks.attack(server, args, seconds=5))
    assert not report.bad, report.rows
    assert len(report.rows) >= 8


def test_a_frame_that_is_lost_is_noticed() -> None:
    frames = [{"step": 0, "steps": [], "status": "running"}, {"step": 1, "steps": [1], "status": "running"}]
    frames += [{"step": 3, "steps": [2, 3], "status": "running"}, {"step": 4, "steps": [4], "status": "paused"}]
    assert attacks.nothing_lost(frames, 4)
    for lost in range(4):
        assert not attacks.nothing_lost(frames[:lost] + frames[lost + 1 :], 4)
    assert not attacks.nothing_lost([{"status": "error", "message": ""}], 4)
    assert not attacks.nothing_lost(frames, 5)


def test_a_broken_promise_is_noticed() -> None:
    report = attacks.Report()
    report.measure("memory", 10, 20, "MB")
    assert not report.bad
    report.measure("memory", 30, 20, "MB")
    assert report.bad == ["memory: 30.00 MB, more than 20"]


def test_tracebacks_are_found_in_a_log() -> None:
    log = 'INFO\nTraceback (most recent call last):\n  File "a.py", line 1, in f\n    f()\nKeyError: -1\nINFO\n'
    assert [part.splitlines()[-1] for part in fuzz.tracebacks(log)] == ["KeyError: -1"]
