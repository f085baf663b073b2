"""The numbers of a schedule, against the table in its module."""

import math
from itertools import pairwise

import pytest

from jem_core.schedules import Step, constant, descend, hold, karras_levels


def test_levels_fall_from_the_highest_to_the_lowest_and_lie_denser_below() -> None:
    levels = karras_levels(20.0, 0.02, 30)
    assert (levels[0], levels[-1], len(levels)) == (20.0, 0.02, 30)
    gaps = [before - after for before, after in pairwise(levels)]
    assert all(gap > 0 for gap in gaps)
    assert gaps == sorted(gaps, reverse=True)
    roots = [level ** (1 / 7) for level in levels]
    assert max(abs((a - b) - (roots[0] - roots[1])) for a, b in pairwise(roots)) < 1e-12


def test_the_way_down_follows_the_table() -> None:
    levels = karras_levels(3.0, 0.05, 6)
    for step, (sigma, to) in zip(descend(levels), pairwise([*levels, 0.0]), strict=True):
        up = math.sqrt(to**2 * (sigma**2 - to**2) / sigma**2)
        down = math.sqrt(to**2 - up**2)
        assert step == pytest.approx((sigma, sigma**2 - sigma * down, up, to))
    for step, (sigma, to) in zip(descend(levels, "deterministic"), pairwise([*levels, 0.0]), strict=True):
        assert step == pytest.approx((sigma, sigma**2 - sigma * to, 0.0, to))


def test_the_last_step_is_the_denoised_picture() -> None:
    """grad_coef = sigma^2 and no noise: x + sigma^2 gradient."""
    for kind in ("ancestral", "deterministic"):
        assert descend([2.0, 0.1], kind)[-1] == Step(0.1, pytest.approx(0.01), 0.0, 0.0)


def test_held_and_constant_steps() -> None:
    assert hold(0.5, 0.1, 3) == [Step(0.5, pytest.approx(0.025), pytest.approx(math.sqrt(0.2) * 0.5), 0.5)] * 3
    assert hold(0.5, 0.1, 1)[0].temperature == pytest.approx(1)  # true Langevin, whatever the rate
    assert constant(1.0, 0.001, 2) == [Step(0.0, 1.0, 0.001, 0.0)] * 2
    assert constant(1.0, 0.001, 1)[0].temperature == pytest.approx(5e-7)  # the paper's
    assert constant(0.0, 0.001, 1)[0].temperature == math.inf


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: descend([1.0, 2.0]), "The schedule rises from 1 to 2; expected levels that fall"),
        (lambda: descend([1.0, 1.0]), "The schedule rises from 1 to 1"),
        (lambda: descend([1.0, 0.0]), "The noise level is 0.0; expected a finite number above 0"),
        (lambda: descend([math.inf, 1.0]), "The noise level is inf"),
        (lambda: descend([2.0, 1.0], "sideways"), "no descent 'sideways'; choose ancestral or deterministic"),
        (lambda: karras_levels(math.inf, 0.1, 3), "The noise level is inf"),
        (lambda: karras_levels(1.0, 0.0, 3), "The noise level is 0.0"),
        (lambda: karras_levels(1.0, 2.0, 3), "no 3 levels from 1 down to 2"),
        (lambda: hold(1.0, 0.0, 3), "The Langevin rate is 0.0; expected a finite number above 0"),
        (lambda: hold(-1.0, 0.1, 3), "The noise level is -1.0"),
        (lambda: constant(-1.0, 0.1, 3), "grad_coef is -1.0; expected a finite number of at least 0"),
        (lambda: constant(1.0, math.nan, 3), "noise_std is nan"),
    ],
)
def test_bad_numbers_get_a_sentence(make, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()
