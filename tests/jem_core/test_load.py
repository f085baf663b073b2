"""Models by bundled name and by directory, and what `import jem_core` offers."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import jem_core
from jem_core import hub
from jem_core.bundle import Bundle

ROOT = Path(__file__).parents[2]


def weight_sum(bundle: Bundle) -> float:
    return sum(float(weight.double().sum()) for weight in bundle.model.parameters())


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"files": {}}, "does not say the size and hash of"),
        ({"format": 99}, "is not of format 1"),
        ({"model": {"names": ["Red"], "image_size": 32, "width": 10**6}}, "does not hold the weights"),
        ({"model": {"names": ["Red"], "depth": 3}}, "does not hold the weights"),
    ],
)
def test_config_that_does_not_fit(tiny_bundle: Bundle, tmp_path: Path, changes: dict, sentence: str) -> None:
    directory = shutil.copytree(tiny_bundle.directory, tmp_path / "model")
    config = json.loads((directory / "config.json").read_text()) | changes
    (directory / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=sentence):
        jem_core.load(directory)


def test_model_too_large_to_fetch(tiny_bundle: Bundle, tmp_path: Path) -> None:
    config = json.loads((tiny_bundle.directory / "config.json").read_text())
    config["files"]["buffer.safetensors"]["size"] = hub.MODEL_BYTES
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"bytes together; at most 1,073,741,824 are fetched"):
        hub.listed_files(tmp_path)


def test_bundled_name_and_directory(tiny_bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(tiny_bundle.directory, tmp_path / "models" / "small")
    (tmp_path / "models" / "unfinished").mkdir()
    monkeypatch.setattr(hub, "BUNDLED", tmp_path / "models")
    assert hub.bundled_names() == ("small",)
    by_name, by_path = jem_core.load("small"), jem_core.load(str(tiny_bundle.directory))
    assert weight_sum(by_name) == weight_sum(by_path) == weight_sum(tiny_bundle)
    assert by_name.directory == tmp_path / "models" / "small"


@pytest.mark.parametrize(
    "name",
    [
        "no-such-model",
        "",
        " ",
        "hf-hub:",
        "hf-hub:owner",
        "hf-hub:owner/name@",
        "hf-hub:owner/name/more",
        "hf-hub:../name",
        "hf-hub:owner/..",
        "hf-hub:owner/name@a/../../b",
        "hf-hub:owner/name\n",
        "https://example.org/owner/name",
        __file__,
    ],
)
def test_anything_else_names_the_three_forms(name: str) -> None:
    with pytest.raises(ValueError, match="There is no model") as caught:
        jem_core.load(name)
    for form in ("a bundled name (", "hf-hub:owner/name@revision", "or a directory"):
        assert form in str(caught.value)


def test_the_package_costs_nothing_until_used() -> None:
    """And `predict` and `sample` are functions, whichever modules were imported before."""
    code = (
        "import sys, jem_core; assert 'torch' not in sys.modules; jem_core.load; assert 'torch' in sys.modules;"
        "import jem_core.prediction, jem_core.chains; assert callable(jem_core.predict);"
        "assert jem_core.sample is jem_core.chains.sample"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    assert set(jem_core.__all__) <= set(dir(jem_core))
    with pytest.raises(AttributeError, match="it offers Bundle, Condition"):
        _ = jem_core.nothing
