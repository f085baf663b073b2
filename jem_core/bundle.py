"""A model directory: weights, start distribution, buffer samples, label counts, and what the evaluation wrote."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from jem_core.buffer import JointBuffer
from jem_core.calibration import Calibration
from jem_core.chains import Chains
from jem_core.condition import Condition
from jem_core.data.facts import DataFacts
from jem_core.data.support import Support
from jem_core.gaussian import LowRankGaussian, Preconditioner
from jem_core.model import JointEnergyModel, check_weights
from jem_core.networks import build_network
from jem_core.objectives import Objective, find_objective
from jem_core.objectives.joint import GibbsJem
from jem_core.precision import fastest_precision
from jem_core.report_check import check_reports
from jem_core.samplers import KernelSettings, Sampler, make_sampler
from jem_core.settings import check_settings, defaults
from jem_core.starts import Start

FORMATS = (1, 2)  # 1: the paper's network alone, and always a buffer
WEIGHTS, START, BUFFER, SUPPORT = "model.safetensors", "start.safetensors", "buffer.safetensors", "support.safetensors"
NEEDED_FILES = (WEIGHTS, START, SUPPORT)
REPORTS = ("calibration", "evaluation", "curves", "pairs")
PLAIN_LIST = re.compile(r"\[\n\s*[-\w.+]+(?:,\n\s*[-\w.+]+)*\n\s*\]")  # no text: that has quotes, and no line breaks


@dataclass
class Bundle:
    """Everything that belongs to one trained model."""

    name: str
    config: dict
    model: JointEnergyModel
    gaussian: LowRankGaussian
    buffer: JointBuffer | None  # None: a model that was trained without chains
    support: Support
    reports: dict[str, dict] = field(default_factory=dict)
    directory: Path | None = None

    @property
    def calibration(self) -> Calibration | None:
        report = self.reports.get("calibration")
        return Calibration(report) if report else None

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

    @cached_property
    def data(self) -> DataFacts:
        """What the model says of the data it was trained on."""
        return DataFacts.read(self.config, self.names)

    @property
    def objective(self) -> type[Objective]:
        """What the model was trained by; the first format could leave the paper's unsaid."""
        return find_objective(self.config.get("objective", GibbsJem.name))

    @property
    def start(self) -> Start:
        """What chains can begin from."""
        return Start(self.gaussian, self.buffer)

    @cached_property
    def sampling(self) -> dict:
        """The settings that suit this model."""
        return sampling_of(self.config, self.model.levels)

    def sampling_with(self, changes: Mapping[str, object]) -> dict:
        """The model's own settings with these changes, checked. `precision` and `strengths` are the caller's alone."""
        free = {key: changes[key] for key in ("precision", "strengths") if key in changes}
        return self.sampling | check_settings({k: v for k, v in changes.items() if k not in free}, self.levels) | free

    @property
    def levels(self) -> bool:
        """Whether the model knows noise levels."""
        return self.model.levels

    def sampler(self, settings: Mapping) -> Sampler:
        """The kernel for these settings (of `sampling_with`). The precision defaults to the fastest at hand."""
        common = {
            "guidance": settings["guidance"],
            "margin": settings["margin"],
            "steps_per_sweep": settings["steps_per_sweep"],
            "precision": settings.get("precision") or fastest_precision(self.device),
            "strengths": settings.get("strengths"),
        }
        if self.levels:
            own = {name: settings[name] for name in ("guidance_from", "guidance_to")}
        else:
            strength = settings["preconditioner"]
            own = {
                "grad_clamp": settings["grad_clamp"],
                "preconditioner": Preconditioner.from_gaussian(self.gaussian, strength) if strength else None,
            }
        return make_sampler(settings["sampler"], self.model, KernelSettings(**common, **own))

    def chains(
        self,
        condition: Condition | Tensor,
        n: int,
        seed: int = 0,
        images: Tensor | None = None,
        rows: Sequence[int] | None = None,
        **changes: object,
    ) -> Chains:
        """`n` fresh chains of this model: see `Chains.begin`."""
        return Chains.begin(self, condition, n, seed, images, rows, **changes)

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
            buffer=JointBuffer.load(directory / BUFFER) if BUFFER in config["files"] else None,
            support=Support.load(directory / SUPPORT),
            reports={name: report for name in REPORTS if (report := read_report(directory, name)) is not None},
            directory=directory,
        )
        bundle.check()
        return bundle

    def check(self) -> None:
        """Refuse parts that do not belong together, weights that are not finite, or reports that cannot be shown."""
        check_weights(self.model)
        check_reports(self.reports, self.names, self.levels)
        _ = self.data, self.sampling  # both refuse what no screen could show
        shape, names = (3, self.model.image_size, self.model.image_size), self.model.names
        parts = [
            ("start distribution", tuple(self.gaussian.mean.shape), shape),
            ("start distribution's labels", tuple(self.gaussian.label_mean.shape), (len(names),)),
            ("table of training labels", tuple(self.support.names), names),
        ]
        if self.buffer is not None:
            parts.append(("buffer's images", tuple(self.buffer.images.shape[1:]), shape))
            parts.append(("buffer's labels", tuple(self.buffer.labels.shape[1:]), (len(names),)))
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
        self.support.save(directory / SUPPORT)
        if self.buffer is not None:
            self.buffer.save(directory / BUFFER)
        names = [*NEEDED_FILES, BUFFER] if self.buffer is not None else NEEDED_FILES
        files = {name: file_facts(directory / name) for name in names}
        config = self.config | {
            "format": FORMATS[-1],
            "name": self.name,
            "model": self.model.config(),
            "sampling": self.sampling,
            "files": files,
        }
        write_json(directory / "config.json", config)
        for name, report in self.reports.items():
            write_json(directory / f"{name}.json", report)

    def push_to_hub(self, repository: str, private: bool = False) -> str:
        """Publish the model's directory as owner/name, in one commit; returns its id. Needs evaluation and card.

        Not huggingface_hub's `ModelHubMixin`, for the reasons in `jem_core.hub`.
        """
        from jem_core.publishing import gather, push

        if self.directory is None:
            raise ValueError(f"{self.name!r} was never written to a directory; write it and evaluate it first.")
        return push(gather(self.directory), repository, private)


