"""Training: data, an objective, EMA, guard and checkpoints. It prints nothing: `run` yields metrics."""

from __future__ import annotations

import copy
import dataclasses
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor

from jem_core import checkpoint, distributed
from jem_core.buffer import JointBuffer
from jem_core.bundle import Bundle
from jem_core.config import TrainConfig
from jem_core.data.dataset import Dataset
from jem_core.data.transforms import dequantize, training_transform
from jem_core.divergence import Guard, TrainingDiverged
from jem_core.gaussian import LowRankGaussian
from jem_core.model import JointEnergyModel
from jem_core.networks import build_network
from jem_core.networks.growth import grow
from jem_core.networks.paper import PaperModel, init_weights
from jem_core.networks.residual import ResidualModel
from jem_core.objectives import Setup, find_objective
from jem_core.objectives.base import accuracy
from jem_core.objectives.chain_pool import redistribute
from jem_core.objectives.supervised import Supervised
from jem_core.precision import compute_in, fastest_precision

STREAMS = ("noise", "chains")  # what is drawn for the data and for the chains
START = "start.safetensors"
GAUSSIAN_IMAGES = 8000  # enough for a mean and 64 directions


class Trainer:
    """One run in one directory. With several ranks each holds its own chains; weights are the same everywhere."""

    def __init__(
        self,
        config: TrainConfig,
        dataset: Dataset,
        directory: Path,
        device: str = "cpu",
        resume: bool = False,
        resume_from: Path | None = None,
    ) -> None:
        self.config, self.dataset, self.directory = config, dataset, Path(directory)
        if resume and not (self.directory / START).is_file():
            raise ValueError(f"{self.directory} holds no run to resume; leave out --resume to begin one there.")
        self.device = torch.device(device)
        if config.precision == "fastest":
            config = self.config = dataclasses.replace(config, precision=fastest_precision(self.device))
        self.rank, self.ranks = distributed.start_ranks(self.device)
        for name in ("batch_size", "chain_count"):
            if getattr(config, name) % self.ranks:
                raise ValueError(f"{name} is {getattr(config, name)}; expected a multiple of the {self.ranks} ranks.")
        if config.threads:
            torch.set_num_threads(config.threads)
        self.rows = dataset.indices("train")
        self.streams = {
            name: torch.Generator(self.device).manual_seed(config.seed * 1000 + 10 * self.rank + i)
            for i, name in enumerate(STREAMS)
        }
        self._build_model()
        self._build_objective(fit=not (resume or resume_from))
        self.guard = Guard(config)
        self.good: deque[dict] = deque(maxlen=3)
        self.iteration, self.best_accuracy, self.seconds = 0, 0.0, 0.0
        self.stopping = False  # set it to end `run` after the iteration that is under way, with a checkpoint
        path = resume_from or (checkpoint.newest_good(self.directory / "checkpoints") if resume else None)
        if resume_from:
            checkpoint.check(resume_from)
        if path:  # a run that was killed before its first checkpoint begins anew
            self._load(path)
        distributed.broadcast([*self.model.state_dict().values(), *self.ema.state_dict().values()])
        if resume and self.rank == 0:  # now that every rank has chosen
            checkpoint.put_damaged_away(self.directory / "checkpoints")

    def _build_model(self) -> None:
        config, device = self.config, self.device
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.model = build_network(config.network_facts(self.dataset.names, self.dataset.image_size))
        if config.init_gain and isinstance(self.model, PaperModel):
            init_weights(self.model, config.init_gain, torch.Generator().manual_seed(config.seed))
        self.model.to(device)
        self.ema = copy.deepcopy(self.model).eval().requires_grad_(False)
        betas = (config.adam_beta1, config.adam_beta2)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config.learning_rate, betas=betas)
        if config.compile and device.type == "cuda":
            self.model.logits = torch.compile(self.model.logits)  # type: ignore[method-assign]

    def begin_with(self, model: JointEnergyModel) -> None:
        """Take over a finished model, of this size or smaller; Adam's moments and the schedule begin anew."""
        if model.names != self.model.names:
            raise ValueError(f"The model knows {', '.join(model.names)}; the data have {', '.join(self.model.names)}.")
        if isinstance(self.model, ResidualModel) and isinstance(model, ResidualModel):
            grow(self.model, model)
        else:
            try:
                self.model.load_state_dict(model.state_dict())
            except RuntimeError as error:
                raise ValueError(f"The model is of another shape than this config describes: {error}") from error
        self.ema.load_state_dict(self.model.state_dict())
        distributed.broadcast([*self.model.state_dict().values(), *self.ema.state_dict().values()])

    def _build_objective(self, fit: bool) -> None:
        """The start distribution is fitted once and kept in the run's directory."""
        config, path = self.config, self.directory / START
        if fit and self.rank == 0:
            self.directory.mkdir(parents=True, exist_ok=True)
            some = np.sort(np.random.default_rng(config.seed).permutation(self.rows)[:GAUSSIAN_IMAGES])
            partial = path.with_name(f".{START}.partial")
            LowRankGaussian.fit(*self.dataset.tensors(some), config.start_rank, config.seed).save(partial)
            partial.replace(path)
        distributed.wait_for_all()
        self.gaussian = LowRankGaussian.load(path).to(self.device)
        labels = torch.from_numpy(self.dataset.labels[self.rows]).long()
        flips = self.dataset.info.get("flips", False)
        setup = Setup(config, self.model, self.gaussian, labels, **self.streams, flips=flips, ranks=self.ranks)
        self.objective = find_objective(config.objective)(setup)
        self.warm_start = Supervised(setup)

    # One iteration.

    def iterate(self) -> dict[str, float]:
        """One step of the optimizer; returns what happened as plain numbers, averaged over the ranks."""
        config = self.config
        images, labels = self._next_batch()
        warming = self.iteration < config.supervised_iterations
        objective = self.warm_start if warming else self.objective
        if warming:
            x = training_transform(images, config.supervised_noise, self.streams["noise"])
        else:
            x = objective.transform(images)
        with compute_in(config.precision, self.device):
            loss = objective.loss(x, labels, self.iteration)
        grad_norm = self._update(loss.value)
        self.iteration += 1
        if self.iteration == config.supervised_iterations:
            self._end_warm_start()
        return distributed.average(loss.metrics | {"loss": loss.value.item(), "grad_norm": grad_norm})

    def _update(self, loss: Tensor) -> float:
        config = self.config
        for group in self.optimizer.param_groups:
            group["lr"] = config.rate_at(self.iteration) * self.guard.rate_factor
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        distributed.average_gradients(self.model)
        bound = config.grad_norm_clip or float("inf")
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), bound).item()
        self.optimizer.step()
        # The average begins short, so that the first thousand iterations do not drag random weights along; torch's
        # AveragedModel knows one length for all of them.
        keep = min(config.ema, (1 + self.iteration) / (10 + self.iteration))
        weights = [value.detach() for value in self.model.parameters()]
        torch._foreach_lerp_(list(self.ema.parameters()), weights, 1 - keep)
        return norm

    @torch.no_grad()
    def _end_warm_start(self) -> None:
        """Keep the features and shrink the logits: a confident classifier's energies are too steep to sample from."""
        for value in cast(PaperModel, self.model).mlp[-1].parameters():
            value.mul_(self.config.supervised_scale)
        self.ema.load_state_dict(self.model.state_dict())
        self.optimizer.state.clear()

    def _next_batch(self) -> tuple[Tensor, Tensor]:
        """The next rows of an endless shuffle that depends on the seed and the iteration alone."""
        size = self.config.batch_size
        first = self.iteration * size
        places = np.arange(first, first + size)
        rows = np.empty(size, dtype=np.int64)
        for epoch in np.unique(places // len(self.rows)):
            here = places // len(self.rows) == epoch
            order = self._epoch_order(int(epoch))
            rows[here] = order[places[here] % len(self.rows)]
        own = rows[self.rank * size // self.ranks : (self.rank + 1) * size // self.ranks]
        images, labels = self.dataset.tensors(own)
        return images.to(self.device), labels.to(self.device)

    def _epoch_order(self, epoch: int) -> np.ndarray:
        if getattr(self, "_order_of", None) != epoch:
            self._order = np.random.default_rng([self.config.seed, epoch]).permutation(self.rows)
            self._order_of = epoch
        return self._order

    # The run: guard, evaluation, checkpoints.

    def run(self) -> Iterator[dict[str, float | str]]:
        """Iterate to the end, yielding metrics; rolls back on a trip and raises TrainingDiverged after too many."""
        saved = started = time.monotonic()
        while self.iteration < self.config.iterations:
            if not self.good or self.iteration % self.config.guard_snapshot == 0:
                self.good.append(self._snapshot())
            measured = self.iterate()
            trouble = self.guard.check(measured)
            metrics: dict[str, float | str] = {**measured}
            if trouble:
                metrics |= {"event": self._roll_back(trouble)}
            elif self.iteration % self.config.evaluate_every == 0 or self.iteration == self.config.iterations:
                metrics |= self.evaluate()
                self._keep_best(metrics)
            now = time.monotonic()
            self.seconds, started = self.seconds + now - started, now
            overdue = now - saved > 60 * self.config.checkpoint_minutes
            flags = distributed.average({"due": float(overdue), "stop": float(self.stopping)})  # all ranks act as one
            if flags["due"] or flags["stop"] or self.iteration == self.config.iterations:
                self.save()
                saved = now
            yield metrics
            if flags["stop"]:  # not `stopping`: it may have been set since, when nothing was saved
                return

    @torch.no_grad()
    def evaluate(self, most: int = 2000) -> dict[str, float]:
        """Accuracy of the averaged weights on val, and what the objective says of their health."""
        images, labels = self.dataset.tensors(self.dataset.indices("val")[:most])
        generator = torch.Generator(self.device).manual_seed(0)
        right = []
        for part, truth in zip(images.split(200), labels.split(200), strict=True):
            logits = self.ema.logits(self.ema.encode(dequantize(part.to(self.device), generator)))
            right.append(accuracy(logits, truth.to(self.device)).item() * len(part))
        health = self.objective.health(self.ema, images[:200].to(self.device), generator)
        return distributed.average({"held_out_accuracy": sum(right) / max(1, len(images))} | health)

    def _keep_best(self, metrics: dict) -> None:
        if metrics.get("healthy", 1.0) == 1.0 and metrics["held_out_accuracy"] >= self.best_accuracy:
            self.best_accuracy = metrics["held_out_accuracy"]
            self.save("best")

    def _roll_back(self, trouble: str) -> str:
        """To the oldest of the good states: the newer ones may be sick already."""
        at = self.iteration
        if not self.guard.trip():
            advice = ", more langevin_steps, or chains: semi-conditional" if self.objective.uses_chains else ""
            raise TrainingDiverged(
                f"Training diverged at iteration {at} ({trouble}) after {self.guard.trips - 1} roll-backs. "
                f"Try a smaller learning_rate{advice}."
            )
        self._restore(self.good[0])
        self.good.clear()  # the newer state must not serve the next roll-back
        if self.rank == 0:  # nor may a resume find what was rolled back
            checkpoint.drop_after(self.directory / "checkpoints", self.iteration)
        self.save()
        return (
            f"Iteration {at}: {trouble}. Went back to iteration {self.iteration}; "
            f"the rate is now {self.guard.rate_factor:g} times the schedule's."
        )

    def _snapshot(self) -> dict:
        return copy.deepcopy({"shared": self._shared(), "own": self._own(), "facts": self._facts()})

    def _shared(self) -> dict[str, dict[str, Tensor]]:
        return {
            "model": dict(self.model.state_dict()),
            "ema": dict(self.ema.state_dict()),
            "optimizer": checkpoint.optimizer_tensors(self.optimizer),
        }

    def _own(self) -> dict[str, dict[str, Tensor]]:
        streams = {name: generator.get_state() for name, generator in self.streams.items()}
        return self.objective.own_state() | {"streams": streams}

    def _facts(self) -> dict:
        return {
            "iteration": self.iteration,
            "trips": self.guard.trips,
            "calm": self.guard.calm,
            "window": {name: list(values) for name, values in self.guard.window.items()},
            "best_accuracy": self.best_accuracy,
            "seconds": self.seconds,
            "ranks": self.ranks,
            "config": self.config.to_dict(),
        } | self.objective.own_facts()

    def save(self, kind: str = "last") -> None:
        """Write a checkpoint; the last k and the best are kept."""
        folder = self.directory / "checkpoints"
        path = folder / f"{kind}-{self.iteration:07d}"
        checkpoint.write_checkpoint(path, self._shared(), self._own(), self._facts(), self.rank)
        if self.rank == 0:
            checkpoint.prune(folder, kind, self.config.keep_checkpoints if kind == "last" else 1)

    def _load(self, path: Path) -> None:
        shared = {name: checkpoint.read_tensors(path, name) for name in ("model", "ema", "optimizer")}
        own, streams = {}, checkpoint.read_ranks(path, "streams")
        if self.objective.uses_chains:
            own["buffer"] = redistribute(checkpoint.read_ranks(path, "buffer"), self.rank, self.ranks)
        if len(streams) == self.ranks:  # with another number of ranks every stream begins anew
            own["streams"] = streams[self.rank]
        facts = checkpoint.read_facts(path)
        try:
            self._restore({"shared": shared, "own": own, "facts": facts})
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"{path} is of another model than this config and data describe: {error}") from error
        self.best_accuracy, self.seconds = facts["best_accuracy"], facts["seconds"]
        self.guard.restore(facts["trips"], facts.get("calm", 0), facts.get("window", {}))

    def _restore(self, state: dict) -> None:
        """Weights, averages, moments, chains and random streams; the guard's count goes on."""
        self.model.load_state_dict(state["shared"]["model"])
        self.ema.load_state_dict(state["shared"]["ema"])
        checkpoint.load_optimizer(self.optimizer, state["shared"]["optimizer"])
        self.objective.restore(state["own"], state["facts"])
        for name, value in state["own"].get("streams", {}).items():
            self.streams[name].set_state(value)
        self.iteration = state["facts"]["iteration"]

    def bundle(self, name: str, config: dict, samples: int = 64) -> Bundle:
        """The finished model: averaged weights, start, a part of the buffer where there is one, label counts."""
        buffer = None
        if self.objective.uses_chains:
            buffer = JointBuffer.from_state(self.objective.own_state()["buffer"])
            if len(buffer) > samples:
                keep = buffer.draw(samples, torch.Generator().manual_seed(self.config.seed))
                buffer = JointBuffer(buffer.images[keep], buffer.labels[keep], buffer.conditions[keep], "ring", samples)
        # A model that makes no pictures needs no start; one direction keeps its file a file of this format.
        gaussian = self.gaussian if self.objective.generates else self.gaussian.leading(1)
        return Bundle(name, config, copy.deepcopy(self.ema), gaussian, buffer, self.dataset.support())
