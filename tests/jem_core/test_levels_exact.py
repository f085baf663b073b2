"""Both samplers over noise levels reach a distribution known in closed form, and kernels that are wrong do not.

3,000 independent chains. Every statistic is taken of the last state of each chain, so its standard error is the spread
over chains divided by sqrt(3,000); it may be off by four of them, plus what finite steps cost: a variance by 3.5 %.
"""

import pytest
import torch
from torch import Tensor

from jem_core.condition import FREE
from jem_core.random import Randomness, generator
from jem_core.samplers import ChainState, KernelSettings, Marginalizing, Resampling, Sampler, StepInfo, lift
from jem_core.schedules import Step, descend, hold, karras_levels
from tests.jem_core.blurred import BlurredModel
from tests.jem_core.closed_form import Moments

CHAINS, STANDARD_ERRORS, STEP_COST = 3000, 4.0, 0.035
MODEL = BlurredModel()
EXACT = KernelSettings(clamp=False)
CONDITIONS = {"free": (FREE, FREE, FREE), "conditional": (1, FREE, 0)}
HIGHEST, LOWEST, LEVELS = 20.0, 0.02, 300
HELD = 0.5  # the level that chains are held at
RATE, HELD_STEPS = 0.05, 250
KERNELS = [Resampling, Marginalizing]


def asked(name: str) -> Tensor:
    return torch.tensor(CONDITIONS[name])


def check(x: Tensor, y: Tensor, truth: Moments) -> None:
    """The check that right kernels pass and wrong ones fail."""
    x, y = x.flatten(1).double(), y.double()
    assert torch.isfinite(x).all()
    spread = (x - truth.mean).square()
    for name, values, expected, allowance in (
        ("mean", x, truth.mean, 0.0),
        ("variance", spread, truth.variance, STEP_COST),
        ("label frequency", y, truth.ones, 0.0),
        ("label pairs", y[:, :, None] * y[:, None, :], truth.both, 0.0),
    ):
        error = values.std(dim=0) / len(values) ** 0.5
        off = (values.mean(dim=0) - expected).abs()
        bound = STANDARD_ERRORS * error + allowance * expected + 1e-9
        assert (off <= bound).all(), f"{name}: off by {off}, allowed {bound}"


def run(kernel: Sampler, state: ChainState, steps: list[Step], randomness: Randomness) -> ChainState:
    for step in steps:
        state, _ = kernel.step(state, step, randomness)
    return state


def come_down(kernel: Sampler, name: str, kind: str = "ancestral") -> ChainState:
    """From pure noise to pictures; the labels are drawn at the pictures themselves."""
    randomness = generator(0)
    condition = asked(name).expand(CHAINS, -1)
    noise = HIGHEST * torch.randn(CHAINS, 3, 2, 2, generator=randomness)
    state = kernel.init(noise, condition, randomness, level=HIGHEST)
    state = run(kernel, state, descend(karras_levels(HIGHEST, LOWEST, LEVELS), kind), randomness)
    return kernel.resample_labels(state, randomness)[0]


def stay(kernel: Sampler, name: str, steps: list[Step] | None = None) -> ChainState:
    """Langevin at one level, from far outside."""
    randomness = generator(0)
    condition = asked(name).expand(CHAINS, -1)
    state = kernel.init(torch.randn(CHAINS, 3, 2, 2, generator=randomness), condition, randomness, level=HELD)
    state = run(kernel, state, steps or hold(HELD, RATE, HELD_STEPS), randomness)
    return kernel.resample_labels(state, randomness)[0]


