"""The examples of API.md, run as they stand: the bundled models are served, and the portrait is me.jpg."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import shell

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "API.md").read_text()
STATED = "http://127.0.0.1:7860"  # another program may have that port here: of the examples, this alone is replaced


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    demo = shell.build(shell.options([]))
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, server_name="127.0.0.1", **shell.launch_options())
    yield url
    demo.close()


def test_the_examples_run_as_they_stand(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    shutil.copy(ROOT / "assets" / "examples" / "astronaut.jpg", tmp_path / "me.jpg")
    monkeypatch.chdir(tmp_path)
    known: dict = {}
    found = {}
    for block in blocks:
        exec(compile(block.replace(STATED, url), "API.md", "exec"), known)
        found |= {name: known["answer"] for name in re.findall(r'api_name="(/\w+)"', block)}
    assert set(found) == {"/synthesize", "/steer", "/predict", "/edit"}
    assert found["/synthesize"]["model"] == found["/steer"]["model"] == "avatars"
    assert found["/synthesize"]["condition"] == "Smiling and Eyeglasses, not Male"
    assert found["/predict"]["model"] == found["/edit"]["model"] == "celeba"
    assert found["/predict"]["gate"]["verdict"] == "inside"
    assert len(found["/edit"]["images"]) == 1
