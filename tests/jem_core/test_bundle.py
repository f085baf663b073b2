"""Model directories: what is written is read back, and what does not belong is refused before it is used."""

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from jem_core.buffer import JointBuffer
from jem_core.bundle import BINARY_FILES, Bundle, file_facts
from jem_core.data.support import Support
from tests.conftest import TINY_NAMES


@pytest.fixture
def directory(tiny_bundle: Bundle, tmp_path: Path) -> Path:
    return shutil.copytree(tiny_bundle.directory, tmp_path / "model")


def test_a_directory_gives_the_same_model(tiny_bundle: Bundle, tmp_path: Path) -> None:
    before = copy.deepcopy(tiny_bundle)
    before.reports = {"evaluation": {"accuracy": 0.9}, "calibration": {"ece": 0.01}, "curves": {"roc": [0, 1]}}
    before.write(tmp_path / "again")
    after = Bundle.read(tmp_path / "again")
    for key, weight in before.model.state_dict().items():
        assert torch.equal(weight, after.model.state_dict()[key])
    x = torch.rand(2, 3, 32, 32)
    assert torch.equal(before.model.logits(x), after.model.logits(x))
    assert torch.equal(before.buffer.images, after.buffer.images)
    assert torch.equal(before.gaussian.basis, after.gaussian.basis)  # already rounded when first written
    assert (after.name, after.names, after.device.type) == ("tiny", TINY_NAMES, "cpu")
    assert after.support.total == before.support.total
    assert after.evaluation == {"accuracy": 0.9}
    assert after.calibration == {"ece": 0.01}
    assert after.curves == {"roc": [0, 1]}
    assert after.directory == tmp_path / "again"
    assert {path.suffix for path in (tmp_path / "again").iterdir()} == {".json", ".safetensors"}


def test_a_loaded_model_is_frozen_and_lies_channels_last(tiny_bundle: Bundle) -> None:
    assert not tiny_bundle.model.training
    assert not any(weight.requires_grad for weight in tiny_bundle.model.parameters())
    assert tiny_bundle.model.cnn[2].weight.is_contiguous(memory_format=torch.channels_last)


def test_reading_leaves_the_global_random_stream_alone(tiny_bundle: Bundle) -> None:
    torch.manual_seed(1)
    expected = torch.rand(2)
    torch.manual_seed(1)
    Bundle.read(tiny_bundle.directory)
    assert torch.equal(torch.rand(2), expected)


def test_settings_are_the_models_own_with_changes(tiny_bundle: Bundle) -> None:
    assert tiny_bundle.sampling["steps"] == 5
    assert tiny_bundle.sampling["grad_coef"] == 1.0
    settings, augment_every = tiny_bundle.langevin()
    assert (settings.noise_std, settings.preconditioner, augment_every) == (0.001, None, 0)
    settings, augment_every = tiny_bundle.langevin(guidance=3.0, preconditioner=10.0, augment_every=60)
    assert (settings.guidance, settings.preconditioner.strength, augment_every) == (3.0, 10.0, 60)
    with pytest.raises(ValueError, match="no sampling setting 'eps'; choose one of steps"):
        tiny_bundle.langevin(eps=1)


def change_config(directory: Path, **changes: object) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def rewrite(directory: Path, name: str, change: Callable[[dict], dict]) -> None:
    """Change a binary file and its hash: what an honest writer of another version might do."""
    tensors = change(load_file(directory / name))
    save_file(tensors, directory / name)
    change_files(directory, lambda files: files | {name: file_facts(directory / name)})


def model_facts(directory: Path, **changes: object) -> None:
    change_config(directory, model=json.loads((directory / "config.json").read_text())["model"] | changes)


def change_files(directory: Path, change: Callable[[dict], dict]) -> None:
    change_config(directory, files=change(json.loads((directory / "config.json").read_text())["files"]))


def without_buffer(files: dict) -> dict:
    return {name: facts for name, facts in files.items() if name != "buffer.safetensors"}


def nan_weights(tensors: dict) -> dict:
    tensors["mlp.4.bias"][0] = torch.nan
    return tensors


