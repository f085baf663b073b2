"""What `python -m train bench` times: our kernel on both networks, a plain rendering of the official sweep, training
iterations, and the bare convolutions.

The plain sweep is the algorithm as the authors' code runs it: one forward pass to draw the labels, another one with its
backward pass to move the image, the default memory format, weights that want gradients. It is written anew here; on the
same weights it makes the same step as our kernel (a test compares them).
"""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from jem_core.condition import FREE
from jem_core.model import JointEnergyModel, log_prob_from_logits
from jem_core.networks.paper import PaperModel
from jem_core.networks.residual import ResidualModel
from jem_core.objectives.base import cross_entropy
from jem_core.objectives.contrast import contrastive_loss
from jem_core.objectives.denoising import denoise
from jem_core.precision import compute_in
from jem_core.random import generator
from jem_core.samplers import ChainState, KernelSettings, Resampling
from jem_core.schedules import Step

GRAD_COEF, NOISE_STD = 1.0, 0.001
STEP = Step(0.0, GRAD_COEF, NOISE_STD, 0.0)


def network(size: int, width: int, attributes: int, fold: int = 1) -> PaperModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return PaperModel([f"attribute {i}" for i in range(attributes)], size, width, fold)


def residual(size: int, attributes: int, **shape: object) -> ResidualModel:
    """The network over noise levels, with a way back up as the bundled ones have. Its last layers begin at zero: a few
    random weights make its gradient real."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = ResidualModel([f"attribute {i}" for i in range(attributes)], size, **{"ascent": 1, **shape})
        for stage in (*model.net.stages, *(ascent.stage for ascent in model.net.ascents)):
            nn.init.normal_(stage.weight, std=0.1)
        return model


def chains_of(model: JointEnergyModel, n: int) -> ChainState:
    """Chains with two attributes asked for, the rest free."""
    random = generator(1)
    x = torch.rand((n, 3, model.image_size, model.image_size), generator=random)
    y = torch.randint(0, 2, (n, model.num_attributes), generator=random)
    condition = torch.full_like(y, FREE)
    condition[:, :2] = 1
    return ChainState(x, torch.where(condition == FREE, y, condition), condition, 0, 1.0 if model.levels else 0.0)


def our_step(model: JointEnergyModel, state: ChainState, precision: str = "float32") -> Callable[[], object]:
    """One Langevin-within-Gibbs step of the kernel that trainer, command line and app use, by frozen weights."""
    frozen = copy.deepcopy(model).eval().requires_grad_(False)
    sampler, random = Resampling(frozen, KernelSettings(precision=precision)), generator(2)
    step = STEP if not model.levels else Step(state.level, state.level**2 / 2, state.level / 2, state.level)
    return lambda: sampler.step(state, step, random)


def plain_step(model: JointEnergyModel, state: ChainState) -> Callable[[], Tensor]:
    """The official sweep: labels by a forward pass of their own, then a Langevin step."""
    plain, random = plain_network(model), generator(2)
    return lambda: plain_sweep(plain, state, random)[0]


def plain_sweep(plain: nn.Module, state: ChainState, random: torch.Generator) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        ones = plain(state.x).softmax(dim=-1)[..., 1]
    drawn = (torch.rand(ones.shape, generator=random) < ones).long()
    y = torch.where(state.condition == FREE, drawn, state.condition)
    x = state.x.clone().requires_grad_()
    energy = log_prob_from_logits(plain(x), y).sum()
    (grad,) = torch.autograd.grad(energy, x)
    noise = torch.randn(x.shape, generator=random)
    return (x.detach() + GRAD_COEF * grad + NOISE_STD * noise).clamp(0, 1), y


def plain_network(model: PaperModel) -> nn.Sequential:
    """The same weights in PyTorch's default memory format."""
    copy = network(model.image_size, model.width, model.num_attributes, model.fold)
    copy.load_state_dict(model.state_dict())
    copy.to(memory_format=torch.contiguous_format)
    return nn.Sequential(copy.cnn, copy.mlp, nn.Unflatten(-1, (model.num_attributes, 2)))


def our_iteration(
    model: JointEnergyModel, state: ChainState, images: int, steps: int, precision: str = "float32"
) -> Callable[[], list[Tensor]]:
    """One training iteration's work: the chains' steps, then the weights' gradient by one pass for data and chains."""
    sampler, random = Resampling(model, KernelSettings(precision=precision)), generator(2)
    data = torch.rand((images, *state.x.shape[1:]), generator=random)
    labels = torch.randint(0, 2, (images, model.num_attributes), generator=random)
    free, use = torch.full_like(labels, FREE), torch.ones(len(state.x), dtype=torch.bool)

    def iterate() -> list[Tensor]:
        chains = state
        for _ in range(steps):
            chains, _ = sampler.step(chains, STEP, random)
        model.zero_grad()
        with compute_in(precision, state.x.device):
            loss = contrastive_loss(model, data, labels, free, chains, use).loss
        loss.backward()
        return [weight.grad for weight in model.parameters()]

    return iterate


