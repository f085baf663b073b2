"""Two ranks are one: the same gradient, the same weights everywhere, the same decisions."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from jem_core import checkpoint, distributed
from jem_core.config import make_config
from jem_core.data.dataset import Dataset
from jem_core.trainer import Trainer
from tests.conftest import TINY_DENOISING, TINY_RUN
from tests.jem_core import ranks


@pytest.mark.parametrize("gradients", [ranks.gradients, ranks.denoising_gradients])
def test_two_halves_give_the_gradient_of_the_whole(gradients: Callable, tmp_path: Path) -> None:
    """Half of the batch on each rank (same images, chains and labels) against one rank with all of it, to 1e-5."""
    ranks.on_ranks(2, gradients, tmp_path)
    whole = gradients(0, 1)
    halves = [load_file(tmp_path / f"gradients-{rank}.safetensors") for rank in range(2)]
    for name, expected in whole.items():
        assert torch.equal(halves[0][name], halves[1][name])
        torch.testing.assert_close(halves[0][name], expected, atol=1e-5, rtol=1e-4)
    assert max(value.abs().max() for value in whole.values()) > 1e-2  # there is a gradient to compare


def test_broadcast_and_average(tmp_path: Path) -> None:
    ranks.on_ranks(2, ranks.calls, tmp_path)
    for rank in range(2):
        found = load_file(tmp_path / f"calls-{rank}.safetensors")
        assert found["weights"].tolist() == [1, 1, 1]
        assert found["mean"].tolist() == [0.5, 1.0]


def test_ranks_that_denoise_agree_with_each_other(tiny_dataset: Dataset, tmp_path: Path) -> None:
    """Each draws noise of its own, yet weights stay equal bit by bit."""
    values = TINY_RUN | TINY_DENOISING | {"iterations": 5, "learning_rate": 1e-3}
    ranks.on_ranks(2, ranks.train, values, tiny_dataset.directory, tmp_path / "run", 5)
    weights = [load_file(tmp_path / "run" / f"weights-{rank}.safetensors") for rank in range(2)]
    before = Trainer(make_config(values), tiny_dataset, tmp_path / "fresh").model.state_dict()
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in before)
    assert any(not torch.equal(weights[0][name], value) for name, value in before.items())
    newest = checkpoint.newest(tmp_path / "run" / "checkpoints")
    streams = checkpoint.read_ranks(newest, "streams")
    assert not torch.equal(streams[0]["noise"], streams[1]["noise"])
    assert not checkpoint.read_ranks(newest, "buffer")  # no chains, nothing of theirs to keep


def test_ranks_keep_the_same_weights_and_learn_from_all_rows(tiny_dataset: Dataset, tmp_path: Path) -> None:
    """Supervised and without data noise, two ranks take nearly the steps of one (dequantization has its own stream)."""
    values = TINY_RUN | {"objective": "supervised", "data_noise": 0.0, "iterations": 5, "learning_rate": 1e-3}
    ranks.on_ranks(2, ranks.train, values, tiny_dataset.directory, tmp_path / "two", 5)
    weights = [load_file(tmp_path / "two" / f"weights-{rank}.safetensors") for rank in range(2)]
    one = Trainer(make_config(values), tiny_dataset, tmp_path / "one")
    before = {name: value.clone() for name, value in one.model.state_dict().items()}
    for _ in one.run():
        pass
    moved = near = 0.0
    for name, value in one.model.state_dict().items():
        assert torch.equal(weights[0][name], weights[1][name])
        moved += (value - before[name]).square().sum().item()
        near += (value - weights[0][name]).square().sum().item()
    assert near < 0.05 * moved


def test_alone_everything_is_left_as_it_is() -> None:
    assert distributed.start_ranks(torch.device("cpu")) == (0, 1)
    assert distributed.average({"a": 2.0}) == {"a": 2.0}
    distributed.broadcast([torch.zeros(1)])
    distributed.wait_for_all()
    distributed.stop_ranks()
