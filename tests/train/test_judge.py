"""python -m train judge: the judge stands where the evaluation looks for it, with what it is worth."""

from pathlib import Path

import pytest
import torch

from jem_core.data.dataset import Dataset
from jem_core.judge import Judge
from train.__main__ import main


def test_a_judge_is_trained_saved_and_described(
    tiny_dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    words = ["judge", "--data", str(tiny_dataset.directory), "--epochs", "2", "--width", "4"]
    paths = [tmp_path / name for name in ("one", "two")]
    for path in paths:
        assert main([*words, "--out", str(path)]) == 0
    said = capsys.readouterr().out
    first, second = (Judge.load(path) for path in paths)
    images = tiny_dataset.tensors(tiny_dataset.indices("test"))[0]
    assert torch.equal(first.probabilities(images), second.probabilities(images))  # one seed, one judge
    for name, accuracy in first.facts["accuracy"].items():
        assert f"{name:24s}{accuracy:10.2%}" in said
    assert f"Right on {first.facts['tested_on']['images']} real images that it never saw" in said


def test_data_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["judge", "--data", str(tmp_path / "nothing")]) == 2
    assert "is not a data set" in capsys.readouterr().err
