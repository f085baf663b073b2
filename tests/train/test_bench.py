"""The benchmark compares like with like: the plain sweep makes the very step that our kernel makes."""

from pathlib import Path

import pytest
import torch

from jem_core.bundle import Bundle
from jem_core.condition import Condition
from jem_core.judge import Judge
from jem_core.random import generator
from jem_core.samplers import Resampling
from train import bench, good_sample, ranks, speed
from train.__main__ import main


@pytest.mark.parametrize("fold", [1, 2])
def test_the_plain_sweep_makes_our_step(fold: int) -> None:
    model = speed.network(32, 4, 5, fold)
    state = speed.chains_of(model, 3)
    ours, _ = Resampling(model).step(state, speed.STEP, generator(7))
    x, y = speed.plain_sweep(speed.plain_network(model), state, generator(7))
    assert torch.equal(y, ours.y)
    torch.testing.assert_close(x, ours.x, atol=1e-5, rtol=0)
    assert not torch.equal(x, state.x)


def test_iterations_leave_the_same_gradient() -> None:
    """One pass or two, log p~(x) minus cross-entropy or log p~(x, y): the official iteration's gradient is ours."""
    model = speed.network(32, 4, 5)
    state = speed.chains_of(model, 3)
    ours = speed.our_iteration(model, state, images=4, steps=0)()
    plain = speed.plain_iteration(model, state, images=4, steps=0)()
    for grad, expected in zip(ours, plain, strict=True):
        torch.testing.assert_close(grad, expected, atol=1e-5, rtol=1e-3)
    assert all(grad.abs().max() > 0 for grad in ours)


def test_operations_of_a_known_net() -> None:
    """Counted by hand: a multiplication and an addition for every weight at every place it is used."""
    model = speed.network(32, 2, 3)
    convolutions = 2 * 3 * 9 * 32**2 + 4 * 2 * 16 * 16**2 + 8 * 4 * 16 * 8**2 + 16 * 8 * 16 * 4**2 + 2 * 16 * 4**2
    x = torch.rand(5, 3, 32, 32)
    assert speed.operations(lambda: model.logits(x)) == 5 * 2 * (convolutions + 32 * 4 + 4 * 4 + 4 * 6)


def test_an_iteration_over_noise_levels_costs_about_six_forward_passes() -> None:
    """One to the logits, one back to the image, and twice both for the weights' gradient: 6, less what none needs."""
    model = speed.residual(32, 5, widths=(8, 16), blocks=(1, 1), attention=8)
    forward, iterate = speed.denoising_iteration(model, speed.chains_of(model, 4))
    assert 4.5 < speed.operations(iterate) / speed.operations(forward) <= 7
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())


def test_bare_convolutions_are_those_of_the_network() -> None:
    model = speed.residual(32, 5, widths=(8, 16), blocks=(1, 1), attention=0)
    state = speed.chains_of(model, 4)
    bare = speed.operations(speed.forward_only(model, state))
    assert bare == speed.operations(lambda: model.at(1.0).logits(state.x))


def test_medians_tell_slow_from_fast() -> None:
    took = speed.medians({"little": lambda: sum(range(100)), "much": lambda: sum(range(100_000))}, 0.05)
    assert took["much"] > 10 * took["little"]


def test_the_command_prints_one_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    small = {"widths": (4, 8), "blocks": (1, 1)}
    build = speed.residual
    monkeypatch.setattr(bench, "SIZE", 32)
    monkeypatch.setattr(bench, "paper", lambda: speed.network(32, 4, 3))
    monkeypatch.setattr(speed, "residual", lambda size, k, **shape: build(size, k, **(small | {"attention": 0})))
    assert main(["bench", "--seconds", "0.01", "--skip-ranks"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert all(line.count("|") == 4 for line in lines)
    for words in ("the official sweep", "forward passes", "machine's peak", "256 chains", "128 px", "512 attributes"):
        assert any(words in line for line in lines), words
    for words in ("two threads against one", " image-steps per second |"):
        assert sum(words in line for line in lines) >= 2, words


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
