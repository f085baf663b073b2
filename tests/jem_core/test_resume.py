"""Resuming: 40 iterations are 20 and 20 more, bit for bit; a killed run goes on; ranks may change."""

import json
import multiprocessing
import os
import random
import signal
import time
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from jem_core import checkpoint
from jem_core.config import make_config
from jem_core.data.dataset import Dataset
from jem_core.objectives.chain_pool import redistribute
from jem_core.trainer import Trainer
from tests.conftest import TINY_DENOISING, TINY_RUN
from tests.jem_core.ranks import PROCESSES, on_ranks
from tests.jem_core.ranks import train as train_ranks

VARIANTS = {
    "semi-conditional": {},
    "joint, reservoir, KL": {
        "chains": "joint",
        "buffer_policy": "reservoir",
        "kl_weight": 1.0,
        "entropy_weight": 0.3,
        "fresh_fraction": 0.3,
    },
    "jem, ring": {"objective": "jem", "buffer_policy": "ring", "chain_flip": True, "chain_blur": 0.5},
    "supervised": {"objective": "supervised"},
    "restarts": {"stuck_spreads": 0.1, "guard_stuck": 1.0},
    "denoising": TINY_DENOISING,
    "denoising, bfloat16, a rate that holds": TINY_DENOISING | {"precision": "bfloat16", "schedule": "hold"},
}


def same_state(one: Path, two: Path) -> None:
    """Every tensor and every fact of two checkpoints, but for the clock."""
    files = sorted(path.name for path in one.iterdir())
    assert files == sorted(path.name for path in two.iterdir())
    for name in (name for name in files if name.endswith(".safetensors")):
        a, b = (checkpoint.read_tensors(place, name.removesuffix(".safetensors")) for place in (one, two))
        assert a.keys() == b.keys()
        for key in a:
            assert torch.equal(a[key], b[key]), f"{name}: {key}"
    a, b = (checkpoint.read_facts(place) | {"seconds": 0} for place in (one, two))
    assert a == b


def train(dataset: Dataset, place: Path, until: int, resume: bool = False, **changes: object) -> Path:
    config = make_config(TINY_RUN | {"iterations": 40} | changes)
    trainer = Trainer(config, dataset, place, resume=resume)
    for _ in trainer.run():
        if trainer.iteration == until:
            trainer.stopping = True
    return checkpoint.newest(place / "checkpoints")


@pytest.mark.parametrize("variant", VARIANTS)
def test_forty_is_twenty_and_twenty_more(tiny_dataset: Dataset, tmp_path: Path, variant: str) -> None:
    changes = VARIANTS[variant]
    whole = train(tiny_dataset, tmp_path / "whole", 40, **changes)
    train(tiny_dataset, tmp_path / "parts", 19, **changes)  # asked to stop during 20
    half = checkpoint.newest(tmp_path / "parts" / "checkpoints")
    assert half.name == "last-0000020"
    with pytest.raises(AssertionError):  # the comparison can fail
        same_state(whole, half)
    parts = train(tiny_dataset, tmp_path / "parts", 40, resume=True, **changes)
    assert parts.name == "last-0000040"
    same_state(whole, parts)


def test_forty_is_twenty_and_twenty_more_on_two_ranks(tiny_dataset: Dataset, tmp_path: Path) -> None:
    """The same on gloo; and the half-way checkpoint goes on with one rank."""
    values, data = TINY_RUN | {"iterations": 40}, tiny_dataset.directory
    on_ranks(2, train_ranks, values, data, tmp_path / "whole", 40)
    on_ranks(2, train_ranks, values, data, tmp_path / "parts", 20)
    half = checkpoint.newest(tmp_path / "parts" / "checkpoints")
    assert half.name == "last-0000020"
    assert len(checkpoint.read_ranks(half, "buffer")) == len(checkpoint.read_ranks(half, "streams")) == 2
    halves = checkpoint.read_ranks(half, "buffer")
    assert not torch.equal(halves[0]["images"], halves[1]["images"])  # each rank has chains of its own
    alone = Trainer(make_config(TINY_RUN | {"iterations": 22}), tiny_dataset, tmp_path / "parts", resume_from=half)
    merged = {image.numpy().tobytes() for part in halves for image in part["images"]}
    assert {image.numpy().tobytes() for image in alone.objective.pool.buffer.images} == merged
    assert (alone.iteration, len(alone.objective.pool.buffer)) == (20, 16)
    on_ranks(2, train_ranks, values, data, tmp_path / "parts", 40, True)
    same_state(*(checkpoint.newest(tmp_path / name / "checkpoints") for name in ("whole", "parts")))


