"""From a run to a model directory."""

from pathlib import Path

import pytest

from jem_core.bundle import Bundle
from jem_core.data.dataset import Dataset
from train.__main__ import main


@pytest.fixture(scope="module")
def finished_run(tiny_dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "tiny"
    small = "--width 4 --iterations 4 --batch-size 8 --langevin-steps 2 --buffer-size 16 --start-rank 4"
    arguments = ["fit", "avatars-32", "--data", str(tiny_dataset.directory), "--out", str(out), *small.split()]
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
    assert training["command"].startswith("python -m train fit avatars-32 --data data/tiny --out runs/tiny")
    assert training["export_command"].endswith("--checkpoint last --set steps=7 --set guidance=2")
    assert str(tiny_dataset.directory) not in str(bundle.config)  # no path of the machine that trained it
    assert bundle.support.total == len(tiny_dataset.indices("train"))


def test_a_run_without_checkpoint_is_refused(tmp_path: Path, tiny_dataset: Dataset, capsys) -> None:
    data = ["--data", str(tiny_dataset.directory)]
    assert main(["export", str(tmp_path), *data, "--name", "x", "--out", str(tmp_path / "y")]) == 2
    assert "has no 'best' checkpoint yet" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["step=3", "steps", "steps=2.5", "guidance=much", "noise_std=nan", "grad_coef=-1"])
def test_a_bad_setting_is_refused(
    word: str, finished_run: Path, tiny_dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    command = ["export", str(finished_run), "--data", str(tiny_dataset.directory), "--name", "x"]
    assert main([*command, "--out", str(tmp_path / "y"), "--set", word]) == 2
    assert f"--set {word}: expected" in capsys.readouterr().err
    assert not (tmp_path / "y").exists()
