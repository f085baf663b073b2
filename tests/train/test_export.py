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
    options = ["--name", "mine", "--out", str(target), "--checkpoint", "last", "--steps", "7", "--guidance", "2"]
    assert main(["export", str(finished_run), *data, *options]) == 0
    bundle = Bundle.read(target)
    assert (bundle.name, bundle.names) == ("mine", tiny_dataset.names)
    assert (bundle.sampling["steps"], bundle.sampling["guidance"]) == (7, 2.0)
    assert bundle.sampling["grad_coef"] == 0.05  # the step that the schedule had come to at the end
    training = bundle.config["training"]
    assert training["iterations"] == 4
    assert training["command"].startswith("python -m train fit avatars-32 --data data/tiny --out runs/tiny")
    assert str(tiny_dataset.directory) not in str(bundle.config)  # no path of the machine that trained it
    assert bundle.support.total == len(tiny_dataset.indices("train"))


def test_a_run_without_checkpoint_is_refused(tmp_path: Path, tiny_dataset: Dataset, capsys) -> None:
    data = ["--data", str(tiny_dataset.directory)]
    assert main(["export", str(tmp_path), *data, "--name", "x", "--out", str(tmp_path / "y")]) == 2
    assert "has no 'best' checkpoint yet" in capsys.readouterr().err
