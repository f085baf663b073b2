"""Random numbers from explicit generators: one for a whole batch, or one a chain.

With a generator of its own, a chain does not depend on how many others run beside it: chain 3 of 16 and chain 3 of 64
see the same random numbers, bit for bit.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

Randomness = torch.Generator | Sequence[torch.Generator]


def generator(seed: int, device: torch.device | str = "cpu") -> torch.Generator:
    """One generator with this seed on this device."""
    return torch.Generator(device=device).manual_seed(seed)


def chain_generators(seed: int, n: int, device: torch.device | str = "cpu") -> list[torch.Generator]:
    """`n` generators, one a chain; the i-th depends on the seed and on i alone."""
    # SplitMix64's odd constant spreads neighbouring (seed, chain) pairs over the whole seed space.
    return [generator((seed * 1_000_003 + i) * 0x9E3779B97F4A7C15 % 2**63, device) for i in range(n)]


def normal(shape: Sequence[int], randomness: Randomness, device: torch.device | str) -> Tensor:
    """Standard normal draws of this shape; the first dimension counts the chains."""
    return _draw(torch.randn, shape, randomness, device)


def uniform(shape: Sequence[int], randomness: Randomness, device: torch.device | str) -> Tensor:
    """Uniform draws in [0, 1) of this shape; the first dimension counts the chains."""
    return _draw(torch.rand, shape, randomness, device)


def _draw(function, shape: Sequence[int], randomness: Randomness, device: torch.device | str) -> Tensor:
    if isinstance(randomness, torch.Generator):
        return function(tuple(shape), generator=randomness, device=device)
    if len(randomness) != shape[0]:
        raise ValueError(
            f"{len(randomness)} generators were given for {shape[0]} chains: give one generator, or one a chain."
        )
    return torch.stack([function(tuple(shape[1:]), generator=g, device=device) for g in randomness])
