"""The app's own sampler through the real `spaces` wrapper: streams, is steered, pauses, goes on, stops. Prints JSON."""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.app import zero_gpu

calls = zero_gpu.start()

from app import gpu, live  # noqa: E402
from app.catalog import Catalog  # noqa: E402
from app.limits import Limits  # noqa: E402
from app.mailbox import Letter, Mailbox  # noqa: E402
from app.runtime import Runtime, install  # noqa: E402

WISHES = {"model": "tiny", "chains": 4, "seed": 3, "speed": 0}


def run(box: Mailbox, name: str, chains: object, photo: object, action: str) -> Iterator[tuple]:
    """What the app streams, and who made it."""
    for frame, kept in live.Run(box, name, chains, photo).go(action):
        yield os.getpid(), frame, kept


def letter(order: int, wanted: list[str], playing: bool = True, steps: int = 0) -> Letter:
    return Letter(order, "run", playing, 0, WISHES | {"with": wanted} | ({"steps": steps} if steps else {}))


def steer_and_pause(box: Mailbox) -> tuple[dict, object]:
    """Watch for half a second, steer, watch, pause."""
    frames, arrivals, workers, kept = [], [], set(), None
    steered = paused = None
    box.post(letter(1, []))
    for worker, frame, chains in stream(box, "run", None, None, "run"):
        arrivals.append(time.monotonic())
        frames.append({key: frame.get(key) for key in ("step", "order", "with", "status", "digest")})
        workers.add(worker)
        kept = chains or kept
        if steered is None and arrivals[-1] - arrivals[0] > 0.5:
            box.post(letter(2, ["Red"]))
            steered = time.monotonic()
        if paused is None and frame["order"] == 2 and time.monotonic() - steered > 0.5:
            box.post(letter(3, ["Red"], playing=False))
            paused = time.monotonic()
    seen = next(moment for moment, frame in zip(arrivals, frames, strict=True) if frame["order"] == 2)
    rate = (len(arrivals) - 1) / (arrivals[-1] - arrivals[0])
    took = {"steer": seen - steered, "pause": arrivals[-1] - paused, "fps": rate}
    return {"frames": frames, "workers": sorted(workers), "took": took}, kept


def go_on(box: Mailbox, chains: object) -> dict:
    box.post(letter(4, ["Red"]))
    _, frame, kept = next(results := stream(box, "run", chains, None, "look"))
    results.close()
    return {"step": frame["step"], "digest": frame["digest"], "kept": kept.step}


def leave(box: Mailbox, chains: object) -> dict:
    """Close the generator, as Gradio does when the tab is gone."""
    box.post(letter(5, ["Red"]))
    results = stream(box, "run", chains, None, "run")
    for _ in range(5):
        next(results)
    began, released = time.monotonic(), [path for path, _ in calls].count("/release")
    results.close()
    return {"close": time.monotonic() - began, "released": [path for path, _ in calls].count("/release") - released}


def same_as_here(steps: int = 6) -> dict:
    """The same seed and steps in the worker and in this process."""
    digests = []
    for runner, name in ((stream, "there"), (run, "here")):
        box = Mailbox(name)
        box.post(letter(1, ["Red"], steps=steps))
        digests.append([frame for _, frame, _ in runner(box, "run", None, None, "run")][-1]["digest"])
    return {"there": digests[0], "here": digests[1]}


if __name__ == "__main__":
    install(Runtime(Catalog([sys.argv[1]], bundled=Path(sys.argv[1]) / "none"), Limits()))
    stream = gpu.on_gpu(run, duration=lambda box, name, chains, photo, action: 25 if action == "run" else 1)
    box = Mailbox("visitor")
    report, chains = steer_and_pause(box)
    report |= {"server": os.getpid(), "next": go_on(box, chains), "left": leave(box, chains), "same": same_as_here()}
    print(json.dumps(report | {"calls": calls}))
