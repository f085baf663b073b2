"""The measurement of edits: avatars that lack the attribute, chains that begin at them, and what is counted."""

import torch

from jem_core.bundle import Bundle
from jem_core.data import avatars
from jem_core.judge import Judge
from train.ablations.edit_photos import FIRST_SEED, count, edit, new_avatars


def test_new_avatars_lack_the_attribute_and_its_rival() -> None:
    found = new_avatars(6, 32, "Eyeglasses")
    assert found.shape == (6, 3, 32, 32)
    assert found.dtype == torch.uint8
    seeds = range(FIRST_SEED + 1, FIRST_SEED + 40)
    people = {seed: avatars.sample_attributes(seed) for seed in seeds}
    seen = {seed: avatars.visible(people[seed]) for seed in seeds}
    kept = [seed for seed in seeds if not seen[seed]["Eyeglasses"] and not seen[seed]["Sunglasses"]][:6]
    expected = [torch.from_numpy(avatars.draw(people[seed], seed, 32)) for seed in kept]
    assert torch.equal(found, torch.stack(expected))


def test_chains_begin_at_the_pictures(tiny_bundle: Bundle) -> None:
    stored = torch.randint(0, 256, (3, 3, 32, 32), generator=torch.Generator().manual_seed(0)).byte()
    still = edit(tiny_bundle, stored, "Red", steps=1, grad_coef=0.0, noise_std=0.0)
    assert torch.allclose(still, (stored.float() + 0.5) / 256)
    moved = edit(tiny_bundle, stored, "Red", steps=3)
    assert torch.equal(moved, edit(tiny_bundle, stored, "Red", steps=3))
    assert not torch.equal(moved, still)


def test_what_is_counted() -> None:
    torch.manual_seed(0)
    judge = Judge(("A", "B", "C"), 32, width=4).eval().requires_grad_(False)
    before, after = torch.rand(2, 40, 3, 32, 32, generator=torch.Generator().manual_seed(1)).unbind()
    before[::2] *= 0.2
    found = count(judge, before, after, "B")
    there, now = judge.probabilities(before) > 0.5, judge.probabilities(after) > 0.5
    assert found["has_it"]["count"] == int(now[:, 1].sum())
    assert found["had_it_before"]["count"] == int(there[:, 1].sum())
    kept = (there[:, [0, 2]] == now[:, [0, 2]]).float().mean().item()
    assert abs(found["others_kept"] - kept) < 1e-4
    same = count(judge, before, before, "B")
    assert same["others_kept"] == 1
    assert same["both"] == same["has_it"]
