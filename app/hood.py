"""Under the hood: one step of one chain, taken apart in words and pictures."""

from __future__ import annotations

import base64

import torch

from app.attributes import caption
from app.chains import Chains, CoreChains
from app.deadlines import Deadline
from app.film import png, tile
from app.history import copied
from app.runtime import current
from app.settings import Settings
from jem_core.chains import pick
from jem_core.plots import percent

MOST_NAMED = 4  # attributes in a sentence


def take_apart(chains: Chains, settings: Settings, place: int, deadline: Deadline) -> list[dict]:
    """The two halves of a step that this chain could take now; the chain itself does not move.

    A chain that has arrived is shown half-way down a new descent: at the end there is nothing left to do.
    """
    bundle = current().catalog.bundle(chains.lanes[0].model)
    memory = copied(chains.lanes)[0].memory
    place = place if 0 <= place < len(memory.state.x) else 0
    memory = pick(memory, memory, torch.tensor([place]))
    memory.cycle, memory.frozen = (), None
    one = CoreChains(bundle, memory, **settings.sampling(bundle, chains.lanes[0].sampler))
    if one.finished:
        one.steer(memory.state.condition)
        for _ in range(len(memory.plan) // 2):
            deadline.check()
            one.advance()
    return _halves(one, bundle.levels)


def _halves(one: CoreChains, levels: bool) -> list[dict]:
    bundle, before = one.bundle, one.images(heading=False)
    labels, sampler = one.half_step("labels"), one.settings["sampler"]
    step, level = one.next_step, one.state.level
    sigma = max(step.sigma, level)
    moved = one.half_step("langevin")
    heading = bundle.model.decode(moved.denoised)
    after = one.images(heading=False)
    flipped = [caption(bundle.names[k]).lower() for k in labels.flipped[0].nonzero()[:, 0].tolist()]
    first = {
        "title": "1. Look at the picture and draw the labels",
        "text": _drawn(flipped, sampler),
        "images": [_picture(before, "the chain now" if not levels else f"the chain now, noise level {sigma:.2g}")],
        "bars": _bars(labels.probabilities[0].tolist(), bundle.names),
    }
    second = {
        "title": "2. Move the picture, and add a little noise",
        "text": _moved(sigma, step.to, step.noise_std, levels),
        "images": [_picture(before, "before"), _picture(heading, "where it is heading"), _picture(after, "after")],
    }
    if not levels:  # such a chain heads for no picture that could be shown
        del second["images"][1]
    return [first, second]


def _drawn(flipped: list[str], sampler: str) -> str:
    named = ", ".join(flipped[:MOST_NAMED]) + (", and others" if len(flipped) > MOST_NAMED else "")
    happened = f"This time these changed: {named}." if flipped else "This time none of them changed."
    why = (
        "They pull at the picture in the second half."
        if sampler == "resampling"
        else "This sampler only looks at them: when it moves the picture, it sums over both values of each."
    )
    return (
        "The network gives each attribute a probability. What you chose stays fixed; every other label is drawn from "
        f"its probability. {happened} {why}"
    )


def _moved(sigma: float, to: float, noise: float, levels: bool) -> str:
    follows = "The gradient of log p(x, y) says how each pixel must change to make the picture more likely. "
    if not levels:
        return follows + f"The chain moves a little along it and gets fresh noise of spread {noise:.2g}."
    return follows + (
        "Followed all the way, it leads to the picture in the middle. The chain goes part of the way, from noise level "
        f"{sigma:.2g} to {to:.2g}, and gets fresh noise of spread {noise:.2g}."
    )


def _bars(probabilities: list[float], names: tuple[str, ...]) -> list[dict]:
    order = sorted(range(len(names)), key=lambda k: -probabilities[k])[:6]
    return [
        {"label": caption(names[k]), "value": probabilities[k], "text": percent(probabilities[k], 0)} for k in order
    ]


def _picture(images: torch.Tensor, text: str) -> dict:
    data = base64.b64encode(png(tile(images))).decode()
    return {"src": f"data:image/png;base64,{data}", "text": text}
