"""The rival: a diffusion model learns, follows its condition, and is judged by the same judge."""

import torch

from jem_core.bundle import Bundle
from jem_core.condition import FREE, Condition
from jem_core.config import make_config
from jem_core.data.dataset import Dataset
from jem_core.judge import Judge
from tests.conftest import TINY_DENOISING, TINY_RUN
from train.ablations.diffusion import UNet, fit, report, sample


def test_an_untrained_network_denoises_like_a_gaussian() -> None:
    """F begins at zero: D = c_skip x, the best guess for data of spread .5 around 0."""
    net, x = UNet(3, (8, 8, 16, 16)), torch.randn(2, 3, 32, 32)
    denoised = net(x, torch.tensor([0.5, 5.0]), torch.full((2, 3), FREE))
    torch.testing.assert_close(denoised, x * torch.tensor([0.5, 0.25 / 25.25]).view(2, 1, 1, 1))


def test_it_learns_and_is_judged(tiny_bundle: Bundle, tiny_dataset: Dataset) -> None:
    config = make_config(TINY_RUN | TINY_DENOISING | {"batch_size": 16, "ema": 0.9, "warmup_iterations": 20})
    torch.manual_seed(0)
    net = UNet(len(tiny_bundle.names), (8, 16, 16, 16))
    net, iterations = fit(net, tiny_bundle, tiny_dataset, config, minutes=0.2)
    assert iterations > 100
    bright = Condition.from_lists(tiny_bundle.names, ["Bright"]).tensor(8)
    dark = Condition.from_lists(tiny_bundle.names, [], ["Bright"]).tensor(8)
    seen = [sample(net, rows, 32, steps=6, guidance=3.0, seed=0) for rows in (bright, dark)]
    assert seen[0].shape == (8, 3, 32, 32)
    assert seen[0].mean() > seen[1].mean() + 0.02
    assert torch.equal(seen[0], sample(net, bright, 32, steps=6, guidance=3.0, seed=0))
    judge = Judge(tiny_bundle.names, 32, width=4).eval()
    judge.facts["balanced_accuracy"] = dict.fromkeys(tiny_bundle.names, 0.9)
    found = report(net, tiny_bundle, tiny_dataset, judge, chains=2)
    assert 0 <= found["held_out_pairs"] <= 1
    assert found["fidelity"]["frechet_distance"] > 0
