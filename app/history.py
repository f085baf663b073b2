"""The last states of a visitor's chains: a strip of them lets the visitor go back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch

from app.walk import Walk
from jem_core.chains import Memory

if TYPE_CHECKING:
    from app.chains import Chains, Lane

MOST = 8  # states
MOST_BYTES = 6_000_000  # of all their pictures: a visitor with many chains has fewer states


@dataclass(frozen=True)
class State:
    """Chains as they once stood still."""

    number: int
    key: tuple
    asked: tuple
    lanes: tuple[Lane, ...]
    walk: Walk
    locked: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return sum(lane.memory.state.x.nbytes for lane in self.lanes)


@dataclass
class Past:
    """The newest states, the oldest first."""

    states: list[State] = field(default_factory=list)
    count: int = 0

    def add(self, chains: Chains) -> int:
        """Keep the chains as they are; the number by which they can be had back."""
        self.count += 1
        lanes = copied(chains.lanes)
        self.states.append(State(self.count, chains.key, chains.asked, lanes, chains.walk.copy(), chains.locked))
        while len(self.states) > MOST or (len(self.states) > 1 and sum(one.bytes for one in self.states) > MOST_BYTES):
            del self.states[0]
        return self.count

    @property
    def numbers(self) -> list[int]:
        return [state.number for state in self.states]

    def find(self, number: int) -> State:
        for state in self.states:
            if state.number == number:
                return state
        raise ValueError("These pictures are no longer kept.")


def copied(lanes: list[Lane] | tuple[Lane, ...]) -> tuple[Lane, ...]:
    """Lanes that go their own way: the tensors of a state are never written to, but generators move on."""
    return tuple(replace(lane, memory=_copied(lane.memory)) for lane in lanes)


def _copied(memory: Memory) -> Memory:
    own = [one.clone_state() if isinstance(one, torch.Generator) else one for one in memory.randomness]
    return replace(memory, randomness=own)
