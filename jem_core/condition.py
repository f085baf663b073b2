"""What is asked of a sample: for each attribute with, without, or free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import overload

import numpy as np
import torch
from torch import Tensor

FREE, WITHOUT, WITH = -1, 0, 1


@dataclass(frozen=True)
class Condition:
    """A value for each attribute name: WITH (1), WITHOUT (0) or FREE (-1)."""

    names: tuple[str, ...]
    values: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.values) != len(self.names):
            raise ValueError(f"The condition has {len(self.values)} values for {len(self.names)} attributes.")
        for name, value in zip(self.names, self.values, strict=True):
            if value not in (FREE, WITHOUT, WITH):
                raise ValueError(f"{name} is asked for as {value!r}; choose 1 (with), 0 (without) or -1 (free).")
        object.__setattr__(self, "values", tuple(int(value) for value in self.values))  # True is 1, 1.0 is 1

    @classmethod
    def free(cls, names: Sequence[str]) -> Condition:
        """Nothing is asked for."""
        return cls(tuple(names), (FREE,) * len(names))

    @classmethod
    def from_dict(cls, names: Sequence[str], wishes: Mapping[str, bool | int | None]) -> Condition:
        """From {"Male": True, "Bangs": False}; None and -1 leave an attribute free."""
        for name in wishes:
            check_name(name, names)
        values = (wishes.get(name) for name in names)
        return cls(tuple(names), tuple(FREE if value is None else value for value in values))

    @classmethod
    def from_lists(cls, names: Sequence[str], required: Iterable[str] = (), excluded: Iterable[str] = ()) -> Condition:
        """From the names to have and the names not to have."""
        required, excluded = list(required), list(excluded)
        for name in required + excluded:
            check_name(name, names)
        both = sorted(set(required) & set(excluded))
        if both:
            raise ValueError(f"{both[0]} is both required and excluded; choose one of the two, or leave it free.")
        return cls.from_dict(names, {name: True for name in required} | {name: False for name in excluded})

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(name for name, value in zip(self.names, self.values, strict=True) if value == WITH)

    @property
    def excluded(self) -> tuple[str, ...]:
        return tuple(name for name, value in zip(self.names, self.values, strict=True) if value == WITHOUT)

    def tensor(self, n: int | None = None, device: torch.device | str = "cpu") -> Tensor:
        """The values as int64: (K,), or (n, K) for n chains that share the condition."""
        values = torch.tensor(self.values, dtype=torch.int64, device=device)
        return values if n is None else values.expand(n, -1).clone()

    @overload
    def matches(self, labels: Tensor) -> Tensor: ...

    @overload
    def matches(self, labels: np.ndarray) -> np.ndarray: ...

    def matches(self, labels: Tensor | np.ndarray) -> Tensor | np.ndarray:
        """Which rows of labels (N, K) have every asked value; an unknown label (-1) does not match."""
        if labels.shape[-1:] != (len(self.names),):
            raise ValueError(f"The labels have shape {tuple(labels.shape)}; expected (N, {len(self.names)}).")
        if isinstance(labels, np.ndarray):
            return self.matches(torch.from_numpy(labels)).numpy()
        asked = self.tensor(device=labels.device)
        return ((labels == asked) | (asked == FREE)).all(dim=-1)

    def __str__(self) -> str:
        required = " and ".join(map(plain, self.required))
        excluded = " or ".join(map(plain, self.excluded))
        parts = [required] * bool(required) + [f"not {excluded}"] * bool(excluded)
        return ", ".join(parts) or "anything"


def plain(name: str) -> str:
    """An attribute's name as a person would write it: Wearing_Hat is "Wearing Hat"."""
    return name.replace("_", " ")


def check_name(name: str, names: Sequence[str]) -> str:
    """The name; an unknown attribute is refused with the nearest valid names."""
    if name in names:
        return name
    lower = {known.lower(): known for known in names}
    near = get_close_matches(str(name).lower()[:100], lower, n=3, cutoff=0.4)
    choices = " or ".join(lower[key] for key in near) if near else ", ".join(names)
    raise ValueError(f"There is no attribute {str(name)[:100]!r}; did you mean {choices}?")