def read_config(directory: Path) -> dict:
    path = directory / "config.json"
    if not path.is_file():
        raise ValueError(f"{directory} is not a model directory: it has no config.json.")
    config = read_json(path)
    if not isinstance(config, dict) or config.get("format") not in FORMATS or not isinstance(config.get("model"), dict):
        known = " or ".join(map(str, FORMATS))
        raise ValueError(f"{path} is not of format {known}; it was written by another version or another program.")
    listed = config.get("files")
    files = listed if isinstance(listed, dict) else {}
    for name in {*NEEDED_FILES, *files}:
        facts = files.get(name)
        if not isinstance(facts, dict) or not {"size", "sha256"} <= set(facts) or Path(name).name != name:
            raise ValueError(f"{path} does not say the size and hash of {name}, a file beside it.")
    return config


def build_model(facts: dict, weights: Path) -> JointEnergyModel:
    """The network with these weights, frozen. Nothing is allocated before the file proves to hold what it should."""
    try:
        with torch.device("meta"):
            model = build_network(facts)
        tensors = {name: value.float() for name, value in load_file(weights).items()}
        model.load_state_dict(tensors, strict=True, assign=True)
    except (TypeError, RuntimeError, SafetensorError) as error:
        raise ValueError(f"{weights.name} does not hold the weights that config.json describes: {error}") from error
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return model.eval().requires_grad_(False)


def sampling_of(config: Mapping, levels: bool) -> dict:
    """The sampling settings of a model from its config, defaults filled in, each checked."""
    own = config.get("sampling", {})
    if not isinstance(own, Mapping):
        raise ValueError(f"The config's sampling is a {type(own).__name__}; expected settings with values.")
    return defaults(levels) | check_settings(own, levels)


def read_report(directory: Path, name: str) -> dict | None:
    """One of the files that the evaluation wrote beside a model; None when there is none (so far)."""
    if name not in REPORTS:
        raise ValueError(f"There is no report {name!r}; choose one of {', '.join(REPORTS)}.")
    path = directory / f"{name}.json"
    return _read_once(path, path.stat().st_mtime_ns) if path.is_file() else None


@lru_cache(maxsize=64)
def _read_once(path: Path, changed: int) -> dict:
    return read_json(path)


def read_json(path: Path) -> dict:
    """The file's JSON; what cannot be read is named."""
    try:
        return json.loads(path.read_text())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not readable JSON: {error}.") from error


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
    facts = path.stat()
    return {"size": facts.st_size, "sha256": _sha256(path, facts.st_size, facts.st_mtime_ns, facts.st_ino)}


@lru_cache(maxsize=256)
def _sha256(path: Path, *_: int) -> str:
    """Hashed once, however often a file that did not change is checked: its size, time and number are in the key."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_json(path: Path, value: dict) -> None:
    """Readable JSON, replaced in one move; plain numbers of a list stand on one line."""
    temporary = path.with_name(f".{path.name}.partial")
    text = json.dumps(value, indent=1, ensure_ascii=False)
    temporary.write_text(PLAIN_LIST.sub(lambda found: " ".join(found[0].split()), text) + "\n")
    temporary.replace(path)
