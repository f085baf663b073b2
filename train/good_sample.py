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
from jem_core.random import chain_generators
from jem_core.samplers import Sampler
from jem_core.sampling import run_chains
from jem_core.starts import start_chains
from train.plan import all_pairs

CHAINS, LOOK_EVERY, MOST_STEPS = 16, 2, 400
# As the paper samples: the resampling kernel without preconditioner, clamp or guidance.
PAPER = {"grad_coef": 1.0, "noise_std": 0.001, "grad_clamp": None, "preconditioner": 0.0, "guidance": 1.0}


def seconds_to_good(
    bundle: Bundle, judge: Judge, condition: Condition, seed: int, sampler: str, start: str, **settings: object
) -> float:
    """Sampling time until the judge sees the condition in half of the chains; infinite when they never get there.

    The judge's own time does not count.
    """
    langevin, augment_every = bundle.langevin(**settings)
    kernel = Sampler(sampler, bundle.model, langevin)
    randomness = chain_generators(seed, CHAINS, bundle.device)
    began = time.perf_counter()
    x = start_chains(start, CHAINS, gaussian=bundle.gaussian, randomness=randomness)
    asked = condition.tensor(CHAINS, bundle.device)
    state, taken = kernel.init(x, asked, randomness), 0.0
    for done, (stepped, _) in enumerate(run_chains(kernel, state, randomness, MOST_STEPS, augment_every), start=1):
        if done % LOOK_EVERY:
            continue
        taken += time.perf_counter() - began
        if right(judge.probabilities(stepped.x), asked).float().mean() >= 0.5:
            return taken
        began = time.perf_counter()
    return float("inf")


def time_to_good(name: str, judge: Judge, most: int = 24) -> Iterator[tuple[str, str, str]]:
    """Medians over pairs that training saw, the model's own settings against the paper's on the same weights."""
    bundle = load(name)
    pairs = [pair for pair in all_pairs(bundle) if bundle.support.count(pair) > 0]
    order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(0)).tolist()[:most]
    ours, theirs = [], {"informed": [], "uniform": []}
    for seed, pair in enumerate(pairs[i] for i in order):
        ours.append(seconds_to_good(bundle, judge, pair, seed, "marginalizing", "informed"))
        for start, found in theirs.items():
            found.append(seconds_to_good(bundle, judge, pair, seed, "resampling", start, **PAPER))
    for start, found in theirs.items():
        mine, other = statistics.median(ours), statistics.median(found)
        reached = sum(value < float("inf") for value in found)
        cap = "" if other < float("inf") else f", more than {MOST_STEPS} steps"
        yield (
            f"time to a good sample of a pair, {name}, median of {len(order)} pairs: {mine:.2f} s",
            f"{other / mine:.1f} times faster" if not cap else "reached where the paper's settings are not",
            f"the paper's settings, {start} start: {other:.2f} s{cap}; {reached} of {len(found)} pairs reached",
        )
