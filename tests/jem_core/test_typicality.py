"""The gate: on figures whose distribution is known, and on pictures that are plainly strange."""

import json

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from jem_core.bundle import Bundle
from jem_core.data.dataset import Dataset
from jem_core.strangers import crops_beside, strangers
from jem_core.typicality import LEVELS, TURNED_FROM, TURNS, Gate, figures, fit, gate_report


def known(n: int, seed: int = 0) -> np.ndarray:
    """Three correlated normal figures of very different sizes."""
    mixed = np.random.default_rng(seed).normal(size=(n, 3)) @ np.array([[1, 0.9, 0], [0, 0.3, 0], [0, 0, 1]])
    return mixed * [1000, 0.01, 1] + [5, 5, -70]


def test_distances_of_a_gaussian_are_what_theory_says():
    gate = fit(known(20_000), known(20_000, seed=1))
    squared = 3 * gate.quantiles**2
    for percent in (10, 50, 95):
        assert squared[2 * percent] == pytest.approx(chi2(3).ppf(percent / 100), rel=0.05)


def test_without_other_images_either_half_is_ranked_under_the_other():
    crossed, honest = fit(known(400)), fit(known(400), known(20_000, seed=1))
    assert crossed.quantiles[100] == pytest.approx(honest.quantiles[100], rel=0.08)


def test_the_verdict_is_a_rank_and_strange_is_far_on_any_side():
    gate = fit(known(5_000), known(5_000, seed=1))
    verdicts = [gate.read(value).verdict for value in gate.distance(known(10_000, seed=2))]
    assert verdicts.count("inside") / 10_000 == pytest.approx(0.95, abs=0.01)
    assert verdicts.count("unlike") / 10_000 == pytest.approx(0.01, abs=0.005)
    middle = np.array([5.0, 5.0, -70.0])
    assert gate.read(gate.distance(middle[None])[0]).verdict == "inside"
    for way in ([6000, 0, 0], [-6000, 0, 0], [0, 0, 8], [0, 0, -8], [1000, -0.009, 0]):  # the last: against the grain
        found = gate.read(gate.distance((middle + way)[None])[0])
        assert (found.verdict, found.beyond, found.percentile) == ("unlike", True, 100)
    assert gate.read(float("nan")).verdict == "unlike"


def test_a_gate_goes_through_json():
    gate = fit(known(500))
    again = Gate.from_json(json.loads(json.dumps(gate.as_json())))
    assert again.distance(known(50, seed=3)) == pytest.approx(gate.distance(known(50, seed=3)), rel=1e-3)
    with pytest.raises(ValueError, match="evaluate the model again"):
        Gate.from_json({"score": {}})
    with pytest.raises(ValueError, match="expects 3"):
        gate.distance(np.zeros((1, 4)))


def test_a_gate_needs_figures():
    with pytest.raises(ValueError, match="there are 2"):
        fit(known(2))
    with pytest.raises(ValueError, match="finite"):
        fit(np.full((9, 3), np.nan))


@pytest.mark.parametrize("kind", ["tiny_bundle", "tiny_levels"])
def test_a_picture_has_one_answer(kind: str, request: pytest.FixtureRequest, tiny_dataset: Dataset):
    bundle: Bundle = request.getfixturevalue(kind)
    images = tiny_dataset.tensors(np.arange(20))[0]
    together = figures(bundle.model, images)
    assert np.isfinite(together).all()
    alone = np.concatenate([figures(bundle.model, image[None]) for image in images])
    assert together == pytest.approx(alone, rel=1e-3, abs=1e-3)
    with pytest.raises(ValueError, match="uint8"):
        figures(bundle.model, images.float())


def test_a_turned_copy_swaps_the_sign_of_what_it_is_held_against(tiny_levels: Bundle, tiny_dataset: Dataset):
    """x against x turned by two quarters, seen from either side."""
    images = tiny_dataset.tensors(np.arange(4))[0]
    upright, turned = (figures(tiny_levels.model, x) for x in (images, images.rot90(2, (-2, -1))))
    plain = 4 * sum(level < TURNED_FROM for level in LEVELS)
    half = plain + 4 + TURNS.index(2)  # the error at the first level with turned copies
    assert upright[:, half] == pytest.approx(-turned[:, half], rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("kind", ["tiny_bundle", "tiny_levels"])
def test_strangers_are_found(kind: str, request: pytest.FixtureRequest, tiny_dataset: Dataset):
    bundle: Bundle = request.getfixturevalue(kind)
    first = tiny_dataset.tensors(tiny_dataset.indices("val"))[0]
    second = tiny_dataset.tensors(tiny_dataset.indices("test"))[0]
    shown = {"noise": strangers(second[:20])["noise"], "the same data": first[:20]}
    report = gate_report(bundle.model, first, second, shown)
    assert report["auroc"]["noise"]["value"] > 0.95
    assert report["auroc"]["the same data"]["value"] < 0.7
    assert report["worst_auroc"] == report["auroc"]["the same data"]["value"]
    assert (report["images"], report["ordinary_images"]) == (len(first), len(second))
    assert sum(report["ordinary_share"].values()) == pytest.approx(1, abs=1e-5)
    assert Gate.from_json(json.loads(json.dumps(report))).read(0.0).verdict == "inside"


def test_strangers_are_as_many_as_images_and_reproducible(tiny_dataset: Dataset):
    images = tiny_dataset.tensors(np.arange(9))[0]
    plain, of_faces = strangers(images), strangers(images, faces=True)
    assert set(of_faces) - set(plain) == {"beside the face"}
    assert all(x.shape == images.shape and x.dtype == torch.uint8 for x in of_faces.values())
    assert torch.equal(plain["upside down"], images.rot90(2, (-2, -1)))
    assert torch.equal(crops_beside(images), crops_beside(images))
    assert not torch.equal(crops_beside(images), crops_beside(images, seed=1))


def test_crops_beside_miss_the_middle():
    """A picture with a white middle: no window is filled by it."""
    images = torch.zeros((30, 3, 64, 64), dtype=torch.uint8)
    images[:, :, 24:40, 24:40] = 255
    middles = crops_beside(images)[:, :, 24:40, 24:40].float().mean(dim=(1, 2, 3))
    assert middles.max() < 128
