"""From a condition to images: `run_chains` yields every step, `sample` gives the end of it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from jem_core.bundle import Bundle
from jem_core.condition import Condition
from jem_core.data.transforms import augment_chains
from jem_core.model import check_weights
from jem_core.random import Randomness, chain_generators
from jem_core.samplers import ChainState, LangevinSettings, Sampler, StepInfo


@dataclass(frozen=True)
class Samples:
    """Synthesized images with what the model says of them."""

    images: Tensor  # (n, 3, S, S) in [0, 1]
    labels: Tensor  # (n, K)
    probabilities: Tensor  # (n, K) P(y_k = 1 | x)
    log_p_condition: Tensor  # (n,)
    energy: Tensor  # (n,)
    diverged: Tensor  # (n,) bool


def run_chains(
    sampler: Sampler, state: ChainState, randomness: Randomness, steps: int | None = None, augment_every: int = 0
) -> Iterator[tuple[ChainState, StepInfo]]:
    """Step chains and yield each new state with its info; `send` a state to go on from it (to steer, say).

    With `augment_every` n, chains are lightly blurred at every n-th step, as the buffer draws of training are.
    """
    done = 0
    while steps is None or done < steps:
        if augment_every and done and done % augment_every == 0:
            state = state._replace(x=augment_chains(state.x, randomness, flip=False))
        state, info = sampler.step(state, randomness)
        steered = yield state, info
        state = steered if steered is not None else state
        done += 1


def sample(
    bundle: Bundle,
    condition: Condition,
    n: int,
    steps: int | None = None,
    sampler: str = "marginalizing",
    start: str = "conditional",
    seed: int = 0,
    keep_best: int = 1,
    images: Tensor | None = None,
    progress=None,
    **settings: float | int | str | None,
) -> Samples:
    """`n` samples of this condition from fresh chains, by Algorithm 2 (resampling) or 3 (marginalizing).

    `keep_best=10` draws 10 n and keeps the n with the highest log p(y_c | x), the paper's filter for diverged chains.
    Steps and settings default to the model's own; `progress(done, total)` is called after every step.
    """
    steps = bundle.sampling["steps"] if steps is None else steps
    check_request(bundle, condition, n, steps, keep_best)
    langevin, augment_every = bundle.langevin(**settings)
    kernel = Sampler(sampler, bundle.model, langevin)
    randomness = chain_generators(seed, n * keep_best, bundle.device)
    x = bundle.start(start, n * keep_best, randomness, condition, images, settings.get("variety"))
    state = kernel.init(x, condition.tensor(len(x), bundle.device), randomness)
    for done, (stepped, _) in enumerate(run_chains(kernel, state, randomness, steps, augment_every), start=1):
        state = stepped
        if progress:
            progress(done, steps)
    return best_samples(finish(kernel, state, randomness), n)


def finish(kernel: Sampler, state: ChainState, randomness: Randomness) -> Samples:
    """The chains as samples, their labels drawn and their figures taken at the very images that are returned."""
    state, info = kernel.resample_labels(state, randomness)
    return Samples(state.x, state.y, info.probabilities, info.log_p_condition, info.energy, info.diverged)


def best_samples(samples: Samples, n: int) -> Samples:
    """The n samples with the highest normalized log p(y_c | x); diverged ones come last."""
    if len(samples.images) == n:
        return samples
    rank = samples.log_p_condition.masked_fill(samples.diverged, -torch.inf)
    keep = rank.nan_to_num(nan=-torch.inf).argsort(descending=True, stable=True)[:n]
    return replace(samples, **{name: getattr(samples, name)[keep] for name in Samples.__dataclass_fields__})


def check_request(bundle: Bundle, condition: Condition, n: int, steps: int, keep_best: int) -> None:
    """Refuse what cannot be sampled before anything is computed."""
    if condition.names != bundle.model.names:
        raise ValueError(f"The condition is over {condition.names}; the model knows {bundle.model.names}.")
    for name, value, least in (("n", n, 1), ("steps", steps, 0), ("keep_best", keep_best, 1)):
        if not isinstance(value, int) or value < least:
            raise ValueError(f"{name} is {value!r}; expected a whole number of at least {least}.")
    check_weights(bundle.model)


__all__ = ["LangevinSettings", "Samples", "best_samples", "finish", "run_chains", "sample"]
