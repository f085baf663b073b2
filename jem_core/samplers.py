"""Langevin-within-Gibbs as pure kernels: `init` and `step` over ChainState, with StepInfo for each chain.

`resampling` is Algorithm 2 of the paper (Algorithm 1 when nothing is conditioned): it draws the free labels and moves
the image under the joint energy. `marginalizing` is Algorithm 3: it moves the image under log p~(x, y_c), all free
labels summed out. They differ in one line, the target; trainer, command line and app all step this kernel. How large a
step is, and at which noise level, a schedule says (`jem_core.schedules`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from jem_core.condition import FREE
from jem_core.gaussian import Preconditioner
from jem_core.model import JointEnergyModel, check_images, check_labels, check_shape, log_prob_from_logits
from jem_core.precision import PRECISIONS, compute_in
from jem_core.random import Randomness, normal, uniform
from jem_core.schedules import Step

SATURATED_SHARE = 0.6  # of an image's values at exactly 0 or 1: no picture has that, a chain stuck in a corner does


class ChainState(NamedTuple):
    """What a chain carries on. To steer running chains, replace `condition`: only what follows changes."""

    x: Tensor  # (N, 3, S, S) on the model's own scale, with the noise of its level
    y: Tensor  # (N, K) int64 in {0, 1}
    condition: Tensor  # (N, K) int64: 1 required, 0 excluded, -1 free
    step: int
    level: float = 0.0  # the noise level that x stands at


class StepInfo(NamedTuple):
    """What a step tells of each chain, at the image it started from; thrown away by whoever does not look."""

    energy: Tensor  # (N,) minus the sampler's own log target, without guidance
    log_marginal: Tensor  # (N,) log p~(x, y_c), the free labels summed out: the same for both samplers
    grad_norm: Tensor  # (N,)
    flipped: Tensor  # (N, K) bool: labels that this step changed
    log_p_condition: Tensor  # (N,) log p(y_c | x), 0 when nothing is asked
    probabilities: Tensor  # (N, K) P(y_k = 1 | x)
    denoised: Tensor  # (N, 3, S, S) where the chain is heading: x + sigma^2 gradient; without a noise level x itself
    diverged: Tensor  # (N,) bool


@dataclass(frozen=True)
class KernelSettings:
    """What a kernel does besides the three numbers of a schedule."""

    guidance: float = 1.0  # weight on log p(y_c | x); 1 is the paper
    guidance_from: float = 0.0  # the lowest level at which the weight is not 1
    guidance_to: float = float("inf")  # the highest
    margin: float = 0.0  # log odds that guidance asks for: it treats what is asked as that much rarer than it is
    strengths: Tensor | None = None  # (K,) or (N, K): the guidance of each attribute, as a multiple of the common one
    steps_per_sweep: int = 1  # Langevin steps for each draw of the labels
    grad_clamp: float | None = None  # bound on each element of the gradient
    preconditioner: Preconditioner | None = None
    clamp: bool = True  # keep pictures in their range
    precision: str = "float32"  # of the convolutions

    def __post_init__(self) -> None:
        for name in ("guidance", "guidance_from", "guidance_to", "margin"):
            value = getattr(self, name)
            finite = name == "guidance_to" or value != float("inf")
            if not (isinstance(value, int | float) and value >= 0 and finite):
                raise ValueError(f"{name} is {value!r}; expected a finite number of at least 0.")
        if self.guidance_from > self.guidance_to:
            between = f"from {self.guidance_from:g} to {self.guidance_to:g}"
            raise ValueError(
                f"Guidance acts {between}, which is at no level; expected guidance_from below guidance_to."
            )
        bound = self.grad_clamp
        if bound is not None and not (isinstance(bound, int | float) and bound > 0):
            raise ValueError(f"grad_clamp is {bound!r}; expected None or a bound above 0.")
        if not isinstance(self.steps_per_sweep, int) or self.steps_per_sweep < 1:
            raise ValueError(f"steps_per_sweep is {self.steps_per_sweep!r}; expected a whole number of at least 1.")
        if self.precision not in PRECISIONS:
            raise ValueError(f"The precision is {self.precision!r}; choose {' or '.join(PRECISIONS)}.")

    def extra_weights(self, sigma: float) -> Tensor | float:
        """What is added to the weight 1 of each attribute's log p(y_k | x) at this level."""
        if not self.guidance_from <= sigma <= self.guidance_to:
            return 0.0
        return (self.guidance if self.strengths is None else self.guidance * self.strengths) - 1


