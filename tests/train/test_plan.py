"""Which conditions are judged, and how the chains are shared out."""

from types import SimpleNamespace

import numpy as np
import pytest

from jem_core.condition import Condition
from jem_core.data.facts import DataFacts
from jem_core.data.support import Support
from train.plan import BUDGET, all_pairs, make_plan, most_visible, quick_plan, spread_out

NAMES = tuple("ABCDEFGHIJKLMNOPQRST")


def bundle(
    size: int = 64,
    steps: int = 60,
    source: str = "avatars",
    held_out: tuple[str, ...] = ("A + B", "C + -D"),
    fold: int = 1,
):
    labels = (np.random.default_rng(0).random((2000, len(NAMES))) < 0.35).astype(np.int8)
    labels = labels[~(labels[:, 0] & labels[:, 1]).astype(bool)]
    return SimpleNamespace(
        names=NAMES,
        support=Support.from_labels(NAMES, labels),
        data=DataFacts.read({"data": {"source": source, "held_out": list(held_out)}}, NAMES),
        model=SimpleNamespace(image_size=size * fold, fold=fold),
        sampling={"steps": steps},
    )


JUDGE = SimpleNamespace(facts={"balanced_accuracy": {name: 1 - i / 100 for i, name in enumerate(NAMES)}})


def test_held_out_pairs_keep_their_signs():
    plan = make_plan(bundle(), JUDGE)
    assert plan.held_out_pairs[1] == Condition.from_lists(NAMES, ["C"], ["D"])


def test_seen_pairs_are_seen_and_spread_over_the_attributes():
    model = bundle()
    pairs = spread_out(model, NAMES, 2, 7)
    assert len(set(pairs)) == 7
    assert all(model.support.count(pair) >= 20 for pair in pairs)
    assert len({name for pair in pairs for name in pair.required}) == 14


@pytest.mark.parametrize(("size", "steps", "fold"), [(32, 60, 1), (64, 60, 1), (64, 100, 1), (64, 30, 1), (32, 60, 2)])
def test_the_default_plan_keeps_to_its_time(size: int, steps: int, fold: int):
    """A folded image costs what a smaller one does."""
    plan = make_plan(bundle(size, steps, fold=fold), JUDGE, variants=5)
    assert plan.total(5) * steps <= BUDGET[size]
    assert plan.chains["held_out_pairs"] >= 50
    if size == 32:
        assert plan.chains["singles"] == plan.chains["seen_pairs"] == 100


def test_asked_for_samples_are_given():
    plan = make_plan(bundle(), JUDGE, samples=100)
    assert set(plan.chains.values()) == {100}


def test_quick_is_small():
    for size in (32, 64):
        plan = quick_plan(bundle(size), JUDGE)
        assert plan.total() * 60 <= BUDGET[size] / 20
        assert min(plan.chains.values()) >= 2
        assert plan.held_out_pairs


def test_photographs_are_judged_on_what_the_judge_sees():
    assert most_visible(bundle(), JUDGE) == NAMES
    assert most_visible(bundle(source="celeba"), JUDGE) == NAMES[:15]


def test_every_pair_once():
    assert len({str(pair) for pair in all_pairs(bundle())}) == 190
