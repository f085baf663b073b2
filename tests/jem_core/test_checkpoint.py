"""Checkpoints: whole or not there, whoever is killed when."""

import shutil
from contextlib import suppress
from pathlib import Path

import pytest
import torch

from jem_core import checkpoint
from jem_core.model import JointEnergyModel
from jem_core.networks import build_network
from tests.conftest import TINY_NET


def write(folder: Path, name: str, value: float = 1.0) -> Path:
    tensors = {"model": {"w": torch.full((2, 2), value)}}
    facts = {"iteration": int(name.split("-")[1])}
    checkpoint.write_checkpoint(folder / name, tensors, {"buffer": {"x": torch.zeros(1)}}, facts)
    return folder / name


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "c", "last-0000003", 7.0)
    assert checkpoint.read_tensors(path, "model")["w"].tolist() == [[7, 7], [7, 7]]
    assert checkpoint.read_facts(path) == {"iteration": 3}
    assert [list(part) for part in checkpoint.read_ranks(path, "buffer")] == [["x"]]
    names = sorted(file.name for file in path.iterdir())
    assert names == ["buffer-rank0.safetensors", "model.safetensors", "state.json"]
    assert [entry.name for entry in (tmp_path / "c").iterdir()] == ["last-0000003"]


def test_newest_last_and_best(tmp_path: Path) -> None:
    assert checkpoint.newest(tmp_path / "nowhere") is None
    for name in ("last-0000002", "last-0000010", "best-0000004"):
        write(tmp_path, name)
    assert checkpoint.newest(tmp_path).name == "last-0000010"
    assert checkpoint.newest(tmp_path, "best").name == "best-0000004"
    for name in ("last-0000011", "last-0000012"):
        write(tmp_path, name)
    checkpoint.prune(tmp_path, "last", keep=2)
    assert [path.name for path in checkpoint.checkpoints(tmp_path)] == ["last-0000011", "last-0000012"]
    checkpoint.drop_after(tmp_path, 11)
    assert [path.name for path in checkpoint.checkpoints(tmp_path)] == ["last-0000011"]
    assert checkpoint.newest(tmp_path, "best").name == "best-0000004"  # a roll-back does not forget the best


def test_the_same_name_is_replaced(tmp_path: Path) -> None:
    write(tmp_path, "last-0000002", 1.0)
    path = write(tmp_path, "last-0000002", 2.0)
    assert checkpoint.read_tensors(path, "model")["w"][0, 0] == 2


class Killed(BaseException):
    """Stands for SIGKILL: nothing below catches it."""


@pytest.mark.parametrize("allowed", range(8))
@pytest.mark.parametrize("call", ["write", "replace", "prune", "drop"])
def test_killed_at_any_file_operation_no_checkpoint_is_torn(
    call: str, allowed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends before its n-th write, rename or delete: what is listed is complete; the next write works."""
    write(tmp_path, "last-0000001")
    write(tmp_path, "last-0000002")
    left = [allowed]

    def counted(function, tear: bool = False):
        def wrapper(*args, **kwargs):
            left[0] -= 1
            if left[0] < 0:
                if tear and Path(args[0]).is_dir():  # killed in the middle of deleting a folder
                    next(iter(sorted(Path(args[0]).iterdir()))).unlink()
                raise Killed
            return function(*args, **kwargs)

        return wrapper

    monkeypatch.setattr(checkpoint, "save_file", counted(checkpoint.save_file))
    monkeypatch.setattr(shutil, "rmtree", counted(shutil.rmtree, tear=True))
    monkeypatch.setattr(Path, "rename", counted(Path.rename))
    actions = {
        "write": lambda: write(tmp_path, "last-0000003"),
        "replace": lambda: write(tmp_path, "last-0000002", 2.0),
        "prune": lambda: checkpoint.prune(tmp_path, "last", 1),
        "drop": lambda: checkpoint.drop_after(tmp_path, 1),
    }
    with suppress(Killed):
        actions[call]()
    monkeypatch.undo()
    found = checkpoint.checkpoints(tmp_path)
    assert found
    for path in found:
        assert checkpoint.read_facts(path)["iteration"] == int(path.name[-7:])
        assert "w" in checkpoint.read_tensors(path, "model")
        assert len(checkpoint.read_ranks(path, "buffer")) == 1
    write(tmp_path, "last-0000009")
    assert not [entry for entry in tmp_path.iterdir() if entry.name.endswith(checkpoint.PARTIAL)]
    assert checkpoint.newest(tmp_path).name == "last-0000009"


SHAPES = {"paper": {"width": 2, "fold": 1}, "residual": TINY_NET}


def trained(network: str, steps: int) -> tuple[JointEnergyModel, torch.optim.Optimizer]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = build_network({"network": network, "names": "ab", "image_size": 32} | SHAPES[network])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step(model, optimizer, steps)
    return model, optimizer


def step(model: JointEnergyModel, optimizer: torch.optim.Optimizer, steps: int) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        model.log_prob(torch.full((2, 3, 32, 32), 0.5), torch.tensor([[0, 1]] * 2)).sum().backward()
        optimizer.step()


@pytest.mark.parametrize("network", SHAPES)
@pytest.mark.parametrize("before", [0, 3])
def test_adam_goes_on_bit_for_bit(before: int, network: str, tmp_path: Path) -> None:
    model, optimizer = trained(network, before)
    shared = {"model": dict(model.state_dict()), "optimizer": checkpoint.optimizer_tensors(optimizer)}
    checkpoint.write_checkpoint(tmp_path / "last-0000001", shared, {}, {})
    step(model, optimizer, 5)
    other, other_optimizer = trained(network, 2)  # another history, all of which must be forgotten
    other.load_state_dict(checkpoint.read_tensors(tmp_path / "last-0000001", "model"))
    checkpoint.load_optimizer(other_optimizer, checkpoint.read_tensors(tmp_path / "last-0000001", "optimizer"))
    for weight in other.parameters():
        state = other_optimizer.state.get(weight)
        assert not state or state["exp_avg"].stride() == weight.stride()
    step(other, other_optimizer, 5)
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