class Sampler(ABC):
    """A sampler bound to a model and its settings. It holds no state: chains do."""

    name: ClassVar[str]

    def __init__(self, model: JointEnergyModel, settings: KernelSettings | None = None) -> None:
        self.model = model
        self.settings = settings or KernelSettings()

    @abstractmethod
    def log_density(self, logits: Tensor, y: Tensor, condition: Tensor) -> Tensor:
        """The log density whose gradient moves the image, without guidance. (N,)."""

    def draw_labels(self, logits: Tensor, state: ChainState, randomness: Randomness) -> Tensor:
        """The Gibbs half of a sweep: y ~ p(y | x). (N, K)."""
        return draw_free_labels(logits, state.condition, randomness)

    def init(
        self, x: Tensor, condition: Tensor, randomness: Randomness, y: Tensor | None = None, level: float = 0.0
    ) -> ChainState:
        """Chains at x, on the model's own scale; labels neither given nor conditioned begin at fair coins."""
        if self.model.levels:
            check_shape(x, self.model.image_size)
        else:
            check_images(x, self.model.image_size)
        expected = (x.shape[0], self.model.num_attributes)
        check_labels(condition, condition != FREE, expected, "the condition")
        if y is None:
            y = (uniform(expected, randomness, x.device) < 0.5).long()
        else:
            check_labels(y, None, expected)
        return ChainState(x.detach(), torch.where(condition == FREE, y, condition), condition, 0, level)

    def step(self, state: ChainState, step: Step, randomness: Randomness) -> tuple[ChainState, StepInfo]:
        """One Langevin step, after a draw of the labels where a sweep begins: one forward and one backward in all."""
        return self._advance(state, step, randomness, draw_labels=state.step % self.settings.steps_per_sweep == 0)

    def langevin(self, state: ChainState, step: Step, randomness: Randomness) -> tuple[ChainState, StepInfo]:
        """The second half of a sweep alone: the image moves, the labels stay."""
        return self._advance(state, step, randomness, draw_labels=False)

    @torch.no_grad()
    def resample_labels(self, state: ChainState, randomness: Randomness) -> tuple[ChainState, StepInfo]:
        """The first half of a sweep alone: y ~ p(y | x) exactly, the image stays. A clean image is seen at the model's
        lowest level."""
        logits = self.model.at(state.level or self.model.lowest).logits(state.x)
        y = self.draw_labels(logits, state, randomness)
        info = self._info(logits, y, state, torch.zeros_like(state.x), 0.0)
        return state._replace(y=y), info

    def differentiable_langevin(self, state: ChainState, step: Step, randomness: Randomness) -> Tensor:
        """The images after one more step, as a function of the weights: what the KL term back-propagates through."""
        x = state.x.detach().requires_grad_()
        # torch.compile replaces the bound method and knows no second derivative: take the class's own.
        logits = type(self.model).logits(self.model, x)
        target = self._target(logits, state.y, state.condition, step.sigma)
        (grad,) = torch.autograd.grad(target.sum(), x, create_graph=True)
        return self._move(x.detach(), grad, step, randomness)

    def _advance(
        self, state: ChainState, step: Step, randomness: Randomness, draw_labels: bool
    ) -> tuple[ChainState, StepInfo]:
        if step.sigma != state.level:
            raise ValueError(f"The step is for noise level {step.sigma:g}; the chains stand at {state.level:g}.")
        with torch.enable_grad():
            x = state.x.detach().requires_grad_()
            with compute_in(self.settings.precision, x.device):
                logits = self.model.at(step.sigma).logits(x)
            if draw_labels:
                y = self.draw_labels(logits.detach(), state, randomness)
            else:
                y = torch.where(state.condition == FREE, state.y, state.condition)
            (grad,) = torch.autograd.grad(self._target(logits, y, state.condition, step.sigma).sum(), x)
        with torch.no_grad():
            info = self._info(logits.detach(), y, state, grad, step.sigma)
            if step.sigma:  # towards the denoised picture, which stays one however strong the guidance
                grad = (info.denoised - state.x) / step.sigma**2
            moved = self._move(state.x, grad, step, randomness)
        return ChainState(moved, y, state.condition, state.step + 1, step.to), info

    def _target(self, logits: Tensor, y: Tensor, condition: Tensor, sigma: float) -> Tensor:
        """The log density whose gradient moves the image; guidance adds weight to log p(y_c | x)."""
        target = self.log_density(logits, y, condition)
        extra = self.settings.extra_weights(sigma)
        if isinstance(extra, Tensor) or extra:
            target = target + (extra * log_p_each(logits, condition, self.settings.margin)).sum(dim=-1)
        return target

    def _move(self, x: Tensor, grad: Tensor, step: Step, randomness: Randomness) -> Tensor:
        settings = self.settings
        noise = normal(x.shape, randomness, x.device)
        if settings.grad_clamp is not None:
            grad = grad.clamp(-settings.grad_clamp, settings.grad_clamp)
        if settings.preconditioner is not None:
            grad, noise = settings.preconditioner.apply(grad), settings.preconditioner.apply_sqrt(noise)
        moved = x + step.grad_coef * grad
        moved += noise.mul_(step.noise_std)
        return moved.clamp_(0, 1) if settings.clamp and not self.model.levels else moved

    def _info(self, logits: Tensor, y: Tensor, state: ChainState, grad: Tensor, sigma: float) -> StepInfo:
        energy = -self.log_density(logits, y, state.condition)
        grad_norm = torch.linalg.vector_norm(grad, dim=(1, 2, 3))
        broken = ~(energy.isfinite() & grad_norm.isfinite())
        denoised = state.x + sigma**2 * grad if sigma else state.x
        if sigma and self.settings.clamp:
            denoised = denoised.clamp(-1, 1)
        return StepInfo(
            energy=energy,
            log_marginal=log_prob_from_logits(logits, state.condition, observed=state.condition != FREE),
            grad_norm=grad_norm,
            flipped=y != state.y,
            log_p_condition=log_p_condition(logits, state.condition),
            probabilities=logits.softmax(dim=-1)[..., 1],
            denoised=denoised,
            # A corner of the cube is a trap for chains without noise levels alone; the white around a shoe is none.
            diverged=broken if self.model.levels else broken | saturated(state.x),
        )


