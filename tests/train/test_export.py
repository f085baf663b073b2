"""From a run to a model directory."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from jem_core.bundle import Bundle
from jem_core.chains import sample
from jem_core.condition import Condition
from jem_core.data.dataset import Dataset
from train.__main__ import main


@pytest.fixture(scope="module")
def finished_run(tiny_dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "tiny"
    small = "--width 4 --iterations 4 --batch-size 8 --langevin-steps 2 --buffer-size 16 --start-rank 4"
    arguments = ["fit", "paper-avatars-32", "--data", str(tiny_dataset.directory), "--out", str(out), *small.split()]
    assert main([*arguments, "--chain-count", "8", "--sample-steps", "2", "--evaluate-every", "2"]) == 0
    return out


def test_export_writes_a_complete_model(finished_run: Path, tiny_dataset: Dataset, tmp_path: Path) -> None:
    target = tmp_path / "model"
    data = ["--data", str(tiny_dataset.directory)]
    options = ["--name", "mine", "--out", str(target), "--checkpoint", "last"]
    options += ["--set", "steps=7", "--set", "guidance=2"]
    assert main(["export", str(finished_run), *data, *options]) == 0
    bundle = Bundle.read(target)
    assert (bundle.name, bundle.names) == ("mine", tiny_dataset.names)
    assert (bundle.sampling["steps"], bundle.sampling["guidance"]) == (7, 2.0)
    assert 0 < bundle.sampling["grad_coef"] <= 0.3  # the step that the chains had come to
    training = bundle.config["training"]
    assert training["iterations"] == 4
    assert training["command"].startswith("python -m train fit paper-avatars-32 --data data/tiny --out runs/tiny")
    assert training["export_command"].endswith("--checkpoint last --set steps=7 --set guidance=2")
    assert str(tiny_dataset.directory) not in str(bundle.config)  # no path of the machine that trained it
    assert bundle.support.total == len(tiny_dataset.indices("train"))


def test_a_run_without_checkpoint_is_refused(tmp_path: Path, tiny_dataset: Dataset, capsys) -> None:
    data = ["--data", str(tiny_dataset.directory)]
    assert main(["export", str(tmp_path), *data, "--name", "x", "--out", str(tmp_path / "y")]) == 2
    assert "has no 'best' checkpoint yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("step=3", "--set step=3: expected KEY=VALUE with one of sampler, start, steps"),
        ("steps", "--set steps: expected KEY=VALUE"),
        ("steps=2.5", "steps is '2.5'; expected a whole number"),
        ("guidance=much", "guidance is 'much'; expected a number"),
        ("noise_std=nan", "noise_std is nan; expected a number from 0 to 1"),
        ("noise_std=none", "noise_std is 'none'; expected a number"),
        ("grad_coef=-1", "grad_coef is -1.0; expected a number from 0 to 100"),
        ("lift=2", "lift means nothing to a model with no noise levels"),
        ("sampler=gibbs", "sampler is 'gibbs'; choose one of resampling, marginalizing"),
        ("start=noise", "start is 'noise', which a model with no noise levels does not have"),
    ],
)
def test_a_bad_setting_is_refused(
    word: str, message: str, finished_run: Path, tiny_dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    command = ["export", str(finished_run), "--data", str(tiny_dataset.directory), "--name", "x"]
    assert main([*command, "--out", str(tmp_path / "y"), "--set", word]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "y").exists()


def test_a_run_over_noise_levels_is_exported_without_a_buffer(
    tiny_dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    out, target = tmp_path / "levels", tmp_path / "model"
    small = "--widths [4,8] --blocks [1,1] --iterations 3 --batch-size 8 --start-rank 4 --sample-steps 3"
    arguments = ["fit", "avatars", "--data", str(tiny_dataset.directory), "--out", str(out), "--device", "cpu"]
    assert main([*arguments, *small.split()]) == 0
    command = ["export", str(out), "--data", str(tiny_dataset.directory), "--name", "levels", "--out", str(target)]
    capsys.readouterr()
    assert main([*command, "--set", "grad_coef=1"]) == 2
    assert "grad_coef means nothing to a model with noise levels" in capsys.readouterr().err
    assert not target.exists()
    assert main([*command, "--set", "lift=2.5", "--set", "guidance_to=5"]) == 0
    bundle = Bundle.read(target)
    assert bundle.levels
    assert bundle.buffer is None
    assert [bundle.sampling[key] for key in ("steps", "guidance", "lift", "guidance_to")] == [3, 4.0, 2.5, 5.0]
    assert bundle.config["training"]["config"]["objective"] == "denoising"
    assert bundle.config["training"]["iterations"] == 3
    images = sample(bundle, Condition.from_lists(bundle.names, ["Red"]), 2).images
    assert images.shape == (2, 3, 32, 32)


def test_a_run_may_begin_with_a_finished_model(
    tiny_levels: Bundle, tiny_dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    before = {"iterations": 7, "seconds": 9, "command": "python -m train fit ours"}
    begun = replace(tiny_levels, config=tiny_levels.config | {"training": before})
    begun.write(tmp_path / "begun")
    where = ["--data", str(tiny_dataset.directory), "--device", "cpu", "--begin-with", str(tmp_path / "begun")]
    small = "--blocks [1,1] --batch-size 8 --start-rank 4 --warmup-iterations 0 --learning-rate 1e-12"
    shape = ["--widths", "[4,8]", "--ascent", "1", "--iterations", "2"]
    assert main(["fit", "avatars", *where, "--out", str(tmp_path / "other"), *small.split(), "--widths", "[4,4]"]) == 2
    assert "they can grow, but not shrink" in capsys.readouterr().err
    assert main(["fit", "avatars", *where, "--out", str(tmp_path / "run"), *small.split(), *shape]) == 0
    resumed = ["--iterations", "3", "--resume"]
    assert main(["fit", "avatars", *where, "--out", str(tmp_path / "run"), *small.split(), *shape[:4], *resumed]) == 0
    words = ["export", str(tmp_path / "run"), "--data", str(tiny_dataset.directory), "--name", "on"]
    assert main([*words, "--out", str(tmp_path / "model")]) == 0
    model = Bundle.read(tmp_path / "model")
    for name, value in begun.model.state_dict().items():  # a rate of nothing: what it began with is what it ends with
        assert torch.allclose(model.model.state_dict()[name], value, atol=1e-3), name
    first, *more = model.config["training"]["command"].splitlines()
    assert first == before["command"]
    assert len(more) == 2
    assert all("--begin-with" in line for line in more)
    assert model.config["training"]["iterations"] == 7 + 3
