"""One iteration and one run: what is learned, what the chains do, and what happens when it goes wrong."""

import copy
from pathlib import Path

import numpy as np
import pytest
import torch

from jem_core import checkpoint
from jem_core.bundle import Bundle
from jem_core.chains import sample
from jem_core.condition import FREE, Condition
from jem_core.config import make_config
from jem_core.data.dataset import Dataset
from jem_core.random import generator
from jem_core.trainer import Trainer
from tests.conftest import TINY_DENOISING, TINY_NAMES, TINY_RUN


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
    "two steps per sweep": {"steps_per_sweep": 2, "langevin_steps": 4},
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
    "fastest": {"precision": "fastest"},
}
# The same with noise levels; each is compared with plain denoising.
DENOISING = {
    "lower levels": {"noise_mean": -1.2, "noise_spread": 1.2},
    "nothing asked": {"free_share": 1.0, "full_share": 0.0},
    "everything asked": {"free_share": 0.0, "full_share": 1.0},
    "one attribute asked": {"max_conditions": 1},
    "less cross-entropy": {"cross_entropy_weight": 0.2},
    "rate that holds": {"schedule": "hold", "final_phase": 0.5},
    "bfloat16 denoising": {"precision": "bfloat16"},
}


@pytest.mark.parametrize("technique", [*TECHNIQUES, "denoising", *DENOISING])
def test_every_technique_trains(tiny_dataset: Dataset, tmp_path: Path, technique: str) -> None:
    changes = TECHNIQUES.get(technique, TINY_DENOISING | DENOISING.get(technique, {}))
    run = trainer(tiny_dataset, tmp_path, **changes)
    before, ema = weights(run), [value.clone() for value in run.ema.parameters()]
    metrics = list(run.run())
    assert len(metrics) == run.iteration == 6
    assert all(np.isfinite(value) for row in metrics for value in row.values())
    assert not torch.equal(before, weights(run))
    assert all(not torch.equal(a, b) for a, b in zip(ema, run.ema.parameters(), strict=True))
    assert metrics[-1]["held_out_accuracy"] > 0
    chains = technique in TECHNIQUES and technique != "supervised"
    assert ("energy_gap" in metrics[0]) == (chains and technique != "warm start")
    assert ("healthy" in metrics[-1]) == chains
    assert ("denoising_loss" in metrics[0]) == (technique not in TECHNIQUES)
    assert ("denoising_at_1" in metrics[-1]) == (technique not in TECHNIQUES)


def test_techniques_change_the_run(tiny_dataset: Dataset, tmp_path: Path) -> None:
    """No key is read and forgotten: every technique ends at other weights than the plain run."""

    def end(changes: dict) -> torch.Tensor:
        run = trainer(tiny_dataset, tmp_path / str(len(list(tmp_path.iterdir()))), iterations=4, **changes)
        for _ in range(4):
            run.iterate()
        return weights(run)

    plain, same = end({}), set()
    for name, changes in TECHNIQUES.items():
        if torch.equal(end(changes), plain):
            same.add(name)
    # The first is the default; the next two need a stuck chain or an overshoot, and have tests of their own; the last
    # depends on the processor.
    assert same <= {"semi-conditional chains", "no restarts", "constant steps", "fastest"}
    plain = end(TINY_DENOISING)
    for name, changes in DENOISING.items():
        assert not torch.equal(end(TINY_DENOISING | changes), plain), name


def test_the_classifier_learns(tiny_dataset: Dataset, tmp_path: Path) -> None:
    run = trainer(tiny_dataset, tmp_path, iterations=150, width=8, learning_rate=1e-2, objective="supervised", ema=0.9)
    accuracies = [row["held_out_accuracy"] for row in run.run() if "held_out_accuracy" in row]
    assert accuracies[-1] > 0.9 > accuracies[0]


