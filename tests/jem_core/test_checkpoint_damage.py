"""Damaged checkpoints: each is noticed, and a run goes on from the newest that is intact."""

import json
import logging
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from jem_core import checkpoint
from jem_core.config import make_config
from jem_core.data.dataset import Dataset
from jem_core.trainer import Trainer
from tests.conftest import TINY_RUN

SUPERVISED = TINY_RUN | {"objective": "supervised", "iterations": 6}


def write(folder: Path, name: str) -> Path:
    shared = {"model": {"w": torch.arange(400.0)}, "ema": {"w": torch.ones(300)}}
    own = {"streams": {"noise": torch.zeros(100)}}
    facts = {"iteration": int(name[-7:]), "window": [0.1, 2.5], "config": {"seed": 1}}
    checkpoint.write_checkpoint(folder / name, shared, own, facts)
    return folder / name


def cut(file: Path, rng: random.Random) -> None:
    file.write_bytes(file.read_bytes()[: rng.randrange(file.stat().st_size)])


def flip_a_bit(file: Path, rng: random.Random) -> None:
    data = bytearray(file.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    file.write_bytes(data)


def remove(file: Path, rng: random.Random) -> None:
    file.unlink()


def swap(file: Path, rng: random.Random) -> None:
    other = rng.choice([one for one in sorted(file.parent.iterdir()) if one != file])
    file.write_bytes(other.read_bytes())


def grow(file: Path, rng: random.Random) -> None:
    file.write_bytes(file.read_bytes() + rng.randbytes(rng.randint(1, 99)).replace(b" ", b"x"))


DAMAGES: tuple[Callable[[Path, random.Random], None], ...] = (cut, flip_a_bit, remove, swap, grow)


@pytest.mark.parametrize("seed", range(50))
def test_the_one_before_serves(seed: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    good, spoilt = write(tmp_path, "last-0000005"), write(tmp_path, "last-0000006")
    assert checkpoint.newest_good(tmp_path) == spoilt
    rng = random.Random(seed)
    file = rng.choice(sorted(spoilt.iterdir()))
    before = file.read_bytes()
    DAMAGES[seed % len(DAMAGES)](file, rng)
    assert not file.is_file() or file.read_bytes() != before
    with caplog.at_level(logging.WARNING):
        assert checkpoint.newest_good(tmp_path) == good
    assert "last-0000006 is damaged:" in caplog.text
    assert "going back to the one before" in caplog.text
    with pytest.raises(ValueError, match="last-0000006 is damaged"):
        checkpoint.check(spoilt)


def test_an_altered_fact_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path, "last-0000005") / checkpoint.STATE
    state = json.loads(path.read_text())
    state["facts"]["iteration"] = 900
    path.write_text(json.dumps(state))
    assert checkpoint.damage(path.parent) == "state.json was altered"


def test_the_best_serves_where_no_last_one_is_intact(tmp_path: Path) -> None:
    for name in ("best-0000003", "last-0000005"):
        write(tmp_path, name)
    remove(tmp_path / "last-0000005" / "ema.safetensors", random.Random())
    assert checkpoint.newest_good(tmp_path).name == "best-0000003"
    cut(tmp_path / "best-0000003" / "state.json", random.Random(0))
    with pytest.raises(ValueError, match="is intact"):
        checkpoint.newest_good(tmp_path)
    assert checkpoint.newest_good(tmp_path / "empty") is None


def test_damaged_ones_neither_count_nor_stay_in_the_way(tmp_path: Path) -> None:
    for name in ("last-0000004", "last-0000005", "last-0000009"):
        write(tmp_path, name)
    (tmp_path / "last-0000009" / "state.json").write_text("{")
    checkpoint.put_damaged_away(tmp_path)
    checkpoint.prune(tmp_path, "last", keep=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["damaged-last-0000009", "last-0000005"]
    write(tmp_path, "last-0000009")
    (tmp_path / "last-0000009" / "state.json").write_text("{")
    checkpoint.drop_after(tmp_path, 5)  # a roll-back reads nothing that may be damaged
    assert checkpoint.newest(tmp_path).name == "last-0000005"


def test_a_checkpoint_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, "last-0000005")
    facts = checkpoint.read_facts(path)
    (path / checkpoint.STATE).write_text(json.dumps(facts))
    assert checkpoint.newest_good(tmp_path) == path
    assert checkpoint.read_facts(path) == facts
    cut(path / "model.safetensors", random.Random(1))
    assert checkpoint.damage(path) == "model.safetensors was cut short or altered"


def test_everything_is_on_the_disk_before_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    to_disk, rename = checkpoint._to_disk, Path.rename

    def noted_to_disk(path: Path) -> None:
        done.append(path.name)
        to_disk(path)

    def noted_rename(path: Path, target: Path) -> Path:
        done.append(f"rename {path.name}")
        return rename(path, target)

    monkeypatch.setattr(checkpoint, "_to_disk", noted_to_disk)
    monkeypatch.setattr(Path, "rename", noted_rename)
    path = write(tmp_path, "last-0000005")
    at = done.index("rename last-0000005.partial")
    assert {file.name for file in path.iterdir()} | {"last-0000005.partial"} == set(done[:at])
    assert done[at + 1 :] == [tmp_path.name]


def test_training_goes_on_from_the_newest_that_is_intact(tiny_dataset: Dataset, tmp_path: Path) -> None:
    """Bit for bit the run that was never damaged."""

    def train(place: Path, until: int, resume: bool = False) -> Trainer:
        trainer = Trainer(make_config(SUPERVISED | {"checkpoint_minutes": 0}), tiny_dataset, place, resume=resume)
        for _ in trainer.run():
            if trainer.iteration == until - 1:
                trainer.stopping = True
        return trainer

    whole = train(tmp_path / "whole", 6)
    train(tmp_path / "cut", 4)
    folder = tmp_path / "cut" / "checkpoints"
    assert checkpoint.newest(folder).name == "last-0000004"
    flip_a_bit(folder / "last-0000004" / "model.safetensors", random.Random(3))
    trainer = train(tmp_path / "cut", 6, resume=True)
    assert (folder / "damaged-last-0000004").is_dir()
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, trainer.model.state_dict()[name])
    with pytest.raises(ValueError, match=r"is damaged: model\.safetensors was cut short"):
        Trainer(make_config(SUPERVISED), tiny_dataset, tmp_path / "cut", resume_from=folder / "damaged-last-0000004")
