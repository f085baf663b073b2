"""The app's own sampler through the real `spaces` wrapper: streams, is steered, pauses, goes on, stops. Prints JSON."""

import json
import os
import sys
import time
from pathlib import Path

from tests.app import zero_gpu

calls = zero_gpu.start()

import gradio as gr  # noqa: E402
import torch  # noqa: E402

from app import api, live  # noqa: E402
from app.catalog import Catalog  # noqa: E402
from app.limits import Limits  # noqa: E402
from app.live import Order  # noqa: E402
from app.mailbox import Letter, Mailbox  # noqa: E402
from app.runtime import Runtime, install  # noqa: E402

CHOSEN = {"model": "tiny-levels", "chains": 4, "seed": 3, "speed": 0}


def letter(order: int, required: list[str], playing: bool = True, moving: int = 1) -> Letter:
    return Letter(order, "run", playing, 0, CHOSEN | {"with": required, "moving": moving})


def steer_and_pause(box: Mailbox) -> tuple[dict, object]:
    """Watch for half a second, steer, watch, pause."""
    frames, arrivals, kept = [], [], None
    steered = paused = None
    box.post(letter(1, []))
    for frame, chains in live.stream(box, "run", None, None, Order()):
        arrivals.append(time.monotonic())
        frames.append({key: frame.get(key) for key in ("step", "order", "with", "status", "digest")})
        kept = chains or kept
        if steered is None and arrivals[-1] - arrivals[0] > 0.5:
            box.post(letter(2, ["Red"]))
            steered = time.monotonic()
        if paused is None and frame.get("order") == 2 and time.monotonic() - steered > 0.5:
            box.post(letter(3, ["Red"], playing=False))
            paused = time.monotonic()
    seen = next(moment for moment, frame in zip(arrivals, frames, strict=True) if frame["order"] == 2)
    rate = (len(arrivals) - 1) / (arrivals[-1] - arrivals[0])
    took = {"steer": seen - steered, "pause": arrivals[-1] - paused, "fps": rate}
    return {"frames": frames, "took": took}, kept


def go_on(box: Mailbox, chains: object) -> dict:
    box.post(letter(4, ["Red"]))
    frame, kept = next(results := live.stream(box, "run", chains, None, Order("show")))
    results.close()
    return {"step": frame["step"], "digest": frame["digest"], "kept": kept.step}


def leave(box: Mailbox, chains: object) -> dict:
    """Close the generator, as Gradio does when the tab is gone."""
    box.post(letter(5, ["Red"]))
    results = live.stream(box, "run", chains, None, Order())
    for _ in range(5):
        next(results)
    began, released = time.monotonic(), [path for path, _ in calls].count("/release")
    results.close()
    return {"close": time.monotonic() - began, "released": [path for path, _ in calls].count("/release") - released}


def same_as_here() -> dict:
    """The same seed and steps in the worker and in this process."""
    box = Mailbox("another visitor")
    box.post(letter(1, ["Red"], moving=0))
    there = [frame for frame, _ in live.stream(box, "run", None, None, Order())][-1]
    torch.set_num_threads(1)  # as a worker computes
    here = [frame for frame, _ in live.Run(box, "run", None, None).go(Order())][-1]
    return {"there": there["digest"], "here": here["digest"], "steps": [there["step"], here["step"]]}


def a_call() -> dict:
    """The endpoint /synthesize, whose sampling is a plain function, not a stream."""
    answer = api.synthesize(["Red"], n=2, steps=3, model="tiny-levels")
    try:
        api.synthesize(["Red"], n=2, steps=3, model="tiny-levels", start="photo")
    except gr.Error as error:
        refusal = error.message
    return {"images": len(answer["images"]), "names": list(answer["probabilities"][0]), "refusal": refusal}


if __name__ == "__main__":
    install(Runtime(Catalog([sys.argv[1]], bundled=Path(sys.argv[1]) / "none"), Limits()))
    box = Mailbox("visitor")
    report, chains = steer_and_pause(box)
    report |= {"next": go_on(box, chains), "left": leave(box, chains), "same": same_as_here(), "call": a_call()}
    print(json.dumps(report | {"server": os.getpid(), "calls": calls}))
