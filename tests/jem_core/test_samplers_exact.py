"""The samplers reach a distribution that is known in closed form, and kernels that are wrong do not.

1,000 independent chains start at uniform noise and run 500 steps at a true temperature (grad_coef = noise_std^2 / 2, no
clamp). Every statistic is averaged over the last 300 steps of each chain; its standard error is the spread of these
averages over chains divided by sqrt(1,000), which holds however strongly the steps of one chain are correlated. A
statistic may be off by four standard errors, plus what the finite step costs: unadjusted Langevin on a Gaussian of
precision p has the variance 1 / (p (1 - grad_coef p / 2)), 1.7 % too much here at worst.
"""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from jem_core.condition import FREE
from jem_core.gaussian import Preconditioner
from jem_core.random import Randomness, generator
from jem_core.samplers import SAMPLERS, ChainState, KernelSettings, Marginalizing, Resampling, Sampler
from jem_core.schedules import Step
from tests.jem_core.closed_form import ClosedFormModel, Moments

CHAINS, BURN_IN, STEPS, EVERY = 1000, 200, 300, 5
STANDARD_ERRORS = 4.0
STEP_COST = 0.017  # of a variance
MODEL = ClosedFormModel()
LARGEST_PRECISION = 45.0  # of p(x | y), over all y
NOISE = (2 * 2 * STEP_COST / LARGEST_PRECISION) ** 0.5
OTHER_TARGETS: set[str] = set()  # samplers that are meant to reach another distribution, and have a test of their own
CONDITIONS = {"unconditional": (FREE, FREE, FREE), "conditional": (1, FREE, 0)}


def preconditioner() -> Preconditioner:
    """Three random directions across all pixels, gains 2, 1 and 0.5."""
    basis = torch.linalg.qr(torch.randn(12, 3, generator=generator(3)))[0].T.contiguous()
    return Preconditioner(basis, torch.tensor([2.0, 1.0, 0.5]), 2.0)


def true_step(sampler: Sampler) -> Step:
    """A step at temperature 1."""
    # With the largest gain the step in that direction is three times as long: the same accuracy asks for less noise.
    noise = NOISE / 3**0.5 if sampler.settings.preconditioner else NOISE
    return Step(0.0, noise**2 / 2, noise, 0.0)


def settings(preconditioned: bool, steps_per_sweep: int = 1) -> KernelSettings:
    return KernelSettings(
        steps_per_sweep=steps_per_sweep,
        preconditioner=preconditioner() if preconditioned else None,
        clamp=False,
    )


