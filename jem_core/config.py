"""Every key of a training run, with its default and the reason; YAML files and the command line override them."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from jem_core.networks import NETWORKS
from jem_core.objectives import find_objective
from jem_core.precision import PRECISIONS

CHOICES = {
    "network": tuple(NETWORKS),
    "chains": ("joint", "semi-conditional"),
    "negative_labels": ("sampled", "marginalized"),
    "buffer_policy": ("ring", "reservoir", "in-place"),
    "start": ("conditional", "informed", "uniform"),
    "schedule": ("constant", "cosine", "steps", "hold"),
    "precision": (*PRECISIONS, "fastest"),
}
AT_LEAST_ONE = {
    "iterations",
    "batch_size",
    "width",
    "fold",
    "langevin_steps",
    "steps_per_sweep",
    "buffer_size",
    "start_rank",
    "entropy_samples",
    "guard_window",
    "guard_snapshot",
    "guard_calm",
    "guard_contrast",
    "keep_checkpoints",
    "evaluate_every",
    "sample_steps",
}
SHARES = {
    "free_share",
    "full_share",
    "fresh_fraction",
    "switch_fraction",
    "chain_blur",
    "start_grain",
    "final_phase",
    "final_rate",
    "uphill_target",
    "ema",
    "adam_beta1",
    "adam_beta2",
}
ANY_SIGN = {"noise_mean"}


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """One run. The defaults are tuned for two CPU cores; the paper's values stand in train/configs/paper-*.yaml."""

    # What is learned.
    objective: str = "gibbs-jem"
    network: str = "paper"
    chains: str = "semi-conditional"  # joint: the paper's sampler; semi-conditional: a condition of its own a chain
    negative_labels: str = "sampled"  # the label noise steadies training of joint chains
    cross_entropy_weight: float = 1.0  # of -log p(y | x); 1 is the likelihood
    width: int = 32  # of the paper's network
    widths: tuple[int, ...] = (32, 64, 128, 192)  # of the residual network, from the finest resolution to the coarsest
    blocks: tuple[int, ...] = (1, 1, 2, 1)  # at each resolution
    attention: int = 8  # side of the resolution at which places look at each other; 0: none
    ascent: int = 0  # blocks per resolution on the way back up; 0: no way back
    fold: int = 1  # side of the squares of pixels that enter as one; 2: 64 px at the cost of 32 px
    init_gain: float = 1.6  # of the first weights (see `init_weights`); 0: PyTorch's default, the paper's
    seed: int = 0

    # How long, and how fast.
    iterations: int = 6000
    batch_size: int = 32  # images
    chain_count: int = 0  # chains of an iteration; 0: as many as images. An image costs a tenth of a chain
    learning_rate: float = 2e-4
    warmup_iterations: int = 50
    schedule: str = (
        "cosine"  # to final_rate of the rate; steps: times decay_factor at each of decay_at; hold: constant,
    )
    # then down to final_rate over the last final_phase of the run, so that a run can be made longer at any time
    final_rate: float = 0.05
    decay_at: tuple[int, ...] = ()
    decay_factor: float = 0.3
    supervised_iterations: int = 0  # a warm start by cross-entropy alone; keep it short
    supervised_noise: float = 0.2  # data noise of the warm start: strong, so that gradients follow visible features
    supervised_scale: float = 0.3  # the logits are shrunk by this when it ends
    adam_beta1: float = 0.9
    adam_beta2: float = 0.999
    grad_norm_clip: float = 0.5  # 0 is off
    ema: float = 0.999
    data_noise: float = 0.03  # after dequantization; smooths the energy between training images

    # Noise levels and conditions of an iteration (objective denoising).
    noise_mean: float = 0.0  # of ln sigma. Attributes are decided at sigma 2 to 10, which EDM's -1.2 hardly trains
    noise_spread: float = 1.6
    free_share: float = 0.25  # of the rows that are denoised given no label
    full_share: float = 0.2  # given all; the others 1 to max_conditions
    data_flip: bool = False  # mirror pictures at random, where the data allow it

    # The chains of an iteration.
    langevin_steps: int = 10
    steps_per_sweep: int = 1
    final_langevin_steps: int = 0  # of the last final_phase of the run; 0: the same
    final_phase: float = 0.2
    grad_coef: float = 1.0  # at most
    uphill_target: float = 0.3  # share of steps that go uphill: grad_coef shrinks above it, grows below; 0: constant
    uphill_rate: float = 0.1  # how quickly: 2 % an iteration when the share is off by a fifth
    noise_std: float = 0.001
    grad_clamp: float = 0.1  # bound on each element of the Langevin gradient, so that no step overshoots; 0 is off
    preconditioner: float = 10.0  # strength; 0 is off
    start: str = "conditional"
    start_rank: int = 64
    start_grain: float = 0.5  # share of the white noise that the rank leaves out
    fresh_fraction: float = 0.05
    buffer_size: int = 1000
    buffer_policy: str = "in-place"
    max_conditions: int = 4  # attributes that a semi-conditional chain is asked for, 0 to this many; of denoising 1 to
    switch_fraction: float = 0.05  # of the buffer's chains that get a new condition: what a visitor's toggle does
    chain_flip: bool = False
    chain_blur: float = 0.1  # probability an image at the buffer draw
    chain_blur_sigma: float = 1.0  # largest
    restart_stuck: bool = True
    stuck_spreads: float = 6.0  # a chain whose energy is this many standard deviations below the data's is stuck
    behind_spreads: float = 2.0  # one this many above it is behind, and left out of the loss

    # Extra terms.
    kl_weight: float = 0.0  # back-propagation through the last step (Du et al.); the paper: 1
    entropy_weight: float = 0.0  # nearest-neighbour entropy, part of the same term; the paper: 0.3
    entropy_samples: int = 100
    energy_penalty: float = 0.0  # hurts the classifier (the paper): default off

    # The divergence guard.
    guard_gap: float = 30.0  # energy gap between chains and data
    guard_grad_norm: float = 500.0  # before clipping, averaged over guard_window
    guard_stuck: float = 0.5  # share of chains that are stuck, averaged over guard_window
    guard_behind: float = 0.8  # share of chains that are behind, likewise
    guard_contrast: float = 2.0  # the buffer's pixel spread, as a ratio to the data's, must stay within 1/this and this
    guard_window: int = 20
    guard_snapshot: int = 100  # iterations between two good states kept for a roll-back
    guard_trips: int = 6  # roll-backs before giving up
    guard_calm: int = 1000  # iterations without trouble after which one roll-back is forgiven, its halved rate with it

    # What is kept and shown.
    checkpoint_minutes: float = 5.0
    keep_checkpoints: int = 2
    evaluate_every: int = 500  # iterations between two looks at val accuracy
    picture_minutes: float = 5.0
    sample_steps: int = 60  # of a picture's fresh chains, and the default of the finished model
    sample_guidance: float = 4.0  # likewise, of denoising
    threads: int = 0  # 0: as torch chooses
    precision: str = "float32"  # bfloat16: mixed precision; fastest: that where the hardware has it
    compile: bool = False  # torch.compile on CUDA

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} is {getattr(self, name)!r}; choose one of {', '.join(choices)}.")
        for name, value in self.to_dict().items():
            least = -math.inf if name in ANY_SIGN else 0
            if isinstance(value, int | float) and not (least <= value < math.inf and math.isfinite(value)):
                raise ValueError(f"{name} is {value}; expected a finite number{' of at least 0' if not least else ''}.")
            if name in AT_LEAST_ONE and value < 1:
                raise ValueError(f"{name} is {value}; expected at least 1.")
            if name in SHARES and value > 1:
                raise ValueError(f"{name} is {value}; expected a number between 0 and 1.")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate is {self.learning_rate}; expected a number above 0.")
        if self.free_share + self.full_share > 1:
            raise ValueError(
                f"free_share and full_share are {self.free_share + self.full_share:g} together; expected at most 1."
            )
        if find_objective(self.objective).levels != NETWORKS[self.network].levels:
            fitting = [name for name, kind in NETWORKS.items() if kind.levels != NETWORKS[self.network].levels]
            raise ValueError(
                f"The objective {self.objective} cannot train network {self.network}; choose {' or '.join(fitting)}."
            )
        if NETWORKS[self.network].levels and self.supervised_iterations:
            raise ValueError(
                f"supervised_iterations is {self.supervised_iterations}; expected 0, "
                "since networks with noise levels have no warm start."
            )
        if NETWORKS[self.network].levels and self.max_conditions < 1:
            raise ValueError(f"max_conditions is {self.max_conditions}; denoising expects at least 1.")

    def rate_at(self, iteration: int) -> float:
        """The learning rate of an iteration, before the guard's halvings."""
        if iteration < self.warmup_iterations:
            return self.learning_rate * (iteration + 1) / self.warmup_iterations
        if self.schedule == "steps":
            return self.learning_rate * self.decay_factor ** sum(iteration >= at for at in self.decay_at)
        if self.schedule == "hold":
            left = (1 - iteration / self.iterations) / max(self.final_phase, 1e-9)
            return self.learning_rate * max(self.final_rate, min(1.0, left))
        if self.schedule == "cosine":
            share = (1 + math.cos(math.pi * min(1.0, iteration / self.iterations))) / 2
            return self.learning_rate * (self.final_rate + (1 - self.final_rate) * share)
        return self.learning_rate

    def network_facts(self, names: Sequence[str], image_size: int) -> dict:
        """What `build_network` takes to build this run's network."""
        own = {name: getattr(self, name) for name in NETWORKS[self.network].shape_keys}
        return {"network": self.network, "names": list(names), "image_size": image_size, "fold": self.fold, **own}

    def steps_at(self, iteration: int) -> int:
        """Langevin steps of an iteration: more in the final phase, where asked for."""
        final = iteration >= self.iterations * (1 - self.final_phase)
        return self.final_langevin_steps if final and self.final_langevin_steps else self.langevin_steps

    def to_dict(self) -> dict:
        return dataclasses.asdict(self)


