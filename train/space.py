"""Write a complete Space: python -m train space DIR [--add MODEL] [--model owner/name] [--hardware NAME]."""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from jem_core.bundle import Bundle
from jem_core.hub import CONFIG, HUB_NAME, PREFIX, SUFFIXES, bundled_names, fetch, listed_files

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("app.py", "app", "jem_core", "train", "assets", "requirements.txt", "LICENSE")
WRITTEN = (*PARTS, "README.md", ".gitattributes")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".*", "screenshots")
LARGE = ("safetensors", "png", "jpg", "webp", "gif", "onnx")  # the Hub takes such files through Git LFS only
MODELS_VARIABLE = "GIBBS_JEM_MODEL"  # what the app reads: models besides the bundled ones
ZERO = "zero-a10g"
TITLE, EMOJI, SHORT = "Gibbs-JEM Studio", "🎭", "Toggle attributes and steer Langevin chains live"

README = f"""
# {TITLE}

Faces come out of noise, by Langevin dynamics on a joint energy of images and many attributes. Toggle attributes while
the chains run: they change under your eyes, also to combinations that no training image had.

On your own machine, with Python 3.11 or newer:

    pip install -r requirements.txt
    python app.py

From a program: `gradio_client.Client("owner/space").predict(["Eyeglasses"], api_name="/synthesize")`; the link
"Use via API" at the foot of the page lists the endpoints. The code is under the MIT licence; each model's licence is in
its own card, `assets/models/*/README.md`.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, help="a new directory, or a clone of a Space to bring up to date")
    parser.add_argument(
        "--add", type=Path, action="append", default=[], metavar="MODEL", help="a model directory to bundle as well"
    )
    parser.add_argument(
        "--model", action="append", default=[], metavar="owner/name", help="a Hub model to offer (owner/name@revision)"
    )
    parser.add_argument("--hardware", default="cpu-basic", help=f"to suggest; {ZERO} is ZeroGPU")


def run(args: argparse.Namespace) -> int:
    for name in args.model:
        check_hub_name(name)
    check_hardware(args.hardware)
    bundles = [Bundle.read(path) for path in args.add]
    if not bundles and not bundled_names():
        raise ValueError("There is no model to open the page with: assets/models is empty; give one with --add.")
    target = args.directory.resolve()
    check_target(target)
    models = [pin(name) for name in args.model]
    for name in PARTS:
        copy(ROOT / name, target / name)
    for bundle in bundles:
        files = [path for path in bundle.directory.iterdir() if path.is_file() and path.name.endswith(SUFFIXES)]
        for path in files:
            copy(path, target / "assets" / "models" / bundle.name / path.name)
    (target / "README.md").write_text(front_matter(args.hardware, models) + README, encoding="utf-8")
    (target / ".gitattributes").write_text("".join(f"*.{kind} filter=lfs diff=lfs merge=lfs -text\n" for kind in LARGE))
    if models:
        (target / "app.py").write_text(with_models(models))
    if args.hardware == ZERO:
        (target / "requirements.txt").write_text(
            (ROOT / "requirements.txt").read_text() + f"spaces=={pinned('spaces')}\n"
        )
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file() and ".git" not in path.parts)
    print(f"{args.directory} is a complete Space of {size / 1e6:.1f} MB. To host it:")
    if (target / ".git").exists():
        print(f"  cd {args.directory} && git lfs install && git add -A && git commit -m 'The app' && git push")
    else:
        print("  make a Space on the Hub, clone it (git clone https://huggingface.co/spaces/OWNER/NAME), and give the")
        print("  clone to this command as DIR; the rest is git add, git commit and git push.")
    return 0


def front_matter(hardware: str = "cpu-basic", models: Sequence[HubModel] = ()) -> str:
    """The settings at the head of a Space's README; the README of this repository carries the same."""
    settings = {
        "title": TITLE,
        "emoji": EMOJI,
        "colorFrom": "indigo",
        "colorTo": "pink",
        "sdk": "gradio",
        "sdk_version": pinned("gradio"),
        # ZeroGPU offers only few versions of Python.
        "python_version": "3.12.12" if hardware == ZERO else "3.11",
        "app_file": "app.py",
        "fullWidth": True,
        "short_description": SHORT,
        "suggested_hardware": hardware,
        "license": "mit",
        "tags": ["energy-based-model", "langevin-dynamics", "image-generation"],
    }
    if models:
        preload = [f"{model.repository} {','.join(model.files)} {model.commit}" for model in models]
        repositories = dict.fromkeys(model.repository for model in models)
        settings |= {"models": list(repositories), "preload_from_hub": preload}
    return f"---\n{yaml.safe_dump(settings, sort_keys=False, allow_unicode=True)}---\n"


