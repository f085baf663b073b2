"""Models with odd configs or odd reports: refused with a sentence, or shown; the bundled ones stay."""

import copy
import json
import random
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace

import pytest
import torch
from evaluated import evaluate_prediction
from PIL import Image

from app import compare, explain, photo
from app.catalog import Catalog
from app.deadlines import Deadline
from app.drawing import draw
from app.limits import Limits
from app.runtime import Runtime, install
from app.uploads import Picture
from jem_core import hub
from jem_core.bundle import REPORTS, Bundle
from jem_core.calibration import ALL
from jem_core.condition import Condition
from jem_core.data.dataset import Dataset
from jem_core.prediction import predict
from jem_core.report_check import figure_count
from jem_core.typicality import figures

ODD = (None, True, -1, 0, 3, 1e308, "", "x" * 5_000, [], {}, [[]], [None], {"a": {}}, ["Red", "Red"], "Red + Nothing")
GONE = object()
# What the tiny evaluation lacks of a whole one: what the curves of the Compare screen are drawn from.
MATCH = {"judged_right": {"value": 0.5, "low": 0.3, "high": 0.7, "of": 20}}
MEASURED = {
    "synthesis": {"samplers_and_starts": [{"sampler": "marginalizing", "start": "noise", "seen_pairs": MATCH}]},
    "steering": {"judged_right": [0.9, 0.8], "after_last": {"value": 0.8, "low": 0.7, "high": 0.9}},
    "long_run": {"steps": [0, 100], "judged_right": [{"value": 0.9}, {"value": 0.8}]},
}


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


def somewhere(value: object, rng: random.Random) -> tuple:
    """A place in a report. Every step down is a choice, so that a matrix is not chosen more often than all else."""
    path: tuple = ()
    while isinstance(value, dict | list) and value and (not path or rng.random() < 0.85):
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        path, value = (*path, key), value[key]
    return path


def replaced(report: dict, path: tuple, value: object) -> dict:
    """The report with another value at a place, or without that place."""
    report = copy.deepcopy(report)
    *way, last = path
    inner = report
    for key in way:
        inner = inner[key]
    if value is GONE:
        del inner[last]
    else:
        inner[last] = copy.deepcopy(value)
    return report


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


