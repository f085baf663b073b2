"""The page's scripts under Node: their unit tests, their types, and the linter."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NODE = shutil.which("node")


def run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"[-6000:]


def need(found: object, what: str) -> None:
    """Tests that cannot run here are skipped with a word; where everything must run, that is a failure."""
    if found:
        return
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing: the page's scripts were not tested")
    pytest.skip(f"{what} is not installed")


def test_the_unit_tests_of_the_scripts_pass():
    need(NODE, "node")
    files = sorted(str(path) for path in (ROOT / "tests" / "js").glob("*.test.js"))
    assert len(files) > 3
    run(NODE, "--test", *files)


@pytest.mark.parametrize("command", [("biome", "ci"), ("tsc", "-p", "jsconfig.json")], ids=["biome", "types"])
def test_the_scripts_are_clean(command):
    tool = ROOT / "node_modules" / ".bin" / command[0]
    need(NODE and tool.exists(), command[0])
    run(str(tool), *command[1:])
