"""Random numbers: one stream per batch or one per chain, the same for the same seed."""

import pytest
import torch

from jem_core.random import chain_generators, generator, normal, uniform


@pytest.mark.parametrize("draw", [normal, uniform])
def test_a_chain_does_not_see_its_neighbours(draw) -> None:
    sixteen = draw((16, 3, 2), chain_generators(7, 16), "cpu")
    for count in (1, 5):
        assert torch.equal(draw((count, 3, 2), chain_generators(7, count), "cpu"), sixteen[:count])
    alone = draw((1, 3, 2), chain_generators(7, 16)[9:10], "cpu")
    assert torch.equal(alone[0], sixteen[9])


def test_seeds_and_chains_have_streams_of_their_own() -> None:
    first = [uniform((1,), [g], "cpu").item() for seed in range(40) for g in chain_generators(seed, 50)]
    assert len(set(first)) == 2000
    mean = sum(first) / len(first)
    assert abs(mean - 0.5) < 4 * (1 / 12 / 2000) ** 0.5  # neighbouring seeds do not give related numbers
    lag = torch.tensor(first) - 0.5
    correlation = (lag[1:] * lag[:-1]).mean() * 12
    assert abs(correlation) < 4 / 2000**0.5


def test_the_moments_are_right() -> None:
    draws = normal((100_000,), generator(0), "cpu")
    assert abs(draws.mean()) < 4 / 100_000**0.5
    assert abs(draws.var() - 1) < 4 * (2 / 100_000) ** 0.5
    draws = uniform((100_000,), generator(0), "cpu")
    assert draws.min() >= 0
    assert draws.max() < 1


def test_generators_must_be_one_or_one_a_chain() -> None:
    with pytest.raises(ValueError, match="3 generators were given for 4 chains"):
        normal((4, 2), chain_generators(0, 3), "cpu")
