"""The chains of a visitor: lanes of one or two models, and what is kept of them. The sampling itself is jem_core's."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field

import torch
from torch import Tensor

from app import walk as walks
from app.catalog import Catalog
from app.film import Film
from app.history import Past, State, copied
from app.settings import Settings
from app.walk import Leg, Walk
from jem_core.bundle import Bundle
from jem_core.chains import Chains as CoreChains
from jem_core.chains import Memory
from jem_core.condition import Condition
from jem_core.samplers import SAMPLERS

LIKE_LEVEL = 2.5  # noise level from which pictures like another one come down


@dataclass
class Lane:
    """A column of chains under one model and one sampler; two lanes stand side by side from the same noise."""

    title: str
    model: str
    sampler: str | None  # None: whatever the settings say, so that it can be changed while running
    memory: Memory


@dataclass
class Chains:
    """What is kept of a visitor between two runs."""

    key: tuple  # the settings that began them
    asked: tuple  # what was asked when they began
    fresh: int  # the visitor's count of fresh starts when they began
    lanes: list[Lane]
    walk: Walk
    way: tuple = ((), ())  # the settings that their steps depend on
    locked: tuple[int, ...] = ()  # the chains that stay as they are
    held: tuple[int, ...] = ()  # of them, those that stay until the condition changes, whatever the visitor locks
    loose: tuple[int, ...] = ()  # those that the visitor locks and of which nothing is left to keep
    script: list[Leg] = field(default_factory=list)  # what a link still has to take again
    film: Film = field(default_factory=Film)
    past: Past = field(default_factory=Past)
    kept: tuple[int, int] | None = None  # the number of the state that they are in, and the step it was kept at
    epoch: int = field(default_factory=lambda: secrets.randbits(40))  # other chains have another, in any process

    @property
    def step(self) -> int:
        return self.lanes[0].memory.state.step

    @property
    def level(self) -> float:
        return self.lanes[0].memory.state.level

    def continue_under(self, settings: Settings, fresh: int) -> bool:
        """Whether these chains go on; before their first step another condition begins others, as starts know it."""
        same = self.step > 0 or self.asked == settings.asked or bool(self.script)
        return same and self.key == settings.start_key() and self.fresh == fresh

    def has_felt(self, way: tuple) -> bool:
        """Whether these settings are those that the chains have felt. How much may change is for a change to ask: until
        the first of them, chains have not felt it."""
        unfelt = ("lift",) if len(self.walk.legs) == 1 else ()
        before, now = (
            (strengths, [pair for pair in own if pair[0] not in unfelt]) for strengths, own in (self.way, way)
        )
        return before == now

    def made_under(self, settings: Settings) -> bool:
        """Whether these settings, as they are now, are those that made the chains."""
        return self.key == settings.start_key() and self.has_felt(settings.way)

    def keep(self) -> int:
        """Note this state, once, among those that a visitor can go back to."""
        if self.kept is None or self.kept[1] != self.step:
            self.kept = self.past.add(self), self.step
        return self.kept[0]

    def digest(self) -> str:
        """Equal images have equal digests, bit for bit."""
        hasher = hashlib.blake2b(digest_size=8)
        for lane in self.lanes:
            hasher.update(lane.memory.state.x.contiguous().cpu().numpy().tobytes())
        return hasher.hexdigest()


def condition_for(settings: Settings, bundle: Bundle) -> Condition:
    return Condition.from_lists(bundle.names, settings.required, settings.excluded)


def plan(catalog: Catalog, settings: Settings) -> list[tuple[str, str, str | None]]:
    """Title, model and sampler of each lane."""
    if settings.compare == "samplers":
        return [(name.capitalize(), settings.model, name) for name in reversed(SAMPLERS)]
    if settings.compare == "models":
        rivals = catalog.rivals(settings.model)
        if not rivals:
            raise ValueError(f"There is no second model with the attributes of {settings.model} to stand beside it.")
        rival = settings.beside if settings.beside in rivals else rivals[0]
        return [(catalog.title(name), name, None) for name in (settings.model, rival)]
    return [(catalog.title(settings.model), settings.model, None)]


def begin(
    catalog: Catalog,
    settings: Settings,
    fresh: int = 0,
    photo: Tensor | None = None,
    part: slice | None = None,
) -> Chains:
    """New chains. Chain i depends on the seed and on i alone; `part` says which ones to begin."""
    main = catalog.bundle(settings.model)
    asked, script = condition_for(settings, main), []
    if settings.walk:
        script = walks.parse(settings.walk, main)
        if script[-1].condition != asked:
            raise ValueError("This link contradicts itself, so its pictures cannot be restored.")
        asked = script[0].condition
    lanes = []
    for title, model, sampler in plan(catalog, settings):
        bundle = catalog.bundle(model)
        rows = range(settings.chains) if part is None else range(part.start, part.stop)
        images = _fit(photo, bundle) if settings.start == "photo" else None
        chosen = settings.sampling(bundle, sampler)
        chains = bundle.chains(asked, len(rows), settings.seed, images, rows, **chosen)
        lanes.append(Lane(title, model, sampler, chains.memory))
    new = Chains(settings.start_key(), settings.asked, fresh, lanes, Walk(), settings.way, script=script)
    new.walk.turn(asked)
    if settings.start == "photo":
        new.walk.break_off(walks.PHOTO)
    return new


def keep_locked(catalog: Catalog, chains: Chains, before: Chains | None, locked: tuple[int, ...]) -> None:
    """Locked pictures stay in their places when all others begin anew under the same models."""
    if not locked:
        return
    old = before.lanes if before else []
    if [_kind(lane) for lane in old] != [_kind(lane) for lane in chains.lanes]:
        chains.loose = locked
        return
    rows = list(locked)
    for lane, other in zip(chains.lanes, old, strict=True):
        bundle, state = catalog.bundle(lane.model), lane.memory.state
        x = state.x.clone()
        x[rows] = bundle.model.encode(CoreChains(bundle, other.memory).images()[rows])
        lane.memory.state = state._replace(x=x)
        lane.memory.frozen = torch.zeros(len(x), dtype=torch.bool, device=x.device)
        lane.memory.frozen[rows] = True
    chains.locked = locked
    chains.walk.break_off(walks.LOCKED)


def _kind(lane: Lane) -> tuple:
    return lane.model, lane.sampler, lane.memory.state.x.shape


def begin_like(catalog: Catalog, settings: Settings, fresh: int, before: Chains, place: int) -> Chains:
    """Chains from one picture of others: it stays in its place, around it come down pictures like it."""
    lanes = []
    for old, (title, model, sampler) in zip(before.lanes, plan(catalog, settings), strict=True):
        bundle = catalog.bundle(model)
        if not bundle.levels:
            raise ValueError("“More like this” needs a model with noise levels.")
        if not 0 <= place < len(old.memory.state.x):
            raise ValueError(f"There is no picture {place + 1}; there are {len(old.memory.state.x)}.")
        one = CoreChains(bundle, old.memory).images()[place : place + 1]
        chosen = settings.sampling(bundle, sampler) | {"start": "images", "start_level": LIKE_LEVEL}
        memory = bundle.chains(condition_for(settings, bundle), settings.chains, settings.seed, one, **chosen).memory
        x = memory.state.x.clone()
        x[place] = bundle.model.encode(one)[0]
        memory.state = memory.state._replace(x=x)
        memory.frozen = torch.arange(len(x), device=x.device) == place
        lanes.append(Lane(title, model, sampler, memory))
    new = Chains(settings.start_key(), settings.asked, fresh, lanes, Walk(), settings.way, (place,), (place,))
    new.walk.turn(condition_for(settings, catalog.bundle(settings.model)))
    new.walk.break_off(walks.LIKE)
    return new


def begin_again(state: State, settings: Settings, fresh: int) -> Chains:
    """Chains as they once stood."""
    lanes = list(copied(state.lanes))
    again = Chains(state.key, state.asked, fresh, lanes, state.walk.copy(), settings.way, state.locked)
    again.kept = state.number, again.step
    return again


def _fit(photo: Tensor | None, bundle: Bundle) -> Tensor:
    if photo is None:
        raise ValueError("The start is your photo, but there is none yet: choose one on the screen 'Your photo'.")
    size = bundle.model.image_size
    if photo.shape[-2:] != (size, size):
        photo = torch.nn.functional.interpolate(photo, (size, size), mode="bilinear", antialias=True)
    return photo.clamp(0, 1)


class Stepper:
    """The lanes of some chains bound to their models under some settings; cheap to make anew when a setting changes."""

    def __init__(self, catalog: Catalog, chains: Chains, settings: Settings) -> None:
        self.chains, self.settings = chains, settings
        self.level = chains.level  # of the last step
        self.bound: list[CoreChains] = []
        for lane in chains.lanes:
            bundle = catalog.bundle(lane.model)
            self.bound.append(CoreChains(bundle, lane.memory, **settings.sampling(bundle, lane.sampler)))
        self._note_way()
        self._lock()
        if not chains.script:
            self.steer(condition_for(settings, catalog.bundle(settings.model)))
        self._move()

    def _note_way(self) -> None:
        """Settings that changed on the way cannot be told by a link."""
        if not self.chains.has_felt(self.settings.way):
            self.chains.walk.break_off(walks.SETTINGS)
        self.chains.way = self.settings.way

    def steer(self, asked: Condition) -> None:
        """On to another condition, where it is another."""
        if asked == self.chains.walk.legs[-1].condition:
            return
        self.chains.held = ()
        self._lock()
        for one in self.bound:
            one.steer(asked)
        self.chains.walk.turn(asked)

    def _lock(self) -> None:
        chains = self.chains
        wanted = {*self.settings.locked, *chains.held}
        chains.loose = tuple(row for row in chains.loose if row in wanted)
        locked = tuple(sorted(wanted - {*chains.loose}))
        if chains.locked == locked:
            return
        for one in self.bound:
            one.freeze(locked)
        chains.locked = locked
        chains.walk.break_off(walks.LOCKED)

    def _move(self) -> None:
        """Chains wander as long as they are asked to; a script is taken to its end first."""
        for one in self.bound:
            if not one.bundle.levels:
                continue
            if self.settings.moving and not self.chains.script:
                one.wander()
                self.chains.walk.break_off(walks.MOVED)
            elif one.memory.cycle:
                one.rest()

    @property
    def finished(self) -> bool:
        return all(one.finished for one in self.bound)

    def follow(self) -> bool:
        """Take the next leg of a link when one is done; whether there was more to take."""
        script, walk = self.chains.script, self.chains.walk
        if not script:
            return False
        steps = script[0].steps
        if not (self.finished if steps is None else walk.steps >= steps or self.finished):
            return True
        del script[0]
        if script:
            self.steer(script[0].condition)
        else:
            self._move()
        return bool(script)

    def advance(self, action: str = "run") -> None:
        """One step of every lane, or one half of a step; chains that went astray begin anew in their place."""
        first = self.bound[0]
        self.level = first.state.level if action == "labels" or first.finished else first.next_step.sigma
        for one in self.bound:
            if action in ("labels", "langevin"):
                one.half_step(action)
            elif not one.finished:
                one.advance()
            self._mend(one)
        if action in ("labels", "langevin"):
            self.chains.walk.break_off(walks.HALF)
        self.chains.walk.step(self.finished)

    def _mend(self, one: CoreChains) -> None:
        astray = one.info.diverged | ~one.state.x.isfinite().flatten(1).all(dim=1)
        if bool(astray.any()):
            one.renew(astray)
            self.chains.walk.break_off(walks.REPLACED)

    def images(self) -> list[Tensor]:
        """The pictures of each lane: where the chains are heading, or the chains themselves."""
        return [one.images(heading=self.settings.view == "heading") for one in self.bound]
