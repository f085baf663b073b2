"""When training goes wrong: roll-backs, halved rates, and a clear end."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from jem_core import checkpoint
from jem_core.config import make_config
from jem_core.data.dataset import Dataset
from jem_core.divergence import TrainingDiverged
from jem_core.trainer import Trainer
from tests.conftest import TINY_DENOISING, TINY_RUN


def trainer(dataset: Dataset, place: Path, **changes: object) -> Trainer:
    return Trainer(make_config(TINY_RUN | {"iterations": 6} | changes), dataset, place)


ABSURD = {"learning_rate": 200.0, "grad_norm_clip": 0.0, "guard_window": 2, "guard_snapshot": 3, "schedule": "constant"}
ADVICE = {"chains": "learning_rate, more langevin_steps, or chains: semi-conditional", "denoising": "learning_rate"}


@pytest.mark.parametrize("kind", ADVICE)
def test_an_absurd_rate_ends_with_a_clear_message(tiny_dataset: Dataset, tmp_path: Path, kind: str) -> None:
    changes = ABSURD | (TINY_DENOISING | {"learning_rate": 1e6} if kind == "denoising" else {})
    run = trainer(tiny_dataset, tmp_path, iterations=60, guard_trips=2, **changes)
    rows: list[dict] = []
    with pytest.raises(TrainingDiverged, match=rf"after 2 roll-backs\. Try a smaller {ADVICE[kind]}\.$"):
        rows.extend(run.run())
    events = [row["event"] for row in rows if "event" in row]
    assert len(events) == 2
    assert "Went back to iteration 0" in events[0]
    assert "the rate is now 0.5 times the schedule's" in events[0]
    newest = checkpoint.newest(tmp_path / "checkpoints")
    assert checkpoint.read_facts(newest)["trips"] == 2  # a resume would not begin with a fresh count
    assert all(torch.isfinite(value).all() for value in checkpoint.read_tensors(newest, "model").values())


def test_a_rate_that_is_too_high_is_halved_until_the_run_is_healthy(tiny_dataset: Dataset, tmp_path: Path) -> None:
    run = trainer(tiny_dataset, tmp_path, iterations=25, guard_trips=40, **ABSURD)
    rows = list(run.run())
    assert run.iteration == 25
    assert run.guard.trips > 3
    assert all(np.isfinite(value) for value in rows[-1].values())
    assert all(torch.isfinite(value).all() for value in run.ema.parameters())
    json.dumps(rows[-1])


def test_a_second_trip_does_not_go_back_to_the_sick_state(tiny_dataset: Dataset, tmp_path: Path) -> None:
    """Snapshots at 0, 3, 6, 9; trips at 10 and again at once: the first goes back to 3, the second must not go to 6."""
    run = trainer(tiny_dataset, tmp_path, iterations=12, guard_snapshot=3, evaluate_every=100)
    trips = iter([False] * 9 + [True, True] + [False] * 20)
    run.guard.check = lambda _: "made up" if next(trips) else None
    events = [row["event"] for row in run.run() if "event" in row]
    assert [event.split("; ")[0] for event in events] == [
        "Iteration 10: made up. Went back to iteration 3",
        "Iteration 4: made up. Went back to iteration 3",
    ]
    assert run.iteration == 12


@pytest.mark.parametrize("changes", [{}, TINY_DENOISING], ids=["chains", "denoising"])
def test_a_roll_back_restores_everything_but_the_count(tiny_dataset: Dataset, tmp_path: Path, changes: dict) -> None:
    run = trainer(tiny_dataset, tmp_path, iterations=9, guard_snapshot=4, checkpoint_minutes=0.0, **changes)
    for _ in zip(range(3), run.run(), strict=False):
        pass
    state = copy.deepcopy((run._shared(), run._own()))
    run.good.clear()
    run.good.append(run._snapshot())
    for _ in range(3):
        run.iterate()
    run.save()
    run.guard.check({"loss": 1.0, "grad_norm": 5.0})
    message = run._roll_back("made up")
    assert "Went back to iteration 3" in message
    assert run.guard.rate_factor == 0.5
    for old, new in zip(state, (run._shared(), run._own()), strict=True):
        for part in old:
            assert all(torch.equal(old[part][name], new[part][name]) for name in old[part]), part
    assert [path.name[-1] for path in checkpoint.checkpoints(tmp_path / "checkpoints")][-1] == "3"  # 6 is gone
