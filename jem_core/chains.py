"""Chains of one model, from their start to samples: the one place where kernel, schedule, state and randomness meet.

chains = bundle.chains(condition, n=16, seed=0)
while not chains.finished:
    chains.advance()
chains.steer(another)  # the same chains, on their way to another condition
samples = chains.finish()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from jem_core.condition import FREE, Condition
from jem_core.data.transforms import augment_chains
from jem_core.model import check_labels, check_weights
from jem_core.random import chain_generators
from jem_core.samplers import ChainState, StepInfo, lift
from jem_core.samples import Samples, best
from jem_core.schedules import RHO, Step, constant, descend, karras_levels

if TYPE_CHECKING:
    from jem_core.bundle import Bundle

HIGHEST = 20.0  # the level at which nothing of an image is left
FEWEST = 4  # levels of the shortest way down
BEGIN, RENEW = 0, 1  # streams of random numbers


@dataclass
class Memory:
    """All that chains carry on, without the model: what is kept of a visitor between two runs."""

    state: ChainState
    plan: tuple[Step, ...]  # the steps under way
    place: int  # the next of them
    randomness: list[torch.Generator]
    seed: int
    rows: tuple[int, ...]  # which of the seed's chains these are
    cycle: tuple[Step, ...] = ()  # what follows for ever when the plan is done
    frozen: Tensor | None = None  # (N,) bool: chains that stay as they are
    info: StepInfo | None = None  # of the last step


class Chains:
    """A memory bound to its model and to sampling settings; cheap to make anew when a setting changes."""

    def __init__(self, bundle: Bundle, memory: Memory, **changes: object) -> None:
        self._bind(bundle, changes)
        self.memory = memory

    def _bind(self, bundle: Bundle, changes: dict[str, object]) -> None:
        self.bundle, self.changes = bundle, changes
        self.settings = bundle.sampling_with(changes)
        self.kernel = bundle.sampler(self.settings)

    @classmethod
    def begin(
        cls,
        bundle: Bundle,
        condition: Condition | Tensor,
        n: int,
        seed: int = 0,
        images: Tensor | None = None,
        rows: Sequence[int] | None = None,
        **changes: object,
    ) -> Chains:
        """`n` fresh chains. Chain i depends on the seed and on i alone; `rows` says which ones these are (0 to n - 1).

        `images` are where chains begin under the start `images`: at the level `start_level`, which says how much of
        them may change.
        """
        if not isinstance(n, int) or n < 1:
            raise ValueError(f"n is {n!r}; expected a whole number of at least 1.")
        chains = cls.__new__(cls)
        chains._bind(bundle, changes)
        settings = chains.settings
        asked = as_rows(bundle, condition, n)
        rows = tuple(range(n) if rows is None else rows)
        randomness = chain_generators(seed, rows, bundle.device, BEGIN)
        parts = {"given": images, "variety": settings["variety"]}
        x = bundle.model.encode(bundle.start.images(settings["start"], asked, randomness, **parts))
        state = chains.kernel.init(x, asked, randomness)
        if bundle.model.levels:
            level = HIGHEST if settings["start"] == "noise" else settings["start_level"]
            state = lift(state, level, randomness)
        chains.memory = Memory(state, way_down(bundle, settings, state.level), 0, randomness, seed, rows)
        return chains

    @property
    def state(self) -> ChainState:
        return self.memory.state

    @property
    def info(self) -> StepInfo | None:
        return self.memory.info

    @property
    def finished(self) -> bool:
        """Whether the plan is done; wandering chains never are."""
        return self.memory.place >= len(self.memory.plan) and not self.memory.cycle

    @property
    def next_step(self) -> Step:
        """The step that `advance` takes next; the last one once more when all are done."""
        memory = self.memory
        if memory.place >= len(memory.plan) and memory.cycle:
            return memory.cycle[0]
        if not memory.plan:
            raise ValueError("The plan of these chains has no steps.")
        return memory.plan[min(memory.place, len(memory.plan) - 1)]

    def advance(self) -> StepInfo:
        """One step: one forward and one backward. A step at a higher level than the chains' lifts them first."""
        if self.finished:
            raise ValueError("The chains have arrived; steer them, or let them wander.")
        memory = self.memory
        if memory.place >= len(memory.plan):
            memory.plan, memory.place = memory.cycle, 0
        step = memory.plan[memory.place]
        state = self._lifted(self._augmented(memory.state), step)
        moved, info = self.kernel.step(state, step, memory.randomness)
        memory.place += 1
        self._keep(moved, info)
        return info

    def half_step(self, half: str) -> StepInfo:
        """The first half of a sweep alone (`labels`) or the second (`langevin`): how a step is taken apart."""
        memory = self.memory
        if half == "labels":
            state, info = self.kernel.resample_labels(memory.state, memory.randomness)
        else:
            step = self.next_step
            state, info = self.kernel.langevin(self._lifted(memory.state, step), step, memory.randomness)
            memory.place += 1
        self._keep(state, info)
        return info

    def steer(self, condition: Condition | Tensor) -> None:
        """Go on under another condition; nothing that came before changes.

        With noise levels: what the changed attributes do to a picture on average is added (the difference of the
        Gaussian's means), the chains are lifted to the level `lift`, each with noise of its own, and come down again.
        The noise is new at every toggle: the same noise twice adds up, contrast grows, and pictures burn after all.
        Without levels the same chains walk on.
        """
        memory, bundle = self.memory, self.bundle
        asked = as_rows(bundle, condition, len(memory.state.x))
        state = memory.state._replace(condition=asked, y=torch.where(asked == FREE, memory.state.y, asked))
        memory.cycle = ()
        if bundle.model.levels:
            gaussian = bundle.start.gaussian
            shift = gaussian.mean_image(asked) - gaussian.mean_image(memory.state.condition)
            moved = state._replace(x=state.x + 2 * shift)
            moved = lift(moved, max(self.settings["lift"], state.level), memory.randomness)
            memory.state = self._unless_frozen(moved, state)
        else:
            memory.state = state
        memory.plan, memory.place = way_down(bundle, self.settings, memory.state.level), 0

    def wander(self) -> None:
        """Stay alive: after the way down, up to `wander_level` and down again, for ever."""
        if not self.bundle.model.levels:
            raise ValueError("Chains wander between noise levels, and this model knows none.")
        self.memory.cycle = way_down(self.bundle, self.settings, self.settings["wander_level"])

    def rest(self) -> None:
        """End wandering: the way down that is under way is the last."""
        self.memory.cycle = ()

    def freeze(self, rows: Sequence[int]) -> None:
        """Keep these chains as they are while the others go on; an empty list sets all free.

        One that is under way stops at the picture it was heading for.
        """
        memory, n = self.memory, len(self.memory.state.x)
        bad = [row for row in rows if not (isinstance(row, int) and 0 <= row < n)]
        if bad:
            raise ValueError(f"There is no chain {bad[0]!r}; these are {n}.")
        frozen = torch.zeros(n, dtype=torch.bool, device=self.bundle.device)
        frozen[list(rows)] = True
        if memory.info is not None and memory.state.level:
            new = frozen if memory.frozen is None else frozen & ~memory.frozen
            x = torch.where(new.view(-1, 1, 1, 1), memory.info.denoised, memory.state.x)
            memory.state = memory.state._replace(x=x)
        memory.frozen = frozen if frozen.any() else None

    def renew(self, rows: Tensor) -> None:
        """Begin these chains (N,) anew, in their place and at the level where the others are."""
        memory, bundle = self.memory, self.bundle
        randomness = chain_generators(memory.seed + memory.state.step, memory.rows, bundle.device, RENEW)
        start = self.settings["start"] if self.settings["start"] != "images" else "conditional"
        fresh = bundle.model.encode(
            bundle.start.images(start, memory.state.condition, randomness, variety=self.settings["variety"])
        )
        other = memory.state._replace(x=fresh, level=0.0)
        other = lift(other, memory.state.level, randomness) if memory.state.level else other
        where = rows.view(-1, 1, 1, 1)
        memory.state = memory.state._replace(x=torch.where(where, other.x, memory.state.x))
        if memory.info is not None:  # what was said of the old ones is void
            heading = torch.where(where, fresh, memory.info.denoised)
            memory.info = memory.info._replace(denoised=heading, diverged=memory.info.diverged & ~rows)

    def images(self, heading: bool = True) -> Tensor:
        """The chains as pictures (N, 3, S, S) in [0, 1]: where they are heading, or as they are, noise and all."""
        x, info = self.state.x, self.info
        if heading and self.state.level and info is not None:
            frozen = self.memory.frozen
            x = info.denoised if frozen is None else torch.where(frozen.view(-1, 1, 1, 1), x, info.denoised)
        return self.bundle.model.decode(x)

    def finish(self) -> Samples:
        """The chains as samples: labels drawn and figures taken at the very images that are returned."""
        memory = self.memory
        state = memory.state
        if state.level:  # under way: what they are heading for
            state, _ = self.kernel.step(state, descend([state.level])[0], memory.randomness)
            state = self._unless_frozen(state, memory.state)
        state, info = self.kernel.resample_labels(state, memory.randomness)
        figures = (info.probabilities, info.log_p_condition, info.energy, info.diverged)
        return Samples(self.bundle.model.decode(state.x), state.y, *figures)

    def _augmented(self, state: ChainState) -> ChainState:
        every = self.settings.get("augment_every")
        if every and state.step and state.step % every == 0:
            return state._replace(x=augment_chains(state.x, self.memory.randomness, flip=False))
        return state

    def _lifted(self, state: ChainState, step: Step) -> ChainState:
        return lift(state, step.sigma, self.memory.randomness) if step.sigma > state.level else state

    def _keep(self, state: ChainState, info: StepInfo) -> None:
        self.memory.state, self.memory.info = self._unless_frozen(state, self.memory.state), info

    def _unless_frozen(self, moved: ChainState, before: ChainState) -> ChainState:
        frozen = self.memory.frozen
        if frozen is None:
            return moved
        return moved._replace(
            x=torch.where(frozen.view(-1, 1, 1, 1), before.x, moved.x),
            y=torch.where(frozen.view(-1, 1), before.y, moved.y),
        )


