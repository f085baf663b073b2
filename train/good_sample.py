"""Time to a good sample: seconds until half of 16 chains show a pair of attributes, to an independent judge."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import torch

from jem_core.bundle import Bundle
from jem_core.condition import Condition
from jem_core.hub import load
from jem_core.judge import Judge, right
from train.plan import all_pairs

CHAINS, LOOK_EVERY, MOST_STEPS = 16, 2, 400
# As the paper samples: the resampling kernel without preconditioner, clamp or guidance.
PAPER = {"grad_coef": 1.0, "noise_std": 0.001, "grad_clamp": None}
PAPER |= {"preconditioner": 0.0, "guidance": 1.0, "variety": 1.0}


def seconds_to_good(
    bundle: Bundle, judge: Judge, condition: Condition, seed: int, sampler: str, start: str, **settings: object
) -> tuple[float, bool]:
    """Sampling time until the judge sees the condition in half of the chains, and whether they got there at all.

    Chains that never do count with the time that they were given. The judge's own time does not count.
    """
    began, taken = time.perf_counter(), 0.0
    if not bundle.levels:  # with noise levels the way down has an end of its own
        settings["steps"] = MOST_STEPS
    chains = bundle.chains(condition, CHAINS, seed, sampler=sampler, start=start, **settings)
    asked = condition.tensor(CHAINS, bundle.device)
    while not chains.finished:
        chains.advance()
        if chains.memory.place % LOOK_EVERY and not chains.finished:
            continue
        taken += time.perf_counter() - began
        if right(judge.probabilities(chains.images()), asked).float().mean() >= 0.5:
            return taken, True
        began = time.perf_counter()
    return taken, False


def time_to_good(name: str, judge: Judge, most: int = 24) -> Iterator[tuple[str, str, str]]:
    """Over pairs that training saw: the model's own settings against the paper's, on the same weights."""
    bundle = load(name)
    pairs = [pair for pair in all_pairs(bundle) if bundle.support.count(pair) > 0]
    order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(0)).tolist()[:most]
    ours, theirs = [], {"informed": [], "uniform": []}
    for seed, pair in enumerate(pairs[i] for i in order):
        ours.append(seconds_to_good(bundle, judge, pair, seed, "marginalizing", "conditional"))
        for start, found in theirs.items():
            found.append(seconds_to_good(bundle, judge, pair, seed, "resampling", start, **PAPER))
    for start, found in theirs.items():
        ratio = mean_time(found) / mean_time(ours)
        yield (
            f"time to a good sample of a pair, {name}: {in_words(ours)}",
            f"{ratio:.1f} times faster on average",
            f"the paper's settings, {start} start: {in_words(found)}",
        )


def mean_time(found: list[tuple[float, bool]]) -> float:
    return statistics.mean(seconds for seconds, _ in found)


def in_words(found: list[tuple[float, bool]]) -> str:
    """Mean, median, and how many got there: a pair that is never reached is what a visitor remembers."""
    middle = statistics.median(seconds for seconds, _ in found)
    reached = sum(there for _, there in found)
    means = f"mean {mean_time(found):.2f} s, median {middle:.2f} s"
    return f"{means}, {reached} of {len(found)} pairs in {MOST_STEPS} steps"