def make_config(values: Mapping[str, object]) -> TrainConfig:
    """A config from keys and values; an unknown key or a value of the wrong type is an error by name."""
    fields = {field.name: field for field in dataclasses.fields(TrainConfig)}
    chosen: dict[str, Any] = {}
    for key, value in values.items():
        name = str(key).replace("-", "_")
        if name not in fields:
            near = get_close_matches(name, fields, n=3, cutoff=0.4) or sorted(fields)
            raise ValueError(f"There is no config key {key!r}; did you mean {' or '.join(near[:3])}?")
        chosen[name] = _coerce(name, value, type(fields[name].default))
    return TrainConfig(**chosen)


def read_config(path: Path, overrides: Mapping[str, object] = {}) -> TrainConfig:
    """A config from a YAML file of flat keys, with overrides on top."""
    try:
        values = yaml.safe_load(path.read_text()) or {}
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not readable YAML: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path} holds {type(values).__name__}; expected keys and values.")
    return make_config(values | {key.replace("-", "_"): value for key, value in overrides.items()})


def _coerce(name: str, value: object, kind: type) -> object:
    if isinstance(value, str) and kind is not str:  # the command line gives text, and YAML reads 1e-4 as text
        with contextlib.suppress(yaml.YAMLError):
            value = yaml.safe_load(value)
    if kind is float and isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = float(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is tuple and isinstance(value, list) and all(isinstance(item, int) for item in value):
        return tuple(value)
    if type(value) is not kind:
        raise ValueError(f"{name} is {value!r}; expected {_PLAIN[kind]}.")
    return value


_PLAIN = {
    float: "a number",
    int: "a whole number",
    bool: "true or false",
    str: "a word",
    tuple: "a list of whole numbers",
}
