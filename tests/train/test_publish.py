"""Publish to a Hub on the loopback interface, and load what was published."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jem_core.bundle import Bundle, file_facts
from tests.jem_core.loopback_hub import LoopbackHub
from train import publish

ROOT = Path(__file__).parents[2]
SECONDS = 5.0


@pytest.fixture
def finished(tiny_bundle: Bundle, tmp_path: Path) -> Path:
    """A model directory with all that a model needs to be published, and some things that must stay behind."""
    directory = shutil.copytree(tiny_bundle.directory, tmp_path / "finished")
    (directory / "evaluation.json").write_text('{"accuracy": 0.9}')
    (directory / "README.md").write_text("---\nlicense: mit\n---\n# A model\n")
    (directory / "samples.png").write_bytes(b"\x89PNG picture")
    (directory / "checkpoint.pt").write_bytes(b"weights of another kind")
    (directory / ".notes.json").write_text("{}")
    return directory


def arguments(directory: Path, repository: str = "me/model", *more: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    publish.add_arguments(parser)
    return parser.parse_args([str(directory), repository, *more])


def in_process(code: list[str], url: str, home: Path) -> subprocess.CompletedProcess:
    """huggingface_hub reads the address of the Hub when it is imported: a process of its own."""
    settings = {"HF_ENDPOINT": url, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(home), "HF_TOKEN": "hf_loopback"}
    command = [sys.executable, *code]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | settings | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True
    )


def test_publish_then_load_by_id(hub: LoopbackHub, finished: Path, tiny_bundle: Bundle, tmp_path: Path) -> None:
    done = in_process(["-m", "train", "publish", str(finished), "me/model", "--push"], hub.url, tmp_path)
    assert done.returncode == 0, done.stderr
    ((commit, files),) = hub.repositories["me/model"]
    assert f"hf-hub:me/model@{commit}" in done.stdout
    binary = {"model.safetensors", "start.safetensors", "buffer.safetensors", "support.safetensors"}
    assert set(files) == binary | {"config.json", "evaluation.json", "README.md", "samples.png"}
    listed = json.loads(files["config.json"])["files"]
    assert listed == {name: file_facts(finished / name) for name in binary | {"evaluation.json", "samples.png"}}

    look = "import jem_core; b = jem_core.load('hf-hub:me/model'); print(b.evaluation, b.directory.name, b.names)"
    loaded = in_process(["-c", look], hub.url, tmp_path)
    assert loaded.stdout.strip() == f"{{'accuracy': 0.9}} {commit} {tiny_bundle.names}", loaded.stderr


def test_push_to_hub_then_load_by_id(hub: LoopbackHub, finished: Path, tmp_path: Path) -> None:
    """The same from Python: the commit that `push_to_hub` names is the one that loads."""
    push = f"import jem_core; print(jem_core.load({str(finished)!r}).push_to_hub('me/from-python'))"
    pushed = in_process(["-c", push], hub.url, tmp_path)
    assert pushed.returncode == 0, pushed.stderr
    ((commit, files),) = hub.repositories["me/from-python"]
    assert pushed.stdout.strip() == commit
    assert "checkpoint.pt" not in files
    look = f"import jem_core; print(jem_core.load('hf-hub:me/from-python@{commit}').evaluation)"
    assert in_process(["-c", look], hub.url, tmp_path).stdout == "{'accuracy': 0.9}\n"


def test_only_a_written_model_is_pushed(finished: Path) -> None:
    bundle = Bundle.read(finished)
    with pytest.raises(ValueError, match="expected owner/name"):
        bundle.push_to_hub("not-an-id")
    bundle.directory = None
    with pytest.raises(ValueError, match="'tiny' was never written to a directory"):
        bundle.push_to_hub("me/model")


def test_a_hub_that_is_not_there(finished: Path, tmp_path: Path) -> None:
    closed = LoopbackHub()
    closed.start()
    closed.stop()
    call = f"m.main(['publish', {str(finished)!r}, 'me/model', '--push'])"
    imports = "import sys, time, huggingface_hub, train.publish; from train import __main__ as m; t = time.monotonic()"
    look = f"{imports}; code = {call}; print(time.monotonic() - t); sys.exit(code)"
    done = in_process(["-c", look], closed.url, tmp_path)
    assert done.returncode == 2
    assert "The Hub cannot be reached, so nothing was published (" in done.stderr
    assert "Traceback" not in done.stderr
    assert float(done.stdout.splitlines()[-1]) < SECONDS


def test_by_default_nothing_is_sent(finished: Path, capsys: pytest.CaptureFixture, monkeypatch) -> None:
    monkeypatch.setattr(publish, "push", lambda *_: pytest.fail("a dry run must not push"))
    began = time.monotonic()
    assert publish.run(arguments(finished)) == 0
    assert time.monotonic() - began < SECONDS
    shown = capsys.readouterr().out
    for name in ("config.json", "model.safetensors", "evaluation.json", "README.md", "samples.png"):
        assert f"  {name} " in shown
    assert "stays here: .notes.json, checkpoint.pt" in shown
    assert "Nothing was sent" in shown


@pytest.mark.parametrize(("name", "command"), [("evaluation.json", "evaluate"), ("README.md", "card")])
@pytest.mark.parametrize("empty", [False, True])
def test_no_model_goes_without_evaluation_and_card(finished: Path, name: str, command: str, empty: bool) -> None:
    (finished / name).unlink()
    if empty:
        (finished / name).touch()
    with pytest.raises(ValueError, match=rf"has no {name}; .*run `python -m train {command}`"):
        publish.run(arguments(finished))


def test_a_damaged_model_is_refused(finished: Path) -> None:
    with (finished / "model.safetensors").open("ab") as file:
        file.write(b"more")
    with pytest.raises(ValueError, match=r"model\.safetensors has .* bytes; its config says"):
        publish.run(arguments(finished))


@pytest.mark.parametrize("name", ["model", "me/", "me/a/b", "../a", "me/..", "hf-hub:me/model", "https://x/y"])
def test_the_repository_must_be_an_id(finished: Path, name: str) -> None:
    with pytest.raises(ValueError, match="expected owner/name"):
        publish.run(arguments(finished, name))


def test_the_card_may_be_corrected_later(finished: Path, tmp_path: Path) -> None:
    """Its hash is in no list, so a word changed on the Hub's page does not make the model unreadable."""
    for name, data in publish.gather(finished).items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "README.md").write_text("# A better card\n")
    assert Bundle.read(tmp_path).evaluation == {"accuracy": 0.9}
    (tmp_path / "evaluation.json").write_text('{"accuracy": 1.0}')
    with pytest.raises(ValueError, match=r"evaluation\.json"):
        Bundle.read(tmp_path)
