"""Checkpoints: directories of safetensors and JSON, written under a temporary name and renamed when complete.

state.json lists the size and hash of every other file and carries a hash of itself. Files and folder are on the disk
(fsync) before the rename, so that a machine that loses its power keeps the old checkpoint or the new one, never half.
"""

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from jem_core.distributed import wait_for_all

PARTIAL = ".partial"
STATE = "state.json"
DAMAGED = "damaged-"
Tensors = Mapping[str, Tensor]
log = logging.getLogger(__name__)


def write_checkpoint(
    path: Path, shared: Mapping[str, Tensors], own: Mapping[str, Tensors], facts: dict, rank: int = 0
) -> None:
    """Write `path` whole or not at all: rank 0 writes what all ranks share, every rank what is its own."""
    partial = path.with_name(path.name + PARTIAL)
    if rank == 0:
        for left_over in path.parent.glob(f"*{PARTIAL}"):
            shutil.rmtree(left_over, ignore_errors=True)
        partial.mkdir(parents=True)
        _save(partial, shared, "")
    wait_for_all()
    _save(partial, own, f"-rank{rank}")
    wait_for_all()
    if rank == 0:
        files = {file.name: _fingerprint(file) for file in sorted(partial.iterdir())}
        state = {"facts": facts, "files": files}
        (partial / STATE).write_text(json.dumps(state | {"sha256": _digest(state)}, indent=1))
        _to_disk(partial / STATE)
        _to_disk(partial)
        old = _set_aside(path)
        partial.rename(path)
        _to_disk(path.parent)
        shutil.rmtree(old, ignore_errors=True)
    wait_for_all()


def _save(folder: Path, named: Mapping[str, Tensors], suffix: str) -> None:
    for name, tensors in named.items():
        file = folder / f"{name}{suffix}.safetensors"
        save_file({key: value.detach().cpu().contiguous() for key, value in tensors.items()}, file)
        _to_disk(file)


def _to_disk(path: Path) -> None:
    """A file's bytes, or a folder's list of names, out of the system's memory."""
    if os.name == "nt" and path.is_dir():  # Windows opens no folders, and keeps their lists itself
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _fingerprint(file: Path) -> dict:
    with file.open("rb") as data:
        return {"size": file.stat().st_size, "sha256": hashlib.file_digest(data, "sha256").hexdigest()}


def _digest(state: dict) -> str:
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def damage(path: Path) -> str | None:
    """What is wrong with a checkpoint, in words; None when it is intact."""
    try:
        state = json.loads((path / STATE).read_text())
        if not isinstance(state, dict):
            return f"{STATE} does not hold a checkpoint's facts"
        if "files" not in state:
            return _damage_without_hashes(path, state)
        stated = state.pop("sha256", None)
        if stated != _digest(state):
            return f"{STATE} was altered"
        for name, expected in state["files"].items():
            if not (path / name).is_file():
                return f"{name} is missing"
            if _fingerprint(path / name) != expected:
                return f"{name} was cut short or altered"
    except (OSError, ValueError) as error:  # of JSON and of text that is not UTF-8 too
        return f"it cannot be read: {error}"
    return None


def _damage_without_hashes(path: Path, facts: dict) -> str | None:
    """A checkpoint of an earlier version: its files must at least be as long as their own headers say."""
    files = sorted(path.glob("*.safetensors"))
    if "iteration" not in facts or not files:
        return f"{STATE} or the tensors are missing"
    for file in files:
        try:
            with safe_open(file, "pt"):
                pass
        except SafetensorError:
            return f"{file.name} was cut short or altered"
    return None


def check(path: Path) -> None:
    """Refuse a checkpoint that is not as it was written."""
    if trouble := damage(path):
        raise ValueError(f"The checkpoint {path} is damaged: {trouble}.")


def read_facts(path: Path) -> dict:
    state = json.loads((path / STATE).read_text())
    return state["facts"] if "files" in state else state


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


def newest_good(directory: Path) -> Path | None:
    """The newest intact checkpoint: of the last ones, else the best. A damaged one is named in the log and left out.

    None where there is no checkpoint at all; ValueError where all are damaged, since a new run would overwrite them.
    """
    found = [*reversed(checkpoints(directory)), *reversed(checkpoints(directory, "best"))]
    for number, path in enumerate(found):
        trouble = damage(path)
        if trouble is None:
            return path
        following = "going back to the one before" if number + 1 < len(found) else "there is none before it"
        log.warning("The checkpoint %s is damaged: %s; %s.", path, trouble, following)
    if found:
        raise ValueError(f"No checkpoint in {directory} is intact. Move them away to begin the run anew.")
    return None


def put_damaged_away(directory: Path) -> None:
    """Rename damaged checkpoints: among the last ones they would be taken for the newest, and good ones be pruned."""
    for path in [*checkpoints(directory), *checkpoints(directory, "best")]:
        if damage(path) is not None:
            away = path.with_name(DAMAGED + path.name)
            shutil.rmtree(away, ignore_errors=True)
            path.rename(away)


def prune(directory: Path, kind: str, keep: int) -> None:
    """Delete all but the newest `keep` of a kind."""
    for path in checkpoints(directory, kind)[:-keep]:
        shutil.rmtree(_set_aside(path), ignore_errors=True)


def drop_after(directory: Path, iteration: int) -> None:
    """Delete the last checkpoints of later iterations; the best stays."""
    for path in checkpoints(directory):
        if int(path.name.rpartition("-")[2]) > iteration:
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
