"""A model directory: weights, start distribution, buffer samples, label counts, and what the evaluation wrote."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from jem_core.buffer import JointBuffer
from jem_core.condition import Condition
from jem_core.data.support import Support
from jem_core.gaussian import LowRankGaussian, Preconditioner
from jem_core.model import JointEnergyModel, check_weights
from jem_core.precision import fastest_precision
from jem_core.random import Randomness
from jem_core.samplers import LangevinSettings
from jem_core.starts import start_chains

FORMAT = 1
WEIGHTS, START, BUFFER, SUPPORT = "model.safetensors", "start.safetensors", "buffer.safetensors", "support.safetensors"
BINARY_FILES = (WEIGHTS, START, BUFFER, SUPPORT)
REPORTS = ("calibration", "evaluation", "curves")
SAMPLING_DEFAULTS = {
    "steps": 60,
    "grad_coef": 1.0,
    "noise_std": 0.001,
    "grad_clamp": None,
    "steps_per_sweep": 1,
    "preconditioner": 0.0,  # strength; 0 is off
    "guidance": 1.0,
    "augment_every": 0,
    "variety": 1.0,  # of the noise that chains begin at, as a share of the Gaussian's own spread
}


@dataclass
class Bundle:
    """Everything that belongs to one trained model."""

    name: str
    config: dict
    model: JointEnergyModel
    gaussian: LowRankGaussian
    buffer: JointBuffer
    support: Support
    reports: dict[str, dict] = field(default_factory=dict)
    directory: Path | None = None

    @property
    def calibration(self) -> dict | None:
        return self.reports.get("calibration")

    @property
    def evaluation(self) -> dict | None:
        return self.reports.get("evaluation")

    @property
    def curves(self) -> dict | None:
        return self.reports.get("curves")

    @property
    def names(self) -> tuple[str, ...]:
        return self.model.names

    @property
    def device(self) -> torch.device:
        return self.gaussian.mean.device

    @property
    def sampling(self) -> dict:
        """The settings that suit this model."""
        return SAMPLING_DEFAULTS | self.config.get("sampling", {})

    def langevin(self, precision: str | None = None, **changes: float | int | None) -> tuple[LangevinSettings, int]:
        """The model's own settings with these changes, and how often chains are augmented.

        The precision defaults to the fastest that the hardware has.
        """
        unknown = sorted(set(changes) - set(SAMPLING_DEFAULTS))
        if unknown:
            choices = ", ".join(SAMPLING_DEFAULTS)
            raise ValueError(f"There is no sampling setting {unknown[0]!r}; choose one of {choices}.")
        chosen = self.sampling | changes
        strength = chosen["preconditioner"]
        settings = LangevinSettings(
            grad_coef=chosen["grad_coef"],
            noise_std=chosen["noise_std"],
            grad_clamp=chosen["grad_clamp"],
            steps_per_sweep=chosen["steps_per_sweep"],
            guidance=chosen["guidance"],
            preconditioner=Preconditioner.from_gaussian(self.gaussian, strength) if strength else None,
            precision=precision or fastest_precision(self.device),
        )
        return settings, chosen["augment_every"]

    def start(
        self,
        kind: str,
        n: int,
        randomness: Randomness,
        condition: Condition | None = None,
        images: Tensor | None = None,
        variety: float | None = None,
    ) -> Tensor:
        """Images to start `n` chains from; the variety of their noise defaults to the model's own."""
        variety = self.sampling["variety"] if variety is None else variety
        if not (isinstance(variety, int | float) and 0 <= variety < float("inf")):
            raise ValueError(f"variety is {variety!r}; expected a finite number of at least 0.")
        parts = {"gaussian": self.gaussian, "buffer": self.buffer, "randomness": randomness}
        return start_chains(kind, n, condition=condition, images=images, variety=variety, **parts)

    @classmethod
    def read(cls, directory: Path | str, device: torch.device | str = "cpu") -> Bundle:
        """Load a model directory; every file is checked against the size and hash in its config before use."""
        directory = Path(directory)
        config = read_config(directory)
        for name, facts in config["files"].items():
            check_file(directory / name, facts)
        bundle = cls(
            name=config.get("name", directory.name),
            config=config,
            model=build_model(config["model"], directory / WEIGHTS).to(device),
            gaussian=LowRankGaussian.load(directory / START).to(device),
            buffer=JointBuffer.load(directory / BUFFER),
            support=Support.load(directory / SUPPORT),
            reports={name: read_json(path) for name in REPORTS if (path := directory / f"{name}.json").is_file()},
            directory=directory,
        )
        bundle.check()
        return bundle

    def check(self) -> None:
        """Refuse parts that do not belong together, or weights that are not finite."""
        check_weights(self.model)
        shape, names = (3, self.model.image_size, self.model.image_size), self.model.names
        parts = (
            ("start distribution", tuple(self.gaussian.mean.shape), shape),
            ("start distribution's labels", tuple(self.gaussian.label_mean.shape), (len(names),)),
            ("buffer's images", tuple(self.buffer.images.shape[1:]), shape),
            ("buffer's labels", tuple(self.buffer.labels.shape[1:]), (len(names),)),
            ("table of training labels", tuple(self.support.names), names),
        )
        for part, found, expected in parts:
            if found != expected:
                raise ValueError(f"The {part} of {self.name!r} is over {found}; its model expects {expected}.")

    def write(self, directory: Path | str) -> None:
        """Write the whole directory; hashes of the binary files go into config.json."""
        self.check()
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        # Three digits are enough for weights; what is measured is always what was written.
        weights = {name: value.half().contiguous() for name, value in self.model.state_dict().items()}
        save_file(weights, directory / WEIGHTS)
        self.gaussian.save(directory / START)
        self.buffer.save(directory / BUFFER)
        self.support.save(directory / SUPPORT)
        files = {name: file_facts(directory / name) for name in BINARY_FILES}
        config = self.config | {
            "format": FORMAT,
            "name": self.name,
            "model": self.model.config(),
            "sampling": self.sampling,
            "files": files,
        }
        write_json(directory / "config.json", config)
        for name, report in self.reports.items():
            write_json(directory / f"{name}.json", report)


