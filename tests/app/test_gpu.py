"""The sampler across ZeroGPU's forked worker, and everywhere else as if nothing had been done to it."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import gradio as gr
import pytest
import torch

from app import gpu
from jem_core.bundle import Bundle

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def report(tiny_levels: Bundle) -> dict:
    """One session through the real wrapper, in a process that looks like a ZeroGPU Space."""
    pytest.importorskip("spaces", reason="the package of ZeroGPU is not installed")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.app.zero_gpu_run", str(tiny_levels.directory)],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "2"},  # more than one thread, to notice a worker that waits for them
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=240)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its workers too, should one hang
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


def test_frames_stream_from_a_forked_worker(report: dict) -> None:
    steps = [frame["step"] for frame in report["frames"]]
    assert len(steps) > 5
    assert steps == sorted(steps)
    workers = {int(query["pid"]) for path, query in report["calls"] if path == "/allow"}
    assert workers
    assert report["server"] not in workers
    assert report["took"]["fps"] < 25, "frames must be throttled"


def test_steering_reaches_the_running_chains(report: dict) -> None:
    frames = report["frames"]
    first = next(i for i, frame in enumerate(frames) if frame["order"] == 2)
    assert frames[first]["with"] == ["Red"]
    assert frames[first]["step"] >= frames[first - 1]["step"] > 0, "the same chains go on"
    assert report["took"]["steer"] < 3.0


def test_pause_ends_the_run_and_keeps_the_chains(report: dict) -> None:
    last = report["frames"][-1]
    assert last["status"] == "paused"
    assert report["took"]["pause"] < 3.0
    assert report["next"] == {"step": last["step"], "digest": last["digest"], "kept": last["step"]}


def test_a_closed_tab_stops_the_worker(report: dict) -> None:
    assert report["left"]["close"] < 3.0
    assert report["left"]["released"] == 1


def test_the_worker_changes_no_bit(report: dict) -> None:
    assert report["same"]["steps"] == [6, 6]
    assert report["same"]["there"] == report["same"]["here"]


def test_a_plain_function_answers_from_the_worker(report: dict, tiny_levels: Bundle) -> None:
    assert report["call"]["images"] == 2
    assert report["call"]["names"] == list(tiny_levels.names)
    assert report["call"]["refusal"].startswith("start is 'photo'; choose one of")


def test_the_time_asked_for_comes_from_the_request(report: dict) -> None:
    run, look, *_, call = [float(query["durationSeconds"]) for path, query in report["calls"] if path == "/schedule"]
    assert run == pytest.approx(gpu.LONGEST, rel=0.2), "a run may use its whole budget"
    assert look == pytest.approx(gpu.SPARE, rel=0.2), "a look is over at once"
    assert call == pytest.approx(gpu.time_for(2 * 3), rel=0.2)


def test_elsewhere_the_function_itself_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPACES_ZERO_GPU", raising=False)
    monkeypatch.setitem(sys.modules, "spaces", None)  # as if it were not installed
    assert gpu.on_gpu(test_elsewhere_the_function_itself_comes_back, lambda: 1) is (
        test_elsewhere_the_function_itself_comes_back
    )
    assert gpu.run_budget(500) == 500
    assert gpu.device() in ("cpu", "cuda")


def test_on_zero_gpu_a_run_rests_before_its_worker_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    assert gpu.run_budget(500) < gpu.LONGEST
    assert gpu.run_budget(5) == 5
    assert gpu.device() == "cpu", "the server itself has no GPU"


def test_what_crosses_arrives_whole() -> None:
    generator = torch.Generator().manual_seed(5)
    torch.rand(3, generator=generator)
    value = {"x": torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last), "flags": torch.tensor([True, False])}
    copy, twin = gpu._unpack(gpu._pack((value, generator)))
    assert torch.equal(copy["x"], value["x"])
    assert copy["flags"].dtype == torch.bool
    assert torch.equal(torch.rand(4, generator=twin), torch.rand(4, generator=generator))


def test_the_server_keeps_generators_of_a_gpu_it_does_not_have() -> None:
    state = torch.Generator().get_state().numpy()
    kept = gpu._unpack(gpu._pack(gpu.KeptGenerator("cuda", state)))
    if gpu.device() == "cpu":
        assert isinstance(kept, gpu.KeptGenerator)
        assert kept.kind == "cuda"
        assert (kept.state == state).all()


def test_a_request_does_not_cross() -> None:
    with pytest.raises(TypeError, match=r"A gr\.Request belongs to the server's process"):
        gpu._pack({"request": gr.Request()})
