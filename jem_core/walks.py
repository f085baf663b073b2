"""A walk: toggles one after another, as a visitor makes them, and the chains that follow.

Written as text: "Smiling+Eyeglasses; -Eyeglasses; +Wearing_Hat". `+A` or `A` requires, `-A` excludes, `~A` frees.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from jem_core.chains import Chains
from jem_core.condition import FREE, WITH, WITHOUT, Condition, check_name

if TYPE_CHECKING:
    from jem_core.bundle import Bundle

SIGNS = {"+": WITH, "-": WITHOUT, "~": FREE}


@dataclass(frozen=True)
class Walk:
    """The pictures and the condition after each toggle."""

    conditions: tuple[Condition, ...]
    images: Tensor  # (rows, n, 3, S, S) in [0, 1]
    diverged: Tensor  # (rows, n) bool


def parse_walk(text: str, bundle: Bundle) -> tuple[Condition, ...]:
    """The condition after each part of a walk; the first part is where it begins.

    As in the app, requiring an attribute frees the required ones that it takes the place of.
    """
    condition, found = Condition.free(bundle.names), []
    for part in text.split(";"):
        for name, value in _toggles(part.strip(), bundle.names):
            condition = toggle(condition, name, value, bundle.data.instead_of(name))
        found.append(condition)
    return tuple(found)


def toggle(condition: Condition, name: str, value: int, replaced: Sequence[str] = ()) -> Condition:
    """One attribute required, excluded or freed; one that is required takes the place of others."""
    changes = {name: value}
    if value == WITH:
        changes |= {other: FREE for other in replaced if other in condition.required}
    values = zip(condition.names, condition.values, strict=True)
    return replace(condition, values=tuple(changes.get(known, old) for known, old in values))


def _toggles(part: str, names: Sequence[str]) -> list[tuple[str, int]]:
    """Signs and names; a name may hold a minus, so the longest known one counts."""
    found = []
    while part:
        sign, rest = (part[0], part[1:].lstrip()) if part[0] in SIGNS else ("+", part)
        name = max((known for known in names if rest.startswith(known)), key=len, default=None)
        after = rest[len(name) :].lstrip() if name is not None else ""
        if name is None or (after and after[0] not in SIGNS):
            name = check_name(re.split(r"[+~]|\s-", rest)[0].strip(), names)
        found.append((name, SIGNS[sign]))
        part = after
    return found


def run_walk(
    bundle: Bundle,
    conditions: Sequence[Condition],
    n: int,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    watch: Callable[[Chains, Condition], None] | None = None,
    **settings: Any,
) -> Walk:
    """Fresh chains of the first condition, steered to each of the others: exactly what the app does.

    `progress(done, total)` is called after every condition, `watch(chains, condition)` after every step.
    """
    if not conditions:
        raise ValueError("The walk is empty; expected at least one condition.")
    images, diverged = [], []
    chains = bundle.chains(conditions[0], n, seed, **settings)
    for row, condition in enumerate(conditions):
        if row:
            chains.steer(condition)
        arrive(chains, partial(watch, chains, condition) if watch else None)
        images.append(chains.images())
        diverged.append(~chains.state.x.isfinite().flatten(1).all(dim=1))
        if progress:
            progress(row + 1, len(conditions))
    return Walk(tuple(conditions), torch.stack(images), torch.stack(diverged))


def arrive(chains: Chains, watch: Callable[[], None] | None = None) -> None:
    """Step until the plan is done."""
    while not chains.finished:
        chains.advance()
        if watch:
            watch()
