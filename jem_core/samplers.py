"""Langevin-within-Gibbs as pure kernels: `init` and `step` over ChainState, with StepInfo for each chain.

`resampling` is Algorithm 2 of the paper (Algorithm 1 when nothing is conditioned): it draws the free labels and moves
the image under the joint energy. `marginalizing` is Algorithm 3: it moves the image under log p~(x, y_c), all free
labels summed out. They differ in one line, the target; trainer, command line and app all step this kernel.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from jem_core.condition import FREE
from jem_core.gaussian import Preconditioner
from jem_core.model import check_images, check_labels, log_prob_from_logits
from jem_core.precision import PRECISIONS, compute_in
from jem_core.random import Randomness, normal, uniform

SAMPLER_NAMES = ("resampling", "marginalizing")
SATURATED_SHARE = 0.6  # of an image's values at exactly 0 or 1: no picture has that, a chain stuck in a corner does


class HasLogits(Protocol):
    """All that a sampler needs of a model."""

    image_size: int
    num_attributes: int

    def logits(self, x: Tensor) -> Tensor: ...


class ChainState(NamedTuple):
    """What a chain carries on. To steer running chains, replace `condition`: only what follows changes."""

    x: Tensor  # (N, 3, S, S) in [0, 1]
    y: Tensor  # (N, K) int64 in {0, 1}
    condition: Tensor  # (N, K) int64: 1 with, 0 without, -1 free
    step: int


class StepInfo(NamedTuple):
    """What a step tells of each chain, at the image it started from; thrown away by whoever does not look."""

    energy: Tensor  # (N,) minus the sampler's own log target, without guidance
    log_marginal: Tensor  # (N,) log p~(x, y_c), the free labels summed out: the same for both samplers
    grad_norm: Tensor  # (N,)
    flipped: Tensor  # (N, K) bool: labels that this step changed
    log_p_condition: Tensor  # (N,) log p(y_c | x), 0 when nothing is asked
    probabilities: Tensor  # (N, K) P(y_k = 1 | x)
    diverged: Tensor  # (N,) bool


@dataclass(frozen=True)
class LangevinSettings:
    """x <- clamp(x + grad_coef * M g + noise_std * M^(1/2) xi): coefficient and noise are two numbers (Eq. 3)."""

    grad_coef: float = 1.0
    noise_std: float = 0.001
    grad_clamp: float | None = None  # bound on each element of g
    steps_per_sweep: int = 1  # Langevin steps for each draw of the labels
    guidance: float = 1.0  # weight on log p(y_c | x); 1 is the paper
    preconditioner: Preconditioner | None = None
    clamp: bool = True  # keep images in [0, 1]
    precision: str = "float32"  # of the convolutions

    def __post_init__(self) -> None:
        for name, low in (("grad_coef", 0), ("noise_std", 0), ("guidance", 0)):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and low <= value < float("inf")):
                raise ValueError(f"{name} is {value!r}; expected a finite number of at least {low}.")
        bound = self.grad_clamp
        if bound is not None and not (isinstance(bound, int | float) and bound > 0):
            raise ValueError(f"grad_clamp is {bound!r}; expected None or a bound above 0.")
        if not isinstance(self.steps_per_sweep, int) or self.steps_per_sweep < 1:
            raise ValueError(f"steps_per_sweep is {self.steps_per_sweep!r}; expected a whole number of at least 1.")
        if self.precision not in PRECISIONS:
            raise ValueError(f"The precision is {self.precision!r}; choose {' or '.join(PRECISIONS)}.")

    @property
    def temperature(self) -> float:
        """True Langevin dynamics at coefficient a and noise s has the stationary density p^(1/T), T = s^2 / (2 a)."""
        return self.noise_std**2 / (2 * self.grad_coef) if self.grad_coef else float("inf")


class Sampler:
    """One of the two samplers bound to a model and its settings. It holds no state: chains do."""

    def __init__(self, name: str, model: HasLogits, settings: LangevinSettings | None = None) -> None:
        if name not in SAMPLER_NAMES:
            raise ValueError(f"There is no sampler {name!r}; choose {' or '.join(SAMPLER_NAMES)}.")
        self.name = name
        self.model = model
        self.settings = settings or LangevinSettings()

    def init(self, x: Tensor, condition: Tensor, randomness: Randomness, y: Tensor | None = None) -> ChainState:
        """Chains at these images; labels that are neither given nor conditioned begin at fair coins."""
        check_images(x, self.model.image_size)
        expected = (x.shape[0], self.model.num_attributes)
        check_labels(condition, condition != FREE, expected, "the condition")
        if y is None:
            y = (uniform(expected, randomness, x.device) < 0.5).long()
        else:
            check_labels(y, None, expected)
        return ChainState(x.detach(), torch.where(condition == FREE, y, condition), condition, 0)

    def step(self, state: ChainState, randomness: Randomness) -> tuple[ChainState, StepInfo]:
        """One Langevin step, after a draw of the labels where a sweep begins: one forward and one backward in all."""
        draw = state.step % self.settings.steps_per_sweep == 0
        return self._advance(state, randomness, draw_labels=draw)

    def langevin(self, state: ChainState, randomness: Randomness) -> tuple[ChainState, StepInfo]:
        """The second half of a sweep alone: the image moves, the labels stay."""
        return self._advance(state, randomness, draw_labels=False)

    @torch.no_grad()
    def resample_labels(self, state: ChainState, randomness: Randomness) -> tuple[ChainState, StepInfo]:
        """The first half of a sweep alone: y ~ p(y | x) exactly, the image stays."""
        logits = self.model.logits(state.x)
        y = self._labels(logits, state, randomness)
        info = self._info(logits, y, state, torch.zeros_like(state.x))
        return state._replace(y=y), info

    def differentiable_langevin(self, state: ChainState, randomness: Randomness) -> Tensor:
        """The images after one more step, as a function of the weights: what the KL term back-propagates through."""
        x = state.x.detach().requires_grad_()
        # torch.compile replaces the bound method and knows no second derivative: take the class's own.
        logits = type(self.model).logits(self.model, x)
        target = self._target(logits, state.y, state.condition)
        (grad,) = torch.autograd.grad(target.sum(), x, create_graph=True)
        return self._move(x.detach(), grad, randomness)

    def _advance(self, state: ChainState, randomness: Randomness, draw_labels: bool) -> tuple[ChainState, StepInfo]:
        with torch.enable_grad():
            x = state.x.detach().requires_grad_()
            with compute_in(self.settings.precision, x.device):
                logits = self.model.logits(x)
            if draw_labels:
                y = self._labels(logits.detach(), state, randomness)
            else:
                y = torch.where(state.condition == FREE, state.y, state.condition)
            (grad,) = torch.autograd.grad(self._target(logits, y, state.condition).sum(), x)
        with torch.no_grad():
            info = self._info(logits.detach(), y, state, grad)
            moved = self._move(state.x, grad, randomness)
        return ChainState(moved, y, state.condition, state.step + 1), info

    def _target(self, logits: Tensor, y: Tensor, condition: Tensor) -> Tensor:
        """The log density whose gradient moves the image; guidance adds weight to log p(y_c | x)."""
        target = self._log_density(logits, y, condition)
        if self.settings.guidance != 1:
            target = target + (self.settings.guidance - 1) * log_p_condition(logits, condition)
        return target

    def _log_density(self, logits: Tensor, y: Tensor, condition: Tensor) -> Tensor:
        if self.name == "resampling":
            return log_prob_from_logits(logits, y)
        return log_prob_from_logits(logits, y, observed=condition != FREE)

    def _labels(self, logits: Tensor, state: ChainState, randomness: Randomness) -> Tensor:
        return draw_free_labels(logits, state.condition, randomness)

    def _move(self, x: Tensor, grad: Tensor, randomness: Randomness) -> Tensor:
        settings = self.settings
        noise = normal(x.shape, randomness, x.device)
        if settings.grad_clamp is not None:
            grad = grad.clamp(-settings.grad_clamp, settings.grad_clamp)
        if settings.preconditioner is not None:
            grad, noise = settings.preconditioner.apply(grad), settings.preconditioner.apply_sqrt(noise)
        moved = x + settings.grad_coef * grad
        moved += noise.mul_(settings.noise_std)
        return moved.clamp_(0, 1) if settings.clamp else moved

    def _info(self, logits: Tensor, y: Tensor, state: ChainState, grad: Tensor) -> StepInfo:
        energy = -self._log_density(logits, y, state.condition)
        grad_norm = torch.linalg.vector_norm(grad, dim=(1, 2, 3))
        return StepInfo(
            energy=energy,
            log_marginal=log_prob_from_logits(logits, state.condition, observed=state.condition != FREE),
            grad_norm=grad_norm,
            flipped=y != state.y,
            log_p_condition=log_p_condition(logits, state.condition),
            probabilities=logits.softmax(dim=-1)[..., 1],
            diverged=~(energy.isfinite() & grad_norm.isfinite()) | saturated(state.x),
        )


def draw_free_labels(logits: Tensor, condition: Tensor, randomness: Randomness) -> Tensor:
    """y ~ p(y | x) where the condition leaves it free: given x the attributes are independent, so one coin each is an
    exact Gibbs draw (Algorithm 1, line 4). (N, K)."""
    ones = logits.softmax(dim=-1)[..., 1]
    drawn = (uniform(ones.shape, randomness, ones.device) < ones).long()
    return torch.where(condition == FREE, drawn, condition)


def log_p_condition(logits: Tensor, condition: Tensor) -> Tensor:
    """log p(y_c | x), normalized, (N,): how sure the model is of what was asked (the paper's filter, section 5)."""
    log_p = logits.log_softmax(dim=-1).gather(-1, condition.clamp(min=0).unsqueeze(-1))[..., 0]
    return torch.where(condition == FREE, torch.zeros_like(log_p), log_p).sum(dim=-1)


def saturated(x: Tensor) -> Tensor:
    """Which images sit in a corner of the cube, where the gradient points outwards and no step leads away. (N,)."""
    return ((x <= 0) | (x >= 1)).sum(dim=(1, 2, 3)) > SATURATED_SHARE * x.shape[1:].numel()
