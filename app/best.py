"""Keep the best: N chains of ten times as many, by log p(y_c | x), the paper's filter for chains that went astray."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from app.chains import Chains, CoreChains, Lane, Stepper, begin
from app.deadlines import Deadline
from app.walk import Walk
from jem_core.chains import pick
from jem_core.samples import rank

if TYPE_CHECKING:
    from app.live import Run, Step

STOPPED = "Stopped. The pictures are as they were."
TOO_LONG = "That took too long. The pictures are as they were; try again with fewer pictures."


def keep_the_best(run: Run) -> Iterator[Step]:
    """Run batch after batch in full view and keep the best of each lane; a pause leaves the chains as they were."""
    before, settings = run.chains, run.settings.but(walk="", moving=0, locked=())
    n, batches = settings.chains, run.limits.best_of
    kept: list[tuple[Lane, Tensor]] | None = None
    deadline, done, why = Deadline(run.limits.call_seconds), 0, ""
    for batch in range(batches):
        chains = begin(run.catalog, settings, run.letter.fresh, run.photo, slice(batch * n, (batch + 1) * n))
        chains.film, chains.past, chains.epoch = before.film, before.past, before.epoch
        run.chains, run.stepper = chains, Stepper(run.catalog, chains, settings)
        steps = len(chains.lanes[0].memory.plan)
        while not run.stepper.finished and chains.step < run.limits.sample_steps:
            letter = run.box.read() or run.letter
            late = deadline.over
            if letter.run != run.name or not letter.playing or (late and kept is None):
                run.chains, run.stepper = before, Stepper(run.catalog, before, run.settings)
                yield run.stand(message=TOO_LONG if late else STOPPED)
                return
            if late:  # what is done so far must do
                break
            run.stepper.advance()
            if time.monotonic() >= run.frame_due:
                yield run.frame("best", progress=[batch * steps + chains.step, batches * steps])
        else:
            done, why = done + 1, why or chains.walk.why
            judged = [_judge(lane, bound) for lane, bound in zip(chains.lanes, run.stepper.bound, strict=True)]
            kept = judged if kept is None else [_better(*pair, n) for pair in zip(kept, judged, strict=True)]
            continue
        break
    walk = Walk(best_of=done, why=why)
    walk.turn(run.condition())
    walk.whole = True
    lanes = [lane for lane, _ in kept]
    chosen = Chains(settings.start_key(), settings.asked, run.letter.fresh, lanes, walk, settings.way)
    chosen.film, chosen.past = before.film, before.past
    run.chains, run.stepper = chosen, Stepper(run.catalog, chosen, settings)
    chosen.keep()
    yield run.frame("settled", still=True, message=f"The best {n} of {n * done}.")


def _judge(lane: Lane, bound: CoreChains) -> tuple[Lane, Tensor]:
    """The lane with its figures taken at the very images that it shows, and how sure of each chain the model is."""
    info = bound.half_step("labels")
    return lane, info.log_p_condition.masked_fill(info.diverged, -torch.inf).nan_to_num(nan=-torch.inf)


def _better(first: tuple[Lane, Tensor], second: tuple[Lane, Tensor], n: int) -> tuple[Lane, Tensor]:
    """The n best chains of two lanes, the best first."""
    (a, sure_a), (b, sure_b) = first, second
    sure = torch.cat([sure_a, sure_b])
    keep = rank(sure, torch.zeros_like(sure, dtype=torch.bool))[:n]
    return Lane(a.title, a.model, a.sampler, pick(a.memory, b.memory, keep)), sure[keep]
