"""Checkpoints: directories of safetensors and JSON, written under a temporary name and renamed when complete."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from jem_core.distributed import wait_for_all

PARTIAL = ".partial"
Tensors = Mapping[str, Tensor]


def write_checkpoint(
    path: Path, shared: Mapping[str, Tensors], own: Mapping[str, Tensors], facts: dict, rank: int = 0
) -> None:
    """Write `path` whole or not at all: rank 0 writes what all ranks share, every rank what is its own."""
    partial = path.with_name(path.name + PARTIAL)
    if rank == 0:
        for left_over in path.parent.glob(f"*{PARTIAL}"):
            shutil.rmtree(left_over, ignore_errors=True)
        partial.mkdir(parents=True)
        for name, tensors in shared.items():
            save_file(_plain(tensors), partial / f"{name}.safetensors")
        (partial / "state.json").write_text(json.dumps(facts, indent=1))
    wait_for_all()
    for name, tensors in own.items():
        save_file(_plain(tensors), partial / f"{name}-rank{rank}.safetensors")
    wait_for_all()
    if rank == 0:
        old = _set_aside(path)
        partial.rename(path)
        shutil.rmtree(old, ignore_errors=True)
    wait_for_all()


def _plain(tensors: Tensors) -> dict[str, Tensor]:
    return {name: value.detach().cpu().contiguous() for name, value in tensors.items()}


def read_facts(path: Path) -> dict:
    return json.loads((path / "state.json").read_text())


def read_tensors(path: Path, name: str) -> dict[str, Tensor]:
    return load_file(path / f"{name}.safetensors")


def read_ranks(path: Path, name: str) -> list[dict[str, Tensor]]:
    """What each rank of the writing run kept under this name, in order."""
    count = len(list(path.glob(f"{name}-rank*.safetensors")))
    return [load_file(path / f"{name}-rank{rank}.safetensors") for rank in range(count)]


def checkpoints(directory: Path, kind: str = "last") -> list[Path]:
    """Complete checkpoints of a kind ("last" or "best"), oldest first."""
    found = directory.glob(f"{kind}-*")
    return sorted(path for path in found if path.is_dir() and not path.name.endswith(PARTIAL))


def newest(directory: Path, kind: str = "last") -> Path | None:
    found = checkpoints(directory, kind)
    return found[-1] if found else None


def prune(directory: Path, kind: str, keep: int) -> None:
    """Delete all but the newest `keep` of a kind."""
    for path in checkpoints(directory, kind)[:-keep]:
        shutil.rmtree(_set_aside(path), ignore_errors=True)


def drop_after(directory: Path, iteration: int) -> None:
    """Delete the last checkpoints of later iterations; the best stays."""
    for path in checkpoints(directory):
        if read_facts(path)["iteration"] > iteration:
            shutil.rmtree(_set_aside(path), ignore_errors=True)


def _set_aside(path: Path) -> Path:
    """Rename first, delete then: whoever is killed in between leaves no checkpoint with half of its files."""
    aside = path.with_name(f"{path.name}.old{PARTIAL}")
    shutil.rmtree(aside, ignore_errors=True)
    if path.exists():
        path.rename(aside)
    return aside


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Adam's moments and step counts as flat names."""
    state = optimizer.state_dict()["state"]
    return {f"{index}.{name}": value for index, slots in state.items() for name, value in slots.items()}


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: Tensors) -> None:
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        index, name = key.split(".")
        # Moments lie in memory as their weights do: another order of the same numbers may round otherwise.
        like = weights[int(index)] if value.ndim else value
        state.setdefault(int(index), {})[name] = torch.empty_like(like, dtype=value.dtype).copy_(value)
    optimizer.load_state_dict(optimizer.state_dict() | {"state": state})
