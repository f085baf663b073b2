"""torchvision comes through one door, on a CPU-only torch too."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_python_part_of_torchvision_works_in_a_fresh_process() -> None:
    code = (
        "import torch\n"
        "from jem_core.vision import make_grid, v2\n"
        "x = torch.rand(4, 3, 8, 8)\n"
        "assert torch.equal(v2.functional.horizontal_flip(x), x.flip(-1))\n"
        "assert make_grid(x, nrow=2, padding=0).shape == (3, 16, 16)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_other_module_imports_torchvision() -> None:
    offenders = []
    for package in ("jem_core", "app", "train"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                if any(name.split(".")[0] == "torchvision" for name in names):
                    offenders.append(path.relative_to(ROOT).as_posix())
    assert set(offenders) == {"jem_core/vision.py"}
