"""The chains of a visitor: how they start, and how they take one step. The sampling itself is jem_core's."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import torch
from torch import Tensor

from app.catalog import Catalog
from app.film import Film
from app.settings import Settings
from jem_core.bundle import Bundle
from jem_core.condition import Condition
from jem_core.data.transforms import augment_chains
from jem_core.random import Randomness, chain_generators
from jem_core.samplers import SAMPLER_NAMES, ChainState, Sampler, StepInfo

ACTIONS = ("run", "look", "step", "labels", "langevin", "best")  # look: show the chains without moving them


@dataclass
class Lane:
    """A column of chains under one model and one sampler; two lanes stand side by side from the same noise."""

    title: str
    model: str
    sampler: str | None  # None: whatever the settings say, so that it can be changed while running
    state: ChainState
    randomness: list[torch.Generator]
    info: StepInfo | None = None


@dataclass
class Chains:
    """What is kept of a visitor between two runs."""

    key: tuple  # the settings that began them
    wish: tuple  # what was asked when they began
    fresh: int  # the reset that began them
    lanes: list[Lane]
    film: Film = field(default_factory=Film)
    steered: bool = False  # whether the wishes changed on the way

    @property
    def step(self) -> int:
        return self.lanes[0].state.step

    def continue_under(self, settings: Settings, fresh: int) -> bool:
        """Whether these chains go on; before their first step another wish begins others, as starts know the wish."""
        same_wish = self.step > 0 or self.wish == settings.wish
        return same_wish and self.key == settings.start_key() and self.fresh == fresh

    def digest(self) -> str:
        """Equal images have equal digests, bit for bit."""
        hasher = hashlib.blake2b(digest_size=8)
        for lane in self.lanes:
            hasher.update(lane.state.x.contiguous().cpu().numpy().tobytes())
        return hasher.hexdigest()


def condition_for(settings: Settings, bundle: Bundle) -> Condition:
    return Condition.from_lists(bundle.names, settings.wanted, settings.unwanted)


def plan(catalog: Catalog, settings: Settings) -> list[tuple[str, str, str | None]]:
    """Title, model and sampler of each lane."""
    if settings.compare == "samplers":
        return [(name.capitalize(), settings.model, name) for name in reversed(SAMPLER_NAMES)]
    if settings.compare == "models":
        rival = catalog.rival(settings.model)
        if rival is None:
            raise ValueError(f"There is no second model with the attributes of {settings.model} to stand beside it.")
        return [(catalog.title(name), name, None) for name in (settings.model, rival)]
    return [(catalog.title(settings.model), settings.model, None)]


def begin(
    catalog: Catalog,
    settings: Settings,
    fresh: int = 0,
    photo: Tensor | None = None,
    part: slice | None = None,
    parts: int = 1,
) -> Chains:
    """New chains. Chain i depends on the seed and on i alone; `part` takes some of `parts` times as many chains."""
    lanes = []
    for title, model, sampler in plan(catalog, settings):
        bundle = catalog.bundle(model)
        condition = condition_for(settings, bundle)
        randomness = chain_generators(settings.seed, settings.chains * parts, bundle.device)[part or slice(None)]
        x = bundle.start(
            "images" if settings.start == "photo" else settings.start,
            len(randomness),
            randomness,
            condition,
            images=_fit(photo, bundle) if settings.start == "photo" else None,
            variety=settings.variety,
        )
        kernel = Sampler(sampler or settings.sampler, bundle.model)
        state = kernel.init(x, condition.tensor(len(x), bundle.device), randomness)
        lanes.append(Lane(title, model, sampler, state, randomness))
    return Chains(settings.start_key(), settings.wish, fresh, lanes)


def _fit(photo: Tensor | None, bundle: Bundle) -> Tensor:
    if photo is None:
        raise ValueError("The start is your photo, but there is none yet: choose one on the screen 'Your photo'.")
    size = bundle.model.image_size
    if photo.shape[-2:] != (size, size):
        photo = torch.nn.functional.interpolate(photo, (size, size), mode="bilinear", antialias=True)
    return photo.clamp(0, 1)


class Stepper:
    """Kernels for the lanes of some chains under some settings; cheap to make anew when a setting changes."""

    def __init__(self, catalog: Catalog, chains: Chains, settings: Settings) -> None:
        self.settings = settings
        self.kernels: list[tuple[Sampler, int]] = []
        for lane in chains.lanes:
            bundle = catalog.bundle(lane.model)
            langevin, augment_every = bundle.langevin(**settings.langevin())
            self.kernels.append((Sampler(lane.sampler or settings.sampler, bundle.model, langevin), augment_every))
            wish = condition_for(settings, bundle).tensor(len(lane.state.x), bundle.device)
            if not torch.equal(wish, lane.state.condition):
                chains.steered |= lane.state.step > 0
                lane.state = lane.state._replace(condition=wish)

    def advance(self, chains: Chains, action: str = "run") -> None:
        """One step of every lane, or one half of a step."""
        for lane, (kernel, augment_every) in zip(chains.lanes, self.kernels, strict=True):
            lane.state, lane.info = move(kernel, lane.state, lane.randomness, action, augment_every)


def move(
    kernel: Sampler, state: ChainState, randomness: Randomness, action: str, augment_every: int
) -> tuple[ChainState, StepInfo]:
    """A sweep's step, or its first half (`labels`) or second half (`langevin`) alone."""
    if action == "labels":
        return kernel.resample_labels(state, randomness)
    if action == "langevin":
        return kernel.langevin(state, randomness)
    if augment_every and state.step and state.step % augment_every == 0:
        state = state._replace(x=augment_chains(state.x, randomness, flip=False))
    return kernel.step(state, randomness)
