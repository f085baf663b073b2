"""The rules of the house that a machine can check."""

import ast
import re
import subprocess
import sys
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from jem_core.config import CHOICES, TrainConfig

ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    path
    for folder in ("jem_core", "train", "app", "assets", "tests")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".js", ".css") and "__pycache__" not in path.parts
) + sorted(path for path in ROOT.glob("*.py"))
SCRIPTS = [path for path in SOURCES if path.parent == ROOT / "assets" and path.suffix == ".js"]
PYTHON = [path for path in SOURCES if path.suffix == ".py"]
CORE = [path for path in PYTHON if path.is_relative_to(ROOT / "jem_core")]
PLOTS = ROOT / "jem_core" / "plots.py"  # on its own: nothing else of the core needs it
LONGEST_FILE, LONGEST_FUNCTION, MOST_PARAMETERS = 350, 45, 8  # what we aim for is less: see CONTRIBUTING.md
# What an endpoint takes is what a client may send, by name: the signature is its documentation.
ENDPOINTS = {"app/api.py"}
# ZeroGPU hands arguments from one process of this program to another; nothing from a file or a visitor is unpickled.
BETWEEN_PROCESSES = {"app/gpu.py"}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """All parts of a file's syntax."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imports(path: Path) -> set[str]:
    """The modules that a file imports, anywhere in it."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
    return found


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_files_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("path", PYTHON, ids=name)
def test_functions_are_short_and_take_little(path: Path) -> None:
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            where = f"{name(path)}, line {node.lineno}: {node.name}"
            assert node.end_lineno - node.lineno < LONGEST_FUNCTION, where
            taken = [word.arg for word in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            if name(path) not in ENDPOINTS:
                assert len(set(taken) - {"self", "cls"}) <= MOST_PARAMETERS, where


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_scripts_of_the_page_are_typed(path: Path) -> None:
    """Their types are in comments; `make lint` checks them where the first line asks for it."""
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    assert first == "// @ts-check"
    assert not [line for line in rest if "@ts-nocheck" in line or "@ts-ignore" in line]


@pytest.mark.parametrize(("room", "other"), [("app", "train"), ("train", "app")])
def test_the_app_and_the_command_line_know_nothing_of_each_other(room: str, other: str) -> None:
    """What both need is in jem_core; one command, `gibbs-jem`, opens both."""
    files = [path for path in PYTHON if path.is_relative_to(ROOT / room) and name(path) != "app/cli.py"]
    assert files
    assert not [name(path) for path in files if other in {module.split(".")[0] for module in imports(path)}]


def test_there_is_something_to_check() -> None:
    assert len(PYTHON) > 50
    assert ROOT / "jem_core" / "samplers.py" in PYTHON
    assert ROOT / "assets" / "studio.js" in SCRIPTS
    assert ROOT / "assets" / "style.css" in SOURCES


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 150


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "train/README.md", "API.md", "SECURITY.md"])
def test_links_of_the_documents_lead_somewhere(page: str) -> None:
    path = ROOT / page
    links = re.findall(r"\]\(([^)#\s]+)\)", path.read_text(encoding="utf-8"))
    assert not [link for link in links if "://" not in link and not (path.parent / link).exists()]


def test_the_guide_explains_every_key_of_a_config() -> None:
    guide = re.sub(r"```.*?```", "", (ROOT / "train" / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    named = set(re.findall(r"`([^`\n]+)`", guide))
    keys = {field.name for field in fields(TrainConfig)}
    assert not (keys | {choice for choices in CHOICES.values() for choice in choices}) - named


@pytest.mark.parametrize("path", CORE, ids=name)
def test_the_core_knows_neither_the_app_nor_plots(path: Path) -> None:
    roots = {module.split(".")[0] for module in imports(path)}
    assert not roots & {"gradio", "app", "train", "tests"}
    assert "plotly" not in roots or path == PLOTS


def test_importing_the_core_loads_neither_gradio_nor_plotly() -> None:
    modules = ", ".join(".".join(path.relative_to(ROOT).with_suffix("").parts) for path in CORE if path != PLOTS)
    modules = modules.replace(".__init__", "")
    code = f"import sys, {modules}; print([m for m in ('gradio', 'plotly', 'app') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("path", [path for path in PYTHON if not path.is_relative_to(ROOT / "tests")], ids=name)
def test_nothing_is_pickled(path: Path) -> None:
    if name(path) not in BETWEEN_PROCESSES:
        assert not {module.split(".")[0] for module in imports(path)} & {"pickle", "joblib", "dill", "shelve"}
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            call = ast.unparse(node.func)
            assert call not in ("torch.load", "torch.save"), f"{call} pickles; use safetensors"
            if call in ("np.load", "numpy.load"):
                allowed = {word.arg: ast.unparse(word.value) for word in node.keywords}
                assert allowed.get("allow_pickle", "False") == "False"


@pytest.mark.parametrize("path", CORE, ids=name)
def test_the_core_prints_nothing(path: Path) -> None:
    calls = [node for node in nodes(path) if isinstance(node, ast.Call)]
    assert not [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]


@pytest.mark.parametrize("path", [path for path in PYTHON if path.is_relative_to(ROOT / "app")], ids=name)
def test_the_app_computes_no_gradient(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not [word for word in ("autograd", ".backward(", "requires_grad") if word in text]