def join_chains(parts: Sequence[Chains]) -> Chains:
    """Chains of one model that have the same way before them, side by side: one evaluation serves them all."""
    first = parts[0]
    if len(parts) == 1:
        return first
    memories = [part.memory for part in parts]
    if any(memory.plan != first.memory.plan or memory.place != first.memory.place for memory in memories):
        raise ValueError("The chains have different ways before them and cannot be joined.")
    states = [memory.state for memory in memories]
    tensors: dict[str, Any] = {
        name: torch.cat([getattr(state, name) for state in states]) for name in ("x", "y", "condition")
    }
    memory = replace(
        first.memory,
        state=first.state._replace(**tensors),
        randomness=[one for memory in memories for one in memory.randomness],
        rows=tuple(row for memory in memories for row in memory.rows),
    )
    return Chains(first.bundle, memory, **first.changes)


def pick(first: Memory, second: Memory, keep: Tensor) -> Memory:
    """Some chains of two memories that went the same way: `keep` counts through both."""
    state, info, order = first.state, first.info, keep.tolist()

    def both(name: str, one: tuple, other: tuple | None) -> Any:
        return torch.cat([getattr(one, name), getattr(other, name)])[keep]

    return replace(
        first,
        state=state._replace(**{name: both(name, state, second.state) for name in ("x", "y", "condition")}),
        info=info._replace(**{name: both(name, info, second.info) for name in info._fields}) if info else None,
        randomness=[[*first.randomness, *second.randomness][i] for i in order],
        rows=tuple([*first.rows, *second.rows][i] for i in order),
    )