# Labels drawn at every step are noise of their own, so without other noise resampling is not exact on its way down.
WAYS = [(Resampling, "ancestral"), (Marginalizing, "ancestral"), (Marginalizing, "deterministic")]


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize(("kernel", "kind"), WAYS)
def test_down_from_pure_noise_they_reach_the_closed_form(kernel: type[Sampler], name: str, kind: str) -> None:
    end = come_down(kernel(MODEL, EXACT), name, kind)
    assert end.level == 0
    check(end.x, end.y, MODEL.moments(asked(name), 0.0))


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_held_at_one_level_they_reach_the_closed_form(kernel: type[Sampler], name: str) -> None:
    end = stay(kernel(MODEL, EXACT), name)
    assert end.level == HELD
    check(end.x, end.y, MODEL.moments(asked(name), HELD))


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_lift_is_the_blur_itself(name: str) -> None:
    randomness = generator(0)
    condition = asked(name).expand(CHAINS, -1)
    x, y = MODEL.sample(condition, randomness)
    kernel = Marginalizing(MODEL, EXACT)
    for start, level in ((0.0, 2.0), (0.7, 2.0)):
        state = kernel.init(x, condition, randomness, y)
        state = lift(state, start, randomness) if start else state
        check(lift(state, level, randomness).x, y, MODEL.moments(asked(name), level))


def test_lifted_and_brought_down_again_samples_stay_samples() -> None:
    """What steering does when nothing changed; and what wandering does for ever."""
    randomness = generator(0)
    condition = asked("free").expand(CHAINS, -1)
    kernel = Resampling(MODEL, EXACT)
    x, y = MODEL.sample(condition, randomness)
    state = kernel.init(x, condition, randomness, y)
    for _ in range(2):
        state = lift(state, 1.0, randomness)
        state = run(kernel, state, descend(karras_levels(1.0, LOWEST, 60)), randomness)
    state, _ = kernel.resample_labels(state, randomness)
    check(state.x, state.y, MODEL.moments(asked("free"), 0.0))


class LabelsOfAnotherLevel(Resampling):
    """Wrong: the labels are drawn as if the image were three times as noisy."""

    def draw_labels(self, logits: Tensor, state: ChainState, randomness: Randomness) -> Tensor:
        if state.level == 0:
            return super().draw_labels(logits, state, randomness)
        return super().draw_labels(self.model.at(3 * state.level).logits(state.x), state, randomness)


class TooMuchNoise(Marginalizing):
    """Wrong: sqrt 2 times the noise."""

    def step(self, state: ChainState, step: Step, randomness: Randomness) -> tuple[ChainState, StepInfo]:
        return super().step(state, step._replace(noise_std=step.noise_std * 2**0.5), randomness)


class CoefficientOfAnotherLevel(Marginalizing):
    """Wrong: grad_coef belongs to a level a fifth lower."""

    def step(self, state: ChainState, step: Step, randomness: Randomness) -> tuple[ChainState, StepInfo]:
        return super().step(state, step._replace(grad_coef=step.grad_coef * 0.8**2), randomness)


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("kernel", [LabelsOfAnotherLevel, TooMuchNoise, CoefficientOfAnotherLevel])
@pytest.mark.parametrize("way", [come_down, stay])
def test_a_wrong_kernel_fails_the_same_check(way, kernel: type[Sampler], name: str) -> None:
    end = way(kernel(MODEL, EXACT), name)
    with pytest.raises(AssertionError):
        check(end.x, end.y, MODEL.moments(asked(name), end.level))


def test_a_lift_without_its_noise_fails() -> None:
    randomness = generator(0)
    condition = asked("free").expand(CHAINS, -1)
    x, y = MODEL.sample(condition, randomness)
    with pytest.raises(AssertionError):
        check(x, y, MODEL.moments(asked("free"), 2.0))
    kernel = Marginalizing(MODEL, EXACT)
    still = kernel.init(x, condition, randomness, y)._replace(level=2.0)  # says that it was lifted, and was not
    end = run(kernel, still, descend(karras_levels(2.0, LOWEST, 60)), randomness)
    end, _ = kernel.resample_labels(end, randomness)
    with pytest.raises(AssertionError):
        check(end.x, end.y, MODEL.moments(asked("free"), 0.0))
