"""The measurement of edits: which pictures, where the change is, and what is counted."""

import torch

from jem_core.bundle import Bundle
from jem_core.data.dataset import Dataset
from jem_core.judge import Judge
from train import editing
from train.plan import Plan
from train.synthesis import Setting

LOCAL = "Left"  # changes some of the picture


def setting(bundle: Bundle, dataset: Dataset) -> Setting:
    torch.manual_seed(0)
    judge = Judge(bundle.names, bundle.model.image_size, width=4).eval().requires_grad_(False)
    judge.facts = {"balanced_accuracy": {name: 0.5 + 0.01 * i for i, name in enumerate(bundle.names)}}
    return Setting(bundle, dataset, judge, show=False)


def plan(*visible: str) -> Plan:
    return Plan([], [], [], [], visible=list(visible))


def test_usual_attributes_come_first_and_then_those_that_the_judge_sees_best(
    tiny_levels: Bundle, tiny_dataset: Dataset
) -> None:
    found = setting(tiny_levels, tiny_dataset)
    names = tiny_levels.names
    assert editing.edited_attributes(found, plan(*names)) == list(reversed(names))[:4]
    assert editing.edited_attributes(found, plan(*names, "Bangs"))[0] == "Bangs"


def test_pictures_lack_the_attribute(tiny_levels: Bundle, tiny_dataset: Dataset) -> None:
    stored = editing.pictures_without(setting(tiny_levels, tiny_dataset), "Red", 5)
    rows = tiny_dataset.indices("test")
    lacking = rows[tiny_dataset.labels[rows][:, tiny_dataset.names.index("Red")] == 0][:5]
    assert torch.equal(stored, tiny_dataset.tensors(lacking)[0])


def test_the_outside_is_where_the_data_do_not_change(tiny_levels: Bundle) -> None:
    seen = torch.zeros((2, len(tiny_levels.names)), dtype=torch.long)
    asked = seen.clone()
    asked[0, tiny_levels.names.index(LOCAL)] = 1
    rest = editing.outside(tiny_levels, seen, asked)
    assert rest.shape == (2, 1, 32, 32)
    assert 0 < rest[0].float().mean() < 1
    gaussian = tiny_levels.start.gaussian
    change = (gaussian.mean_image(asked) - gaussian.mean_image(seen))[0].abs().mean(dim=0)
    assert change[~rest[0, 0]].mean() > change[rest[0, 0]].mean()


def test_what_is_counted(tiny_levels: Bundle, tiny_dataset: Dataset, monkeypatch) -> None:
    found = setting(tiny_levels, tiny_dataset)
    stored = editing.pictures_without(found, "Red", 6)
    before = (stored.float() + 0.5) / 256
    # An untrained model may see anything: here it sees nothing, so that every change is one.
    monkeypatch.setattr(editing, "seen_in", lambda bundle, images: torch.zeros((len(images), 6), dtype=torch.long))
    monkeypatch.setattr(editing, "edit", lambda bundle, images, changes, **options: images[:, None])
    same = editing.edit_one(found, "Red", stored)
    assert torch.equal(same["right"], found.judge.probabilities(before)[:, 0] > 0.5)
    assert same["kept"].tolist() == [1.0] * 6
    assert same["outside"].isnan().all()  # red is red everywhere
    stored = editing.pictures_without(found, LOCAL, 6)
    assert editing.edit_one(found, LOCAL, stored)["outside"].tolist() == [0.0] * 6
    monkeypatch.setattr(editing, "edit", lambda bundle, images, changes, **options: images[:, None] + 0.25)
    assert torch.allclose(editing.edit_one(found, LOCAL, stored)["outside"], torch.full((6,), 0.25), atol=1e-5)


def test_the_report_adds_up(tiny_levels: Bundle, tiny_dataset: Dataset) -> None:
    report = editing.editing(setting(tiny_levels, tiny_dataset), plan(*tiny_levels.names), pictures=2)
    assert report["judged_right"]["of"] == 8
    assert report["judged_right"]["count"] == sum(
        facts["judged_right"]["count"] for facts in report["attributes"].values()
    )
    assert 0 <= report["others_kept"] <= 1
    assert {"level", "anchor"} <= set(report)