def way_down(bundle: Bundle, settings: dict, level: float) -> tuple[Step, ...]:
    """The steps from a level to a picture; `steps` counts those from `start_level`. Without levels: the paper's."""
    steps = settings["steps"]
    if not bundle.model.levels:
        return tuple(constant(settings["grad_coef"], settings["noise_std"], steps))
    lowest = bundle.model.lowest
    if not steps or level <= 0:
        return ()
    far, full = (top ** (1 / RHO) - lowest ** (1 / RHO) for top in (max(level, lowest), settings["start_level"]))
    count = min(max(FEWEST, round(steps * far / max(full, 1e-6))), max(steps, FEWEST) * 2)
    levels = karras_levels(level, lowest, count) if level > lowest else [level]
    return tuple(descend(levels, settings["descent"]))


def as_rows(bundle: Bundle, condition: Condition | Tensor, n: int) -> Tensor:
    """What is asked of each of n chains, (n, K): one condition for all, or a row for each."""
    if isinstance(condition, Tensor):
        check_labels(condition, condition != FREE, (n, bundle.model.num_attributes), "the condition")
        return condition.to(bundle.device)
    if condition.names != bundle.model.names:
        raise ValueError(f"The condition is over {condition.names}; the model knows {bundle.model.names}.")
    return condition.tensor(n, bundle.device)


def sample(
    bundle: Bundle,
    condition: Condition,
    n: int,
    seed: int = 0,
    keep_best: int = 1,
    images: Tensor | None = None,
    progress: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> Samples:
    """`n` samples of this condition from fresh chains, by Algorithm 2 (resampling) or 3 (marginalizing).

    `keep_best=10` draws 10 n and keeps the n with the highest log p(y_c | x), the paper's filter for diverged chains.
    Settings default to the model's own; `progress(done, total)` is called after every step.
    """
    if not isinstance(keep_best, int) or keep_best < 1:
        raise ValueError(f"keep_best is {keep_best!r}; expected a whole number of at least 1.")
    if not isinstance(n, int) or n < 1:
        raise ValueError(f"n is {n!r}; expected a whole number of at least 1.")
    check_weights(bundle.model)
    chains = Chains.begin(bundle, condition, n * keep_best, seed, images, **settings)
    total = len(chains.memory.plan)
    while not chains.finished:
        chains.advance()
        if progress:
            progress(chains.memory.place, total)
    return best(chains.finish(), n)
