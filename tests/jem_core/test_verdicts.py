"""Streams of chains: every request gets what it would get alone, and counts are plain counts."""

import pytest
import torch

from jem_core.chains import sample
from jem_core.condition import Condition
from jem_core.judge import Judge
from jem_core.verdicts import BATCH, Request, draw_all, filtered, score, share, shuffled_right, summary


@pytest.fixture(scope="module")
def judge(tiny_dataset) -> Judge:
    """Untrained: these tests are about counting."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Judge(tiny_dataset.names, 32, width=4).eval().requires_grad_(False)


def request(bundle, required: list[str], n: int, seed: int, **kind: str) -> Request:
    return Request(Condition.from_lists(bundle.names, required), n, seed=seed, **kind)


def test_a_request_in_a_stream_is_the_request_alone(tiny_bundle):
    requests = [
        request(tiny_bundle, ["Red"], 5, seed=1),
        request(tiny_bundle, ["Bright", "Left"], BATCH + 3, seed=2),
        request(tiny_bundle, ["Red"], 4, seed=3, sampler="resampling", start="buffer-match"),
        request(tiny_bundle, [], 2, seed=4, start="uniform"),
    ]
    check_alone(tiny_bundle, requests)


def test_with_noise_levels_too(tiny_levels):
    requests = [
        request(tiny_levels, ["Red"], 5, seed=1),
        request(tiny_levels, ["Bright", "Left"], BATCH + 3, seed=2),
        request(tiny_levels, [], 4, seed=3, sampler="resampling", start="noise"),
    ]
    check_alone(tiny_levels, requests)


def check_alone(bundle, requests: list[Request]) -> None:
    for one in draw_all(bundle, requests, steps=3, precision="float32"):
        asked = one.request
        options = {"steps": 3, "sampler": asked.sampler, "start": asked.start, "precision": "float32"}
        alone = sample(bundle, asked.condition, asked.n, seed=asked.seed, **options)
        assert len(one.samples.images) == asked.n
        assert torch.allclose(one.samples.images, alone.images, atol=1e-5)
        assert torch.allclose(one.samples.probabilities, alone.probabilities, atol=1e-4)
        assert one.seconds > 0


def test_progress_counts_every_chain(tiny_bundle):
    calls = []
    draw_all(tiny_bundle, [request(tiny_bundle, ["Red"], 40, 0)], steps=2, progress=lambda *done: calls.append(done))
    assert calls == [(BATCH, 40), (40, 40)]


def test_score_counts(tiny_bundle, judge: Judge):
    one = draw_all(tiny_bundle, [request(tiny_bundle, ["Red"], 20, seed=0)], steps=2)[0]
    found = score(one, judge)
    says = judge.probabilities(one.samples.images)[:, tiny_bundle.names.index("Red")] > 0.5
    own = one.samples.probabilities[:, tiny_bundle.names.index("Red")] > 0.5
    assert found["judged_right"]["count"] == says.sum()
    assert found["self_consistent"]["count"] == own.sum()
    assert (found["chains"], found["required"]) == (20, ["Red"])
    both = summary([found, found])
    assert both["judged_right"]["of"] == 40
    assert both["judged_right"]["value"] == pytest.approx(found["judged_right"]["value"], abs=1e-6)


def test_the_filter_keeps_the_surest_tenth(tiny_bundle):
    one = draw_all(tiny_bundle, [request(tiny_bundle, ["Red"], 30, seed=0)], steps=2)[0]
    kept = filtered(one)
    best = one.samples.log_p_condition.sort(descending=True).values[:3]
    assert torch.equal(kept.samples.log_p_condition, best)
    with pytest.raises(ValueError, match="too few"):
        filtered(draw_all(tiny_bundle, [request(tiny_bundle, ["Red"], 5, seed=0)], steps=1)[0])


def test_share_has_an_interval():
    found = share(torch.tensor([True] * 30 + [False] * 10))
    assert found["value"] == 0.75
    assert found["low"] < 0.75 < found["high"]
    assert share(torch.zeros(0, dtype=torch.bool))["value"] is None


def test_shuffling_deals_every_condition_once(tiny_bundle, judge: Judge):
    drawn = draw_all(
        tiny_bundle, [request(tiny_bundle, [name], 10, i) for i, name in enumerate(("Red", "Left"))], steps=1
    )
    found = shuffled_right(drawn, judge)
    assert found["of"] == 20
    assert found == shuffled_right(drawn, judge)
