"""The same chains without the app: as Python, and as a command line."""

from __future__ import annotations

import shlex

from app.settings import BY_KEY, Settings

SAFE_START = "conditional"  # what a photo start becomes: a photograph does not travel in a line of text


def as_python(settings: Settings, source: str, steps: int) -> str:
    """A script that saves each image."""
    wishes = {name: True for name in settings.wanted} | {name: False for name in settings.unwanted}
    changes = "".join(f"    {name}={value!r},\n" for name, value in settings.langevin().items())
    return (
        "import jem_core\n"
        "from train.pictures import to_image\n"
        "\n"
        f"model = jem_core.load({source!r})\n"
        "samples = jem_core.sample(\n"
        "    model,\n"
        f"    jem_core.Condition.from_dict(model.names, {wishes!r}),\n"
        f"    n={settings.chains},\n"
        f"    steps={steps},\n"
        f"    sampler={settings.sampler!r},\n"
        f"    start={_start(settings)!r},\n"
        f"    seed={settings.seed},\n"
        f"{changes})\n"
        "for i, image in enumerate(samples.images):\n"
        "    to_image(image).save(f'face-{i}.png')\n"
    )


def as_command(settings: Settings, source: str, steps: int) -> str:
    """python -m train sample ..., with what differs from the defaults."""
    words = ["python", "-m", "train", "sample", source]
    for name in settings.wanted:
        words += ["--with", name]
    for name in settings.unwanted:
        words += ["--without", name]
    words += ["-n", str(settings.chains), "--steps", str(steps), "--seed", str(settings.seed)]
    if settings.sampler != BY_KEY["sampler"].default:
        words += ["--sampler", settings.sampler]
    if _start(settings) != SAFE_START:
        words += ["--start", _start(settings)]
    for name, value in settings.langevin().items():
        words += [f"--{name.replace('_', '-')}", "none" if value is None else f"{value:g}"]
    return shlex.join([*words, "--out", "grid.png"])


def _start(settings: Settings) -> str:
    return SAFE_START if settings.start == "photo" else settings.start
