"""Random numbers from explicit generators: one for a whole batch, or one per chain.

With a generator of its own, a chain does not depend on how many others run beside it: chain 3 of 16 and chain 3 of 64
see the same random numbers, bit for bit.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Randomness = torch.Generator | Sequence[torch.Generator]
_ODD, _STREAM = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03


def generator(seed: int, device: torch.device | str = "cpu") -> torch.Generator:
    """One generator with this seed on this device."""
    return torch.Generator(device=device).manual_seed(seed)


def chain_generators(
    seed: int, rows: int | Sequence[int], device: torch.device | str = "cpu", stream: int = 0
) -> list[torch.Generator]:
    """A generator per chain; that of chain i depends on the seed, on i and on the stream alone."""
    rows = range(rows) if isinstance(rows, int) else rows
    # SplitMix64's odd constant spreads neighbouring (seed, chain) pairs over the whole seed space.
    return [generator(((seed * 1_000_003 + i) * _ODD + stream * _STREAM) % 2**63, device) for i in rows]


def normal(shape: Sequence[int], randomness: Randomness, device: torch.device | str) -> Tensor:
    """Standard normal draws of this shape; the first dimension counts the chains."""
    return _draw(torch.randn, shape, randomness, device)


def uniform(shape: Sequence[int], randomness: Randomness, device: torch.device | str) -> Tensor:
    """Uniform draws in [0, 1) of this shape; the first dimension counts the chains."""
    return _draw(torch.rand, shape, randomness, device)


def _draw(
    function: Callable[..., Tensor], shape: Sequence[int], randomness: Randomness, device: torch.device | str
) -> Tensor:
    if isinstance(randomness, torch.Generator):
        return function(tuple(shape), generator=randomness, device=device)
    if len(randomness) != shape[0]:
        raise ValueError(
            f"{len(randomness)} generators were given for {shape[0]} chains: give one generator, or one per chain."
        )
    return torch.stack([function(tuple(shape[1:]), generator=g, device=device) for g in randomness])