def plain_iteration(model: PaperModel, state: ChainState, images: int, steps: int) -> Callable[[], list[Tensor]]:
    """The same with the official sweep: separate passes for data and chains."""
    plain, random = plain_network(model), generator(2)
    data = torch.rand((images, *state.x.shape[1:]), generator=random)
    labels = torch.randint(0, 2, (images, model.num_attributes), generator=random)

    def iterate() -> list[Tensor]:
        chains = state
        for _ in range(steps):
            x, y = plain_sweep(plain, chains, random)
            chains = chains._replace(x=x, y=y)
        plain.zero_grad()
        loss = log_prob_from_logits(plain(chains.x), chains.y).mean() - log_prob_from_logits(plain(data), labels).mean()
        loss.backward()
        return [weight.grad for weight in plain.parameters()]

    return iterate


def denoising_iteration(
    model: JointEnergyModel, state: ChainState, precision: str = "float32"
) -> tuple[Callable[[], Tensor], Callable[[], None]]:
    """A forward pass, and a training iteration over noise levels: denoised images, cross-entropy, weights' gradient."""
    sigma = torch.exp(torch.randn(len(state.x), generator=generator(2)))

    def forward() -> Tensor:
        with torch.no_grad(), compute_in(precision, state.x.device):
            return model.at(sigma).logits(state.x)

    def iterate() -> None:
        model.zero_grad()
        with compute_in(precision, state.x.device):
            denoised, logits = denoise(model, state.x, sigma, state.condition)
            loss = (denoised - state.x).square().mean() + cross_entropy(logits, state.y)
        loss.backward()

    return forward, iterate


def forward_only(model: JointEnergyModel, state: ChainState, precision: str = "float32") -> Callable[[], None]:
    """The bare convolutions and matrix products, same shapes, nothing between them: what the machine can do at best."""
    calls: list[tuple[nn.Module, Tensor]] = []
    layers = [layer for layer in model.modules() if isinstance(layer, nn.Conv2d | nn.Linear)]
    hooks = [layer.register_forward_hook(lambda layer, given, _: calls.append((layer, given[0]))) for layer in layers]
    with torch.no_grad(), compute_in(precision, state.x.device):
        model.at(state.level).logits(state.x)
    for hook in hooks:
        hook.remove()

    @torch.no_grad()
    def convolve() -> None:
        with compute_in(precision, state.x.device):
            for layer, given in calls:
                layer(given)

    return convolve


def medians(functions: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Seconds per call of each, the median of calls that take turns, so that a busy moment meets all of them alike."""
    for function in functions.values():
        function()
    times: dict[str, list[float]] = {name: [] for name in functions}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(times.values()))) < 5:
        for name, function in functions.items():
            began = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - began)
    return {name: statistics.median(found) for name, found in times.items()}


def peak(seconds: float, precision: str = "float32") -> float:
    """Floating-point operations per second of what runs fastest here: a large matrix product or a large convolution.

    Some processors are several times slower at the product than at the convolution.
    """
    kind = getattr(torch, precision)
    a = torch.rand(1024, 1024, dtype=kind)
    x, kernel = torch.rand(16, 128, 32, 32, dtype=kind), torch.rand(128, 128, 3, 3, dtype=kind)
    x, kernel = (part.to(memory_format=torch.channels_last) for part in (x, kernel))
    work = {"product": lambda: a @ a, "convolution": lambda: nn.functional.conv2d(x, kernel, padding=1)}
    took = medians(work, seconds)
    return max(operations(function) / took[name] for name, function in work.items())


class Operations(TorchDispatchMode):
    """Counts multiplications and additions of convolutions and matrix products, in gradients of gradients too.

    By the formulas of torch's FlopCounterMode, which itself fails within `autograd.grad`: it watches modules as well.
    """

    total = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if (formula := flop_registry.get(func.overloadpacket)) is not None:
            self.total += formula(*args, **(kwargs or {}), out_val=result)
        return result


def operations(function: Callable[[], object]) -> int:
    """Floating-point operations of a call's convolutions and matrix products."""
    with Operations() as counter:
        function()
    return counter.total
