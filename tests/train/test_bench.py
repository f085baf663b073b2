"""The benchmark compares like with like: the plain sweep makes the very step that our kernel makes."""

from pathlib import Path

import pytest
import torch
from torch import nn

from jem_core.bundle import Bundle
from jem_core.condition import Condition
from jem_core.judge import Judge
from jem_core.random import generator
from jem_core.samplers import LangevinSettings, Sampler
from train import bench, good_sample, ranks, speed
from train.__main__ import main


@pytest.mark.parametrize("fold", [1, 2])
def test_the_plain_sweep_makes_our_step(fold: int) -> None:
    model = speed.network(32, 4, 5, fold)
    state = speed.chains_of(model, 3)
    ours, _ = Sampler("resampling", model, LangevinSettings(1.0, 0.001)).step(state, generator(7))
    x, y = speed.plain_sweep(speed._plain(model), state, generator(7))
    assert torch.equal(y, ours.y)
    torch.testing.assert_close(x, ours.x, atol=1e-5, rtol=0)
    assert not torch.equal(x, state.x)


def test_iterations_leave_the_same_gradient_but_for_the_chains_path() -> None:
    model = speed.network(32, 4, 5)
    state = speed.chains_of(model, 3)
    speed.our_iteration(model, state, images=4, steps=2)()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())
    speed.plain_iteration(model, state, images=4, steps=2)()


def test_operations_of_a_known_net() -> None:
    """Counted by hand: a multiplication and an addition for every weight at every place it is used."""
    model = speed.network(32, 2, 3)
    convolutions = 2 * 3 * 9 * 32**2 + 4 * 2 * 16 * 16**2 + 8 * 4 * 16 * 8**2 + 16 * 8 * 16 * 4**2 + 2 * 16 * 4**2
    assert speed.operations(model, 5) == 5 * 2 * (convolutions + 32 * 4 + 4 * 4 + 4 * 6)
    assert sum(isinstance(layer, nn.Conv2d) for layer in model.cnn) == 5
    folded = speed.network(64, 2, 3, 2)
    assert speed.operations(folded, 5) - speed.operations(model, 5) == 5 * 2 * 2 * 9 * 9 * 32**2


def test_medians_tell_slow_from_fast() -> None:
    took = speed.medians({"little": lambda: sum(range(100)), "much": lambda: sum(range(100_000))}, 0.05)
    assert took["much"] > 10 * took["little"]


def test_the_command_prints_one_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tiny_bundle: Bundle
) -> None:
    monkeypatch.setattr(bench, "PAPER", (32, 4, 3, 1))
    monkeypatch.setattr(bench, "SMALL", (32, 4, 3, 2))
    monkeypatch.setattr(bench, "bundled_names", lambda: ("tiny",))
    monkeypatch.setattr(bench, "load", lambda name: tiny_bundle)
    assert main(["bench", "--seconds", "0.01", "--skip-ranks"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert all(line.count("|") == 4 for line in lines)
    for words in ("the official sweep", "forward", "matrix products", "256 chains", "128 px", "512 attributes"):
        assert any(words in line for line in lines), words
    assert sum("two threads against one" in line for line in lines) == 2


def test_two_ranks_are_compared_with_one(tmp_path: Path) -> None:
    config = tmp_path / "small.yaml"
    config.write_text("{width: 4, batch_size: 4, langevin_steps: 1, start_rank: 2, buffer_size: 8}")
    data = bench.random_data(tmp_path / "data", n=60)
    found = ranks.compare(data, str(config), iterations=1, repeats=1)
    assert len(found) == 3
    assert all(images > 0 for images in found.values())


def test_time_to_a_good_sample_stops_when_half_are_right(tiny_bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = Judge(tiny_bundle.names, 32, width=4)
    condition = Condition.from_lists(tiny_bundle.names, ("Red",))
    looks = []

    def verdict(images: torch.Tensor) -> torch.Tensor:
        looks.append(len(images))
        return torch.full((len(images), len(tiny_bundle.names)), 0.9 if len(looks) == 3 else 0.1)

    monkeypatch.setattr(judge, "probabilities", verdict)
    monkeypatch.setattr(good_sample, "MOST_STEPS", 10)
    arguments = (tiny_bundle, judge, condition, 0, "marginalizing", "informed")
    seconds, reached = good_sample.seconds_to_good(*arguments)
    assert reached
    assert 0 < seconds < 60
    assert looks == [16, 16, 16]
    assert not good_sample.seconds_to_good(*arguments, guidance=1.0)[1]
