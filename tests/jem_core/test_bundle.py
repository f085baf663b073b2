"""Model directories: what is written is read back, and what does not belong is refused before it is used."""

import copy
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from jem_core.buffer import JointBuffer
from jem_core.bundle import BUFFER, NEEDED_FILES, Bundle, file_facts, write_json
from jem_core.calibration import calibration_report
from jem_core.chains import sample
from jem_core.condition import Condition
from jem_core.data.support import Support
from jem_core.hub import bundled_names, load
from jem_core.metrics import curves
from tests.conftest import TINY_NAMES


@pytest.fixture
def directory(tiny_bundle: Bundle, tmp_path: Path) -> Path:
    return shutil.copytree(tiny_bundle.directory, tmp_path / "model")


def test_a_file_is_hashed_once_until_it_changes(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []
    real = hashlib.file_digest
    monkeypatch.setattr(
        hashlib, "file_digest", lambda file, kind: hashed.append(Path(file.name).name) or real(file, kind)
    )
    Bundle.read(directory)
    assert sorted(hashed) == sorted([*NEEDED_FILES, BUFFER])
    Bundle.read(directory)
    assert len(hashed) == len(NEEDED_FILES) + 1
    weights = directory / "model.safetensors"
    weights.write_bytes(bytes(weights.stat().st_size))
    with pytest.raises(ValueError, match=r"model\.safetensors was altered"):
        Bundle.read(directory)


def test_a_directory_gives_the_same_model(tiny_bundle: Bundle, tmp_path: Path) -> None:
    before = copy.deepcopy(tiny_bundle)
    said, labels = np.array([[0.2], [0.8], [0.7]]), np.array([[0], [1], [0]])
    reports = {"evaluation": {"accuracy": 0.9}, "curves": curves(said, labels, ["Red"])}
    before.reports = reports | {"calibration": calibration_report(said, labels, ["Red"])}
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
    assert after.calibration.images == 3
    assert after.curves == reports["curves"]
    assert after.directory == tmp_path / "again"
    assert {path.suffix for path in (tmp_path / "again").iterdir()} == {".json", ".safetensors"}


def test_a_directory_without_a_buffer_gives_the_same_model(tiny_levels: Bundle, tmp_path: Path) -> None:
    """Of the second format: noise levels, and no chains of training to keep."""
    tiny_levels.write(tmp_path / "again")
    files = {path.name for path in (tmp_path / "again").iterdir()}
    assert files == {"config.json", *NEEDED_FILES}
    config = json.loads((tmp_path / "again" / "config.json").read_text())
    assert (config["format"], config["model"]["network"]) == (2, "residual")
    assert set(config["files"]) == set(NEEDED_FILES)
    after = Bundle.read(tmp_path / "again")
    assert after.buffer is None
    assert after.levels
    for key, weight in tiny_levels.model.state_dict().items():
        assert torch.equal(weight, after.model.state_dict()[key])
    assert after.sampling == tiny_levels.sampling
    condition = Condition.from_lists(TINY_NAMES, ["Red"])
    one, two = (sample(bundle, condition, 2, seed=5) for bundle in (tiny_levels, after))
    assert torch.equal(one.images, two.images)
    assert not any(weight.requires_grad for weight in after.model.parameters())
    assert after.model.net.halve[0].weight.is_contiguous(memory_format=torch.channels_last)
    with pytest.raises(ValueError, match="start is 'buffer-any', which a model with noise levels does not have"):
        after.chains(condition, 1, start="buffer-any")


def first_format(directory: Path) -> Path:
    """As the first version wrote it: no network named, a buffer always, what the data are left unsaid."""
    config = json.loads((directory / "config.json").read_text())
    model = {key: config["model"][key] for key in ("names", "image_size", "width", "fold")}
    data = {"source": "celeba", "names": config["data"]["names"], "held_out": config["data"]["held_out"]}
    sampling = {"steps": 5, "grad_coef": 0.3, "preconditioner": 5.0, "grad_clamp": None, "guidance": 2.0}
    old = {"format": 1, "name": "old", "objective": "gibbs-jem", "model": model, "data": data, "sampling": sampling}
    (directory / "config.json").write_text(json.dumps(old | {"files": config["files"]}))
    return directory


def test_a_directory_of_the_first_format_still_loads(tiny_bundle: Bundle, directory: Path, tmp_path: Path) -> None:
    old = Bundle.read(first_format(directory))
    assert (old.name, old.levels, len(old.buffer)) == ("old", False, len(tiny_bundle.buffer))
    assert (old.sampling["guidance"], old.sampling["grad_coef"], old.sampling["sampler"]) == (2.0, 0.3, "marginalizing")
    assert (old.data.title, old.data.faces, old.data.flips, old.data.drawn) == ("CelebA", True, True, False)
    assert [str(pair) for pair in old.data.held_out] == ["Red + Striped"]
    x = torch.rand(2, 3, 32, 32)
    assert torch.equal(old.model.logits(x), tiny_bundle.model.logits(x))
    condition = Condition.from_lists(TINY_NAMES, ["Red"])
    before = sample(old, condition, 2)
    assert before.images.shape == (2, 3, 32, 32)
    old.write(tmp_path / "new")  # and what is written anew is of the second
    new = Bundle.read(tmp_path / "new")
    assert new.config["format"] == 2
    assert new.config["model"]["network"] == "paper"
    assert new.sampling == old.sampling
    assert torch.equal(sample(new, condition, 2).images, before.images)


@pytest.mark.parametrize("name", bundled_names())
def test_every_bundled_model_loads(name: str) -> None:
    bundle = load(name)
    assert bundle.support.names == bundle.names
    assert bundle.sampling["steps"] > 0
    if bundle.config["format"] == 1:
        assert not bundle.levels
        assert bundle.buffer is not None  # that of a classifier is empty


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
    assert (tiny_bundle.sampling["noise_std"], tiny_bundle.sampling["augment_every"]) == (0.001, 0)
    assert tiny_bundle.sampler(tiny_bundle.sampling).settings.preconditioner is None
    settings = tiny_bundle.sampling_with({"guidance": 3.0, "preconditioner": 10.0, "augment_every": 60})
    kernel = tiny_bundle.sampler(settings)
    assert (kernel.settings.guidance, kernel.settings.preconditioner.strength) == (3.0, 10.0)
    assert (kernel.name, settings["augment_every"], settings["steps"]) == ("marginalizing", 60, 5)
    with pytest.raises(ValueError, match="no sampling setting 'eps'; choose one of sampler, start, steps"):
        tiny_bundle.sampling_with({"eps": 1})


def test_settings_of_a_model_with_levels(tiny_levels: Bundle) -> None:
    assert (tiny_levels.sampling["steps"], tiny_levels.sampling["guidance"]) == (6, 2.0)
    assert not {"grad_coef", "noise_std", "preconditioner"} & set(tiny_levels.sampling)
    settings = tiny_levels.sampling_with({"sampler": "resampling", "guidance_from": 0.2, "guidance_to": 3})
    kernel = tiny_levels.sampler(settings)
    assert (kernel.name, kernel.settings.guidance) == ("resampling", 2.0)
    assert (kernel.settings.guidance_from, kernel.settings.guidance_to) == (0.2, 3)
    strong = torch.ones(len(TINY_NAMES))
    assert tiny_levels.sampler(tiny_levels.sampling_with({"strengths": strong})).settings.strengths is strong


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


def without_start(files: dict) -> dict:
    return {name: facts for name, facts in files.items() if name != "start.safetensors"}


def nan_weights(tensors: dict) -> dict:
    tensors["mlp.4.bias"][0] = torch.nan
    return tensors


DAMAGE = {
    "no config": (lambda d: (d / "config.json").unlink(), "no config.json"),
    "config is not JSON": (lambda d: (d / "config.json").write_text("{"), "is not readable JSON"),
    "config is a list": (lambda d: (d / "config.json").write_text("[]"), "not of format 1 or 2"),
    "another format": (lambda d: change_config(d, format=3), "not of format 1 or 2"),
    "no model": (lambda d: change_config(d, model=None), "not of format 1 or 2"),
    "no hashes": (lambda d: change_config(d, files=None), "does not say the size and hash"),
    "a hash is missing": (lambda d: change_files(d, without_start), "size and hash of start.safetensors"),
    "a file elsewhere": (
        lambda d: change_files(d, lambda files: files | {"../secret": {"size": 1, "sha256": ""}}),
        r"\.\./secret, a file beside it",
    ),
    "unknown fact": (lambda d: model_facts(d, depth=3), "model.safetensors does not hold the weights"),
    "another width": (lambda d: model_facts(d, width=8), "model.safetensors does not hold the weights"),
    "an absurd width": (lambda d: model_facts(d, width=10**6), "model.safetensors does not hold the weights"),
    "another network": (lambda d: model_facts(d, network="residual"), "model.safetensors does not hold the weights"),
    "no such network": (lambda d: model_facts(d, network="unet"), "no network 'unet'; choose paper or residual"),
    "another size": (lambda d: model_facts(d, image_size=64), "model.safetensors does not hold the weights"),
    "an impossible size": (lambda d: model_facts(d, image_size=20), "image size is 20"),
    "other names": (lambda d: model_facts(d, names=[*"abcdef"]), "held-out pair 'Red . Striped' names 'Red', which"),
    "other names, no pairs": (
        lambda d: (change_config(d, data={}), model_facts(d, names=[*"abcdef"])),
        "table of training labels of 'tiny' is over",
    ),
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
    "settings are a list": (lambda d: change_config(d, sampling=[1]), "sampling is a list"),
    "a setting out of range": (lambda d: change_config(d, sampling={"steps": -3}), "steps is -3; expected a whole"),
    "a setting of levels": (lambda d: change_config(d, sampling={"lift": 2.0}), "lift means nothing to a model with"),
    "data are a word": (lambda d: change_config(d, data="faces"), "data is a str; expected names with values"),
    "an unknown held-out pair": (lambda d: change_config(d, data={"held_out": ["Red + Hat"]}), "names 'Hat', which"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_named(directory: Path, case: str) -> None:
    damage, message = DAMAGE[case]
    damage(directory)
    with pytest.raises(ValueError, match=message):
        Bundle.read(directory)


@pytest.mark.parametrize("name", [*NEEDED_FILES, BUFFER])
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


def test_json_is_readable_and_says_the_same(tmp_path: Path) -> None:
    value = {"numbers": [1, -2.5, 1e-9, None, True], "words": ["a", "[1,  2]\n  3]"], "rows": [[1, 2], [3]], "none": []}
    write_json(tmp_path / "a.json", value)
    text = (tmp_path / "a.json").read_text()
    assert json.loads(text) == value
    assert "[ 1, -2.5, 1e-09, null, true ]" in text  # on one line
    assert len(text.splitlines()) == 12
