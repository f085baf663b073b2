"""Many conditions in one stream of chains, and what judge and model say of the samples."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from jem_core.bundle import Bundle
from jem_core.calibration import wilson
from jem_core.chains import join_chains
from jem_core.condition import Condition
from jem_core.judge import Judge, right
from jem_core.metrics import rounded
from jem_core.random import generator
from jem_core.samples import Samples, best

BATCH = 32  # chains stepped together: more fall out of the cache of a small processor
POOLED = ("judged_right", "self_consistent", "judged_right_start", "judged_right_real")
KEEP_OF = 10  # the paper's filter: draw 10 n, keep n


@dataclass(frozen=True)
class Request:
    """`n` fresh chains of one condition. Chain i depends on the seed and on i alone."""

    condition: Condition
    n: int
    sampler: str = "marginalizing"
    start: str = "conditional"
    seed: int = 0


@dataclass(frozen=True)
class Drawn:
    """The samples of a request, and how long its share of the stream took."""

    request: Request
    samples: Samples
    seconds: float
    settings: dict = field(default_factory=dict)


def draw_all(
    bundle: Bundle,
    requests: Sequence[Request],
    progress: Callable[[int, int], None] | None = None,
    **settings: float | int | str | None,
) -> list[Drawn]:
    """Samples of every request, chains of different conditions side by side in batches that fit the cache.

    `progress(done, total)` counts chains. A request gives what `sample` gives for it alone.
    """
    total, done = sum(request.n for request in requests), 0
    parts: list[list[tuple[Samples, float]]] = [[] for _ in requests]
    for pieces in _batches(requests):
        began = time.perf_counter()
        samples = _run(bundle, [(requests[i], rows) for i, rows in pieces], settings)
        count = len(samples.images)
        seconds = (time.perf_counter() - began) / count
        offset = 0
        for i, rows in pieces:
            inside = slice(offset, offset := offset + len(rows))
            parts[i].append((samples.select(inside), seconds * len(rows)))
        done += count
        if progress:
            progress(done, total)
    return [
        Drawn(
            request, Samples.join([samples for samples, _ in some]), sum(seconds for _, seconds in some), dict(settings)
        )
        for request, some in zip(requests, parts, strict=True)
    ]


def _batches(requests: Sequence[Request]) -> list[list[tuple[int, range]]]:
    """Batches of BATCH chains that share sampler and start; a request may spread over several."""
    batches: list[list[tuple[int, range]]] = []
    for kind in dict.fromkeys((request.sampler, request.start) for request in requests):
        room = 0
        for i, request in enumerate(requests):
            if (request.sampler, request.start) != kind:
                continue
            first = 0
            while first < request.n:
                if not room:
                    batches.append([])
                    room = BATCH
                last = min(request.n, first + room)
                batches[-1].append((i, range(first, last)))
                room -= last - first
                first = last
    return batches


def _run(bundle: Bundle, pieces: list[tuple[Request, range]], settings: dict) -> Samples:
    """The chains of all pieces at once, each with its own start, condition and random numbers."""
    parts = [
        bundle.chains(
            request.condition,
            len(rows),
            request.seed,
            rows=rows,
            sampler=request.sampler,
            start=request.start,
            **settings,
        )
        for request, rows in pieces
    ]
    chains = join_chains(parts)
    while not chains.finished:
        chains.advance()
    return chains.finish()


def score(drawn: Drawn, judge: Judge) -> dict:
    """One condition's figures: judged right, the model's own agreement, chains, seconds."""
    samples, condition = drawn.samples, drawn.request.condition
    asked = condition.tensor(len(samples.images))
    verdicts = right(judge.probabilities(samples.images.cpu()), asked)
    own = right(samples.probabilities.cpu(), asked)
    return {
        "condition": str(condition),
        "required": list(condition.required),
        "excluded": list(condition.excluded),
        "sampler": drawn.request.sampler,
        "start": drawn.request.start,
        "seed": drawn.request.seed,
        "chains": len(samples.images),
        "judged_right": share(verdicts),
        "self_consistent": share(own),
        "diverged": int(samples.diverged.sum()),
        "seconds": round(drawn.seconds, 2),
    }


def share(hits: Tensor) -> dict:
    """A share with its 95 % Wilson interval."""
    count, n = int(hits.sum()), len(hits)
    low, high = wilson(count, n)
    return {"value": rounded(count / n) if n else None, "low": low, "high": high, "count": count, "of": n}


def filtered(drawn: Drawn, keep_of: int = KEEP_OF) -> Drawn:
    """The paper's filter: of these 10 n chains keep the n with the highest log p(y_c | x)."""
    keep = len(drawn.samples.images) // keep_of
    if not keep:
        raise ValueError(f"{len(drawn.samples.images)} chains are too few to keep one in {keep_of}.")
    return Drawn(drawn.request, best(drawn.samples, keep), drawn.seconds, drawn.settings)


def summary(scores: Sequence[dict]) -> dict:
    """Conditions taken together, every sample counting once; the interval treats samples as independent."""
    pooled = {}
    for key in POOLED:
        if not all(key in score for score in scores):
            continue
        count, n = (sum(score[key][part] for score in scores) for part in ("count", "of"))
        low, high = wilson(count, n)
        pooled[key] = {"value": rounded(count / n) if n else None, "low": low, "high": high, "count": count, "of": n}
    return pooled | {
        "conditions": len(scores),
        "chains": sum(score["chains"] for score in scores),
        "seconds": round(sum(score["seconds"] for score in scores), 2),
    }


def shuffled_right(drawn: Sequence[Drawn], judge: Judge, seed: int = 0) -> dict:
    """Judged right when the conditions are dealt to the samples at random: a judge that is fooled would not fall."""
    images = torch.cat([one.samples.images for one in drawn]).cpu()
    asked = torch.cat([one.request.condition.tensor(len(one.samples.images)) for one in drawn])
    order = torch.randperm(len(asked), generator=generator(seed))
    return share(right(judge.probabilities(images), asked[order]))
