"""Keep the best: N chains of ten times as many, by log p(y_c | x), the paper's filter for chains that went astray."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from app.chains import Chains, Lane, Stepper, begin

if TYPE_CHECKING:
    from app.live import Run, Step


def keep_the_best(run: Run) -> Iterator[Step]:
    """Run batch after batch in full view and keep the best of each lane; a pause leaves the chains as they were."""
    before, limits = run.chains, run.limits
    steps = min(run.settings.steps or run.catalog.bundle(run.settings.model).sampling["steps"], limits.sample_steps)
    n, batches = run.settings.chains, limits.best_of
    kept: list[tuple[Lane, Tensor]] | None = None
    for batch in range(batches):
        part = slice(batch * n, (batch + 1) * n)
        run.chains = begin(run.catalog, run.settings, run.letter.fresh, run.photo, part, parts=batches)
        run.chains.film = before.film
        run.stepper = Stepper(run.catalog, run.chains, run.settings)
        for done in range(1, steps + 1):
            letter = run.box.read() or run.letter
            if letter.run != run.name or not letter.playing:
                run.chains = before
                yield run.frame("paused", still=True, message="Stopped; the chains are as they were.")
                return
            run.stepper.advance(run.chains)
            run.recorder.forget()  # the traces of chains that come and go would be one tangle
            if time.monotonic() >= run.frame_due:
                yield run.frame("best", progress=[batch * steps + done, batches * steps])
        judged = [_judge(lane, run.stepper.kernels[i][0]) for i, lane in enumerate(run.chains.lanes)]
        kept = judged if kept is None else [_better(*pair, n) for pair in zip(kept, judged, strict=True)]
    film = before.film
    lanes = [lane for lane, _ in kept]
    run.chains = Chains(run.settings.start_key(), run.settings.wish, run.letter.fresh, lanes, film, steered=True)
    run.stepper = Stepper(run.catalog, run.chains, run.settings)
    run.recorder.note(run.chains)
    yield run.frame("paused", still=True, message=f"The best {n} of {n * batches} chains after {steps} steps each.")


def _judge(lane: Lane, kernel) -> tuple[Lane, Tensor]:
    """The lane with its figures taken at the very images that it shows, and how good each chain is."""
    lane.state, lane.info = kernel.resample_labels(lane.state, lane.randomness)
    rank = lane.info.log_p_condition.masked_fill(lane.info.diverged, -torch.inf).nan_to_num(nan=-torch.inf)
    return lane, rank


def _better(first: tuple[Lane, Tensor], second: tuple[Lane, Tensor], n: int) -> tuple[Lane, Tensor]:
    """The n best chains of two lanes, the best first."""
    (a, rank_a), (b, rank_b) = first, second
    rank = torch.cat([rank_a, rank_b])
    keep = rank.argsort(descending=True, stable=True)[:n]
    generators = [*a.randomness, *b.randomness]
    state = a.state._replace(**{name: _both(a.state, b.state, name)[keep] for name in ("x", "y", "condition")})
    info = a.info._replace(**{name: _both(a.info, b.info, name)[keep] for name in a.info._fields})
    lane = Lane(a.title, a.model, a.sampler, state, [generators[i] for i in keep.tolist()], info)
    return lane, rank[keep]


def _both(first: tuple, second: tuple, name: str) -> Tensor:
    return torch.cat([getattr(first, name), getattr(second, name)])
