"""Samples for a call, in parts: a step of a few chains is short, so that the call can be ended between any two, and
needs little memory however many chains are to be drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from app.deadlines import Deadline
from jem_core.bundle import Bundle
from jem_core.chains import Chains, Samples, best
from jem_core.condition import Condition
from jem_core.walks import Walk

AT_ONCE = {"cpu": 16, "cuda": 256}  # chains


def draw(
    bundle: Bundle, condition: Condition, n: int, seed: int, keep_best: int, deadline: Deadline, **settings: object
) -> Samples:
    """As jem_core.chains.sample: the best n of n * keep_best. Chain i depends on the seed and on i alone."""
    parts = []
    for rows in _parts(bundle, n * keep_best):
        chains = bundle.chains(condition, len(rows), seed, None, rows, **settings)
        _arrive(chains, deadline)
        parts.append(chains.finish())
    return best(Samples.join(parts), n)


def walk_through(
    bundle: Bundle, conditions: Sequence[Condition], n: int, seed: int, deadline: Deadline, **settings: object
) -> Walk:
    """As jem_core.walks.run_walk: the same n chains, steered from one condition to the next."""
    images, diverged = [], []
    for rows in _parts(bundle, n):
        chains = bundle.chains(conditions[0], len(rows), seed, None, rows, **settings)
        shown, lost = [], []
        for place, condition in enumerate(conditions):
            if place:
                chains.steer(condition)
            _arrive(chains, deadline)
            shown.append(chains.images())
            lost.append(~chains.state.x.isfinite().flatten(1).all(dim=1))
        images.append(torch.stack(shown))
        diverged.append(torch.stack(lost))
    return Walk(tuple(conditions), torch.cat(images, dim=1), torch.cat(diverged, dim=1))


def _parts(bundle: Bundle, total: int) -> Iterator[range]:
    size = AT_ONCE[bundle.device.type]
    return (range(start, min(start + size, total)) for start in range(0, total, size))


def _arrive(chains: Chains, deadline: Deadline) -> None:
    while not chains.finished:
        deadline.check()
        chains.advance()
