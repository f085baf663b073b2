"""A Space is written whole, and nothing of anybody else's is touched."""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from jem_core import hub
from jem_core.bundle import Bundle
from tests.jem_core.loopback_hub import LoopbackHub
from train import space

ROOT = Path(__file__).parents[2]
COLOURS = ("red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray")


def write(directory: Path, *more: str) -> Path:
    parser = argparse.ArgumentParser()
    space.add_arguments(parser)
    assert space.run(parser.parse_args([str(directory), *more])) == 0
    return directory


def settings(readme: Path) -> dict:
    _, head, _ = readme.read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(head)


@pytest.fixture
def written(tiny_bundle: Bundle, tmp_path: Path) -> Path:
    return write(tmp_path / "space", "--add", str(tiny_bundle.directory))


def test_the_settings_are_those_of_a_space(written: Path) -> None:
    found = settings(written / "README.md")
    assert found["sdk"] == "gradio"
    assert f"gradio=={found['sdk_version']}\n" in (written / "requirements.txt").read_text()
    assert (written / found["app_file"]).is_file()
    assert {found["colorFrom"], found["colorTo"]} <= set(COLOURS)
    assert isinstance(found["python_version"], str)
    assert len(found["short_description"]) <= 60
    assert found["suggested_hardware"] == "cpu-basic"
    assert found["license"] == "mit"
    assert {"title", "emoji"} <= set(found)


def test_this_repository_is_itself_a_space() -> None:
    assert (ROOT / "README.md").read_text(encoding="utf-8").startswith(space.front_matter())


def test_every_file_is_there_and_no_other(written: Path, tiny_bundle: Bundle) -> None:
    def files(root: Path) -> set[Path]:
        found = {path.relative_to(root) for part in space.PARTS for path in [root / part, *(root / part).rglob("*")]}
        left = (".", "__pycache__", "screenshots")
        hidden = {path for path in found if any(name.startswith(left) for name in path.parts)}
        return {path for path in found - hidden if (root / path).is_file() and path.suffix != ".pyc"}

    added = {Path("assets/models/tiny") / path.name for path in tiny_bundle.directory.iterdir()}
    assert files(written) == files(ROOT) | added
    assert not [
        path for path in written.rglob("*") if path.name in ("__pycache__", "screenshots") or path.suffix == ".pyc"
    ]


def test_weights_go_through_git_lfs(written: Path) -> None:
    assert "*.safetensors filter=lfs diff=lfs merge=lfs -text\n" in (written / ".gitattributes").read_text()


def test_the_page_is_built_from_the_space_alone(written: Path) -> None:
    """In a process that knows nothing of this repository."""
    code = (
        "import jem_core, app.shell; from app.runtime import current; app.shell.build();"
        "print(jem_core.__path__[0], 'tiny' in current().catalog.attributes())"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=written, env=environment, capture_output=True, text=True)
    assert done.stdout == f"{written / 'jem_core'} True\n", done.stderr


def test_hub_models_are_offered_as_they_are_at_one_commit(tiny_bundle: Bundle, tmp_path: Path) -> None:
    """Whoever may push to their branch later changes nothing in the Space."""
    hub = LoopbackHub()
    hub.start()
    files = {path.name: path.read_bytes() for path in tiny_bundle.directory.iterdir()}
    first = hub.commit("me/faces", files)
    second = hub.commit("me/faces", {"README.md": b"newer"})
    hub.commit("me/broken", files | {"support.safetensors": b"altered"})
    settings_of = {"HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(tmp_path / "hf")}

    def train_space(place: str, *models: str) -> subprocess.CompletedProcess:
        words = [word for model in models for word in ("--model", model)]
        command = [sys.executable, "-m", "train", "space", str(tmp_path / place), *words]
        command += ["--add", str(tiny_bundle.directory)]
        environment = os.environ | settings_of | {"OMP_NUM_THREADS": "1"}
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)

    try:
        done = train_space("space", "me/faces", f"me/faces@{first}")
        assert done.returncode == 0, done.stderr
        refused = train_space("other", "me/broken")
        missing = train_space("other", "me/nothing")
    finally:
        hub.stop()
    head = (tmp_path / "space" / "app.py").read_text().split('"""')[0]
    code = f"{head}\nprint(os.environ['GIBBS_JEM_MODEL'])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert printed.stdout == f"hf-hub:me/faces@{second},hf-hub:me/faces@{first}\n"
    found = settings(tmp_path / "space" / "README.md")
    assert found["models"] == ["me/faces"]
    name, fetched, commit = found["preload_from_hub"][0].split(" ")
    assert (name, commit) == ("me/faces", second)
    assert {"config.json", "model.safetensors"} <= set(fetched.split(","))
    compile((tmp_path / "space" / "app.py").read_text(), "app.py", "exec")
    assert refused.returncode == missing.returncode == 2
    assert "support.safetensors" in refused.stderr
    assert "There is no model 'me/nothing' on the Hub" in missing.stderr
    assert not (tmp_path / "other").exists()


def test_zero_gpu_gets_its_package_and_its_python(tiny_bundle: Bundle, tmp_path: Path) -> None:
    directory = write(tmp_path / "space", "--add", str(tiny_bundle.directory), "--hardware", "zero-a10g")
    lines = (directory / "requirements.txt").read_text().splitlines()
    assert f"spaces=={space.pinned('spaces')}" in lines
    assert settings(directory / "README.md")["python_version"].startswith("3.12")
    assert not any(line.startswith("spaces") for line in (ROOT / "requirements.txt").read_text().splitlines())


def test_a_clone_is_brought_up_to_date(written: Path, tiny_bundle: Bundle, capsys: pytest.CaptureFixture) -> None:
    (written / ".git").mkdir()
    (written / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (written / "app" / "gone.py").write_text("old = True\n")
    (written / "README.md").write_text("old\n")
    write(written, "--add", str(tiny_bundle.directory))
    assert not (written / "app" / "gone.py").exists()
    assert settings(written / "README.md")["sdk"] == "gradio"
    assert (written / ".git" / "HEAD").read_text() == "ref: refs/heads/main\n"
    assert "git push" in capsys.readouterr().out


def test_nothing_foreign_is_overwritten(tiny_bundle: Bundle, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match=r"holds thesis\.tex, which is not part of a Space"):
        write(tmp_path, "--add", str(tiny_bundle.directory))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("place", [".", "app", "assets/models/new"])
def test_the_repository_itself_is_no_target(tiny_bundle: Bundle, place: str) -> None:
    with pytest.raises(ValueError, match="is this repository itself"):
        write(ROOT / place, "--add", str(tiny_bundle.directory))


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--hardware", "abacus"], "There is no hardware 'abacus'; choose one of cpu-basic, "),
        (["--model", "faces"], "The model is 'faces'; expected owner/name"),
        (["--model", "me/../x"], "The model is 'me/../x'; expected owner/name"),
        (["--model", 'me/x"); import os #'], "expected owner/name"),
        (["--add", "no/such/place"], "is not a model directory"),
    ],
)
def test_a_bad_request_writes_nothing(tiny_bundle: Bundle, tmp_path: Path, more: list[str], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        write(tmp_path / "space", "--add", str(tiny_bundle.directory), *more)
    assert not (tmp_path / "space").exists()


def test_a_space_needs_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "BUNDLED", tmp_path)
    with pytest.raises(ValueError, match="There is no model to open the page with"):
        write(tmp_path / "space")