def test_unknown_labels_train(tiny_dataset: Dataset, tmp_path: Path) -> None:
    labels = tiny_dataset.labels.copy()
    labels[np.random.default_rng(0).random(labels.shape) < 0.5] = -1
    partly = Dataset(**{**vars(tiny_dataset), "labels": labels})
    for number, changes in enumerate(({"objective": "supervised"}, {}, TINY_DENOISING)):
        metrics = list(trainer(partly, tmp_path / str(number), **changes).run())
        assert all(np.isfinite(value) for row in metrics for value in row.values())


def test_an_unknown_label_is_left_out_of_both_terms_of_denoising(tiny_dataset: Dataset, tmp_path: Path) -> None:
    """Of an attribute that no row knows nothing is learned: neither is it asked for, nor is it classified."""
    run = trainer(tiny_dataset, tmp_path, **TINY_DENOISING, free_share=0.0, full_share=0.5)
    for weight in run.model.parameters():  # away from the zeros that half of the weights begin at
        weight.data += 0.05 * torch.randn(weight.shape, generator=generator(0))
    images, labels = tiny_dataset.tensors(run.rows[:32])
    labels[:, 2] = FREE
    asked = run.objective.conditions(labels)
    assert (asked[:, 2] == FREE).all()
    assert (asked != FREE).sum(dim=1).min() >= 1
    loss = run.objective.loss(run.objective.transform(images), labels, 0)
    loss.value.backward()
    last = run.model.net.differences.weight.grad
    assert last[2].abs().max() < 1e-6 * last.abs().max()
    assert (last[[0, 1, 3, 4, 5]].abs().amax(dim=1) > 1e-3 * last.abs().max()).all()
    # Without any label what is left is denoising given nothing.
    free = run.objective.loss(run.objective.transform(images), torch.full_like(labels, FREE), 0)
    assert (free.metrics["cross_entropy"], free.metrics["accuracy"]) == (0, 0)
    assert free.value.item() == pytest.approx(free.metrics["denoising_loss"])


def test_pictures_are_mirrored_only_where_the_data_allow_it(tiny_dataset: Dataset, tmp_path: Path) -> None:
    either_way = Dataset(**{**vars(tiny_dataset), "info": tiny_dataset.info | {"flips": True}})
    images = tiny_dataset.tensors(tiny_dataset.indices("train")[:64])[0]
    shares = {}
    for name, data, wanted in (("both", either_way, True), ("data", either_way, False), ("run", tiny_dataset, True)):
        x = trainer(data, tmp_path / name, **TINY_DENOISING, data_flip=wanted).objective.transform(images)
        assert x.min() >= -1
        assert x.max() <= 1
        stored = images.float() / 128 - 1
        flipped = (x - stored.flip(-1)).abs().mean(dim=(1, 2, 3)) < (x - stored).abs().mean(dim=(1, 2, 3))
        shares[name] = flipped.float().mean().item()
    assert 0.25 < shares.pop("both") < 0.75
    assert shares == {"data": 0, "run": 0}


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
    conditions = run.objective.pool.buffer.conditions
    count = (conditions != FREE).sum(dim=1)
    assert set(count.tolist()) == {0, 1, 2, 3}
    support = tiny_dataset.support()
    assert all(support.count(Condition(TINY_NAMES, tuple(row))) > 0 for row in conditions.tolist())
    list(run.run())
    asked = run.objective.pool.buffer.conditions != FREE
    assert torch.equal(run.objective.pool.buffer.labels[asked], run.objective.pool.buffer.conditions[asked])
    joint = trainer(tiny_dataset, tmp_path / "joint", chains="joint")
    assert (joint.objective.pool.buffer.conditions == FREE).all()


