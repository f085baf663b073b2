"""The part of the evaluation that looks where it hurts: random walks of toggles, and chains that wander for long."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from jem_core.bundle import Bundle
from jem_core.condition import FREE, WITH, WITHOUT, Condition
from jem_core.fidelity import frechet_distance
from jem_core.judge import Judge, right
from jem_core.metrics import rounded
from jem_core.verdicts import share
from jem_core.walks import Walk, arrive, run_walk, toggle
from train.plan import Plan
from train.synthesis import Setting

WALKS, TOGGLES, CHAINS = 20, 8, 16
MOST_ASKED = 5  # attributes: a visitor who has asked for that many frees one next
PRESETS = 0.1  # of the toggles jump to a pair at once
LONG_STEPS, LONG_CHAINS = (0, 100, 300, 1000), 64
CLIPPED_IMAGES = 2000


def random_walk(bundle: Bundle, plan: Plan, rng: random.Random, toggles: int = TOGGLES) -> list[Condition]:
    """Where a visitor might go: a pair, then toggles that require, exclude or free, now and then another pair."""
    pairs = [*plan.seen_pairs, *plan.held_out_pairs] or plan.singles
    walk = [rng.choice(pairs)]
    while len(walk) <= toggles:
        jumps = rng.random() < PRESETS
        following = rng.choice(pairs) if jumps else _toggled(bundle, plan.visible, walk[-1], rng)
        if following != walk[-1]:
            walk.append(following)
    return walk


def _toggled(bundle: Bundle, names: Sequence[str], condition: Condition, rng: random.Random) -> Condition:
    asked = [*condition.required, *condition.excluded]
    kind = rng.choices(("require", "exclude", "free"), (5, 3, 2))[0]
    if len(asked) >= MOST_ASKED or (kind == "free" and asked):
        return toggle(condition, rng.choice(asked), FREE)
    if kind == "exclude" and condition.required:
        return toggle(condition, rng.choice(condition.required), WITHOUT)
    name = rng.choice([name for name in names if name not in condition.required])
    following = toggle(condition, name, WITH, bundle.data.instead_of(name))
    # What training never saw even one by one may not exist at all: two attributes that exclude each other.
    seen = all(
        bundle.support.count(Condition.from_lists(bundle.names, [name, other]))
        or any({name, other} == {pair.first, pair.second} for pair in bundle.data.held_out)
        for other in following.required
        if other != name
    )
    return following if seen else condition


def clipped_share(images: Tensor) -> float:
    """Share of values that are black or white to the last bit, of bytes or of floats in [0, 1]."""
    stored = images if images.dtype == torch.uint8 else (images.clamp(0, 1) * 255).round()
    return ((stored == 0) | (stored == 255)).float().mean().item()


def steering(setting: Setting, plan: Plan, walks: int = WALKS, chains: int = CHAINS) -> dict:
    """Judged right, clipped pixels, diverged chains and what stayed of the rest, after each toggle of random walks."""
    bundle, judge = setting.bundle, setting.judge
    rng = random.Random(setting.seed)
    found: list[list[dict]] = [[] for _ in range(TOGGLES + 1)]
    shown = []
    for number in tqdm(range(walks), desc="walks of toggles", disable=not setting.show):
        walk = run_walk(bundle, random_walk(bundle, plan, rng), chains, setting.seed * 1000 + number)
        shown.append([str(condition) for condition in walk.conditions])
        for row, facts in enumerate(_after_each(walk, judge)):
            found[row].append(facts)
    data = setting.dataset.tensors(setting.dataset.indices("val")[:CLIPPED_IMAGES])[0]
    hits = [torch.cat([facts["right"] for facts in row]) for row in found]
    return {
        "walks": walks,
        "chains": chains,
        "toggles": TOGGLES,
        "judged_right": [share(row) for row in hits],
        "mean": share(torch.cat(hits[1:])),
        "after_last": share(hits[-1]),
        "clipped": [rounded(float(np.mean([facts["clipped"] for facts in row]))) for row in found],
        "data_clipped": rounded(clipped_share(data)),
        "kept_others": [rounded(float(np.mean([facts["kept"] for facts in row]))) for row in found[1:]],
        "diverged": int(sum(facts["diverged"] for row in found for facts in row)),
        "conditions": shown,
    }


def _after_each(walk: Walk, judge: Judge) -> list[dict]:
    rows, before = [], None
    for condition, images, diverged in zip(walk.conditions, walk.images.cpu(), walk.diverged, strict=True):
        p = judge.probabilities(images)
        asked = condition.tensor(len(images))
        facts = {"right": right(p, asked), "clipped": clipped_share(images), "diverged": int(diverged.sum())}
        if before is not None:
            old_p, old_asked = before
            untouched = (asked[0] == FREE) & (old_asked[0] == FREE)
            facts["kept"] = ((p > 0.5) == (old_p > 0.5))[:, untouched].float().mean().item()
        rows.append(facts)
        before = (p, asked)
    return rows


def long_run(setting: Setting, plan: Plan, chains: int = LONG_CHAINS, until: Sequence[int] = LONG_STEPS) -> dict:
    """Wandering: judged right and Frechet distance to real images of the same attributes, at arrival and long after."""
    bundle, judge, dataset = setting.bundle, setting.judge, setting.dataset
    conditions = (plan.seen_pairs or plan.singles)[:4]
    asked = torch.cat([condition.tensor(chains // len(conditions)) for condition in conditions])
    runs = bundle.chains(asked, len(asked), setting.seed + 77)
    target = judge.embed(dataset.tensors(dataset.indices("test"))[0][:1500])
    arrive(runs)
    runs.wander()
    taken, report = 0, {"steps": list(until), "chains": len(asked), "judged_right": [], "frechet": [], "clipped": []}
    report["conditions"] = [str(condition) for condition in conditions]
    for steps in tqdm(until, desc="wandering", disable=not setting.show):
        while taken < steps:
            runs.advance()
            taken += 1
        while runs.state.level:  # look at pictures, not at noise
            runs.advance()
            taken += 1
        images = runs.images().cpu()
        report["judged_right"].append(share(right(judge.probabilities(images), asked)))
        report["frechet"].append(rounded(frechet_distance(judge.embed(images), target), 4))
        report["clipped"].append(rounded(clipped_share(images)))
    return report
