"""The part of the evaluation that edits pictures: test pictures with one attribute added, judged and compared."""

from __future__ import annotations

import torch
from torch import Tensor
from tqdm import tqdm

from jem_core.bundle import Bundle
from jem_core.condition import FREE, WITH
from jem_core.data.transforms import gaussian_blur
from jem_core.editing import ANCHOR, LEVEL, asked_of, edit, seen_in
from jem_core.metrics import rounded
from jem_core.verdicts import share
from train.plan import Plan
from train.synthesis import Setting

USUAL = ("Eyeglasses", "Smiling", "Blond_Hair", "Bangs", "Mouth_Slightly_Open")  # what people try first on a face
ATTRIBUTES, PICTURES = 4, 20
EDGE = 0.2  # of the largest: where the attribute changes pictures by less on average is outside the change
BLUR = 2.0  # pixels at 64


def edited_attributes(setting: Setting, plan: Plan) -> list[str]:
    """Four attributes: the usual ones that the model knows, then those that the judge sees best."""
    seen = setting.judge.facts.get("balanced_accuracy", {})
    best = sorted(plan.visible, key=lambda name: -seen.get(name, 0.0))
    usual = [name for name in USUAL if name in plan.visible]
    return list(dict.fromkeys([*usual, *best]))[:ATTRIBUTES]


def pictures_without(setting: Setting, name: str, count: int) -> Tensor:
    """The first test pictures that lack an attribute, uint8."""
    dataset = setting.dataset
    rows = dataset.indices("test")
    lacking = rows[dataset.labels[rows][:, dataset.names.index(name)] == 0][:count]
    if not len(lacking):
        raise ValueError(f"Every test picture has {name}; there is none to edit.")
    return dataset.tensors(lacking)[0]


def outside(bundle: Bundle, seen: Tensor, asked: Tensor) -> Tensor:
    """Where a change leaves pictures alone on average, by the Gaussian that was fitted to the data. (n, 1, S, S)."""
    gaussian = bundle.start.gaussian
    change = (gaussian.mean_image(asked) - gaussian.mean_image(seen)).abs().mean(dim=1, keepdim=True)
    change = gaussian_blur(change, change.new_full((len(change),), BLUR * change.shape[-1] / 64))
    return change < EDGE * change.amax(dim=(2, 3), keepdim=True)


def edit_one(setting: Setting, name: str, stored: Tensor, **options: float) -> dict:
    """One attribute added to each picture: who has it now, which others stayed, and how far the rest has moved."""
    bundle, judge = setting.bundle, setting.judge
    before = ((stored.float() + 0.5) / 256).to(bundle.device)
    changes = torch.full((len(stored), len(bundle.names)), FREE, device=bundle.device)
    changes[:, bundle.names.index(name)] = WITH
    after = edit(bundle, before, changes, seed=setting.seed, **options)[:, 0]
    seen = seen_in(bundle, before)
    asked = asked_of(bundle, seen, changes)
    rest = outside(bundle, seen, asked).float()
    away = ((after - before).abs() * rest).sum(dim=(1, 2, 3)) / (3 * rest.sum(dim=(1, 2, 3)))  # nan: all may change
    there, now = (judge.probabilities(images.cpu()) > 0.5 for images in (before, after))
    stays = (asked == seen).cpu()  # what must go for the attribute, or may come with it, is not counted
    kept = ((there == now) & stays).sum(dim=1) / stays.sum(dim=1).clamp(min=1)
    return {"right": now[:, judge.names.index(name)], "kept": kept, "outside": away.cpu()}


def editing(setting: Setting, plan: Plan, pictures: int = PICTURES) -> dict:
    """Judged right, the share of other attributes that stay, and the mean difference outside the change, of [0, 1]."""
    names = edited_attributes(setting, plan)
    found = {
        name: edit_one(setting, name, pictures_without(setting, name, pictures))
        for name in tqdm(names, desc="edits", disable=not setting.show)
    }
    facts = {name: _facts([row]) for name, row in found.items()}
    own = {"level": LEVEL, "anchor": ANCHOR} if setting.bundle.levels else {}
    return _facts(list(found.values())) | own | {"attributes": facts}


def _facts(rows: list[dict]) -> dict:
    right, kept, away = (torch.cat([row[key] for row in rows]) for key in ("right", "kept", "outside"))
    return {
        "judged_right": share(right),
        "others_kept": rounded(kept.mean().item()),
        "outside_difference": None if away.isnan().all() else rounded(away.nanmean().item()),
    }
