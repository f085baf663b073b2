"""The measurement of steering: walks that a visitor might take, and figures that a second count confirms."""

import random
from itertools import pairwise

import pytest
import torch

from jem_core.bundle import Bundle
from jem_core.data.dataset import Dataset
from jem_core.judge import Judge, right
from jem_core.walks import run_walk
from train.plan import Plan, make_plan
from train.steering import MOST_ASKED, TOGGLES, clipped_share, long_run, random_walk, steering
from train.synthesis import Setting


@pytest.fixture(scope="module")
def setting(tiny_levels: Bundle, tiny_dataset: Dataset) -> Setting:
    torch.manual_seed(0)
    judge = Judge(tiny_levels.names, 32, width=4).eval()
    judge.facts["balanced_accuracy"] = dict.fromkeys(tiny_levels.names, 0.9)
    return Setting(tiny_levels, tiny_dataset, judge, seed=3, show=False)


@pytest.fixture(scope="module")
def plan(setting: Setting) -> Plan:
    return make_plan(setting.bundle, setting.judge, samples=4)


def test_walks_are_what_a_visitor_could_do(setting: Setting, plan: Plan) -> None:
    pairs = [*plan.seen_pairs, *plan.held_out_pairs]
    kinds = set()
    for seed in range(20):
        walk = random_walk(setting.bundle, plan, random.Random(seed))
        assert walk == random_walk(setting.bundle, plan, random.Random(seed))
        assert walk[0] in pairs
        assert len(walk) == TOGGLES + 1
        for before, after in pairwise(walk):
            changed = [(old, new) for old, new in zip(before.values, after.values, strict=True) if old != new]
            assert len(changed) == 1 or (changed and after in pairs)
            assert len(after.required) + len(after.excluded) <= MOST_ASKED
            kinds |= {new for _, new in changed}
    assert kinds == {-1, 0, 1}  # freed, excluded, required


def test_clipped_pixels_are_counted() -> None:
    images = torch.tensor([0, 1, 128, 254, 255, 255], dtype=torch.uint8).view(1, 1, 2, 3)
    assert clipped_share(images) == 0.5
    assert clipped_share(torch.tensor([-1.0, 0.0, 0.5, 0.999, 2.0])) == pytest.approx(4 / 5)


def test_every_figure_of_a_walk_can_be_counted_again(setting: Setting, plan: Plan) -> None:
    found = steering(setting, plan, walks=2, chains=3)
    assert found == steering(setting, plan, walks=2, chains=3)
    assert [row["of"] for row in found["judged_right"]] == [6] * (TOGGLES + 1)
    assert found["mean"]["of"] == 6 * TOGGLES
    counted, rng = torch.zeros(TOGGLES + 1), random.Random(setting.seed)
    for number, words in enumerate(found["conditions"]):
        conditions = random_walk(setting.bundle, plan, rng)
        assert [str(condition) for condition in conditions] == words
        walk = run_walk(setting.bundle, conditions, 3, 3000 + number)
        for row, (condition, images) in enumerate(zip(walk.conditions, walk.images, strict=True)):
            counted[row] += right(setting.judge.probabilities(images), condition.tensor(3)).sum()
    assert [row["value"] for row in found["judged_right"]] == pytest.approx((counted / 6).tolist(), abs=1e-3)
    assert found["mean"]["value"] == pytest.approx(float(counted[1:].sum()) / (6 * TOGGLES), abs=1e-3)
    assert found["after_last"] == found["judged_right"][-1]
    assert found["diverged"] == 0


def test_long_runs_are_looked_at_when_chains_show_pictures(setting: Setting, plan: Plan) -> None:
    found = long_run(setting, plan, chains=4, until=(0, 5, 9))
    assert found == long_run(setting, plan, chains=4, until=(0, 5, 9))
    assert found["steps"] == [0, 5, 9]
    assert [row["of"] for row in found["judged_right"]] == [found["chains"]] * 3
    assert all(distance > 0 for distance in found["frechet"])
    assert len(set(found["frechet"])) == 3  # the chains moved on
