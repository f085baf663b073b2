"""What the browser is told of the chains: a picture, and a few small arrays in base64. assets/wire.js says the same."""

from __future__ import annotations

import base64

import numpy as np
import torch
from torch import Tensor

from app.chains import Chains, Lane
from app.film import columns, jpeg, png, tile

LONGEST_TRACE = 120  # points handed over at once; where more steps come between two frames, some are left out


class Recorder:
    """Collects what happened at each step until the next frame takes it along."""

    def __init__(self) -> None:
        self._points: list[tuple[int, float, list[tuple[Tensor, Tensor, Tensor]]]] = []

    def note(self, chains: Chains, level: float) -> None:
        """A step that was taken at this noise level."""
        memories = [lane.memory for lane in chains.lanes]
        point = [(one.info.energy, one.info.grad_norm, one.state.y) for one in memories]
        self._points.append((chains.step, level, point))

    def forget(self) -> None:
        self._points = []

    def take(self, chains: Chains, images: list[Tensor], caption: str, still: bool = False) -> dict:
        """Step, pictures and traces since the last frame. A still picture is exact, a moving one is a light JPEG."""
        points = self._points[:: max(1, len(self._points) // LONGEST_TRACE)]
        self._points = []
        sheets = [tile(one) for one in images]
        moving = [jpeg(sheet) for sheet in sheets]
        chains.film.add(chains.step, caption, moving)
        pictures = [_uri("png", png(sheet)) for sheet in sheets] if still else [_uri("jpeg", one) for one in moving]
        lanes = [
            {"title": lane.title, "src": picture} | _lane(lane, [point[i] for *_, point in points])
            for i, (lane, picture) in enumerate(zip(chains.lanes, pictures, strict=True))
        ]
        frame = {
            "step": chains.step,
            "steps": [step for step, *_ in points],
            "levels": [round(level, 4) for _, level, _ in points],
            "level": round(chains.level, 4),
            "lanes": lanes,
        }
        return frame | {"digest": chains.digest()} if still else frame


def _lane(lane: Lane, points: list[tuple[Tensor, Tensor, Tensor]]) -> dict:
    memory = lane.memory
    n, size, info = memory.state.x.shape[0], memory.state.x.shape[-1], memory.info
    facts = {"n": n, "size": size, "columns": columns(n), "sampler": lane.sampler}
    if info is None:
        return facts
    facts["p"] = _pack((info.probabilities.nan_to_num(0) * 255).round().byte())
    if points:
        energy, grad_norm, labels = (torch.stack(column) for column in zip(*points, strict=True))
        facts["energy"], facts["grad"] = _pack(energy.float()), _pack(grad_norm.float())
        facts["y"] = base64.b64encode(np.packbits(labels.byte().cpu().numpy(), axis=-1).tobytes()).decode()
    return facts


def _pack(values: Tensor) -> str:
    """The numbers' bytes, little-endian, row by row."""
    return base64.b64encode(values.cpu().contiguous().numpy().tobytes()).decode()


def _uri(kind: str, picture: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"
