"""Edit pictures: start chains from an avatar, ask for one more attribute, and let the judge say what changed.

    python -m train.ablations.edit_photos avatars --judge DIR [--attribute Eyeglasses] [--pictures 20] [--out sheet.png]

Each avatar is new to the model and lacks the attribute. What the model sees in it is preset, as the app does when it
edits a photo; then the attribute is switched on. Counted are the edits in which the judge sees the attribute, and the
share of all other attributes that stay as the judge saw them in the picture before.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from jem_core.bundle import Bundle
from jem_core.condition import WITH, check_name
from jem_core.data import avatars
from jem_core.draws import mean_prediction
from jem_core.hub import load
from jem_core.judge import Judge
from jem_core.random import chain_generators
from jem_core.samplers import Sampler
from jem_core.sampling import run_chains
from jem_core.synthesis import share
from train.pictures import grid, save_picture

FIRST_SEED = 9_000_000  # far from the seeds of any training set
EXCLUSIVE = {"Eyeglasses": "Sunglasses", "Sunglasses": "Eyeglasses"}  # a face wears one kind of glasses


def new_avatars(n: int, size: int, without: str, seed: int = FIRST_SEED) -> Tensor:
    """`n` avatars that lack an attribute, uint8 (n, 3, size, size)."""
    found = []
    while len(found) < n:
        seed += 1
        attributes = avatars.sample_attributes(seed)
        seen = avatars.visible(attributes)
        if not seen[without] and not seen.get(EXCLUSIVE.get(without), False):
            found.append(avatars.draw(attributes, seed, size))
    return torch.from_numpy(np.stack(found))


def edit(bundle: Bundle, stored: Tensor, attribute: str, steps: int | None, seed: int = 0, **settings: float) -> Tensor:
    """One chain from each picture, everything the model sees preset and the attribute switched on. (n, 3, S, S)."""
    wishes = (mean_prediction(bundle.model, stored) > 0.5).long()
    wishes[:, bundle.names.index(attribute)] = WITH
    langevin, augment_every = bundle.langevin(**settings)
    kernel = Sampler("marginalizing", bundle.model, langevin)
    randomness = chain_generators(seed, len(stored), bundle.device)
    start = ((stored.float() + 0.5) / 256).to(bundle.device)
    state = kernel.init(start, wishes.to(bundle.device), randomness)
    for moved, _ in run_chains(kernel, state, randomness, steps or bundle.sampling["steps"], augment_every):
        state = moved
    return state.x


def count(judge: Judge, before: Tensor, after: Tensor, attribute: str) -> dict:
    """How often the judge sees the attribute, and which share of the others it sees unchanged."""
    there, now = (judge.probabilities(images) > 0.5 for images in (before, after))
    k = judge.names.index(attribute)
    others = [i for i in range(len(judge.names)) if i != k]
    same = (there == now)[:, others].float().mean(dim=1)
    return {
        "has_it": share(now[:, k]),
        "had_it_before": share(there[:, k]),
        "others_kept": round(same.mean().item(), 4),
        "both": share(now[:, k] & (same >= 0.8)),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m train.ablations.edit_photos", description=__doc__.split("\n")[0])
    parser.add_argument("model", help="a bundled name or a directory")
    parser.add_argument("--judge", required=True, type=Path)
    parser.add_argument("--attribute", default="Eyeglasses")
    parser.add_argument("--pictures", type=int, default=20)
    parser.add_argument("--steps", type=int, help="the model's own by default")
    parser.add_argument("--guidance", type=float, help="the model's own by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a sheet: before above, after below")
    args = parser.parse_args(arguments)
    bundle, judge = load(args.model), Judge.load(args.judge)
    check_name(args.attribute, bundle.names)
    if args.pictures < 1:
        raise ValueError(f"--pictures is {args.pictures}; expected at least 1.")
    stored = new_avatars(args.pictures, bundle.model.image_size, args.attribute)
    settings = {} if args.guidance is None else {"guidance": args.guidance}
    after = edit(bundle, stored, args.attribute, args.steps, args.seed, **settings).cpu()
    found = count(judge, stored, after, args.attribute)
    print(
        f"{args.attribute} switched on in {args.pictures} new avatars: the judge sees it in "
        f"{found['has_it']['count']} of {found['has_it']['of']} (before: {found['had_it_before']['count']}); "
        f"{found['others_kept']:.0%} of the other attributes stay; "
        f"both right (it is there, and at least 80 % of the others stay): {found['both']['count']}."
    )
    if args.out:
        before = ((stored.float() + 0.5) / 256).split(10)
        rows = [row for both in zip(before, after.split(10), strict=True) for row in both]
        save_picture(grid(rows, scale=2), args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
