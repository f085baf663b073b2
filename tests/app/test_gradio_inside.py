"""Gradio beyond its documentation: whoever updates it reads here what is gone, not in a strange failure of a screen."""

import inspect
import re
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest
from gradio.context import LocalContext
from gradio.queueing import Event, EventQueue, ProcessTime, Queue
from gradio.state_holder import StateHolder

from app import gradio_inside

APP = Path(gradio_inside.__file__).parent
INSIDE = (
    r"\._queue\b|\._data\b|\._api_info\b|gradio\.(context|queueing|utils|state_holder)\b|event_ids_|event_queue_per"
    r"|pending_messages|process_time_per|state_holder|active_jobs|clean_events|current_concurrency"
)
QUEUE = (
    *("active_jobs", "event_ids_to_events", "pending_event_ids_session", "pending_messages_per_session"),
    *("event_queue_per_concurrency_id", "process_time_per_fn", "sleep_when_free"),
    *("get_events", "clean_events", "ANALYTICS_MAX_EVENTS", "ANAYLTICS_CACHE_FREQUENCY"),
)


@pytest.fixture(scope="module")
def blocks() -> gr.Blocks:
    def double(value: int) -> int:
        return 2 * value

    with gr.Blocks() as demo:
        gr.api(double, api_name="double")
        event = gradio_inside.event_for(double)
        gradio_inside.describe(event.inputs[0], additional_description="A number to double.")
    return demo


@pytest.mark.parametrize("name", QUEUE)
def test_the_queue_has(name: str, blocks: gr.Blocks) -> None:
    assert hasattr(gradio_inside.queue_of(blocks), name), f"Gradio's queue has no {name} any more: see gradio_inside.py"


@pytest.mark.parametrize("name", ["session_hash", "concurrency_id", "alive"])
def test_an_event_has(name: str) -> None:
    assert f"self.{name}" in inspect.getsource(Event.__init__), f"Gradio's Event has no {name} any more"


@pytest.mark.parametrize("name", ["queue", "concurrency_limit", "current_concurrency"])
def test_a_line_of_the_queue_has(name: str) -> None:
    assert hasattr(EventQueue("sampler", 1), name), f"Gradio's EventQueue has no {name} any more"


def test_only_a_free_place_that_somebody_wants_is_offered() -> None:
    line, others = EventQueue("sampler", 2), EventQueue("predict", 1)
    queue = SimpleNamespace(event_queue_per_concurrency_id={"sampler": line, "predict": others})
    assert list(gradio_inside.free_places(queue)) == []
    line.queue, line.current_concurrency = ["first", "second"], 1
    assert list(gradio_inside.free_places(queue)) == [("sampler", ["first", "second"], 2)]
    assert gradio_inside.waiting(queue, "sampler") == (2, 2)
    assert gradio_inside.waiting(queue, "nobody's") == (0, 1)
    line.current_concurrency = 2
    assert list(gradio_inside.free_places(queue)) == []


def test_the_mean_time_is_that_of_events_that_ended() -> None:
    queue = SimpleNamespace(process_time_per_fn={"a": ProcessTime(), "b": ProcessTime(), "c": ProcessTime()})
    assert gradio_inside.mean_seconds(queue) is None
    queue.process_time_per_fn["a"].add(1.0)
    queue.process_time_per_fn["b"].add(3.0)
    assert gradio_inside.mean_seconds(queue) == 2.0


@pytest.mark.parametrize("name", ["session_data", "time_last_used"])
def test_the_state_holder_has(name: str) -> None:
    assert hasattr(StateHolder(), name)


def test_the_queue_asks_the_method_that_is_replaced() -> None:
    """Choosing what runs next would otherwise be in vain."""
    assert "self.get_events()" in inspect.getsource(Queue.start_processing)


def test_what_the_browser_sends_is_read() -> None:
    assert gradio_inside.sent(gr.EventData(None, {"a": 1})) == {"a": 1}
    assert gradio_inside.sent(gr.EventData(None, [1])) == {}


def test_a_description_reaches_the_documentation(blocks: gr.Blocks) -> None:
    found = blocks.get_api_info()["named_endpoints"]["/double"]["parameters"][0]
    assert "A number to double." in str(found)


def test_outside_an_event_work_is_wanted_and_serves_no_app() -> None:
    assert gradio_inside.still_wanted()
    assert gradio_inside.served_blocks() is None
    assert {"blocks", "event_id"} <= set(vars(LocalContext))


def test_of_two_that_hang_up_the_second_has_nothing_to_delete() -> None:
    boxes = gradio_inside.Boxes(2)
    boxes["a"] = 1
    del boxes["a"]
    del boxes["a"]


def test_nothing_else_reaches_inside() -> None:
    lines = {
        f"{path.name}: {line}"
        for path in APP.glob("*.py")
        if path.name != "gradio_inside.py"
        for line in path.read_text().splitlines()
        if re.search(INSIDE, line) and "import Event, Queue" not in line  # types, for annotations alone
    }
    assert not lines