def pinned(package: str) -> str:
    """The version of a package that the requirements pin."""
    paths = (ROOT / name for name in ("requirements.txt", "requirements-dev.txt"))
    text = "".join(path.read_text() for path in paths if path.is_file())
    if not (match := re.search(rf"^{re.escape(package)}==(\S+)$", text, re.MULTILINE)):
        raise ValueError(f"No requirements file pins {package} by {package}==VERSION.")
    return match[1]


@dataclass(frozen=True)
class HubModel:
    """A model on the Hub as it is at one commit: whoever may change its branch cannot change what the Space shows."""

    repository: str
    commit: str
    files: tuple[str, ...]


def check_hub_name(name: str) -> re.Match:
    match = HUB_NAME.fullmatch(PREFIX + name)
    if not match or ".." in name:
        raise ValueError(f"The model is {name!r}; expected owner/name or owner/name@revision, as the Hub spells it.")
    return match


def pin(name: str) -> HubModel:
    """The commit that owner/name or owner/name@revision stands for now; the model is fetched and read once."""
    match = check_hub_name(name)
    directory = fetch(match["repo"], match["revision"] or "main")
    Bundle.read(directory)  # a model that no page could show is refused here, and not by the Space
    return HubModel(match["repo"], directory.name, (CONFIG, *listed_files(directory)))


def with_models(models: Sequence[HubModel]) -> str:
    """app.py that also offers these models: a Space has no command line, so they go where the app looks for them."""
    listed = ",".join(f"{PREFIX}{model.repository}@{model.commit}" for model in models)
    head = f'import os\n\nos.environ.setdefault("{MODELS_VARIABLE}", "{listed}")  # models besides the bundled ones\n\n'
    return head + (ROOT / "app.py").read_text()


def check_hardware(name: str) -> None:
    from huggingface_hub import SpaceHardware

    names = [hardware.value for hardware in SpaceHardware]
    if name not in names:
        raise ValueError(f"There is no hardware {name!r}; choose one of {', '.join(names)}.")


def check_target(target: Path) -> None:
    """Nothing that is not a Space's own is ever overwritten."""
    if target == ROOT or any(target.is_relative_to(ROOT / part) for part in PARTS):
        raise ValueError(f"{target} is this repository itself; choose another directory for the Space.")
    if target.exists() and not target.is_dir():
        raise ValueError(f"{target} is a file; choose a directory for the Space.")
    foreign = sorted(path.name for path in target.glob("*") if path.name not in (*WRITTEN, ".git", ".gitignore"))
    if foreign:
        raise ValueError(f"{target} holds {foreign[0]}, which is not part of a Space; choose a new directory.")
    for name in PARTS:
        if not (ROOT / name).exists():
            raise ValueError(f"{ROOT} has no {name}; a Space is written from the whole repository.")


def copy(source: Path, target: Path) -> None:
    """In the place of what is there, so that a file that is gone here is gone there."""
    if target.is_dir():
        shutil.rmtree(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=LEFT_OUT)
    else:
        shutil.copyfile(source, target)
