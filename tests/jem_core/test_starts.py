"""Where chains begin: every start gives images, and those that it promises."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from jem_core.buffer import JointBuffer, encode
from jem_core.bundle import Bundle
from jem_core.condition import Condition
from jem_core.random import chain_generators, generator, normal
from jem_core.settings import STARTS, starts_for
from jem_core.starts import Start
from tests.conftest import TINY_NAMES

RED = Condition.from_lists(TINY_NAMES, ["Red"])


def start(bundle: Bundle, kind: str, n: int = 8, seed: int = 0, condition: Condition = RED, **changes) -> Tensor:
    parts = Start(bundle.gaussian, changes.pop("buffer", bundle.buffer))
    return parts.images(kind, condition.tensor(n), chain_generators(seed, n), **({"given": given()} | changes))


def given() -> Tensor:
    return torch.rand(3, 3, 32, 32, generator=generator(0))


@pytest.mark.parametrize("kind", STARTS)
def test_every_start_gives_images_that_the_seed_decides(tiny_bundle: Bundle, kind: str) -> None:
    x = start(tiny_bundle, kind)
    assert x.shape == (8, 3, 32, 32)
    assert x.dtype == torch.float32
    assert x.min() >= 0
    assert x.max() <= 1
    assert torch.equal(start(tiny_bundle, kind), x)
    torch.testing.assert_close(start(tiny_bundle, kind, n=3), x[:3], atol=1e-6, rtol=0)  # chain i does not know n
    if kind == "noise":
        assert (x == 0.5).all()  # mid-grey: the noise of a high level falls on it
    elif kind != "images":
        assert not torch.equal(start(tiny_bundle, kind, seed=1), x)


@pytest.mark.parametrize("kind", ["conditional", "informed"])
def test_a_model_has_a_variety_of_its_own(tiny_bundle: Bundle, kind: str) -> None:
    def spread(bundle: Bundle, **changes: float) -> float:
        return bundle.chains(RED, 64, start=kind, **changes).state.x.std(dim=0).mean().item()

    calm = replace(tiny_bundle, config=tiny_bundle.config | {"sampling": {"variety": 0.5}})
    assert spread(calm) < 0.7 * spread(tiny_bundle)
    assert spread(tiny_bundle, variety=0.5) == spread(calm)
    assert spread(calm, variety=1.0) == spread(tiny_bundle)
    for bad in (-1, float("nan"), float("inf"), "much"):
        with pytest.raises(ValueError, match=f"variety is {bad!r}; expected a number from 0 to 2"):
            spread(calm, variety=bad)


def test_with_levels_a_chain_is_its_start_with_noise_on_top(tiny_levels: Bundle) -> None:
    """On the chains' own scale, at the level that was asked for; pure noise is at the highest."""
    for kind, level in (("conditional", 3.0), ("informed", 0.5), ("images", 1.0), ("noise", 20.0)):
        changes = {} if kind == "noise" else {"start_level": level}
        state = tiny_levels.chains(RED, 4, seed=7, images=given(), start=kind, **changes).state
        assert state.level == level
        randomness = chain_generators(7, 4)
        images = tiny_levels.start.images(kind, RED.tensor(4), randomness, given())
        for own in randomness:
            torch.rand(len(TINY_NAMES), generator=own)  # the coins of the free labels
        expected = 2 * images - 1 + level * normal(images.shape, randomness, "cpu")
        torch.testing.assert_close(state.x, expected)


@pytest.mark.parametrize("start", ["conditional", "informed", "images"])
def test_nothing_of_an_image_is_left_at_a_high_level_and_all_of_it_at_a_low_one(
    tiny_levels: Bundle, start: str
) -> None:
    shown = {}
    for level in (0.02, 20.0):
        chains = tiny_levels.chains(RED, 8, images=given(), start=start, start_level=level)
        x = tiny_levels.start.images(start, RED.tensor(8), chain_generators(0, 8), given())
        shown[level] = torch.corrcoef(torch.stack([chains.state.x.flatten(), x.flatten()]))[0, 1].item()
    assert shown[0.02] > 0.95
    assert shown[20.0] < 0.1


def where_from(buffer: JointBuffer, x: Tensor) -> list[int]:
    """The slots whose stored bytes these images decode from; one value in 10^5 may round up to the next byte."""
    distance = torch.cdist(encode(x).flatten(1).float(), buffer.images.flatten(1).float())
    assert (distance.min(dim=1).values < 20).all()  # others are 1,000 away; cdist rounds
    return distance.argmin(dim=1).tolist()


