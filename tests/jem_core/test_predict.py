"""One picture predicted: the numbers are those of the calibration file, the gate speaks where it can tell."""

import re

import numpy as np
import pytest
import torch
from PIL import Image

import jem_core
from jem_core.bundle import Bundle
from jem_core.calibration import PERCENTS, calibration_report
from jem_core.data.dataset import Dataset
from jem_core.draws import density_figures, fixed_draws, mean_prediction
from jem_core.predict import FEWEST, Prediction, Row, look_up, predict, surprise


@pytest.fixture(scope="module")
def report(tiny_bundle: Bundle, tiny_dataset: Dataset) -> dict:
    images, labels = tiny_dataset.tensors(tiny_dataset.indices("report"))
    p = mean_prediction(tiny_bundle.model, images).numpy()
    calibration = calibration_report(p, labels.numpy(), tiny_bundle.names)
    scores, norms = (figures.double().numpy() for figures in density_figures(tiny_bundle.model, images))
    calibration["gate"] = {
        "score": {"quantiles": np.quantile(scores, PERCENTS / 100).tolist()},
        "gradient_norm": {"quantiles": np.quantile(norms, PERCENTS / 100).tolist()},
        "auroc": {"noise": {"value": 0.99}, "flat colour": {"value": 0.9}},
    }
    return calibration


def with_report(bundle: Bundle, report: dict | None) -> Bundle:
    reports = {} if report is None else {"calibration": report}
    return Bundle(
        bundle.name, bundle.config, bundle.model, bundle.gaussian, bundle.buffer, bundle.support, reports=reports
    )


def picture(dataset: Dataset, i: int = 0) -> torch.Tensor:
    return dataset.tensors(dataset.indices("report")[i : i + 1])[0][0]


def test_probabilities_are_the_mean_over_eight_fixed_draws(tiny_bundle: Bundle, tiny_dataset: Dataset) -> None:
    stored = picture(tiny_dataset)
    draws = (stored.float() + fixed_draws(32)) / 256
    expected = tiny_bundle.model.predict(draws).mean(dim=0)
    found = predict(tiny_bundle, stored)
    assert torch.allclose(torch.tensor(found.probabilities), expected, atol=1e-6)
    assert found.score == pytest.approx(tiny_bundle.model.score(draws).mean().item(), abs=1e-4)
    assert predict(tiny_bundle, stored) == found  # a picture has one answer


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


def test_the_sentence() -> None:
    row = Row("Smiling", 0.8, 0.5, (0.77, 0.84), 333, 0.79, (0.74, 0.83))
    assert row.sentence() == (
        "The model says Smiling 80 %. Of 333 held-out images scored 77 to 84 %, 79 % had it (95 % interval 74 to 83 %)."
    )
    few = Row("Bald", 0.9, 0.1, (0.85, 1.0), FEWEST - 1, 0.5, (0.3, 0.7))
    assert few.sentence().endswith("Only 29 held-out images were scored 85 to 100 %: too few to say.")
    assert not few.enough
    narrow = Row("Bald", 0.0021, 0.1, (0.002, 0.0044), 100, 0.01, (0.0, 0.05))
    assert "scored 0.20 to 0.44 %" in narrow.sentence()


def test_a_model_without_calibration_still_answers(tiny_bundle: Bundle, tiny_dataset: Dataset) -> None:
    found = predict(with_report(tiny_bundle, None), picture(tiny_dataset))
    assert found.reading is None
    assert "no calibration file" in found.rows[0].sentence()


def test_surprise_is_a_divergence_in_bits() -> None:
    assert surprise(0.3, 0.3) == 0
    assert surprise(1.0, 0.5) == pytest.approx(1.0, abs=0.002)
    assert surprise(0.95, 0.02) > surprise(0.95, 0.9) > 0
    assert np.isfinite(surprise(1.0, 0.0))


def test_the_gate_is_two_sided_and_hidden_when_it_cannot_tell(
    tiny_bundle: Bundle, tiny_dataset: Dataset, report: dict
) -> None:
    bundle = with_report(tiny_bundle, report)
    ordinary = [predict(bundle, picture(tiny_dataset, i)).reading.verdict for i in range(20)]
    assert ordinary.count("unlike") <= 3
    noise = torch.randint(0, 256, (3, 32, 32), generator=torch.Generator().manual_seed(0)).byte()
    assert predict(bundle, noise).reading.verdict == "unlike"
    blind = report | {"gate": report["gate"] | {"auroc": {"noise": {"value": 0.79}}}}
    hidden = predict(with_report(tiny_bundle, blind), noise)
    assert hidden.reading is None
    assert hidden.gate_auroc == {"noise": 0.79}


def test_the_condition_is_what_the_model_sees(tiny_bundle: Bundle) -> None:
    found = Prediction(("A", "B"), (0.9, 0.2), (), 0.0, 0.0, None, {})
    assert found.condition().wanted == ("A",)
    assert found.condition().unwanted == ("B",)


def test_look_up_takes_the_ends(report: dict) -> None:
    name = next(iter(report["attributes"]))
    bins = report["attributes"][name]["bins"]
    assert look_up(report, name, 0.0).count == bins["count"][0]
    assert look_up(report, name, 1.0).count == bins["count"][-1]
    base = look_up(report, name, 0.5).base_rate
    rates, counts = np.array(bins["positive_rate"]), np.array(bins["count"])
    assert base == pytest.approx((rates * counts).sum() / counts.sum())


@pytest.mark.parametrize("bad", [torch.zeros(3, 32, 32), torch.zeros(3, 16, 16, dtype=torch.uint8)])
def test_other_pictures_are_refused(tiny_bundle: Bundle, bad: torch.Tensor) -> None:
    with pytest.raises(ValueError, match=re.escape("expected a PIL picture or uint8 (3, 32, 32)")):
        predict(tiny_bundle, bad)
