"""One iteration and one run: what is learned, what the chains do, and what happens when it goes wrong."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from jem_core import checkpoint
from jem_core.bundle import Bundle
from jem_core.condition import FREE, Condition
from jem_core.config import make_config
from jem_core.data.dataset import Dataset
from jem_core.guard import TrainingDiverged
from jem_core.sampling import sample
from jem_core.trainer import Trainer
from tests.conftest import TINY_NAMES, TINY_RUN


def trainer(dataset: Dataset, place: Path, **changes: object) -> Trainer:
    return Trainer(make_config(TINY_RUN | {"iterations": 6} | changes), dataset, place)


def weights(run: Trainer) -> torch.Tensor:
    return torch.cat([value.detach().flatten() for value in run.model.parameters()])


TECHNIQUES = {
    "supervised": {"objective": "supervised"},
    "jem": {"objective": "jem"},
    "joint chains": {"chains": "joint"},
    "semi-conditional chains": {"chains": "semi-conditional"},
    "marginalized labels": {"chains": "joint", "negative_labels": "marginalized"},
    "informed start": {"start": "informed"},
    "uniform start": {"start": "uniform", "fresh_fraction": 1.0},
    "ring": {"buffer_policy": "ring"},
    "reservoir": {"buffer_policy": "reservoir"},
    "augmentation": {"chain_flip": True, "chain_blur": 1.0, "chain_blur_sigma": 2.0},
    "KL term": {"kl_weight": 1.0, "entropy_weight": 0.3},
    "KL term of JEM": {"objective": "jem", "kl_weight": 1.0, "entropy_weight": 0.3},
    "two steps a sweep": {"steps_per_sweep": 2, "langevin_steps": 4},
    "no clamp, no preconditioner": {"grad_clamp": 0.0, "preconditioner": 0.0, "grad_norm_clip": 0.0},
    "no restarts": {"restart_stuck": False},
    "energy penalty": {"energy_penalty": 0.01},
    "rate in steps": {"schedule": "steps", "decay_at": [2]},
    "warm start": {"supervised_iterations": 3},
    "PyTorch's first weights": {"init_gain": 0.0},
    "fewer chains than images": {"chain_count": 4, "guard_contrast": 9.0},
    "constant steps": {"uphill_target": 0.0},
    "longer at the end": {"final_langevin_steps": 5, "final_phase": 0.5},
    "no data noise": {"data_noise": 0.0},
    "start without grain": {"start_grain": 0.0},
    "bfloat16": {"precision": "bfloat16"},
    "bfloat16 with the KL term": {"precision": "bfloat16", "kl_weight": 1.0, "entropy_weight": 0.3},
}


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_every_technique_trains(tiny_dataset: Dataset, tmp_path: Path, technique: str) -> None:
    run = trainer(tiny_dataset, tmp_path, **TECHNIQUES[technique])
    before, ema = weights(run), [value.clone() for value in run.ema.parameters()]
    metrics = list(run.run())
    assert len(metrics) == run.iteration == 6
    assert all(np.isfinite(value) for row in metrics for value in row.values())
    assert not torch.equal(before, weights(run))
    assert all(not torch.equal(a, b) for a, b in zip(ema, run.ema.parameters(), strict=True))
    assert metrics[-1]["held_out_accuracy"] > 0
    assert ("energy_gap" in metrics[0]) == (technique not in ("supervised", "warm start"))
    assert ("healthy" in metrics[-1]) == (technique != "supervised")


def test_techniques_change_the_run(tiny_dataset: Dataset, tmp_path: Path) -> None:
    """No key is read and forgotten: every technique ends at other weights than the plain run."""
    ends = {}
    for number, (name, changes) in enumerate({"plain": {}, **TECHNIQUES}.items()):
        run = trainer(tiny_dataset, tmp_path / str(number), iterations=4, **changes)
        for _ in range(4):
            run.iterate()
        ends[name] = weights(run)
    same = [n for n, end in ends.items() if n != "plain" and torch.equal(end, ends["plain"])]
    # The first is the default; the others need a stuck chain or an overshoot, and have tests of their own.
    assert set(same) <= {"semi-conditional chains", "no restarts", "constant steps"}


def test_the_classifier_learns(tiny_dataset: Dataset, tmp_path: Path) -> None:
    run = trainer(tiny_dataset, tmp_path, iterations=150, width=8, learning_rate=1e-2, objective="supervised", ema=0.9)
    accuracies = [row["held_out_accuracy"] for row in run.run() if "held_out_accuracy" in row]
    assert accuracies[-1] > 0.9 > accuracies[0]


def test_unknown_labels_train(tiny_dataset: Dataset, tmp_path: Path) -> None:
    labels = tiny_dataset.labels.copy()
    labels[np.random.default_rng(0).random(labels.shape) < 0.5] = -1
    partly = Dataset(**{**vars(tiny_dataset), "labels": labels})
    for objective in ("supervised", "gibbs-jem"):
        metrics = list(trainer(partly, tmp_path / objective, objective=objective).run())
        assert all(np.isfinite(value) for row in metrics for value in row.values())


def test_every_row_once_an_epoch(tiny_dataset: Dataset, tmp_path: Path) -> None:
    run = trainer(tiny_dataset, tmp_path)
    rows, seen = len(run.rows), []
    run.dataset = copy.copy(tiny_dataset)
    object.__setattr__(run.dataset, "tensors", lambda own: seen.extend(own) or tiny_dataset.tensors(own))
    for run.iteration in range(2 * rows // 8):
        run._next_batch()
    assert sorted(seen[:rows]) == sorted(run.rows)
    assert seen[:rows] != seen[rows : 2 * rows]
    assert not tiny_dataset.held_out[seen].any()  # held-out combinations are never trained on
    assert (tiny_dataset.split[seen] == 0).all()


def test_semi_conditional_chains_carry_conditions_of_training_rows(tiny_dataset: Dataset, tmp_path: Path) -> None:
    run = trainer(tiny_dataset, tmp_path, buffer_size=200, max_conditions=3)
    conditions = run.pool.buffer.conditions
    count = (conditions != FREE).sum(dim=1)
    assert set(count.tolist()) == {0, 1, 2, 3}
    support = tiny_dataset.support()
    assert all(support.count(Condition.from_tensor(TINY_NAMES, row)) > 0 for row in conditions)
    list(run.run())
    asked = run.pool.buffer.conditions != FREE
    assert torch.equal(run.pool.buffer.labels[asked], run.pool.buffer.conditions[asked])
    joint = trainer(tiny_dataset, tmp_path / "joint", chains="joint")
    assert (joint.pool.buffer.conditions == FREE).all()


def test_stuck_chains_begin_anew(tiny_dataset: Dataset, tmp_path: Path) -> None:
    run = trainer(
        tiny_dataset, tmp_path, chain_blur=0.0, fresh_fraction=0.0, langevin_steps=1, grad_coef=0.0, noise_std=0.0
    )
    run.pool.buffer.images[:] = torch.where(torch.rand(16, 3, 32, 32) < 0.5, 0, 255).byte()
    run.pool.buffer.images[8:] = 128
    chains, slots = run.pool.draw(16)
    chains.x[slots < 8] = chains.x[slots < 8].round()  # at the very corners
    _, stuck, _ = run.pool.finish(chains, [])
    assert torch.equal(stuck, slots < 8)
    run.pool.keep(chains, slots, stuck)
    assert (run.pool.buffer.images[8:] == 128).all()
    assert ((run.pool.buffer.images[:8] > 0) & (run.pool.buffer.images[:8] < 255)).float().mean() > 0.9
    level = run.model.score(chains.x).mean().item()
    _, everyone, nobody = run.pool.finish(chains, [level - 100, 1.0])  # energies 100 below the data's
    assert everyone.all()
    assert not nobody.any()
    _, nobody, everyone = run.pool.finish(chains, [level + 100, 1.0])  # energies 100 above: behind, not stuck
    assert everyone.all()
    assert not nobody.any()


def test_a_buffer_of_chains_is_shared_by_draw_and_keep(tiny_dataset: Dataset, tmp_path: Path) -> None:
    run = trainer(tiny_dataset, tmp_path, fresh_fraction=0.0, chain_blur=0.0, switch_fraction=0.0)
    before = run.pool.buffer.images.clone()
    run.iterate()
    changed = (run.pool.buffer.images != before).flatten(1).any(dim=1)
    assert changed.sum() == 8  # a batch of chains was moved and written back in place


def test_neighbours_know_which_chain_they_were(tiny_dataset: Dataset, tmp_path: Path) -> None:
    run = trainer(tiny_dataset, tmp_path, entropy_samples=16)
    slots = torch.tensor([3, 9])
    images, same = run.pool.neighbours(slots)
    assert images.shape == (16, 3, 32, 32)
    assert same.shape == (2, 16)
    assert same.sum(dim=1).tolist() == [1, 1]
    own = images[same[0]].flatten() - (run.pool.buffer.images[3].flatten() + 0.5) / 256
    assert own.abs().max() < 1 / 256


def test_the_average_is_short_at_first_and_long_later(tiny_dataset: Dataset, tmp_path: Path) -> None:
    run = trainer(tiny_dataset, tmp_path, ema=0.5, objective="supervised")
    for iteration in (0, 100):
        run.iteration = iteration
        before = [value.clone() for value in run.ema.parameters()]
        run.iterate()
        keep = min(0.5, (1 + iteration) / (10 + iteration))
        for old, now, new in zip(before, run.model.parameters(), run.ema.parameters(), strict=True):
            torch.testing.assert_close(new, keep * old + (1 - keep) * now)


def test_the_finished_model(tiny_dataset: Dataset, tmp_path: Path) -> None:
    run = trainer(tiny_dataset, tmp_path / "run")
    list(run.run())
    bundle = run.bundle("mine", {"sampling": {"steps": 2}}, samples=5)
    bundle.write(tmp_path / "model")
    again = Bundle.read(tmp_path / "model")
    assert len(again.buffer) == 5
    assert again.support.total == len(run.rows)
    for a, b in zip(again.model.parameters(), run.ema.parameters(), strict=True):
        assert torch.equal(a, b.half().float())  # as stored
    assert sample(again, Condition.from_lists(TINY_NAMES, ["Red"]), 2).images.shape == (2, 3, 32, 32)


def test_best_and_last_are_kept(tiny_dataset: Dataset, tmp_path: Path) -> None:
    run = trainer(
        tiny_dataset,
        tmp_path,
        iterations=8,
        evaluate_every=2,
        checkpoint_minutes=0.0,
        keep_checkpoints=3,
        objective="jem",
    )
    rows = list(run.run())
    kept = [path.name for path in checkpoint.checkpoints(tmp_path / "checkpoints")]
    assert kept == ["last-0000006", "last-0000007", "last-0000008"]
    (best,) = checkpoint.checkpoints(tmp_path / "checkpoints", "best")
    facts = checkpoint.read_facts(best)
    healthy = [row["held_out_accuracy"] for row in rows if row.get("healthy") == 1.0]
    assert facts["best_accuracy"] == max(healthy)


def test_an_unhealthy_state_is_never_the_best(tiny_dataset: Dataset, tmp_path: Path) -> None:
    run = trainer(tiny_dataset, tmp_path, iterations=4, evaluate_every=2)
    run.pool.fresh_chains_are_healthy = lambda *_: False
    list(run.run())
    assert not checkpoint.checkpoints(tmp_path / "checkpoints", "best")


ABSURD = {"learning_rate": 200.0, "grad_norm_clip": 0.0, "guard_window": 2, "guard_snapshot": 3, "schedule": "constant"}


def test_an_absurd_rate_ends_with_a_clear_message(tiny_dataset: Dataset, tmp_path: Path) -> None:
    run = trainer(tiny_dataset, tmp_path, iterations=60, guard_trips=2, **ABSURD)
    rows: list[dict] = []
    with pytest.raises(TrainingDiverged, match=r"after 2 roll-backs\. Try a smaller learning_rate"):
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


def test_a_roll_back_restores_everything_but_the_count(tiny_dataset: Dataset, tmp_path: Path) -> None:
    run = trainer(tiny_dataset, tmp_path, iterations=9, guard_snapshot=4, checkpoint_minutes=0.0)
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


def test_runs_that_cannot_be(tiny_dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no run to resume"):
        Trainer(make_config(TINY_RUN), tiny_dataset, tmp_path / "nothing", resume=True)
    assert not (tmp_path / "nothing").exists()
    run = trainer(tiny_dataset, tmp_path / "run", iterations=2)
    list(run.run())
    with pytest.raises(ValueError, match="of another model than this config and data describe"):
        Trainer(make_config(TINY_RUN | {"width": 5}), tiny_dataset, tmp_path / "run", resume=True)
