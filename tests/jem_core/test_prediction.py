"""One picture predicted: the numbers are those of the calibration file, the gate speaks where it can tell."""

import copy
import re
from dataclasses import replace

import pytest
import torch
from PIL import Image

import jem_core
from jem_core.bundle import Bundle
from jem_core.calibration import calibration_report
from jem_core.data.dataset import Dataset
from jem_core.draws import fixed_draws, mean_prediction
from jem_core.prediction import Prediction, predict
from jem_core.strangers import strangers
from jem_core.typicality import gate_report


@pytest.fixture(scope="module")
def report(tiny_bundle: Bundle, tiny_dataset: Dataset) -> dict:
    images, labels = tiny_dataset.tensors(tiny_dataset.indices("test"))
    p = mean_prediction(tiny_bundle.model, images).numpy()
    calibration = calibration_report(p, labels.numpy(), tiny_bundle.names)
    known = tiny_dataset.tensors(tiny_dataset.indices("val"))[0]
    noise = {"noise": strangers(images[:20])["noise"]}
    return calibration | {"gate": gate_report(tiny_bundle.model, known, images, noise)}


def with_report(bundle: Bundle, report: dict | None) -> Bundle:
    reports = {} if report is None else {"calibration": report}
    return Bundle(
        bundle.name, bundle.config, bundle.model, bundle.gaussian, bundle.buffer, bundle.support, reports=reports
    )


def picture(dataset: Dataset, i: int = 0) -> torch.Tensor:
    return dataset.tensors(dataset.indices("test")[i : i + 1])[0][0]


def test_probabilities_are_the_mean_over_eight_fixed_draws(tiny_bundle: Bundle, tiny_dataset: Dataset) -> None:
    stored = picture(tiny_dataset)
    draws = (stored.float() + fixed_draws(32)) / 256
    expected = tiny_bundle.model.predict(draws).mean(dim=0)
    found = predict(tiny_bundle, stored)
    assert torch.allclose(torch.tensor(found.probabilities), expected, atol=1e-6)
    assert predict(tiny_bundle, stored) == found  # a picture has one answer


def test_half_of_the_draws_are_mirrored_where_the_data_allow_it(tiny_bundle: Bundle, tiny_dataset: Dataset) -> None:
    stored = picture(tiny_dataset)
    model = copy.deepcopy(tiny_bundle.model)
    for weight in model.parameters():
        weight *= 4  # an untrained network says much the same of everything
    data = tiny_bundle.config["data"] | {"flips": True}
    flips = replace(tiny_bundle, model=model, config=tiny_bundle.config | {"data": data})
    expected, plain = (mean_prediction(model, stored[None], mirror=mirror)[0] for mirror in (True, False))
    found = torch.tensor(predict(flips, stored).probabilities)
    assert torch.allclose(found, expected, atol=1e-6)
    assert not torch.allclose(found, plain, atol=1e-4)


def test_a_pil_picture_gives_what_its_bytes_give(tiny_bundle: Bundle, tiny_dataset: Dataset) -> None:
    stored = picture(tiny_dataset)
    image = Image.fromarray(stored.permute(1, 2, 0).numpy())
    assert predict(tiny_bundle, image) == predict(tiny_bundle, stored) == predict(tiny_bundle, stored.numpy())
    assert jem_core.predict is predict


def test_rows_hold_the_numbers_of_the_file(tiny_bundle: Bundle, tiny_dataset: Dataset, report: dict) -> None:
    found = predict(with_report(tiny_bundle, report), picture(tiny_dataset))
    assert {row.name for row in found.rows} == set(tiny_bundle.names)
    for row in found.rows:
        bins = report["attributes"][row.name]["bins"]
        edges = bins["edges"]
        i = next(i for i in range(len(edges) - 1) if row.probability < edges[i + 1] or i == len(edges) - 2)
        assert edges[i] <= row.probability
        assert row.span == (edges[i], edges[i + 1])
        assert (row.count, row.rate) == (bins["count"][i], bins["positive_rate"][i])
        assert row.interval == (bins["low"][i], bins["high"][i])
    surprises = [row.surprise for row in found.rows]
    assert surprises == sorted(surprises, reverse=True)


def test_a_model_without_calibration_still_answers(tiny_bundle: Bundle, tiny_dataset: Dataset) -> None:
    found = predict(with_report(tiny_bundle, None), picture(tiny_dataset))
    assert found.reading is None
    assert found.gate_auroc == {}
    assert all(row.span is None and not row.enough for row in found.rows)


def test_the_gate_knows_strangers_and_is_hidden_when_it_cannot_tell(
    tiny_bundle: Bundle, tiny_dataset: Dataset, report: dict
) -> None:
    bundle = with_report(tiny_bundle, report)
    ordinary = [predict(bundle, picture(tiny_dataset, i)).reading.verdict for i in range(20)]
    assert ordinary.count("unlike") <= 1
    noise = torch.randint(0, 256, (3, 32, 32), generator=torch.Generator().manual_seed(0)).byte()
    found = predict(bundle, noise)
    assert found.reading.verdict == "unlike"
    assert found.reading.beyond
    blind = report | {"gate": report["gate"] | {"auroc": {"noise": {"value": 0.99}, "flat": {"value": 0.79}}}}
    hidden = predict(with_report(tiny_bundle, blind), noise)
    assert hidden.reading is None
    assert hidden.gate_auroc == {"noise": 0.99, "flat": 0.79}
    of_old = report | {"gate": {"score": {}, "auroc": {"noise": {"value": 0.99}}}}
    assert predict(with_report(tiny_bundle, of_old), noise).reading is None


def test_the_condition_is_what_the_model_sees(tiny_bundle: Bundle) -> None:
    found = Prediction(("A", "B"), (0.9, 0.2), (), None, {})
    assert found.condition().required == ("A",)
    assert found.condition().excluded == ("B",)


@pytest.mark.parametrize("bad", [torch.zeros(3, 32, 32), torch.zeros(3, 16, 16, dtype=torch.uint8)])
def test_other_pictures_are_refused(tiny_bundle: Bundle, bad: torch.Tensor) -> None:
    with pytest.raises(ValueError, match=re.escape("expected a PIL picture or uint8 (3, 32, 32)")):
        predict(tiny_bundle, bad)