def test_stuck_chains_begin_anew(tiny_dataset: Dataset, tmp_path: Path) -> None:
    run = trainer(
        tiny_dataset, tmp_path, chain_blur=0.0, fresh_fraction=0.0, langevin_steps=1, grad_coef=0.0, noise_std=0.0
    )
    pool = run.objective.pool
    pool.buffer.images[:] = torch.where(torch.rand(16, 3, 32, 32) < 0.5, 0, 255).byte()
    pool.buffer.images[8:] = 128
    chains, slots = pool.draw(16)
    chains.x[slots < 8] = chains.x[slots < 8].round()  # at the very corners
    _, stuck, _ = pool.finish(chains, [])
    assert torch.equal(stuck, slots < 8)
    pool.keep(chains, slots, stuck)
    assert (pool.buffer.images[8:] == 128).all()
    assert ((pool.buffer.images[:8] > 0) & (pool.buffer.images[:8] < 255)).float().mean() > 0.9
    level = run.model.log_prob(chains.x).mean().item()
    _, everyone, nobody = pool.finish(chains, [level - 100, 1.0])  # energies 100 below the data's
    assert everyone.all()
    assert not nobody.any()
    _, nobody, everyone = pool.finish(chains, [level + 100, 1.0])  # energies 100 above: behind, not stuck
    assert everyone.all()
    assert not nobody.any()


def test_a_buffer_of_chains_is_shared_by_draw_and_keep(tiny_dataset: Dataset, tmp_path: Path) -> None:
    run = trainer(tiny_dataset, tmp_path, fresh_fraction=0.0, chain_blur=0.0, switch_fraction=0.0)
    before = run.objective.pool.buffer.images.clone()
    run.iterate()
    changed = (run.objective.pool.buffer.images != before).flatten(1).any(dim=1)
    assert changed.sum() == 8  # a batch of chains was moved and written back in place


def test_neighbours_know_which_chain_they_were(tiny_dataset: Dataset, tmp_path: Path) -> None:
    run = trainer(tiny_dataset, tmp_path, entropy_samples=16)
    slots = torch.tensor([3, 9])
    images, same = run.objective.pool.neighbours(slots)
    assert images.shape == (16, 3, 32, 32)
    assert same.shape == (2, 16)
    assert same.sum(dim=1).tolist() == [1, 1]
    own = images[same[0]].flatten() - (run.objective.pool.buffer.images[3].flatten() + 0.5) / 256
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


@pytest.mark.parametrize("changes", [{}, TINY_DENOISING], ids=["chains", "denoising"])
def test_the_finished_model(tiny_dataset: Dataset, tmp_path: Path, changes: dict) -> None:
    run = trainer(tiny_dataset, tmp_path / "run", **changes)
    list(run.run())
    bundle = run.bundle("mine", {"sampling": run.objective.sampling()}, samples=5)
    bundle.write(tmp_path / "model")
    again = Bundle.read(tmp_path / "model")
    assert (again.buffer is None) == again.levels == bool(changes)
    assert again.buffer is None or len(again.buffer) == 5
    assert again.sampling["steps"] == 2
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
    run.objective.pool.fresh_chains_are_healthy = lambda *_: False
    list(run.run())
    assert not checkpoint.checkpoints(tmp_path / "checkpoints", "best")


def test_runs_that_cannot_be(tiny_dataset: Dataset, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no run to resume"):
        Trainer(make_config(TINY_RUN), tiny_dataset, tmp_path / "nothing", resume=True)
    assert not (tmp_path / "nothing").exists()
    run = trainer(tiny_dataset, tmp_path / "run", iterations=2)
    list(run.run())
    with pytest.raises(ValueError, match="of another model than this config and data describe"):
        Trainer(make_config(TINY_RUN | {"width": 5}), tiny_dataset, tmp_path / "run", resume=True)
    with pytest.raises(ValueError, match="of another model than this config and data describe"):
        Trainer(make_config(TINY_RUN | TINY_DENOISING), tiny_dataset, tmp_path / "run", resume=True)
    with pytest.raises(ValueError, match="attention is at 8 pixels; choose 0 or one of"):
        trainer(tiny_dataset, tmp_path / "odd", **TINY_DENOISING | {"widths": [4, 6]})