def test_forty_is_twenty_and_twenty_more_on_two_ranks_that_denoise(tiny_dataset: Dataset, tmp_path: Path) -> None:
    """Without chains; and the half-way checkpoint goes on with one rank, which draws noise of its own."""
    values, data = TINY_RUN | TINY_DENOISING | {"iterations": 40}, tiny_dataset.directory
    on_ranks(2, train_ranks, values, data, tmp_path / "whole", 40)
    on_ranks(2, train_ranks, values, data, tmp_path / "parts", 20)
    half = checkpoint.newest(tmp_path / "parts" / "checkpoints")
    assert [len(checkpoint.read_ranks(half, name)) for name in ("streams", "buffer")] == [2, 0]
    alone = Trainer(make_config(values), tiny_dataset, tmp_path / "parts", resume_from=half)
    saved = checkpoint.read_tensors(half, "model")
    assert all(torch.equal(value, saved[name]) for name, value in alone.model.state_dict().items())
    assert alone.iteration == 20
    on_ranks(2, train_ranks, values, data, tmp_path / "parts", 40, True)
    same_state(*(checkpoint.newest(tmp_path / name / "checkpoints") for name in ("whole", "parts")))


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (2, 3), (3, 2), (2, 2)])
def test_buffers_are_shared_out_when_ranks_change(before: int, after: int) -> None:
    """Every sample goes to exactly one rank, with its own labels and condition."""
    number = torch.arange(12 * before)
    parts = [
        {
            "images": own.view(-1, 1, 1, 1).byte(),
            "labels": own.view(-1, 1).char(),
            "conditions": -own.view(-1, 1).char(),
            "capacity": torch.tensor(12),
            "seen": torch.tensor(100),
            "policy": torch.tensor(1),
        }
        for own in number.chunk(before)
    ]
    shares = [redistribute(parts, rank, after) for rank in range(after)]
    found = torch.cat([share["images"].flatten() for share in shares]).long()
    assert sorted(found.tolist()) == number.tolist()
    for share in shares:
        assert torch.equal(share["labels"].flatten().long(), share["images"].flatten().long())
        assert torch.equal(share["conditions"].flatten().long(), -share["images"].flatten().long())
        assert share["capacity"] == len(share["images"]) == 12 * before / after
        assert share["seen"] == 100 * before // after  # a reservoir knows how long its stream was
        assert share["policy"] == 1


def test_an_empty_buffer_is_shared_out_too() -> None:
    empty = {
        "images": torch.empty(0, 3, 2, 2),
        "labels": torch.empty(0, 1),
        "conditions": torch.empty(0, 1),
        "capacity": torch.tensor(16),
        "seen": torch.tensor(0),
        "policy": torch.tensor(0),
    }
    share = redistribute([empty, empty], 0, 1)
    assert (len(share["images"]), int(share["capacity"]), int(share["seen"])) == (0, 32, 0)


def test_a_run_killed_before_its_first_checkpoint_begins_anew(tiny_dataset: Dataset, tmp_path: Path) -> None:
    Trainer(make_config(TINY_RUN | {"iterations": 3}), tiny_dataset, tmp_path)  # no iteration, nothing saved
    (tmp_path / "checkpoints" / "last-0000001.partial").mkdir(parents=True)
    end = train(tiny_dataset, tmp_path, 3, resume=True, iterations=3)
    assert end.name == "last-0000003"
    assert not (tmp_path / "checkpoints" / "last-0000001.partial").exists()


def fit(*arguments: str) -> None:
    """A process that trains: what `python -m train fit` does."""
    from train.__main__ import main

    os.environ["TQDM_DISABLE"] = "1"
    raise SystemExit(main(["fit", *arguments]))


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(("kind", "kills"), [({}, 10), (TINY_DENOISING, 5)], ids=["chains", "denoising"])
def test_killed_at_random_moments_every_resume_works(
    tiny_dataset: Dataset, tmp_path: Path, kind: dict, kills: int
) -> None:
    """SIGKILL with a checkpoint after every iteration; in the end the run is bit-equal to one that was left alone."""
    config = tmp_path / "run.yaml"
    values = kind | {"iterations": 500, "schedule": "constant", "checkpoint_minutes": 0.0, "threads": 1}
    config.write_text(json.dumps(TINY_RUN | values))
    command = [str(config), "--data", str(tiny_dataset.directory), "--out", str(tmp_path / "run"), "--device", "cpu"]
    moments, reached = random.Random(0), [0]
    folder = tmp_path / "run" / "checkpoints"
    for kill in range(kills):
        process = PROCESSES.Process(target=fit, args=(*command, *(["--resume"] if kill else [])))
        process.start()
        wait_for_progress(process, folder, reached[-1])
        time.sleep(moments.uniform(0.0, 0.25))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        for path in checkpoint.checkpoints(folder):  # whole, every one of them
            facts = checkpoint.read_facts(path)
            assert facts["iteration"] == int(path.name[-7:])
            assert checkpoint.read_tensors(path, "model").keys() == checkpoint.read_tensors(path, "ema").keys()
            assert [len(part["images"]) for part in checkpoint.read_ranks(path, "buffer")] == ([] if kind else [16])
        reached.append(facts["iteration"])
    assert all(before < after for before, after in pairwise(reached))
    end = reached[-1] + 1
    changes = kind | {"schedule": "constant", "iterations": end}
    last = train(tiny_dataset, tmp_path / "run", end, resume=True, **changes)
    whole = train(tiny_dataset, tmp_path / "whole", end, **changes)
    for name in ("model", "ema", "optimizer", *([] if kind else ["buffer-rank0"]), "streams-rank0"):
        a, b = checkpoint.read_tensors(last, name), checkpoint.read_tensors(whole, name)
        assert all(torch.equal(a[key], b[key]) for key in b), name


def wait_for_progress(process: multiprocessing.Process, folder: Path, reached: int) -> None:
    """Until a newer checkpoint than the last one reached is there, or two minutes have passed."""
    for _ in range(6000):
        newest = checkpoint.newest(folder)
        if newest and int(newest.name[-7:]) > reached:
            return
        assert process.is_alive(), "the run ended before it was killed"
        time.sleep(0.02)
    raise AssertionError(f"no checkpoint after iteration {reached}")
