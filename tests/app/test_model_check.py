"""Models with odd configs: refused with a sentence, or shown; the bundled ones stay."""

import copy
import json
import logging
import random
from pathlib import Path
from shutil import copytree

import pytest
import torch

from app.catalog import Catalog
from app.deadlines import Deadline
from app.drawing import draw
from jem_core import hub
from jem_core.bundle import Bundle
from jem_core.condition import Condition
from jem_core.prediction import predict

ODD = (None, True, -1, 0, 3, 1e308, "", "x" * 5_000, [], {}, [[]], [None], {"a": {}}, ["Red", "Red"], "Red + Nothing")


def places(value: object, path: tuple = ()) -> list[tuple]:
    """Every place in a config."""
    found = [path] if path else []
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        found += places(part, (*path, key))
    return found


def mutated(config: dict, rng: random.Random) -> dict:
    """The config with one to three parts replaced, dropped or added."""
    config = copy.deepcopy(config)
    for _ in range(rng.randint(1, 3)):
        *way, last = rng.choice(places(config))
        inner = config
        for key in way:
            inner = inner[key]
        if isinstance(inner, dict) and rng.random() < 0.2:
            del inner[last]
        elif isinstance(inner, dict) and rng.random() < 0.1:
            inner[f"{last}2"] = rng.choice(ODD)
        else:
            inner[last] = copy.deepcopy(rng.choice(ODD))
    return config


def write(model: Path, place: Path, config: dict) -> Path:
    copytree(model, place)
    (place / "config.json").write_text(json.dumps(config))
    return place


def works(catalog: Catalog, name: str) -> None:
    """What is offered can be looked at and sampled from."""
    bundle, size = catalog.bundle(name), catalog.entry(name).image_size
    assert len(predict(bundle, torch.zeros(3, size, size, dtype=torch.uint8)).rows) == len(bundle.names)
    if catalog.entry(name).generates:
        drawn = draw(bundle, Condition.free(bundle.names), 1, 0, 1, Deadline(60), steps=2)
        assert drawn.images.shape == (1, 3, size, size)


@pytest.fixture
def bundled(tiny_bundle: Bundle, tmp_path: Path) -> Path:
    copytree(tiny_bundle.directory, tmp_path / "bundled" / "tiny")
    return tmp_path / "bundled"


@pytest.mark.parametrize("part", range(10))
def test_two_hundred_mutated_configs(
    part: int, tiny_levels: Bundle, bundled: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As from the Hub, twenty at a time: what is offered can be shown, what is not is named; `tiny` stays."""
    rng, refused = random.Random(part), 0
    config = json.loads((tiny_levels.directory / "config.json").read_text())
    for number in range(20):
        caplog.clear()
        place = write(tiny_levels.directory, tmp_path / f"odd{number}", mutated(config, rng))
        catalog = Catalog(bundled=bundled, device="cpu")
        with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING):
            patch.setattr(hub, "locate", lambda name, progress=None, place=place: place)
            catalog._fetch("hf-hub:owner/odd")
        facts = json.loads(json.dumps(catalog.facts(), allow_nan=False))  # what the page is told first of all
        assert facts[0]["name"] == "tiny"
        assert all(entry.iterations is None or entry.iterations >= -1 for entry in catalog.entries())
        if len(catalog.entries()) == 1:
            refused += 1
            assert "The model hf-hub:owner/odd is not available: " in caplog.text
        else:
            assert len(caplog.records) == 0
            works(catalog, catalog.entries()[-1].name)
    assert 5 < refused <= 20


@pytest.mark.parametrize(
    "changes",
    [
        {"data": []},
        {"sampling": []},
        {"data": {"held_out": ["Red + Blue"]}},
        {"data": {"held_out": 7}},
        {"title": {"a": 1}},
        {"name": ["x"]},
        {"training": []},
        {"model": {"names": 5}},
    ],
)
def test_an_odd_directory_is_a_sentence_and_an_odd_bundled_model_is_left_out(
    changes: dict, tiny_bundle: Bundle, bundled: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = json.loads((tiny_bundle.directory / "config.json").read_text()) | changes
    place = write(tiny_bundle.directory, tmp_path / "odd", config)
    with pytest.raises(ValueError, match="config"):
        Catalog([str(place)], bundled=bundled, device="cpu")
    place.rename(bundled / "odd")
    catalog = Catalog(bundled=bundled, device="cpu")
    assert [entry.name for entry in catalog.entries()] == ["tiny"]
    assert "is left out: " in caplog.text
