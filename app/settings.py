"""The one table of settings: it drives the address bar, the controls, the presets and the checks on the server.

A setting whose default is None takes the model's own value. Whatever arrives from outside passes through `read`, which
refuses a bad value with a sentence and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from jem_core.samplers import SAMPLER_NAMES

STARTS = ("conditional", "informed", "uniform", "buffer-match", "buffer-any", "photo")
COMPARISONS = ("none", "samplers", "models")
LONGEST_TEXT = 200


@dataclass(frozen=True)
class Setting:
    """One row of the table. `restarts`: a new value begins new chains, otherwise it steers the running ones."""

    key: str  # in addresses, in the browser and in the API
    kind: str  # choice, whole, number or names
    label: str
    default: str | int | float | tuple[str, ...] | None = None
    low: float = 0
    high: float = 0
    choices: tuple[str, ...] = ()  # empty for a choice: the models at hand
    restarts: bool = False
    own: bool = False  # None means: as the model suggests


TABLE: tuple[Setting, ...] = (
    Setting("model", "choice", "Model", restarts=True),
    Setting("with", "names", "With", default=()),
    Setting("without", "names", "Without", default=()),
    Setting("compare", "choice", "Side by side", "none", choices=COMPARISONS, restarts=True),
    Setting("sampler", "choice", "Sampler", "marginalizing", choices=SAMPLER_NAMES),
    Setting("start", "choice", "Start", "conditional", choices=STARTS, restarts=True),
    Setting("chains", "whole", "Chains", 16, low=1, high=256, restarts=True),  # a server may allow fewer
    Setting("seed", "whole", "Seed", 0, low=0, high=2**31 - 1, restarts=True),
    Setting("speed", "number", "Steps a second", 30, low=0, high=200),  # 0: as fast as the machine can
    Setting("steps", "whole", "Pause at step", 0, low=0, high=1_000_000),  # 0: never
    Setting("rest", "whole", "Rest after", low=0, high=1_000_000, own=True),  # steps under one wish; 0: never
    Setting("variety", "number", "Variety", low=0, high=2, restarts=True, own=True),
    Setting("guidance", "number", "Guidance", low=0, high=20, own=True),
    Setting("grad_coef", "number", "Gradient coefficient", low=0, high=100, own=True),
    Setting("noise_std", "number", "Noise", low=0, high=1, own=True),
    Setting("grad_clamp", "number", "Gradient bound", low=0, high=100, own=True),  # 0: none
    Setting("preconditioner", "number", "Preconditioner", low=0, high=1000, own=True),  # 0: off
    Setting("steps_per_sweep", "whole", "Steps a sweep", low=1, high=50, own=True),
    Setting("augment_every", "whole", "Augment every", low=0, high=1_000, own=True),  # 0: never
)
BY_KEY = {setting.key: setting for setting in TABLE}
LANGEVIN_KEYS = tuple(setting.key for setting in TABLE if setting.own and setting.key != "rest")
_FIELDS = {"with": "wanted", "without": "unwanted"}  # `with` is a word of the language


@dataclass(frozen=True)
class Settings:
    """The state of the first screen, checked."""

    model: str
    wanted: tuple[str, ...] = ()
    unwanted: tuple[str, ...] = ()
    compare: str = "none"
    sampler: str = "marginalizing"
    start: str = "conditional"
    chains: int = 16
    seed: int = 0
    speed: float = 30
    steps: int = 0
    rest: int | None = None
    variety: float | None = None
    guidance: float | None = None
    grad_coef: float | None = None
    noise_std: float | None = None
    grad_clamp: float | None = None
    preconditioner: float | None = None
    steps_per_sweep: int | None = None
    augment_every: int | None = None

    def values(self) -> dict:
        """By the keys of the table, as JSON takes them."""
        fields = asdict(self)
        return {setting.key: _plain(fields[_FIELDS.get(setting.key, setting.key)]) for setting in TABLE}

    def langevin(self) -> dict[str, float | int | None]:
        """The changes to the model's own sampling settings, for Bundle.langevin and jem_core.sample."""
        changes = {key: getattr(self, key) for key in LANGEVIN_KEYS if getattr(self, key) is not None}
        if changes.get("grad_clamp") == 0:
            changes["grad_clamp"] = None
        return changes

    @property
    def wish(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self.wanted, self.unwanted

    def start_key(self) -> tuple:
        """Chains that began with another key are other chains; every other setting steers the same ones."""
        fields = asdict(self)
        return tuple(fields[setting.key] for setting in TABLE if setting.restarts)

    def but(self, **changes) -> Settings:
        return replace(self, **changes)


def read(values: Mapping, models: Mapping[str, Sequence[str]], most_chains: int | None = None) -> Settings:
    """Check what arrived; `models` maps the names of the models at hand, the first the default, to their attributes."""
    if not isinstance(values, Mapping):
        raise ValueError(f"The settings are a {type(values).__name__}; expected names with values.")
    unknown = [key for key in values if key not in BY_KEY]
    if unknown:
        raise ValueError(f"There is no setting {short(unknown[0])}; choose among {', '.join(BY_KEY)}.")
    fields = {}
    for setting in TABLE:
        value = values.get(setting.key)
        if setting.key == "model":
            value = _choice(setting, next(iter(models)) if value is None else value, tuple(models))
        elif value is None:
            value = setting.default
        elif setting.kind == "names":
            value = _names(setting, value)
        elif setting.kind == "choice":
            value = _choice(setting, value, setting.choices)
        else:
            value = _number(setting, value)
        fields[_FIELDS.get(setting.key, setting.key)] = value
    if most_chains is not None and fields["chains"] > most_chains:
        raise ValueError(f"Chains is {fields['chains']}; this server allows at most {most_chains}.")
    return Settings(**fields)


def short(value: object) -> str:
    """A value from outside as an error may quote it: never at length."""
    text = repr(value) if isinstance(value, str | int | float | bool | None) else type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."


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


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
