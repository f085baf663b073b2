"""The same pictures without the app: as Python, and as a command line; or why they cannot be made again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from app.chains import Chains
from app.settings import Settings
from app.walk import SETTINGS, Leg, Walk, write

NEVER = ("start", "photo")  # a photograph does not travel in a line of text


@dataclass(frozen=True)
class Recipe:
    """What the page shows under "Save and share"."""

    python: str
    command: str
    note: str = ""  # what they do not reproduce, and why


def recipe(settings: Settings, chains: Chains | None, source: str) -> Recipe:
    """For what is on screen; for fresh pictures of the same condition where that cannot be made again."""
    walk = chains.walk if chains else Walk()
    why = walk.why
    if chains and not why and not chains.made_under(settings):
        why = SETTINGS
    if chains and chains.lanes[0].sampler:  # side by side, each column has its own
        settings = settings.but(own=tuple((dict(settings.own) | {"sampler": chains.lanes[0].sampler}).items()))
    legs = [] if why else walk.taken()
    if len(legs) < 2 and all(leg.steps is None for leg in legs):
        best_of = 0 if why else walk.best_of
        python, command = _sample_python(settings, source, best_of), _sample_command(settings, source, best_of)
    else:
        python, command = _walk_python(settings, legs, source), _walk_command(settings, legs, source)
    return Recipe(python, command, " ".join(_notes(settings, chains, legs, why)))


def _notes(settings: Settings, chains: Chains | None, legs: list[Leg], why: str) -> Iterator[str]:
    """What the recipe does not reproduce, one sentence each."""
    if why:
        yield f"These pictures cannot be made again, because {why}. This makes fresh ones."
    if chains and len(chains.lanes) > 1:
        yield f"This makes the first column alone: {chains.lanes[0].title}."
    if any(leg.steps is not None for leg in legs[:-1]):
        yield "Some changes came before the pictures were done. The Python repeats that; the command line does not."
    if legs and legs[-1].steps is not None:
        yield "The pictures are not done yet. The Python stops where they are; the command line goes on to the end."
    if settings.strengths:
        yield "The command line does not take strengths; the Python does."


def _changes(settings: Settings) -> list[tuple[str, object]]:
    changed = [(name, None if name == "grad_clamp" and value == 0 else value) for name, value in settings.own]
    return [pair for pair in changed if pair != NEVER]


def _strengths(settings: Settings) -> tuple[str, str]:
    """The lines that make the strengths, and the argument that hands them over."""
    if not settings.strengths:
        return "", ""
    lines = "".join(f"strengths[model.names.index({name!r})] = {value:g}\n" for name, value in settings.strengths)
    return f"strengths = torch.ones(len(model.names))\n{lines}", "    strengths=strengths,\n"


def _head(settings: Settings, source: str, more: str = "") -> str:
    torch = "import torch\n\n" if settings.strengths else ""
    imports = f"{torch}import jem_core\nfrom jem_core.grids import to_image\n{more}"
    return f"{imports}\nmodel = jem_core.load({source!r})\n{_strengths(settings)[0]}"


def _arguments(settings: Settings) -> str:
    changes = "".join(f"    {name}={value!r},\n" for name, value in _changes(settings))
    return f"    n={settings.chains},\n    seed={settings.seed},\n{changes}{_strengths(settings)[1]}"


def _sample_python(settings: Settings, source: str, best_of: int) -> str:
    asked = {name: True for name in settings.required} | {name: False for name in settings.excluded}
    best = f"    keep_best={best_of},\n" if best_of else ""
    return (
        f"{_head(settings, source)}"
        "samples = jem_core.sample(\n"
        "    model,\n"
        f"    jem_core.Condition.from_dict(model.names, {asked!r}),\n"
        f"{_arguments(settings)}{best})\n"
        "for i, image in enumerate(samples.images):\n"
        "    to_image(image).save(f'picture-{i}.png')\n"
    )


def _parts(legs: list[Leg]) -> str:
    """The changes as `parse_walk` reads them, without steps."""
    return "; ".join(part.partition("@")[0] for part in write(legs).split(";"))


def _walk_python(settings: Settings, legs: list[Leg], source: str) -> str:
    steps = [leg.steps for leg in legs]
    seen = "" if settings.view == "heading" else "heading=False"
    return (
        f"{_head(settings, source, 'from jem_core.walks import parse_walk' + chr(10))}"
        f"conditions = parse_walk({_parts(legs)!r}, model)\n"
        f"steps = {steps!r}  # under each condition; None: until the pictures have arrived\n"
        "chains = model.chains(\n"
        "    conditions[0],\n"
        f"{_arguments(settings)})\n"
        "for i, (condition, most) in enumerate(zip(conditions, steps)):\n"
        "    if i:\n"
        "        chains.steer(condition)\n"
        "    taken = 0\n"
        "    while not chains.finished and taken != most:\n"
        "        chains.advance()\n"
        "        taken += 1\n"
        f"for i, image in enumerate(chains.images({seen})):\n"
        "    to_image(image).save(f'picture-{i}.png')\n"
    )


def _options(settings: Settings) -> list[str]:
    words = ["-n", str(settings.chains), "--seed", str(settings.seed)]
    for name, value in _changes(settings):
        words += [f"--{name.replace('_', '-')}", value if isinstance(value, str) else _number(value)]
    return words


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


def _sample_command(settings: Settings, source: str, best_of: int) -> str:
    """python -m train sample ..., with what differs from the defaults."""
    words = ["python", "-m", "train", "sample", source]
    for name in settings.required:
        words += ["--with", name]
    for name in settings.excluded:
        words += ["--without", name]
    words += _options(settings) + (["--keep-best", str(best_of)] if best_of else [])
    return shlex.join([*words, "--out", "grid.png"])


def _walk_command(settings: Settings, legs: list[Leg], source: str) -> str:
    """python -m train steer ..., the last row of whose grid is what is on screen."""
    words = ["python", "-m", "train", "steer", source, f"--walk={_parts(legs)}", *_options(settings)]
    return shlex.join([*words, "--out", "walk.png"])
