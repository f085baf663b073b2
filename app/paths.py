"""From A to B: the pictures between two conditions, or between two pictures, as a strip and as an animation.

An end is what is asked (a condition) or a picture of the grid. Between the ends pictures are blended (towards a
condition: by what it does to pictures on average), lifted to the level "how much may change" with the same noise, and
come down under conditions whose strengths go over from A's to B's.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass

import torch
from torch import Tensor

from app import gpu
from app.attributes import sentence
from app.catalog import Catalog
from app.chains import Chains, CoreChains
from app.deadlines import Deadline
from app.film import animate, png, row
from app.runtime import current
from app.settings import Settings
from jem_core.bundle import Bundle
from jem_core.condition import FREE, Condition

PICTURES = 11  # from A to B, both included
MIDDLE_LEVEL = 1.5  # between two pictures: high enough to mend a blend, low enough to stay near it
IN_BETWEEN = 2  # frames of an animation that fade from one picture to the next


@dataclass(frozen=True)
class End:
    """One end of a path: a condition, and the picture (1, 3, S, S) that stands there where one was chosen."""

    condition: Condition
    picture: Tensor | None = None


def read_end(value: object, chains: Chains | None, bundle: Bundle) -> End:
    """An end as the browser names it: {"with": [...], "without": [...]}, and {"state": 3, "place": 5} for a picture."""
    if not isinstance(value, dict):
        raise ValueError("Choose both A and B first.")
    required, excluded = (value.get(key, []) for key in ("with", "without"))
    lists = all(
        isinstance(names, list) and all(isinstance(name, str) for name in names) for names in (required, excluded)
    )
    if not lists:
        raise ValueError("An end of the path is not a list of attributes.")
    condition = Condition.from_lists(bundle.names, required, excluded)
    if value.get("state") is None:
        return End(condition)
    number, place = value.get("state"), value.get("place")
    if chains is None or type(number) is not int or type(place) is not int:
        raise ValueError("This picture is no longer kept; choose another.")
    memory = chains.past.find(number).lanes[0].memory
    if memory.state.x.shape[-1] != bundle.model.image_size or not 0 <= place < len(memory.state.x):
        raise ValueError("This picture is of another model; choose another.")
    return End(condition, CoreChains(bundle, memory).images()[place : place + 1])


def draw_path(settings: Settings, a: End, b: End) -> dict:
    """The pictures from A to B, ready for the page."""
    images = walk_path(current().catalog, settings, a, b)
    pictures = [row(image[None]) for image in images]
    strip = row(images)
    return {
        "strip": _uri("png", png(strip)),
        "animation": _uri("webp", animate(pictures, IN_BETWEEN)),
        "n": len(images),
        "size": images.shape[-1],
        "from": sentence(a.condition),
        "to": sentence(b.condition),
    }


draw_path = gpu.on_gpu(draw_path, duration=lambda settings, a, b: gpu.time_for(PICTURES * 100))


def walk_path(catalog: Catalog, settings: Settings, a: End, b: End) -> Tensor:
    """(PICTURES, 3, S, S) in [0, 1]; the first is A itself, and so is the last B where it is a picture."""
    bundle = catalog.bundle(settings.model)
    if not bundle.levels:
        raise ValueError("A path needs a model with noise levels.")
    deadline = Deadline(current().limits.call_seconds)
    chosen = settings.sampling(bundle)
    chosen = {key: value for key, value in chosen.items() if key not in ("start", "start_level")}
    first = a.picture if a.picture is not None else _fresh(bundle, a.condition, settings, deadline)
    between = torch.linspace(0, 1, PICTURES, device=bundle.device)
    if b.picture is not None:
        last, level = b.picture, MIDDLE_LEVEL
    else:
        means = [bundle.gaussian.mean_image(one.condition.tensor(1, bundle.device)) for one in (a, b)]
        last, level = first + means[1] - means[0], bundle.sampling_with(chosen)["lift"]
    images = torch.lerp(first, last, between.view(-1, 1, 1, 1)).clamp(0, 1)
    condition, strengths = blend(a.condition, b.condition, between)
    chosen["strengths"] = strengths * chosen.get("strengths", 1.0)
    chains = bundle.chains(
        condition,
        PICTURES,
        settings.seed,
        images,
        rows=[0] * PICTURES,  # the same noise everywhere
        **chosen | {"start": "images", "start_level": level},
    )
    _arrive(chains, deadline)
    found = chains.images()
    found[0] = first[0]
    if b.picture is not None:
        found[-1] = b.picture[0]
    return found


def blend(a: Condition, b: Condition, between: Tensor) -> tuple[Tensor, Tensor]:
    """Conditions (n, K) and strengths (n, K) on the way: what only A asks fades, what only B asks comes, and where they
    contradict each other, A's fades in the first half and B's comes in the second."""
    at_a, at_b = (one.tensor(len(between), between.device) for one in (a, b))
    t = between.view(-1, 1)
    only_a, only_b = (at_a != FREE) & (at_b == FREE), (at_a == FREE) & (at_b != FREE)
    opposed = (at_a != FREE) & (at_b != FREE) & (at_a != at_b)
    late = opposed & (t > 0.5)
    condition = torch.where(only_b | late, at_b, at_a)
    strengths = torch.ones(condition.shape, device=between.device)
    strengths = torch.where(only_a, 1 - t, torch.where(only_b, t, strengths))
    return condition, torch.where(opposed, (2 * t - 1).abs(), strengths)


def _fresh(bundle: Bundle, condition: Condition, settings: Settings, deadline: Deadline) -> Tensor:
    """The first picture that a fresh run of this condition shows."""
    chains = bundle.chains(condition, 1, settings.seed, **_without_photo(settings.sampling(bundle)))
    _arrive(chains, deadline)
    return chains.images()


def _without_photo(changes: dict) -> dict:
    return {key: value for key, value in changes.items() if (key, value) != ("start", "images")}


def _arrive(chains: CoreChains, deadline: Deadline) -> None:
    while not chains.finished:
        deadline.check()
        chains.advance()


def _uri(kind: str, data: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