class Resampling(Sampler):
    """Algorithm 2: the image moves under the joint energy of all labels, free ones drawn at each sweep."""

    name = "resampling"

    def log_density(self, logits: Tensor, y: Tensor, condition: Tensor) -> Tensor:
        return log_prob_from_logits(logits, y)


class Marginalizing(Sampler):
    """Algorithm 3: the image moves under log p~(x, y_c), the free labels summed out (Eq. 8)."""

    name = "marginalizing"

    def log_density(self, logits: Tensor, y: Tensor, condition: Tensor) -> Tensor:
        return log_prob_from_logits(logits, y, observed=condition != FREE)


SAMPLERS: dict[str, type[Sampler]] = {kind.name: kind for kind in (Resampling, Marginalizing)}


def make_sampler(name: str, model: JointEnergyModel, settings: KernelSettings | None = None) -> Sampler:
    """The sampler of this name; to add one, put a class into SAMPLERS."""
    if name not in SAMPLERS:
        raise ValueError(f"There is no sampler {name!r}; choose {' or '.join(SAMPLERS)}.")
    return SAMPLERS[name](model, settings)


def lift(state: ChainState, level: float, randomness: Randomness) -> ChainState:
    """Chains raised to a higher noise level: the noise that is missing is added. It costs no evaluation."""
    if level < state.level:
        raise ValueError(f"The chains stand at noise level {state.level:g}; they cannot be lifted to {level:g}.")
    noise = normal(state.x.shape, randomness, state.x.device)
    return state._replace(x=state.x + noise * (level**2 - state.level**2) ** 0.5, level=level)


def draw_free_labels(logits: Tensor, condition: Tensor, randomness: Randomness) -> Tensor:
    """y ~ p(y | x) where the condition leaves it free: given x the attributes are independent, so one coin each is an
    exact Gibbs draw (Algorithm 1, line 4). (N, K)."""
    ones = logits.softmax(dim=-1)[..., 1]
    drawn = (uniform(ones.shape, randomness, ones.device) < ones).long()
    return torch.where(condition == FREE, drawn, condition)


def log_p_each(logits: Tensor, condition: Tensor, margin: float = 0.0) -> Tensor:
    """log p(y_k | x) of each asked attribute, 0 of a free one; as if its odds were exp(margin) times lower. (N, K)."""
    log_odds = (logits[..., 1] - logits[..., 0]) * (2 * condition - 1)
    log_p = F.logsigmoid(log_odds - margin)
    return torch.where(condition == FREE, torch.zeros_like(log_p), log_p)


def log_p_condition(logits: Tensor, condition: Tensor) -> Tensor:
    """log p(y_c | x), normalized, (N,): how sure the model is of what was asked (the paper's filter, section 5)."""
    return log_p_each(logits, condition).sum(dim=-1)


def saturated(x: Tensor) -> Tensor:
    """Which images sit in a corner of the cube, where the gradient points outwards and no step leads away. (N,)."""
    return ((x <= 0) | (x >= 1)).sum(dim=(1, 2, 3)) > SATURATED_SHARE * x.shape[1:].numel()