DAMAGE = {
    "no config": (lambda d: (d / "config.json").unlink(), "no config.json"),
    "config is no JSON": (lambda d: (d / "config.json").write_text("{"), "no readable JSON"),
    "config is a list": (lambda d: (d / "config.json").write_text("[]"), "not of format 1"),
    "another format": (lambda d: change_config(d, format=2), "not of format 1"),
    "no model": (lambda d: change_config(d, model=None), "not of format 1"),
    "no hashes": (lambda d: change_config(d, files=None), "does not say the size and hash"),
    "a hash is missing": (lambda d: change_files(d, without_buffer), "size and hash of buffer.safetensors"),
    "a file elsewhere": (
        lambda d: change_files(d, lambda files: files | {"../secret": {"size": 1, "sha256": ""}}),
        r"\.\./secret, a file beside it",
    ),
    "unknown fact": (lambda d: model_facts(d, depth=3), "model.safetensors does not hold the weights"),
    "another width": (lambda d: model_facts(d, width=8), "model.safetensors does not hold the weights"),
    "an absurd width": (lambda d: model_facts(d, width=10**6), "model.safetensors does not hold the weights"),
    "another size": (lambda d: model_facts(d, image_size=64), "model.safetensors does not hold the weights"),
    "an impossible size": (lambda d: model_facts(d, image_size=20), "image size is 20"),
    "other names": (lambda d: model_facts(d, names=[*"abcdef"]), "table of training labels of 'tiny' is over"),
    "a weight too many": (
        lambda d: rewrite(d, "model.safetensors", lambda t: t | {"extra": torch.zeros(1)}),
        "does not hold the weights",
    ),
    "NaN weights": (lambda d: rewrite(d, "model.safetensors", nan_weights), r"mlp\.4\.bias holds NaN"),
    "another start": (
        lambda d: rewrite(d, "start.safetensors", lambda t: t | {"mean": torch.zeros(3, 16, 16)}),
        r"start distribution of 'tiny' is over \(3, 16, 16\); its model expects \(3, 32, 32\)",
    ),
    "a buffer of other labels": (
        lambda d: rewrite(d, "buffer.safetensors", lambda t: JointBuffer.empty(4, 32, 5).state()),
        r"buffer's labels of 'tiny' is over \(5,\)",
    ),
    "a buffer of another size": (
        lambda d: rewrite(d, "buffer.safetensors", lambda t: JointBuffer.empty(4, 64, 6).state()),
        r"buffer's images of 'tiny' is over \(3, 64, 64\)",
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_named(directory: Path, case: str) -> None:
    damage, message = DAMAGE[case]
    damage(directory)
    with pytest.raises(ValueError, match=message):
        Bundle.read(directory)


@pytest.mark.parametrize("name", BINARY_FILES)
def test_every_file_is_checked_before_use(directory: Path, name: str) -> None:
    whole = (directory / name).read_bytes()
    (directory / name).write_bytes(whole[:-1])
    with pytest.raises(ValueError, match=f"{name} has {len(whole) - 1} bytes; its config says {len(whole)}"):
        Bundle.read(directory)
    flipped = bytearray(whole)
    flipped[-1] ^= 1
    (directory / name).write_bytes(flipped)
    with pytest.raises(ValueError, match=f"{name} was altered"):
        Bundle.read(directory)
    (directory / name).unlink()
    with pytest.raises(ValueError, match=f"{name} is missing"):
        Bundle.read(directory)


def test_weights_are_stored_in_half_precision_and_read_in_single(tiny_bundle: Bundle, tmp_path: Path) -> None:
    exact = copy.deepcopy(tiny_bundle)
    exact.model.mlp[0].weight.data += 1e-6
    exact.write(tmp_path / "half")
    assert all(weight.dtype == torch.float16 for weight in load_file(tmp_path / "half" / "model.safetensors").values())
    read = Bundle.read(tmp_path / "half").model.mlp[0].weight
    assert read.dtype == torch.float32
    torch.testing.assert_close(read, exact.model.mlp[0].weight, rtol=5e-4, atol=1e-6)
    single = {key: value.contiguous() for key, value in exact.model.state_dict().items()}
    rewrite(tmp_path / "half", "model.safetensors", lambda _: single)  # of another program
    assert torch.equal(Bundle.read(tmp_path / "half").model.mlp[0].weight, exact.model.mlp[0].weight)


def test_what_cannot_be_read_is_not_written(tiny_bundle: Bundle, tmp_path: Path) -> None:
    sick = copy.deepcopy(tiny_bundle)
    sick.support = Support(["a"], [[1]], [1])
    with pytest.raises(ValueError, match="table of training labels"):
        sick.write(tmp_path / "sick")
    assert not (tmp_path / "sick").exists()
