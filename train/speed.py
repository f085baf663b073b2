"""What `python -m train bench` times: our kernel, a plain rendering of the official sweep, and the bare convolutions.

The plain sweep is the algorithm as the authors' code runs it: one forward pass to draw the labels, another one with its
backward pass to move the image, the default memory format, weights that want gradients. It is written anew here; on the
same weights it makes the same step as our kernel (a test compares them).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from jem_core.condition import FREE
from jem_core.model import JointEnergyModel, log_prob_from_logits
from jem_core.objectives import contrastive_loss
from jem_core.precision import compute_in
from jem_core.random import generator
from jem_core.samplers import ChainState, LangevinSettings, Sampler

GRAD_COEF, NOISE_STD = 1.0, 0.001


def network(size: int, width: int, attributes: int, fold: int = 1) -> JointEnergyModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return JointEnergyModel([f"attribute {i}" for i in range(attributes)], size, width, fold)


def chains_of(model: JointEnergyModel, n: int) -> ChainState:
    """Chains with two attributes asked for, the rest free."""
    random = generator(1)
    x = torch.rand((n, 3, model.image_size, model.image_size), generator=random)
    y = torch.randint(0, 2, (n, model.num_attributes), generator=random)
    condition = torch.full_like(y, FREE)
    condition[:, :2] = 1
    return ChainState(x, torch.where(condition == FREE, y, condition), condition, 0)


def our_step(model: JointEnergyModel, state: ChainState, precision: str = "float32") -> Callable[[], object]:
    """One Langevin-within-Gibbs step of the kernel that trainer, command line and app use."""
    sampler = Sampler("resampling", model, LangevinSettings(GRAD_COEF, NOISE_STD, precision=precision))
    random = generator(2)
    return lambda: sampler.step(state, random)


def plain_step(model: JointEnergyModel, state: ChainState) -> Callable[[], Tensor]:
    """The official sweep: labels by a forward pass of their own, then a Langevin step."""
    plain, random = _plain(model), generator(2)
    return lambda: plain_sweep(plain, state, random)[0]


def plain_sweep(plain: Callable[[Tensor], Tensor], state: ChainState, random: torch.Generator) -> tuple[Tensor, Tensor]:
    with torch.no_grad():
        ones = plain(state.x).softmax(dim=-1)[..., 1]
    drawn = (torch.rand(ones.shape, generator=random) < ones).long()
    y = torch.where(state.condition == FREE, drawn, state.condition)
    x = state.x.clone().requires_grad_()
    energy = log_prob_from_logits(plain(x), y).sum()
    (grad,) = torch.autograd.grad(energy, x)
    noise = torch.randn(x.shape, generator=random)
    return (x.detach() + GRAD_COEF * grad + NOISE_STD * noise).clamp(0, 1), y


def _plain(model: JointEnergyModel) -> Callable[[Tensor], Tensor]:
    """The same weights in PyTorch's default memory format."""
    copy = network(model.image_size, model.width, model.num_attributes, model.fold)
    copy.load_state_dict(model.state_dict())
    copy.to(memory_format=torch.contiguous_format)
    layers = nn.Sequential(copy.cnn, copy.mlp)
    return lambda x: layers(x).unflatten(-1, (model.num_attributes, 2))


def our_iteration(
    model: JointEnergyModel, state: ChainState, images: int, steps: int, precision: str = "float32"
) -> Callable[[], None]:
    """One training iteration's work: the chains' steps, then one forward and backward for data and chains."""
    settings = LangevinSettings(GRAD_COEF, NOISE_STD, precision=precision)
    sampler, random = Sampler("resampling", model, settings), generator(2)
    data = torch.rand((images, *state.x.shape[1:]), generator=random)
    labels = torch.randint(0, 2, (images, model.num_attributes), generator=random)
    free, use = torch.full_like(labels, FREE), torch.ones(len(state.x), dtype=torch.bool)

    def iterate() -> None:
        chains = state
        for _ in range(steps):
            chains, _ = sampler.step(chains, random)
        model.zero_grad()
        with compute_in(precision, state.x.device):
            loss = contrastive_loss(model, data, labels, free, chains, use).loss
        loss.backward()

    return iterate


def plain_iteration(model: JointEnergyModel, state: ChainState, images: int, steps: int) -> Callable[[], None]:
    """The same with the official sweep: separate passes for data and chains."""
    plain, random = _plain(model), generator(2)
    data = torch.rand((images, *state.x.shape[1:]), generator=random)
    labels = torch.randint(0, 2, (images, model.num_attributes), generator=random)

    def iterate() -> None:
        chains = state
        for _ in range(steps):
            x, y = plain_sweep(plain, chains, random)
            chains = chains._replace(x=x, y=y)
        loss = log_prob_from_logits(plain(chains.x), chains.y).mean() - log_prob_from_logits(plain(data), labels).mean()
        loss.backward()

    return iterate


def forward_only(model: JointEnergyModel, state: ChainState) -> Callable[[], Tensor]:
    """The bare convolutions and matrix products, same shapes, nothing between them: what the machine can do at best."""
    inputs, x = [], state.x.contiguous(memory_format=torch.channels_last)
    layers = [module for part in (model.cnn, model.mlp) for module in part]
    with torch.no_grad():
        for layer in layers:
            if isinstance(layer, nn.Conv2d | nn.Linear):
                inputs.append((layer, x))
            x = layer(x)

    @torch.inference_mode()
    def convolve() -> None:
        for layer, given in inputs:
            layer(given)

    return convolve


def medians(functions: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Seconds a call of each, the median of calls that take turns, so that a busy moment meets all of them alike."""
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


def matrix_peak(seconds: float) -> float:
    """Floating-point operations a second of a large matrix product."""
    a = torch.rand(1024, 1024)
    return 2 * 1024**3 / medians({"product": lambda: a @ a}, seconds)["product"]


def operations(model: JointEnergyModel, n: int) -> int:
    """Floating-point operations of a forward pass of n images; a step costs twice that: the gradient to the image."""
    total, size = 0, model.image_size // model.fold
    for module in (*model.cnn, *model.mlp):
        if isinstance(module, nn.Conv2d):
            size //= module.stride[0]
            total += 2 * module.weight.numel() * size * size
        elif isinstance(module, nn.Linear):
            total += 2 * module.weight.numel()
    return n * total
