"""The costliest requests that one visitor can make end in time, and leave room for others; over real HTTP."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
import torch

from app import explain, shell, studio, uploads
from app.best import TOO_LONG
from app.chains import begin
from app.deadlines import Deadline, Gone, TimeUp
from app.drawing import AT_ONCE, draw, walk_through
from app.film import jpeg
from app.gradio_inside import still_wanted
from app.runtime import Runtime, install
from app.settings import read
from jem_core.bundle import Bundle
from jem_core.chains import sample
from jem_core.condition import Condition
from jem_core.editing import edit
from jem_core.walks import parse_walk, run_walk
from tests.app.small_app import until

SECONDS = 4
LARGEST = [["Red"], [], 64, "tiny", 0, 10, None, 1000, None, None, None]  # 640 chains of 1,000 steps
LETTER = {"order": 1, "run": "abc", "playing": True, "fresh": 1, "step": 0, "fps": 18}


@pytest.fixture(scope="module")
def site(tiny_bundle: Bundle) -> Iterator[SimpleNamespace]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIBBS_JEM_CALL_SECONDS", str(SECONDS))
        demo = shell.build(shell.options(["--model", str(tiny_bundle.directory)]))
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, server_name="127.0.0.1", **shell.launch_options())
    events = {fn.api_name: index for index, fn in demo.fns.items()}
    yield SimpleNamespace(demo=demo, url=url.rstrip("/"), events=events)
    demo.close()


def visitor(site: SimpleNamespace, address: str = "127.0.0.1") -> httpx.Client:
    transport = httpx.HTTPTransport(local_address=address)
    return httpx.Client(base_url=f"{site.url}/gradio_api", timeout=60, transport=transport)


def join(site: SimpleNamespace, http: httpx.Client, session: str, name: str, data: list, event: object = None) -> None:
    body = {"data": data, "event_data": event, "fn_index": site.events[name], "session_hash": session}
    assert http.post("/queue/join", json=body).status_code == 200


def best(site: SimpleNamespace, http: httpx.Client, session: str) -> None:
    settings = {"model": "tiny", "chains": 64, "steps": 1000, "speed": 0}
    join(site, http, session, "run", [None, None], LETTER | {"action": "best", "settings": settings})


def messages(http: httpx.Client, session: str) -> Iterator[dict]:
    with http.stream("GET", f"/queue/data?session_hash={session}") as lines:
        for line in lines.iter_lines():
            if line.startswith("data:"):
                yield json.loads(line[5:])


def running(site: SimpleNamespace) -> list[str]:
    return [event.session_hash for job in site.demo._queue.active_jobs for event in job or ()]


def test_the_largest_synthesis_ends_in_time(site: SimpleNamespace) -> None:
    with visitor(site) as http:
        began = time.monotonic()
        join(site, http, "greedy", "synthesize", LARGEST)
        last = next(one for one in messages(http, "greedy") if one["msg"] == "process_completed")
    assert not last["success"]
    assert f"longer than {SECONDS} seconds" in last["output"]["error"]
    assert time.monotonic() - began < SECONDS + 10


def test_the_largest_keep_the_best_ends_in_time(site: SimpleNamespace) -> None:
    with visitor(site) as http:
        began, said = time.monotonic(), []
        best(site, http, "keeper")
        for one in messages(http, "keeper"):
            said.append(json.dumps(one))
            if one["msg"] == "process_completed":
                break
    assert time.monotonic() - began < SECONDS + 10
    assert any(TOO_LONG in text for text in said)


@pytest.mark.parametrize("kind", ["synthesize", "best"])
def test_a_hang_up_frees_the_place_within_two_seconds(site: SimpleNamespace, kind: str) -> None:
    with visitor(site) as http:
        if kind == "best":
            best(site, http, "leaver")
        else:
            join(site, http, "leaver", "synthesize", LARGEST)
        assert until(lambda: "leaver" in running(site))
        stream = messages(http, "leaver")
        next(stream)
        stream.close()
    began = time.monotonic()
    assert until(lambda: "leaver" not in running(site), 10)
    assert time.monotonic() - began < 2


def test_meanwhile_another_visitor_sees_a_frame_within_five_seconds(site: SimpleNamespace) -> None:
    with visitor(site) as greedy, visitor(site, "127.0.0.2") as http:
        for number in range(4):
            join(site, greedy, f"greedy{number}", "synthesize", LARGEST)
            join(site, greedy, f"greedy{number}", "synthesize", LARGEST)
        assert until(lambda: len(running(site)) == 3)
        began = time.monotonic()
        settings = {"model": "tiny", "chains": 4, "pause": 3}
        join(site, http, "guest", "run", [None, None], LETTER | {"action": "run", "settings": settings})
        first = next(one for one in messages(http, "guest") if one["msg"] == "process_generating")
        assert time.monotonic() - began < 5
        assert first["success"]


def test_drawing_in_parts_gives_the_same_samples(tiny_bundle: Bundle, tiny_levels: Bundle) -> None:
    for bundle in (tiny_bundle, tiny_levels):
        condition = Condition.from_lists(bundle.names, ["Red"])
        found = draw(bundle, condition, 12, 3, 2, Deadline(600), steps=4)
        expected = sample(bundle, condition, 12, 3, 2, steps=4)
        assert AT_ONCE["cpu"] < 24  # so that there are parts
        torch.testing.assert_close(found.images, expected.images, atol=1e-4, rtol=1e-3)
        assert torch.equal(found.labels, expected.labels)


def test_a_walk_in_parts_is_the_same_walk(tiny_bundle: Bundle, tiny_levels: Bundle) -> None:
    for bundle in (tiny_bundle, tiny_levels):
        conditions = parse_walk("Red; +Bright; -Red", bundle)
        found = walk_through(bundle, conditions, 20, 3, Deadline(600), steps=4)
        expected = run_walk(bundle, conditions, 20, 3, steps=4)
        torch.testing.assert_close(found.images, expected.images, atol=1e-4, rtol=1e-3)
        assert torch.equal(found.diverged, expected.diverged)
        assert found.conditions == expected.conditions


def test_an_edit_can_be_ended_at_every_step(tiny_bundle: Bundle, tiny_levels: Bundle) -> None:
    for bundle in (tiny_bundle, tiny_levels):
        changes = Condition.from_lists(bundle.names, ["Red"]).tensor(1)
        with pytest.raises(TimeUp):
            edit(bundle, torch.full((1, 3, 32, 32), 0.5), changes, progress=Deadline(-1).check)


def test_the_six_pictures_can_be_ended_at_every_step(tiny_bundle: Bundle, tiny_levels: Bundle) -> None:
    for bundle in (tiny_bundle, tiny_levels):
        steps: list[int] = []
        explain.pictures(bundle, progress=lambda steps=steps: steps.append(1))
        assert len(steps) > 20
        with pytest.raises(TimeUp):
            explain.pictures(bundle, progress=Deadline(-1).check)


def test_a_search_for_faces_can_be_ended(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = uploads.from_example("astronaut")
    monkeypatch.setattr("app.deadlines.still_wanted", lambda: False)
    with pytest.raises(Gone):
        picture.find_faces()
    monkeypatch.undo()
    assert len(picture.find_faces()) == 1


def test_an_animation_and_a_step_taken_apart_end_with_their_time(runtime: Runtime) -> None:
    install(replace(runtime, limits=replace(runtime.limits, call_seconds=-1)))
    settings = read({"model": "tiny", "chains": 1, "speed": 0, "steps": 4}, runtime.catalog.attributes())
    chains = begin(runtime.catalog, settings)
    for step in range(2):
        chains.film.add(step, "", [jpeg(np.zeros((32, 32, 3), np.uint8))])
    asked = {"settings": settings.values(), "all": True, "format": "gif"}
    event = SimpleNamespace(_data=asked)
    for answer in (studio.film(chains, event), studio.under_the_hood(chains, event)):
        assert answer["kind"] == "refused"
        assert "longer than -1 seconds" in answer["message"]


def test_a_deadline_says_what_to_do() -> None:
    deadline = Deadline(600)
    deadline.check()
    assert not deadline.over
    assert 599 < deadline.left <= 600
    late = Deadline(-1)
    assert late.over
    with pytest.raises(TimeUp, match="Ask for fewer images"):
        late.check()


def test_outside_an_event_somebody_always_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    assert still_wanted()
    monkeypatch.setattr("app.deadlines.still_wanted", lambda: False)
    with pytest.raises(Gone):
        Deadline(600).check()
