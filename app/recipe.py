"""The same pictures without the app: as Python, and as a command line; or why they cannot be made again."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from app.settings import Settings
from app.walk import Walk, write

NEVER = ("start", "photo")  # a photograph does not travel in a line of text


@dataclass(frozen=True)
class Recipe:
    """What the page shows under "Save and share"."""

    python: str
    command: str
    note: str = ""  # what they do not reproduce, and why


def recipe(settings: Settings, walk: Walk | None, source: str) -> Recipe:
    """For what is on screen; for fresh pictures of the same condition where that cannot be made again."""
    why = walk.why if walk else ""
    legs = walk.taken() if walk and not why else []
    best_of = walk.best_of if walk and not why else 0
    note = f"These pictures cannot be made again, because {why}. This makes fresh ones." if why else ""
    if len(legs) < 2 and all(leg.steps is None for leg in legs):
        if settings.strengths:
            note = note or "The command line does not take strengths; the Python does."
        return Recipe(_sample_python(settings, source, best_of), _sample_command(settings, source, best_of), note)
    python = _walk_python(settings, walk, source)
    if any(leg.steps is not None for leg in legs):
        note = "Some pictures had not arrived yet. The Python takes that into account; the command line does not."
    return Recipe(python, _walk_command(settings, walk, source), note)


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


def _walk_python(settings: Settings, walk: Walk, source: str) -> str:
    legs = walk.taken()
    text = write(legs).split(";")
    parts = "; ".join(part.partition("@")[0] for part in text)
    steps = [leg.steps for leg in legs]
    return (
        f"{_head(settings, source, 'from jem_core.walks import parse_walk' + chr(10))}"
        f"conditions = parse_walk({parts!r}, model)\n"
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
        "for i, image in enumerate(chains.images()):\n"
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


def _walk_command(settings: Settings, walk: Walk, source: str) -> str:
    """python -m train steer ..., the last row of whose grid is what is on screen."""
    parts = "; ".join(part.partition("@")[0] for part in write(walk.taken()).split(";"))
    words = ["python", "-m", "train", "steer", source, f"--walk={parts}", *_options(settings)]
    return shlex.join([*words, "--out", "walk.png"])