def test_buffer_starts_are_stored_samples(tiny_bundle: Bundle) -> None:
    buffer, matching = tiny_bundle.buffer, tiny_bundle.buffer.matching(RED.tensor()).tolist()
    assert 0 < len(matching) < len(buffer)
    assert set(where_from(buffer, start(tiny_bundle, "buffer-match", 200))) == set(matching)
    assert set(where_from(buffer, start(tiny_bundle, "buffer-any", 600))) == set(range(len(buffer)))


def test_a_combination_that_the_buffer_lacks_starts_anywhere(tiny_bundle: Bundle) -> None:
    novel = Condition.from_lists(TINY_NAMES, ["Red", "Striped"])  # held out: no training image has it
    assert len(tiny_bundle.buffer.matching(novel.tensor())) == 0
    found = where_from(tiny_bundle.buffer, start(tiny_bundle, "buffer-match", 300, condition=novel))
    assert len(set(found)) > len(tiny_bundle.buffer) / 2


def test_conditional_noise_leans_to_what_is_asked(tiny_bundle: Bundle) -> None:
    """Red images are redder, and a combination without data gets both of its parts."""
    red, plain = (start(tiny_bundle, kind, 200).mean(dim=(0, 2, 3)) for kind in ("conditional", "informed"))
    assert red[0] - red[1:].mean() > plain[0] - plain[1:].mean() + 0.1
    novel = Condition.from_lists(TINY_NAMES, ["Red", "Striped"])
    both = start(tiny_bundle, "conditional", 200, condition=novel).mean(dim=(0, 2, 3))
    assert both[0] - both[1:].mean() > plain[0] - plain[1:].mean() + 0.1


def test_given_images_are_taken_in_turn(tiny_bundle: Bundle) -> None:
    images = given()
    assert torch.equal(start(tiny_bundle, "images", 7), images[[0, 1, 2, 0, 1, 2, 0]])


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (
            "zeros",
            {},
            "no start 'zeros'; choose one of conditional, informed, noise, uniform, buffer-match, buffer-any, images",
        ),
        ("conditional", {"condition": Condition.free(("Red",))}, r"condition is \(8, 1\); this start expects \(8, 6\)"),
        ("images", {"given": None}, "no image was given"),
        ("images", {"given": torch.empty(0, 3, 32, 32)}, "no image was given"),
        ("images", {"given": torch.rand(1, 3, 64, 64)}, r"\(1, 3, 64, 64\); expected \(N, 3, 32, 32\)"),
        ("images", {"given": torch.full((1, 3, 32, 32), 2.0)}, "range from 2 to 2"),
        ("images", {"given": torch.full((1, 3, 32, 32), torch.nan)}, "range from nan"),
        ("buffer-any", {"buffer": None}, "'buffer-any', but the model has no buffer samples"),
        ("buffer-match", {"buffer": JointBuffer.empty(4, 32, 6)}, "no buffer samples"),
    ],
)
def test_a_start_that_cannot_be_is_refused(tiny_bundle: Bundle, kind: str, changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        start(tiny_bundle, kind, **changes)


def test_each_kind_of_model_has_its_own_starts(tiny_bundle: Bundle, tiny_levels: Bundle) -> None:
    assert set(starts_for(True)) == {"conditional", "informed", "noise", "images"}
    assert set(starts_for(False)) == {"conditional", "informed", "uniform", "buffer-match", "buffer-any", "images"}
    with pytest.raises(ValueError, match="start is 'noise', which a model with no noise levels does not have"):
        tiny_bundle.chains(RED, 1, start="noise")
    with pytest.raises(ValueError, match="start is 'buffer-any', which a model with noise levels does not have"):
        tiny_levels.chains(RED, 1, start="buffer-any")


def test_rows_of_different_conditions_each_begin_at_their_own(tiny_bundle: Bundle) -> None:
    """As draws side by side do: a row that asks for something no sample has takes any, the others match."""
    asked = torch.cat([RED.tensor(40), Condition.from_lists(TINY_NAMES, [], ["Red"]).tensor(40)])
    images = tiny_bundle.start.images("buffer-match", asked, chain_generators(0, 80))
    slots = where_from(tiny_bundle.buffer, images)
    assert torch.equal(tiny_bundle.buffer.labels[slots, 0].long(), asked[:, 0])
