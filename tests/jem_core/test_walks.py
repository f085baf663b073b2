"""Walks as text, and the chains that follow them."""

import pytest
import torch

from jem_core.bundle import Bundle
from jem_core.data.facts import DataFacts
from jem_core.walks import arrive, parse_walk, run_walk


def said(walk: str, bundle: Bundle) -> list[str]:
    return [str(condition) for condition in parse_walk(walk, bundle)]


def test_toggles_require_exclude_and_free(tiny_bundle: Bundle) -> None:
    walk = "Red+Bright; -Bright; +Left; ~Red -Left ; Framed"
    assert said(walk, tiny_bundle) == [
        "Red and Bright",
        "Red, not Bright",
        "Red and Left, not Bright",
        "not Bright or Left",
        "Framed, not Bright or Left",
    ]
    assert said("", tiny_bundle) == ["anything"]
    assert said("~Red; Red", tiny_bundle) == ["anything", "Red"]


def test_what_cannot_be_true_beside_it_is_freed(tiny_bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = DataFacts("tiny", "Tiny", groups=(("Red", "Bright"), ("Red", "Left")))
    monkeypatch.setitem(tiny_bundle.__dict__, "data", facts)
    assert said("Red+Striped; Bright; Left; Red", tiny_bundle) == [
        "Red and Striped",
        "Bright and Striped",
        "Bright and Striped and Left",
        "Red and Striped",
    ]
    assert said("Red; -Bright", tiny_bundle) == ["Red", "Red, not Bright"]  # excluding one says nothing of the other


@pytest.mark.parametrize("walk", ["Reed", "Red; Striped; Brght", "Red + Nobody", "Red Striped", "+"])
def test_an_unknown_name_gets_the_nearest(tiny_bundle: Bundle, walk: str) -> None:
    with pytest.raises(ValueError, match="There is no attribute"):
        parse_walk(walk, tiny_bundle)


def test_a_walk_is_what_steering_does(tiny_levels: Bundle) -> None:
    conditions = parse_walk("Red; +Striped; -Red", tiny_levels)
    walk = run_walk(tiny_levels, conditions, n=2, seed=3)
    assert walk.images.shape == (3, 2, 3, 32, 32)
    assert not walk.diverged.any()
    chains = tiny_levels.chains(conditions[0], 2, seed=3)
    arrive(chains)
    for row, condition in enumerate(conditions[1:], start=1):
        chains.steer(condition)
        arrive(chains)
        torch.testing.assert_close(walk.images[row], chains.images())
    with pytest.raises(ValueError, match="The walk is empty"):
        run_walk(tiny_levels, [], n=2)
