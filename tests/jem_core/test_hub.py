"""Models by name, against a Hub on the loopback interface: the right model or the right sentence, within 5 s."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jem_core.bundle import Bundle, file_facts
from tests.jem_core.loopback_hub import Files, LoopbackHub

ROOT = Path(__file__).parents[2]
SECONDS = 5.0  # the most that a result or a sentence may take
Load = Callable[[str], dict]


@pytest.fixture(scope="module")
def load(hub: LoopbackHub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Load]:
    """`jem_core.load` in a process whose Hub is the loopback one and whose cache is empty."""
    settings = {"HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(tmp_path_factory.mktemp("hf"))}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.jem_core.hub_client"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | settings | {"OMP_NUM_THREADS": "1"},
    )
    assert process.stdout.readline() == "ready\n"

    def ask(name: str) -> dict:
        process.stdin.write(f"{name}\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        assert answer["seconds"] < SECONDS
        return answer

    ask.cache = Path(settings["HF_HOME"]) / "hub"
    yield ask
    process.stdin.close()
    process.wait(20)


@pytest.fixture
def files(tiny_bundle: Bundle) -> Files:
    return {path.name: path.read_bytes() for path in tiny_bundle.directory.iterdir()}


@pytest.fixture
def faults(hub: LoopbackHub) -> Iterator[dict[str, str]]:
    yield hub.faults
    hub.faults.clear()


@pytest.fixture
def dead_network(hub: LoopbackHub) -> Iterator[Callable[[], None]]:
    stopped = []

    def stop() -> None:
        hub.stop()
        stopped.append(True)

    yield stop
    if stopped:
        hub.start()


def with_config(files: Files, /, **changes: object) -> Files:
    return files | {"config.json": json.dumps(json.loads(files["config.json"]) | changes).encode()}


def weight_sum(bundle: Bundle) -> float:
    return sum(float(weight.double().sum()) for weight in bundle.model.parameters())


def test_load_by_id_and_by_revision(hub: LoopbackHub, load: Load, files: Files, tiny_bundle: Bundle) -> None:
    first = hub.commit("me/history", files)
    second = hub.commit("me/history", with_config(files, name="renamed"))
    newest = load("hf-hub:me/history")
    assert (newest["commit"], newest["model"]) == (second, "renamed")
    assert newest["weights"] == weight_sum(tiny_bundle)
    older = load(f"hf-hub:me/history@{first}")
    assert (older["commit"], older["model"]) == (first, "tiny")


def test_progress_counts_every_byte(hub: LoopbackHub, load: Load, files: Files) -> None:
    hub.commit("me/progress", files)
    steps = load("hf-hub:me/progress")["progress"]
    total = sum(facts["size"] for facts in json.loads(files["config.json"])["files"].values())
    assert steps[-1] == [total, total]
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)


def test_a_cached_commit_needs_no_request(hub: LoopbackHub, load: Load, files: Files) -> None:
    commit = hub.commit("me/pinned", files)
    assert load(f"hf-hub:me/pinned@{commit}")["commit"] == commit
    hub.log.clear()
    assert load(f"hf-hub:me/pinned@{commit}")["commit"] == commit
    assert hub.log == []


def test_wrong_id(load: Load) -> None:
    assert load("hf-hub:me/nothing")["error"] == "There is no model 'me/nothing' on the Hub, or it is private."


@pytest.mark.parametrize("revision", ["v2", "0" * 40])
def test_wrong_revision(hub: LoopbackHub, load: Load, files: Files, revision: str) -> None:
    hub.commit("me/revisions", files)
    expected = f"The model me/revisions on the Hub has no revision '{revision}'."
    assert load(f"hf-hub:me/revisions@{revision}")["error"] == expected


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "support.safetensors"])
def test_missing_file(hub: LoopbackHub, load: Load, files: Files, name: str) -> None:
    repo = f"me/without-{name.split('.')[0]}"
    hub.commit(repo, {key: value for key, value in files.items() if key != name})
    assert load(f"hf-hub:{repo}")["error"] == f"The model {repo} on the Hub lacks the file {name}."


def test_truncated_file(hub: LoopbackHub, load: Load, files: Files) -> None:
    size = len(files["model.safetensors"])
    hub.commit("me/truncated", files | {"model.safetensors": files["model.safetensors"][:-7]})
    expected = f"The model's file model.safetensors has {size - 7} bytes; its config says {size}."
    assert load("hf-hub:me/truncated")["error"] == expected


def test_transfer_that_breaks_off(hub: LoopbackHub, load: Load, files: Files, faults: dict[str, str]) -> None:
    hub.commit("me/cut", files)
    faults["model.safetensors"] = "cut"
    error = load("hf-hub:me/cut")["error"]
    assert error.startswith("The Hub did not deliver model.safetensors of hf-hub:me/cut (")
    assert error.endswith("), and the cache holds no good copy.")
    faults.clear()
    assert load("hf-hub:me/cut")["model"] == "tiny"


def test_longer_file_is_not_taken(hub: LoopbackHub, load: Load, files: Files) -> None:
    size = len(files["model.safetensors"])
    hub.commit("me/longer", files | {"model.safetensors": files["model.safetensors"] + b"\0" * 9})
    expected = f"The Hub offers {size + 9:,} bytes as model.safetensors; expected at most {size:,}."
    assert load("hf-hub:me/longer")["error"] == expected


def test_tampered_file(hub: LoopbackHub, load: Load, files: Files) -> None:
    changed = bytearray(files["model.safetensors"])
    changed[-1] ^= 1
    hub.commit("me/tampered", files | {"model.safetensors": bytes(changed)})
    expected = "The model's file model.safetensors was altered: its hash is not the one in its config."
    assert load("hf-hub:me/tampered")["error"] == expected


@pytest.mark.parametrize("pinned", [False, True])
def test_damaged_cache_is_renewed(hub: LoopbackHub, load: Load, files: Files, pinned: bool) -> None:
    commit = hub.commit("me/damaged", files)
    name = f"hf-hub:me/damaged@{commit}" if pinned else "hf-hub:me/damaged"
    load(name)
    cached = load.cache / "models--me--damaged" / "snapshots" / commit / "model.safetensors"
    cached.resolve().write_bytes(b"damaged")
    assert load(name)["model"] == "tiny"
    assert cached.read_bytes() == files["model.safetensors"]


def test_dead_network_with_cache(hub: LoopbackHub, load: Load, files: Files, dead_network: Callable[[], None]) -> None:
    commit = hub.commit("me/kept", files)
    load("hf-hub:me/kept")
    dead_network()
    answer = load("hf-hub:me/kept")
    assert answer["commit"] == commit
    (sentence,) = answer["log"]
    assert sentence.startswith("The Hub did not deliver config.json of hf-hub:me/kept (")
    assert sentence.endswith(f"); the copy in the cache serves instead: commit {commit}.")


def test_dead_network_without_cache(load: Load, dead_network: Callable[[], None]) -> None:
    dead_network()
    error = load("hf-hub:me/never")["error"]
    assert error.startswith("The Hub did not deliver config.json of hf-hub:me/never (")
    assert error.endswith("), and the cache holds no good copy.")


def test_silent_network(hub: LoopbackHub, load: Load, files: Files, faults: dict[str, str]) -> None:
    commit = hub.commit("me/silent", files)
    load("hf-hub:me/silent")
    faults["config.json"] = "silent"
    assert load("hf-hub:me/silent")["commit"] == commit
    assert load("hf-hub:me/mute")["error"].endswith("), and the cache holds no good copy.")


def test_broken_update_leaves_the_older_copy(
    hub: LoopbackHub, load: Load, files: Files, faults: dict[str, str]
) -> None:
    older = hub.commit("me/update", files)
    load("hf-hub:me/update")
    buffer = files["buffer.safetensors"] + b" "
    table = json.loads(files["config.json"])["files"]
    table["buffer.safetensors"] = {"size": len(buffer), "sha256": "0" * 64}
    hub.commit("me/update", with_config(files, files=table) | {"buffer.safetensors": buffer})
    faults["buffer.safetensors"] = "cut"
    assert load("hf-hub:me/update")["commit"] == older


@pytest.fixture
def trap(tmp_path: Path) -> tuple[bytes, Path]:
    """A pickle that leaves a trace when it is opened, and the trace."""
    trace = tmp_path / "trace"

    class Trap:
        def __reduce__(self) -> tuple:
            return (os.mkdir, (str(trace),))

    data = pickle.dumps(Trap())
    pickle.loads(data)
    assert trace.exists(), "the trap must work"
    trace.rmdir()
    return data, trace


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("pytorch_model.bin", "lists 'pytorch_model.bin'; only .safetensors, .json, .md, .png files are fetched."),
        ("model.pt", "lists 'model.pt'; only .safetensors, .json, .md, .png files are fetched."),
        ("run.py", "lists 'run.py'; only .safetensors, .json, .md, .png files are fetched."),
        ("sub/model.pt", "does not say the size and hash of sub/model.pt, a file beside it."),
        ("../model.json", "does not say the size and hash of ../model.json, a file beside it."),
    ],
)
def test_pickle_in_the_list_is_never_asked_for(
    hub: LoopbackHub, load: Load, files: Files, trap: tuple[bytes, Path], name: str, sentence: str
) -> None:
    data, trace = trap
    repo = f"me/listed-{len(name)}"
    table = json.loads(files["config.json"])["files"] | {name: {"size": len(data), "sha256": "0" * 64}}
    hub.commit(repo, with_config(files, files=table) | {name: data})
    assert load(f"hf-hub:{repo}")["error"].endswith(sentence)
    assert not hub.asked_for(name.split("/")[-1])
    assert not trace.exists()


def test_pickle_instead_of_weights_is_never_asked_for(
    hub: LoopbackHub, load: Load, files: Files, trap: tuple[bytes, Path]
) -> None:
    """Where PyTorchModelHubMixin would fall back to pytorch_model.bin."""
    data, trace = trap
    del files["model.safetensors"]
    hub.commit("me/pickle-only", files | {"pytorch_model.bin": data})
    expected = "The model me/pickle-only on the Hub lacks the file model.safetensors."
    assert load("hf-hub:me/pickle-only")["error"] == expected
    assert not hub.asked_for("pytorch_model.bin")
    assert not trace.exists()


def test_pickle_under_the_name_of_weights(
    hub: LoopbackHub, load: Load, files: Files, trap: tuple[bytes, Path], tmp_path: Path
) -> None:
    """Its author has given it the right size and hash: the file arrives, and safetensors refuses it."""
    data, trace = trap
    data += b"\0" * len(files["model.safetensors"])
    (tmp_path / "renamed").write_bytes(data)
    table = json.loads(files["config.json"])["files"] | {"model.safetensors": file_facts(tmp_path / "renamed")}
    hub.commit("me/renamed", with_config(files, files=table) | {"model.safetensors": data})
    error = load("hf-hub:me/renamed")["error"]
    assert error.startswith("model.safetensors does not hold the weights that config.json describes: ")
    assert not trace.exists()
