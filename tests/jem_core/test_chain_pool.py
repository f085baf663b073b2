"""The Langevin step of a training run follows the energy: smaller where it overshoots, larger where it lags."""

import torch
from torch import Tensor

from jem_core.config import make_config
from jem_core.gaussian import LowRankGaussian
from jem_core.objectives.chain_pool import ChainPool
from jem_core.random import generator
from tests.jem_core.closed_form import NoLevels


class Bowl(NoLevels):
    """A model whose energy is a bowl of known sharpness: which steps overshoot can be worked out."""

    image_size, num_attributes = 32, 1

    def __init__(self, sharpness: float) -> None:
        self.sharpness = sharpness

    def logits(self, x: Tensor) -> Tensor:
        height = -self.sharpness * (x - 0.5).square().flatten(1).sum(dim=1) / 2
        return torch.stack([height, height], dim=-1).unsqueeze(1)


def bowl_pool(sharpness: float, **changes: object) -> ChainPool:
    config = make_config({"buffer_size": 8, "preconditioner": 0.0, "grad_clamp": 0.0, "noise_std": 0.0} | changes)
    images = (torch.rand((64, 3, 32, 32), generator=generator(0)) * 80 + 88).byte()
    gaussian = LowRankGaussian.fit(images, torch.zeros(len(images), 1), rank=2)
    return ChainPool(config, Bowl(sharpness), gaussian, torch.zeros(4, 1, dtype=torch.long), generator(1))


def test_uphill_tells_overshoot_from_lag() -> None:
    """A step of 1 overshoots a bowl of sharpness above 2, and only lags in a flat one."""
    for sharpness, expected in ((2.5, 1.0), (0.1, 0.0)):
        pool = bowl_pool(sharpness, grad_coef=1.0, chain_blur=0.0, fresh_fraction=1.0)
        chains, _ = pool.draw(4)
        end, before, uphill = pool.walk(chains, 3)
        assert uphill == expected
        assert (end.step, before.step) == (3, 2)


def test_the_step_settles_where_it_no_longer_overshoots() -> None:
    pool = bowl_pool(8.0, grad_coef=1.0, fresh_fraction=1.0, chain_blur=0.0)
    for _ in range(200):
        chains, _ = pool.draw(4)
        pool.adapt(pool.walk(chains, 3)[2])
    assert 0.15 < pool.grad_coef < 0.27  # 2 / 8 is the edge
    pool.adapt(0.0)
    for _ in range(500):
        pool.adapt(0.0)
    assert pool.grad_coef == 1.0  # never above the config's
    constant = bowl_pool(8.0, grad_coef=1.0, uphill_target=0.0)
    constant.adapt(1.0)
    assert constant.grad_coef == 1.0
