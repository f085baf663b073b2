"""The one table of sampling settings: name, range, default and meaning.

A bundle's own settings, the command line's options, the app's controls and the API's documentation all derive from it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from jem_core.samplers import SAMPLERS
from jem_core.schedules import DESCENTS

LEVELS, CHAINS = "noise levels", "no noise levels"  # the two kinds of models
STARTS = {  # by name: which kind of model has it, and what it is
    "conditional": ((LEVELS, CHAINS), "a Gaussian fitted to images and labels, given what is asked"),
    "informed": ((LEVELS, CHAINS), "the same Gaussian, given nothing"),
    "noise": ((LEVELS,), "pure noise at the highest level"),
    "uniform": ((CHAINS,), "uniform noise within the data's bounds, the paper's start"),
    "buffer-match": ((CHAINS,), "training's chains that have what is asked"),
    "buffer-any": ((CHAINS,), "training's chains, whatever they show"),
    "images": ((LEVELS, CHAINS), "given images"),
}


@dataclass(frozen=True)
class Setting:
    """One row of the table."""

    key: str
    kind: str  # choice, whole or number
    default: str | int | float | None
    meaning: str
    low: float = 0
    high: float = 0
    choices: Collection[str] = ()  # a registry where there is one: whoever adds to it adds a choice
    only: str | None = None  # the kind of model that has it; None: both
    optional: bool = False  # None switches it off

    def applies(self, kind: str) -> bool:
        return self.only in (None, kind)

    def check(self, value: Any) -> Any:
        """The value, or an error that names it and what is expected."""
        if value is None and self.optional:
            return None
        if self.kind == "choice":
            if not isinstance(value, str) or value not in self.choices:
                raise ValueError(f"{self.key} is {value!r}; choose one of {', '.join(self.choices)}.")
            return value
        good = isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high
        if not good or (self.kind == "whole" and value != int(value)):  # nan is in no range
            kind = "a whole number" if self.kind == "whole" else "a number"
            raise ValueError(f"{self.key} is {value!r}; expected {kind} from {self.low:g} to {self.high:g}.")
        return int(value) if self.kind == "whole" else value


TABLE: tuple[Setting, ...] = (
    Setting(
        "sampler",
        "choice",
        "marginalizing",
        "what happens to attributes that nobody asked for: drawn anew at each step (resampling), or summed out",
        choices=SAMPLERS,
    ),
    Setting("start", "choice", "conditional", "where chains begin", choices=STARTS),
    Setting("steps", "whole", 24, "steps of a fresh chain", low=0, high=10_000),
    Setting("guidance", "number", 1.0, "weight on log p(y_c | x); 1: as in the paper", low=0, high=50),
    Setting("guidance_from", "number", 0.0, "lowest noise level that guidance acts at", low=0, high=100, only=LEVELS),
    Setting("guidance_to", "number", 100.0, "highest noise level that guidance acts at", low=0, high=100, only=LEVELS),
    Setting(
        "margin", "number", 0.0, "log odds of what is asked above which guidance fades; 0: as in the paper", high=20
    ),
    Setting("variety", "number", 1.0, "spread of the start, as a share of the data's", low=0, high=2),
    Setting("start_level", "number", 4.0, "noise level at which chains begin", low=0.02, high=40, only=LEVELS),
    Setting("lift", "number", 3.0, "noise level that a new condition lifts chains to", low=0.02, high=40, only=LEVELS),
    Setting("wander_level", "number", 1.0, "noise level that wandering chains rise to", low=0.02, high=40, only=LEVELS),
    Setting(
        "descent",
        "choice",
        "ancestral",
        "how noise is removed: with fresh noise at each step (ancestral), or without (deterministic)",
        choices=DESCENTS,
        only=LEVELS,
    ),
    Setting("steps_per_sweep", "whole", 1, "Langevin steps for each draw of the labels", low=1, high=50),
    Setting("grad_coef", "number", 1.0, "coefficient of the gradient", low=0, high=100, only=CHAINS),
    Setting("noise_std", "number", 0.001, "spread of the noise of a step", low=0, high=1, only=CHAINS),
    Setting(
        "grad_clamp",
        "number",
        None,
        "bound on each element of the gradient; none: no bound",
        low=1e-6,
        high=100,
        only=CHAINS,
        optional=True,
    ),
    Setting("preconditioner", "number", 0.0, "strength of the preconditioner; 0 is off", high=1000, only=CHAINS),
    Setting("augment_every", "whole", 0, "steps between two light blurs; 0 is never", high=1000, only=CHAINS),
)
BY_KEY = {setting.key: setting for setting in TABLE}
PAPER_STEPS = 60  # of models without noise levels


def kind_of(levels: bool) -> str:
    return LEVELS if levels else CHAINS


def defaults(levels: bool) -> dict[str, Any]:
    """All settings of a kind of model, with their defaults."""
    found = {setting.key: setting.default for setting in TABLE if setting.applies(kind_of(levels))}
    return found if levels else found | {"steps": PAPER_STEPS}


def check_settings(changes: Mapping[str, object], levels: bool) -> dict[str, Any]:
    """These changes, each checked; an unknown name or a setting of the other kind of model is an error."""
    kind, known = kind_of(levels), defaults(levels)
    for key in changes:
        if key not in BY_KEY:
            raise ValueError(f"There is no sampling setting {key!r}; choose one of {', '.join(known)}.")
        if key not in known:
            raise ValueError(f"{key} means nothing to a model with {kind}; its settings are {', '.join(known)}.")
    checked = {key: BY_KEY[key].check(value) for key, value in changes.items()}
    start = checked.get("start")
    if start is not None and kind not in STARTS[start][0]:
        choices = ", ".join(starts_for(levels))
        raise ValueError(f"start is {start!r}, which a model with {kind} does not have; choose one of {choices}.")
    return checked


def parse_setting(key: str, text: str) -> str | int | float | None:
    """A value from words, as a command line gives it; `none` switches an optional setting off."""
    setting = BY_KEY[key]
    if setting.kind == "choice":
        return text
    if text.lower() == "none" and setting.optional:
        return None
    try:
        return int(text) if setting.kind == "whole" else float(text)
    except ValueError:
        kind = "a whole number" if setting.kind == "whole" else "a number"
        raise ValueError(f"{key} is {text!r}; expected {kind}{' or none' if setting.optional else ''}.") from None


def starts_for(levels: bool) -> tuple[str, ...]:
    """The starts that a kind of model has."""
    return tuple(name for name, (kinds, _) in STARTS.items() if kind_of(levels) in kinds)
