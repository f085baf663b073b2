"""Schedules: for each step of a chain its noise level, the coefficient of the gradient and the spread of the noise.

Every sampler here takes steps x <- x + grad_coef * gradient + noise_std * noise. What changes from step to step is
three numbers, and where they lead:

| step                                     | grad_coef                | noise_std        |
|------------------------------------------|--------------------------|------------------|
| Langevin at one level, rate eta          | eta sigma^2              | sqrt(2 eta) sigma|
| down to sigma', ancestral                | sigma^2 - sigma sigma_down | sigma_up       |
| down to sigma', deterministic            | sigma^2 - sigma sigma'   | 0                |
| the paper's (no noise level)             | grad_coef                | noise_std        |

with sigma_up^2 = sigma'^2 (sigma^2 - sigma'^2) / sigma^2 and sigma_down^2 = sigma'^2 - sigma_up^2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from jem_core.model import check_level

RHO = 7.0  # Karras et al.: how much denser the low levels lie
DESCENTS = ("ancestral", "deterministic")


class Step(NamedTuple):
    """One step: the level that it is taken at, its two numbers, and the level that it leads to."""

    sigma: float
    grad_coef: float
    noise_std: float
    to: float

    @property
    def temperature(self) -> float:
        """True Langevin dynamics at coefficient a and noise s has the stationary density p^(1/T), T = s^2 / (2 a)."""
        return self.noise_std**2 / (2 * self.grad_coef) if self.grad_coef else math.inf


def karras_levels(highest: float, lowest: float, count: int) -> list[float]:
    """`count` levels from highest to lowest, evenly spaced in their RHO-th root."""
    check_level(highest)
    check_level(lowest)
    if count < 1 or lowest > highest:
        raise ValueError(f"There are no {count} levels from {highest:g} down to {lowest:g}.")
    if count == 1:
        return [highest]
    high, low = highest ** (1 / RHO), lowest ** (1 / RHO)
    between = [(high + i / (count - 1) * (low - high)) ** RHO for i in range(1, count - 1)]
    return [highest, *between, lowest]  # the ends exactly: a chain stands at the first


def descend(levels: Sequence[float], kind: str = "ancestral") -> list[Step]:
    """Down these levels and from the last to 0, where a chain is the denoised picture."""
    if kind not in DESCENTS:
        raise ValueError(f"There is no descent {kind!r}; choose {' or '.join(DESCENTS)}.")
    for level in levels:
        check_level(level)
    for before, after in pairwise(levels):
        if after >= before:
            raise ValueError(f"The schedule rises from {before:g} to {after:g}; expected levels that fall.")
    return [_down(before, after, kind) for before, after in pairwise([*levels, 0.0])]


def _down(sigma: float, to: float, kind: str) -> Step:
    up = to * math.sqrt(sigma**2 - to**2) / sigma if kind == "ancestral" else 0.0
    down = math.sqrt(to**2 - up**2)
    return Step(sigma, sigma**2 - sigma * down, up, to)


def hold(sigma: float, rate: float, steps: int) -> list[Step]:
    """Langevin at one level: its stationary density is the model's at that level, up to the size of the rate."""
    check_level(sigma)
    if not 0 < rate < math.inf:
        raise ValueError(f"The Langevin rate is {rate!r}; expected a finite number above 0.")
    return [Step(sigma, rate * sigma**2, math.sqrt(2 * rate) * sigma, sigma)] * steps


def constant(grad_coef: float, noise_std: float, steps: int) -> list[Step]:
    """The paper's: the same two numbers at every step, no noise level."""
    for name, value in (("grad_coef", grad_coef), ("noise_std", noise_std)):
        if not (isinstance(value, int | float) and 0 <= value < math.inf):
            raise ValueError(f"{name} is {value!r}; expected a finite number of at least 0.")
    return [Step(0.0, grad_coef, noise_std, 0.0)] * steps
