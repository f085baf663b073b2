"""A larger network that begins as a smaller one: the same function, free to learn more, and what is refused."""

import pytest
import torch

from jem_core.networks.growth import grow
from jem_core.networks.residual import ResidualModel
from tests.jem_core.test_residual import noisy, small_model

BEFORE = {"widths": (4, 8), "blocks": (1, 1), "attention": 0, "ascent": 0}
GROWN = {
    "more blocks": {"blocks": (2, 3)},
    "wider at the finest": {"widths": (6, 8)},
    "wider at the coarsest": {"widths": (4, 12)},
    "a way up": {"ascent": 1},
    "all of it": {"widths": (8, 16), "blocks": (2, 2), "ascent": 2},
    "around attention": {"widths": (6, 8), "blocks": (2, 2), "attention": 8},
}


def fresh(**changes: object) -> ResidualModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        return ResidualModel(["a0", "a1", "a2"], **({"image_size": 32} | BEFORE | changes))


@pytest.mark.parametrize("how", GROWN)
def test_a_grown_network_is_the_same_function(how: str) -> None:
    small = small_model(**(BEFORE | {"attention": GROWN[how].get("attention", 0)}))
    large = fresh(**GROWN[how])
    x, sigma = noisy(3), torch.tensor([0.05, 0.5, 5.0])
    assert not torch.allclose(large(x, sigma), small(x, sigma), rtol=1e-3)
    grow(large, small)
    torch.testing.assert_close(large(x, sigma), small(x, sigma), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("how", GROWN)
def test_what_was_added_learns(how: str) -> None:
    """No weight is stuck: two steps of gradient descent reach those behind the zeros too."""
    small = small_model(**(BEFORE | {"attention": GROWN[how].get("attention", 0)}))
    large = fresh(**GROWN[how])
    grow(large, small)
    optimizer = torch.optim.Adam(large.parameters(), 1e-2)
    before = {name: value.clone() for name, value in large.named_parameters()}
    for step in range(3):
        optimizer.zero_grad()
        large(noisy(3, sigma=0.5 + step), torch.tensor([0.05, 0.5, 5.0])).square().mean().backward()
        optimizer.step()
    for name, value in large.named_parameters():
        assert (value != before[name]).float().mean() > 0.5, name


REFUSED = {
    "fewer blocks": ({"blocks": (1, 0)}, "can grow, but not shrink"),
    "narrower": ({"widths": (2, 8)}, "can grow, but not shrink"),
    "no way up": ({"ascent": 0}, "can grow, but not shrink"),
    "another fold": ({"fold": 1}, "another fold"),
    "another size": ({"image_size": 64}, "another image_size"),
    "more resolutions": ({"widths": (4, 8, 8), "blocks": (1, 1, 1)}, "another number of resolutions"),
    "wider attention": ({"attention": 8, "widths": (4, 12)}, "cannot grow to 12"),
}


@pytest.mark.parametrize("how", REFUSED)
def test_what_cannot_grow_is_refused_with_a_sentence(how: str) -> None:
    changes, words = REFUSED[how]
    small = small_model(**(BEFORE | {"attention": changes.get("attention", 0), "ascent": int(how == "no way up")}))
    large = fresh(**changes)
    before = {name: value.clone() for name, value in large.named_parameters()}
    with pytest.raises(ValueError, match=words):
        grow(large, small)
    assert all(torch.equal(value, before[name]) for name, value in large.named_parameters())
