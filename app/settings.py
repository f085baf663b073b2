"""The one table of settings: it drives the address bar, the controls, the presets and the checks on the server.

A setting whose default is None takes the model's own value. Whatever arrives from outside passes through `read`, which
refuses a bad value with a sentence and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from jem_core import settings as core
from jem_core.bundle import Bundle

COMPARISONS = ("none", "samplers", "models")
VIEWS = ("heading", "chain")
LONGEST_TEXT = 200
LONGEST_WALK = 2_000
STRONGEST = 5.0  # times the common guidance


@dataclass(frozen=True)
class Setting:
    """One row of the table. `restarts`: a new value begins new chains, otherwise it steers the running ones."""

    key: str  # in addresses, in the browser and in the API
    kind: str  # choice, whole, number, names, strengths, rows or text
    label: str
    default: str | int | float | tuple | None = None
    low: float = 0
    high: float = 0
    choices: tuple[str, ...] = ()  # empty for a choice: the models at hand
    restarts: bool = False
    own: bool = False  # None means: as the model suggests
    only: str | None = None  # the kind of model that has it
    help: str = ""
    place: str = ""  # the panel that shows it; none: a control of its own
    shared: bool = True  # whether a link carries it


# Of the sampling settings, whose table is jem_core's: label, and help where a visitor needs other words.
WORDS = {
    "sampler": ("Sampler", "Attributes you did not choose are summed out, or drawn anew at each step"),
    "start": ("Start", ""),
    "steps": ("Steps", "Steps of a fresh chain"),
    "guidance": ("Guidance", "Weight on what you ask for; 1 = as in the paper"),
    "guidance_from": ("Guidance from level", "Lowest noise level that guidance acts at"),
    "guidance_to": ("Guidance up to level", "Highest noise level that guidance acts at"),
    "margin": ("Margin", "How sure the model must be before guidance eases off; 0 = as in the paper"),
    "variety": ("Variety", "How far apart the pictures begin; 1 = as varied as the data"),
    "start_level": ("First noise level", "Noise level at which chains begin"),
    "lift": ("How much may change", "When you change an attribute: from a little to everything"),
    "wander_level": ("How far to wander", "Noise level that moving pictures rise to"),
    "descent": ("Way down", "How the noise is removed: with fresh noise at each step, or without"),
    "steps_per_sweep": ("Steps per sweep", "Langevin steps for each draw of the labels"),
    "grad_coef": ("Gradient coefficient", "Multiplies the gradient"),
    "noise_std": ("Noise", "Standard deviation of the noise in each step"),
    "grad_clamp": ("Gradient limit", "Limit on each element of the gradient; 0 = none"),
    "preconditioner": ("Preconditioner", "Strength of the covariance preconditioner; 0 = off"),
    "augment_every": ("Blur every", "Steps between two light blurs; 0 = never"),
}
BEGINS_ANEW = ("start", "variety", "start_level")  # sampling settings that a running chain cannot take up
ALONE = ("lift",)  # has a slider of its own


def _sampling_row(row: core.Setting) -> Setting:
    label, help_ = WORDS[row.key]
    return Setting(
        row.key,
        row.kind,
        label,
        low=0 if row.optional else row.low,  # 0 is how a field says none
        high=row.high,
        choices=tuple("photo" if choice == "images" else choice for choice in row.choices),
        restarts=row.key in BEGINS_ANEW,
        own=True,
        only=row.only,
        help=help_ or row.meaning[:1].upper() + row.meaning[1:],
        place="" if row.key in ALONE else "settings",
    )


TABLE: tuple[Setting, ...] = (
    Setting("model", "choice", "Model", restarts=True, place="compare", help="How it was trained"),
    Setting("with", "names", "Required", default=()),
    Setting("without", "names", "Excluded", default=()),
    Setting("strengths", "strengths", "Strengths", default=(), low=0, high=STRONGEST),
    Setting(
        "compare",
        "choice",
        "Side by side",
        "none",
        choices=COMPARISONS,
        restarts=True,
        place="compare",
        help="From the same noise, with the same attributes, step by step",
    ),
    Setting("beside", "choice", "Second model", restarts=True, place="compare", help="Shown beside the first"),
    Setting("chains", "whole", "Pictures", 16, low=1, high=256, restarts=True, place="settings"),
    Setting(
        "seed",
        "whole",
        "Seed",
        0,
        low=0,
        high=2**31 - 1,
        restarts=True,
        place="settings",
        help="The same seed gives the same pictures",
    ),
    Setting("speed", "number", "Steps per second", 30, low=0, high=200),  # 0: as fast as the machine can
    Setting("pause", "whole", "Pause at step", 0, low=0, high=1_000_000, place="settings", help="0 = never"),
    Setting("moving", "whole", "Keep them moving", 0, low=0, high=1),
    Setting("view", "choice", "Show", "heading", choices=VIEWS),
    Setting("locked", "rows", "Locked pictures", default=(), shared=False),
    Setting("walk", "text", "Changes so far", ""),
    *(_sampling_row(row) for row in core.TABLE),
)
BY_KEY = {setting.key: setting for setting in TABLE}
SAMPLING_KEYS = tuple(row.key for row in core.TABLE)
_FIELDS = {"with": "required", "without": "excluded"}  # `with` is a word of the language


@dataclass(frozen=True)
class Settings:
    """The state of the first screen, checked. `own` holds the sampling settings that differ from the model's own."""

    model: str
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    strengths: tuple[tuple[str, float], ...] = ()  # multiples of the common guidance, by attribute
    compare: str = "none"
    beside: str | None = None
    chains: int = 16
    seed: int = 0
    speed: float = 30
    pause: int = 0
    moving: int = 0
    view: str = "heading"
    locked: tuple[int, ...] = ()
    walk: str = ""
    own: tuple[tuple[str, str | int | float], ...] = ()

    def values(self) -> dict:
        """By the keys of the table, as JSON takes them."""
        fields = {key: _plain(key, getattr(self, _FIELDS.get(key, key))) for key in BY_KEY if key not in SAMPLING_KEYS}
        return fields | dict.fromkeys(SAMPLING_KEYS) | dict(self.own)

    @property
    def start(self) -> str | None:
        return dict(self.own).get("start")

    def sampling(self, bundle: Bundle, sampler: str | None = None) -> dict:
        """The changes to a model's own sampling settings, for Bundle.chains; what it does not have is left out."""
        known = bundle.sampling
        changes = {key: value for key, value in self.own if key in known}
        if changes.get("start") == "photo":
            changes["start"] = "images"
        elif changes.get("start") not in (None, *core.starts_for(bundle.levels)):
            del changes["start"]
        if changes.get("grad_clamp") == 0:
            changes["grad_clamp"] = None
        given = {name: value for name, value in self.strengths if name in bundle.names}
        if given:
            changes["strengths"] = torch.tensor([given.get(name, 1.0) for name in bundle.names], device=bundle.device)
        return changes | ({"sampler": sampler} if sampler else {})

    @property
    def asked(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self.required, self.excluded

    @property
    def way(self) -> tuple:
        """What the steps of a chain depend on besides the condition."""
        begins = (*BEGINS_ANEW, "wander_level")
        return self.strengths, tuple((key, value) for key, value in self.own if key not in begins)

    def start_key(self) -> tuple:
        """Chains that began with another key are other chains; every other setting steers the same ones."""
        values = self.values()
        return tuple(values[setting.key] for setting in TABLE if setting.restarts)

    def but(self, **changes) -> Settings:
        return replace(self, **changes)


def read(values: Mapping, models: Mapping[str, Sequence[str]], most_chains: int | None = None) -> Settings:
    """Check what arrived; `models` maps the names of the models at hand, the first the default, to their attributes."""
    if not isinstance(values, Mapping):
        raise ValueError(f"The settings are a {type(values).__name__}; expected names with values.")
    unknown = [key for key in values if key not in BY_KEY]
    if unknown:
        raise ValueError(f"There is no setting {short(unknown[0])}; choose among {', '.join(BY_KEY)}.")
    fields, own = {}, []
    for setting in TABLE:
        value = values.get(setting.key)
        if setting.key == "model" and value is None:
            value = next(iter(models))
        elif value is None:
            value = setting.default
        else:
            value = _check(setting, value, tuple(models))
        if setting.key not in SAMPLING_KEYS:
            fields[_FIELDS.get(setting.key, setting.key)] = value
        elif value is not None:
            own.append((setting.key, value))
    if most_chains is not None and fields["chains"] > most_chains:
        raise ValueError(f"{BY_KEY['chains'].label} is {fields['chains']}; this server shows at most {most_chains}.")
    beyond = [row for row in fields["locked"] if row >= fields["chains"]]
    if beyond:
        raise ValueError(f"There is no picture {beyond[0] + 1} to lock; there are {fields['chains']}.")
    return Settings(**fields, own=tuple(own))


def short(value: object) -> str:
    """A value from outside as an error may quote it: never at length."""
    text = repr(value) if isinstance(value, str | int | float | bool | None) else type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."


def _check(setting: Setting, value: object, models: tuple[str, ...]) -> object:
    if setting.kind == "names":
        return _names(setting, value)
    if setting.kind == "choice":
        return _choice(setting, value, setting.choices or models)
    if setting.kind == "strengths":
        return _strengths(setting, value)
    if setting.kind == "rows":
        return _rows(setting, value)
    if setting.kind == "text":
        return _text(setting, value)
    return _number(setting, value)


def _choice(setting: Setting, value: object, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{setting.label} is {short(value)}; choose one of {', '.join(choices)}.")
    return value


def _number(setting: Setting, value: object) -> float | int:
    whole = setting.kind == "whole"
    good = isinstance(value, int | float) and not isinstance(value, bool)
    if not good or not setting.low <= value <= setting.high or (whole and value != int(value)):  # nan is in no range
        kind = "a whole number" if whole else "a number"
        raise ValueError(
            f"{setting.label} is {short(value)}; expected {kind} from {setting.low:g} to {setting.high:g}."
        )
    return int(value) if whole else float(value)


def _names(setting: Setting, value: object) -> tuple[str, ...]:
    """A list of attribute names; whether the model knows them is for Condition to say."""
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"{setting.label} is {short(value)}; expected a list of attribute names.")
    if len(value) > LONGEST_TEXT or any(len(name) > LONGEST_TEXT for name in value):
        raise ValueError(f"{setting.label} is too long: at most {LONGEST_TEXT} names of {LONGEST_TEXT} letters.")
    return tuple(dict.fromkeys(value))


def _strengths(setting: Setting, value: object) -> tuple[tuple[str, float], ...]:
    """Numbers by attribute; a strength of 1 says nothing."""
    if not isinstance(value, Mapping) or len(value) > LONGEST_TEXT:
        raise ValueError(f"{setting.label} is {short(value)}; expected attribute names with numbers.")
    _names(setting, list(value))
    row = replace(setting, kind="number")
    found = {name: _number(replace(row, label=f"The strength of {name}"), one) for name, one in value.items()}
    return tuple(sorted((name, one) for name, one in found.items() if one != 1))


def _rows(setting: Setting, value: object) -> tuple[int, ...]:
    whole = isinstance(value, list | tuple) and all(type(one) is int and 0 <= one < 256 for one in value)
    if not whole or len(value) > 256:
        raise ValueError(f"{setting.label} is {short(value)}; expected a list of places in the grid.")
    return tuple(sorted(set(value)))


def _text(setting: Setting, value: object) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_WALK:
        raise ValueError(f"{setting.label} is {short(value)}; expected a text of at most {LONGEST_WALK} letters.")
    return value


def _plain(key: str, value: object) -> object:
    if key == "strengths":
        return dict(value)
    return list(value) if isinstance(value, tuple) else value