def fetched(place: Path, bundled: Path) -> Catalog:
    """The models at hand when somebody asked for this directory as a model from the Hub."""
    catalog = Catalog(bundled=bundled, device="cpu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hub, "locate", lambda name, progress=None: place)
        catalog._fetch("hf-hub:owner/odd")
    return catalog


def screens_work(catalog: Catalog) -> None:
    """What is read of reports can be shown: beside a picture, on the Compare screen, and behind "how it works"."""
    install(Runtime(catalog, Limits()))
    for entry in catalog.entries():
        for attribute in (ALL, entry.attributes[0]):
            asked = {"model": entry.name, "attribute": attribute}
            answer, _ = photo.describe(Picture(Image.new("RGB", (40, 40), "red")), asked)
            json.dumps(answer, allow_nan=False)
        json.dumps(explain._calibration(catalog.bundle(entry.name)), allow_nan=False)
        page, *_ = compare.opened(SimpleNamespace(_data={"model": entry.name, "attribute": entry.attributes[0]}))
        assert page["kind"] == "compare", page
        json.dumps(page, allow_nan=False)


@pytest.fixture(scope="module")
def evaluated(tiny_levels: Bundle, tiny_dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with noise levels and all four reports."""
    place = tmp_path_factory.mktemp("evaluated") / "tiny-levels"
    evaluate_prediction(tiny_levels, tiny_dataset, place, "denoising", pairs=True)
    path = place / "evaluation.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | MEASURED))
    return place


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
        catalog = fetched(place, bundled)
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


@pytest.mark.parametrize("part", range(10))
def test_two_hundred_mutated_reports(
    part: int, evaluated: Path, bundled: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The four files of an evaluation, five mutants of each at a time."""
    rng, refused = random.Random(part), 0
    for number in range(20):
        caplog.clear()
        kind = REPORTS[number % 4]
        place = tmp_path / f"odd{number}"
        copytree(evaluated, place)
        report = json.loads((place / f"{kind}.json").read_text())
        report = replaced(report, somewhere(report, rng), rng.choice((GONE, *ODD)))
        (place / f"{kind}.json").write_text(json.dumps(report))
        catalog = fetched(place, bundled)
        if len(catalog.entries()) == 1:
            refused += 1
            assert f"The model hf-hub:owner/odd is not available: {kind}.json has " in caplog.text
        screens_work(catalog)
    assert 3 < refused < 20


@pytest.mark.parametrize(
    ("kind", "path", "value", "told"),
    [
        ("calibration", ("gate",), [1], "an object"),
        ("calibration", ("gate", "auroc"), 5, "an object"),
        ("calibration", ("gate", "auroc", "noise"), {}, "None at 'gate.auroc.noise.value'"),
        ("calibration", ("gate", "mean"), [0.0], "a list of 47"),
        ("calibration", ("gate", "root", 3, 4), "x", "at 'gate.root.3.4'"),
        ("calibration", ("gate", "quantiles", 3), float("nan"), "nan at 'gate.quantiles.3'"),
        ("calibration", ("all", "bins", "count"), [], "at least one image"),
        ("calibration", ("attributes", "Red", "bins", "edges", 1), 9.0, "numbers in order"),
        ("calibration", ("attributes", "Red", "bins", "low"), GONE, "None at 'attributes.Red.bins.low'"),
        ("evaluation", ("measures", 0, "key"), 5, "5 at 'measures.0.key'; expected a text"),
        ("evaluation", ("prediction", "micro", "accuracy", "value"), "x", "'x' at 'prediction.micro.accuracy.value'"),
        ("evaluation", ("steering", "judged_right"), 7, "a list"),
        ("evaluation", ("long_run", "steps", 1), None, "None at 'long_run.steps.1'"),
        ("evaluation", ("synthesis", "samplers_and_starts", 0, "seen_pairs", "judged_right"), {}, "judged_right.value"),
        ("curves", ("pr",), GONE, "None at 'pr'; expected an object"),
        ("curves", ("roc", "micro", "true_positive_rate"), [0.0], "a list of"),
        ("pairs", ("names", 0), "Nobody", "an attribute of the model"),
        ("pairs", ("pairs", 0, "pair"), ["Red", "Red"], "two of the names"),
        pytest.param("pairs", ("pairs", 1, "training_images"), 10**400, "a number from 0", id="pairs-huge"),
    ],
)
def test_a_sentence_names_the_file_and_the_key(
    kind: str, path: tuple, value: object, told: str, evaluated: Path, bundled: Path, tmp_path: Path
) -> None:
    """Refused from a directory too, at the start; a bundled model that is odd is left out."""
    place = tmp_path / "odd"
    copytree(evaluated, place)
    report = replaced(json.loads((place / f"{kind}.json").read_text()), path, value)
    (place / f"{kind}.json").write_text(json.dumps(report))
    for read in (Bundle.read, lambda directory: Catalog([str(directory)], bundled=bundled, device="cpu")):
        with pytest.raises(ValueError, match=rf"^{kind}\.json has ") as error:
            read(place)
        assert told in str(error.value)
    place.rename(bundled / "odd")
    assert [entry.name for entry in Catalog(bundled=bundled, device="cpu").entries()] == ["tiny"]


def test_every_bundled_model_passes() -> None:
    catalog = Catalog(device="cpu")
    assert {entry.directory for entry in catalog.entries()} == {
        path.parent for path in hub.BUNDLED.glob("*/config.json")
    }


@pytest.mark.parametrize("levels", [False, True])
def test_the_gates_figures_are_counted_as_they_are_measured(
    levels: bool, tiny_bundle: Bundle, tiny_levels: Bundle
) -> None:
    model = (tiny_levels if levels else tiny_bundle).model
    assert figures(model, torch.zeros(1, 3, 32, 32, dtype=torch.uint8)).shape == (1, figure_count(levels))


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