def run(sampler: Sampler, condition: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """Each chain's averages of x, of x^2, and of y with all its pairs: (CHAINS, 12), (CHAINS, 12), (CHAINS, K, K)."""
    randomness, one = generator(0), true_step(sampler)
    assert one.temperature == pytest.approx(1)
    x = torch.rand(CHAINS, 3, 2, 2, generator=randomness)
    state = sampler.init(x, torch.tensor(condition).expand(CHAINS, -1), randomness)
    sums: list[Tensor] = [torch.zeros(())] * 3
    for step in range(BURN_IN + STEPS):
        state, _ = sampler.step(state, one, randomness)
        if step >= BURN_IN and step % EVERY == 0:  # steps this near to each other say almost the same
            x, y = state.x.flatten(1).double(), state.y.double()
            now = (x, x.square(), y[:, :, None] * y[:, None, :])
            sums = [total + value for total, value in zip(sums, now, strict=True)]
    return tuple(total / (STEPS // EVERY) for total in sums)


def check(averages: tuple[Tensor, Tensor, Tensor], truth: Moments) -> None:
    """The check that right kernels pass and wrong ones fail."""
    first, second, labels = averages
    assert torch.isfinite(first).all()
    # About the true mean, a chain's average of (x - mean)^2 estimates the variance without bias.
    spread = second - 2 * first * truth.mean + truth.mean.square()
    for name, values, expected, allowance in (
        ("mean", first, truth.mean, 0.0),
        ("variance", spread, truth.variance, STEP_COST),
        ("label frequency", labels.diagonal(dim1=1, dim2=2), truth.ones, 0.0),
        ("label pairs", labels, truth.both, 0.0),
    ):
        error = values.std(dim=0) / len(values) ** 0.5
        off = (values.mean(dim=0) - expected).abs()
        bound = STANDARD_ERRORS * error + allowance * expected + 1e-9
        assert (off <= bound).all(), f"{name}: off by {off}, allowed {bound}"


@pytest.mark.parametrize("preconditioned", [False, True], ids=["plain", "preconditioned"])
@pytest.mark.parametrize("asked", CONDITIONS)
@pytest.mark.parametrize("name", [name for name in SAMPLERS if name not in OTHER_TARGETS])
def test_the_samplers_reach_the_closed_form(name: str, asked: str, preconditioned: bool) -> None:
    condition = CONDITIONS[asked]
    sampler = SAMPLERS[name](MODEL, settings(preconditioned))
    check(run(sampler, condition), MODEL.moments(torch.tensor(condition)))


def test_two_langevin_steps_a_sweep_reach_it_too() -> None:
    condition = CONDITIONS["unconditional"]
    sampler = Resampling(MODEL, settings(False, steps_per_sweep=2))
    check(run(sampler, condition), MODEL.moments(torch.tensor(condition)))


class Wrong(Sampler):
    """A mistake that is mixed into one of the samplers."""


class LabelsStay(Wrong):
    """Wrong: the labels are never drawn again."""

    def draw_labels(self, logits: Tensor, state: ChainState, randomness: Randomness) -> Tensor:
        return state.y


class LabelsFromCoins(Wrong):
    """Wrong: the labels are drawn, but not from p(y | x)."""

    def draw_labels(self, logits: Tensor, state: ChainState, randomness: Randomness) -> Tensor:
        return super().draw_labels(torch.zeros_like(logits), state, randomness)


class WrongSign(Wrong):
    """Wrong: downhill."""

    def _move(self, x: Tensor, grad: Tensor, step: Step, randomness: Randomness) -> Tensor:
        return super()._move(x, -grad, step, randomness)


class TooMuchNoise(Wrong):
    """Wrong: sqrt 2 times the noise."""

    def _move(self, x: Tensor, grad: Tensor, step: Step, randomness: Randomness) -> Tensor:
        return super()._move(x, grad, step._replace(noise_std=step.noise_std * 2**0.5), randomness)


class TooLittleNoise(Wrong):
    """Wrong: sqrt 2 too little noise, which is Eq. 3 with its factor of 2 forgotten."""

    def _move(self, x: Tensor, grad: Tensor, step: Step, randomness: Randomness) -> Tensor:
        return super()._move(x, grad, step._replace(noise_std=step.noise_std / 2**0.5), randomness)


class MatrixForItsRoot(Wrong):
    """Wrong: the noise is multiplied by M instead of M^(1/2)."""

    def _move(self, x: Tensor, grad: Tensor, step: Step, randomness: Randomness) -> Tensor:
        right = self.settings.preconditioner
        squared = replace(right, gains=(1 + right.gains).square() - 1)  # its root is M
        noise = Resampling(self.model, replace(self.settings, preconditioner=squared))
        drift = super()._move(x, grad, step._replace(noise_std=0.0), generator(0))
        return drift + noise._move(x, grad, step._replace(grad_coef=0.0), randomness) - x


class ConditionIgnored(Wrong):
    """Wrong: moves under the marginal although something is asked for."""

    def log_density(self, logits: Tensor, y: Tensor, condition: Tensor) -> Tensor:
        return super().log_density(logits, y, torch.full_like(condition, FREE))


WRONG = [
    (LabelsStay, Resampling, "unconditional", False),
    (LabelsStay, Marginalizing, "unconditional", False),
    (LabelsFromCoins, Resampling, "unconditional", False),
    (LabelsFromCoins, Resampling, "conditional", False),
    (WrongSign, Resampling, "unconditional", False),
    (WrongSign, Marginalizing, "conditional", True),
    (TooMuchNoise, Resampling, "unconditional", False),
    (TooMuchNoise, Marginalizing, "conditional", False),
    (TooLittleNoise, Resampling, "conditional", True),
    (MatrixForItsRoot, Marginalizing, "unconditional", True),
    (ConditionIgnored, Marginalizing, "conditional", False),
]


@pytest.mark.parametrize(
    ("mistake", "kind", "asked", "preconditioned"),
    WRONG,
    ids=[f"{w.__name__}-{k.name}-{a}-{'M' if p else 'I'}" for w, k, a, p in WRONG],
)
def test_a_wrong_kernel_fails_the_same_check(
    mistake: type[Wrong], kind: type[Sampler], asked: str, preconditioned: bool
) -> None:
    condition = CONDITIONS[asked]
    wrong = type("WrongKernel", (mistake, kind), {})
    averages = run(wrong(MODEL, settings(preconditioned)), condition)
    with pytest.raises(AssertionError):
        check(averages, MODEL.moments(torch.tensor(condition)))


def test_the_closed_form_itself_agrees_with_a_grid() -> None:
    """The truth that samplers are measured by, against sums over a fine grid of one pixel."""
    model = ClosedFormModel(num_attributes=2, seed=1)
    condition = torch.tensor([FREE, 1])
    truth = model.moments(condition)
    grid = torch.linspace(-1.0, 2.0, 3001, dtype=torch.float64)
    density = torch.zeros_like(grid)
    for _, log_weight, mean, variance in model.joint(condition):
        bell = torch.exp(-0.5 * (grid - mean[4]) ** 2 / variance[4]) / (2 * torch.pi * variance[4]).sqrt()
        density += (log_weight - model.log_normalizer(condition)).exp().detach() * bell.detach()
    step = grid[1] - grid[0]
    assert (density.sum() * step).item() == pytest.approx(1, abs=1e-6)
    assert ((density * grid).sum() * step).item() == pytest.approx(truth.mean[4].item(), abs=1e-6)
    x = torch.rand(1, 3, 2, 2, generator=generator(0))
    for y, log_weight, mean, variance in model.joint(torch.full((2,), FREE)):
        normal = torch.distributions.Normal(mean, variance.sqrt()).log_prob(x.flatten().double()).sum()
        exponent = model.logits(x)[0, range(2), y].sum().double()
        torch.testing.assert_close(exponent, log_weight + normal, atol=1e-4, rtol=1e-5)