def read_config(directory: Path) -> dict:
    path = directory / "config.json"
    if not path.is_file():
        raise ValueError(f"{directory} is no model directory: it has no config.json.")
    config = read_json(path)
    if not isinstance(config, dict) or config.get("format") != FORMAT or not isinstance(config.get("model"), dict):
        raise ValueError(f"{path} is not of format {FORMAT}; it was written by another version or another program.")
    files = config.get("files") if isinstance(config.get("files"), dict) else {}
    for name in {*BINARY_FILES, *files}:
        facts = files.get(name)
        if not isinstance(facts, dict) or not {"size", "sha256"} <= set(facts) or Path(name).name != name:
            raise ValueError(f"{path} does not say the size and hash of {name}, a file beside it.")
    return config


def build_model(facts: dict, weights: Path) -> JointEnergyModel:
    """The network with these weights, frozen. Nothing is allocated before the file proves to hold what it should."""
    try:
        with torch.device("meta"):
            model = JointEnergyModel(**facts)
        tensors = {name: value.float() for name, value in load_file(weights).items()}
        model.load_state_dict(tensors, strict=True, assign=True)
    except (TypeError, RuntimeError, SafetensorError) as error:
        raise ValueError(f"{weights.name} does not hold the weights that config.json describes: {error}") from error
    return model.to(memory_format=torch.channels_last).eval().requires_grad_(False)


def read_json(path: Path) -> dict:
    """The file's JSON; what cannot be read is named."""
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is no readable JSON: {error}.") from error


def check_file(path: Path, facts: dict) -> None:
    """Refuse a file that is missing, cut short or altered."""
    if not path.is_file():
        raise ValueError(f"The model's file {path.name} is missing in {path.parent}.")
    size = path.stat().st_size
    if size != facts["size"]:
        raise ValueError(f"The model's file {path.name} has {size} bytes; its config says {facts['size']}.")
    if file_facts(path)["sha256"] != facts["sha256"]:
        raise ValueError(f"The model's file {path.name} was altered: its hash is not the one in its config.")


def file_facts(path: Path) -> dict:
    return {"size": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def write_json(path: Path, value: dict) -> None:
    """Readable JSON, replaced in one move."""
    temporary = path.with_name(f".{path.name}.partial")
    temporary.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")
    temporary.replace(path)
