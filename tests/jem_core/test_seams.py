"""The seams: an objective and a sampler are added from outside, and nobody else knows the objectives by name."""

import ast
import re
from pathlib import Path

import pytest
import torch
from torch import Tensor

from jem_core import objectives, samplers
from jem_core.bundle import Bundle
from jem_core.chains import sample
from jem_core.condition import Condition
from jem_core.config import make_config
from jem_core.data.dataset import Dataset
from jem_core.model import log_prob_from_logits
from jem_core.objectives import OBJECTIVES, Loss, Objective
from jem_core.objectives.base import accuracy, cross_entropy
from jem_core.samplers import SAMPLERS, Sampler
from jem_core.trainer import Trainer
from tests.conftest import TINY_RUN

ROOT = Path(__file__).resolve().parents[2]


class Smoothed(Objective):
    """A toy: cross-entropy of pictures with strong noise."""

    name = "smoothed"
    generates = False

    def loss(self, x: Tensor, labels: Tensor, iteration: int) -> Loss:
        noisy = x + 0.1 * torch.randn(x.shape, generator=self.setup.noise)
        logits = self.model.logits(noisy.clamp(0, 1))
        value = cross_entropy(logits, labels)
        return Loss(value, {"cross_entropy": value.item(), "accuracy": accuracy(logits, labels).item()})


class Unconditional(Sampler):
    """A toy: moves under log p~(x), whatever is asked."""

    name = "unconditional"

    def log_density(self, logits: Tensor, y: Tensor, condition: Tensor) -> Tensor:
        return log_prob_from_logits(logits)


def test_an_objective_from_outside_trains(
    tiny_dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(objectives.OBJECTIVES, Smoothed.name, Smoothed)
    config = make_config(TINY_RUN | {"objective": "smoothed", "iterations": 30, "learning_rate": 2e-3})
    trainer = Trainer(config, tiny_dataset, tmp_path / "run")
    losses = [metrics["loss"] for metrics in trainer.run()]
    assert sum(losses[-5:]) < sum(losses[:5])
    bundle = trainer.bundle("smoothed", {"objective": "smoothed", "data": tiny_dataset.info})
    bundle.write(tmp_path / "model")
    assert Bundle.read(tmp_path / "model").buffer is None
    again = Trainer(config, tiny_dataset, tmp_path / "run", resume=True)
    assert again.iteration == 30


@pytest.mark.parametrize("fixture", ["tiny_bundle", "tiny_levels"])
def test_a_sampler_from_outside_samples(
    fixture: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = request.getfixturevalue(fixture)
    monkeypatch.setitem(samplers.SAMPLERS, Unconditional.name, Unconditional)
    condition = Condition.from_lists(bundle.names, ["Red"])
    found = sample(bundle, condition, 2, sampler="unconditional", guidance=1.0, start="informed")
    free = sample(bundle, Condition.free(bundle.names), 2, sampler="marginalizing", guidance=1.0, start="informed")
    assert torch.allclose(found.images, free.images, atol=1e-5)


def test_a_network_of_the_wrong_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="objective denoising cannot train network paper; choose residual"):
        make_config({"objective": "denoising"})
    with pytest.raises(ValueError, match="objective gibbs-jem cannot train network residual; choose paper"):
        make_config({"objective": "gibbs-jem", "network": "residual"})


# Where an objective's name may stand: its own class, the default of a config, and words for a reader.
MAY_NAME = {
    "jem_core/objectives",  # the registry
    "jem_core/config.py",  # the default
    "app/catalog.py",
    "app/cli.py",  # the command has the same name
    "app/kinds.py",
    "train/card.py",
    "train/ablations",
}


def test_objectives_are_named_in_the_registry_configs_and_words_alone() -> None:
    names = set(OBJECTIVES)
    assert names == {"supervised", "jem", "gibbs-jem", "denoising"}
    found = []
    for folder in ("jem_core", "app", "train"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            place = path.relative_to(ROOT).as_posix()
            if any(place.startswith(allowed) for allowed in MAY_NAME):
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and node.value in names:
                    found.append(f"{place}:{node.lineno} {node.value!r}")
    assert not found


def test_nobody_compares_a_samplers_name() -> None:
    compared = re.compile(r"(sampler|\.name)\s*(==|!=)\s*[\"'](" + "|".join(SAMPLERS) + ")")
    for folder in ("jem_core", "train"):
        for path in (ROOT / folder).rglob("*.py"):
            assert not compared.search(path.read_text()), path
