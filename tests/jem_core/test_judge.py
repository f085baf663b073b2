"""The judge: it learns what is to be seen, catches chance, and is not fooled by an empty condition."""

import pytest
import torch

from jem_core.condition import Condition
from jem_core.judge import Judge, judged_right, right, train_judge


@pytest.fixture(scope="module")
def judge(tiny_dataset) -> Judge:
    return train_judge(tiny_dataset, epochs=8, width=8, batch_size=32, seed=0)


def test_it_recognizes_real_images_that_it_never_saw(judge: Judge):
    accuracy = dict(judge.facts["accuracy"])
    accuracy.pop("Dotted")  # single pixels, gone in the blur that the judge learns to look through
    assert min(accuracy.values()) > 0.95, accuracy


def test_shuffled_labels_score_near_chance(judge: Judge):
    """Two independent draws agree with probability r^2 + (1 - r)^2."""
    for name, rate in judge.facts["positive_rate"].items():
        chance = rate**2 + (1 - rate) ** 2
        assert judge.facts["accuracy_shuffled_labels"][name] == pytest.approx(chance, abs=0.15)


def test_it_was_taught_the_held_out_combinations(judge: Judge, tiny_dataset):
    assert judge.facts["trained_on"]["rows"] == (tiny_dataset.split == 0).sum()
    rows = tiny_dataset.indices("test", held_out=True)
    assert len(rows) > 5
    both = Condition.from_lists(tiny_dataset.names, ["Red", "Striped"])
    assert judged_right(judge, tiny_dataset.tensors(rows)[0], both).float().mean() > 0.8


def test_all_asked_attributes_must_be_right():
    p = torch.tensor([[0.9, 0.1, 0.6], [0.9, 0.9, 0.6]])
    asked = torch.tensor([[1, 0, -1], [1, 0, -1]])
    assert right(p, asked).tolist() == [True, False]
    assert right(p, torch.full((2, 3), -1)).all()


def test_saved_and_loaded_it_says_the_same(judge: Judge, tiny_dataset, tmp_path):
    judge.save(tmp_path / "judge")
    again = Judge.load(tmp_path / "judge")
    images = tiny_dataset.tensors(tiny_dataset.indices("test"))[0]
    assert torch.equal(again.probabilities(images), judge.probabilities(images))
    assert again.facts == judge.facts
    assert {path.suffix for path in (tmp_path / "judge").iterdir()} == {".safetensors", ".json"}


def test_bytes_and_floats_are_the_same_image(judge: Judge, tiny_dataset):
    images = tiny_dataset.tensors(tiny_dataset.indices("test"))[0][:8]
    assert torch.allclose(judge.probabilities(images), judge.probabilities((images.float() + 0.5) / 256))


def test_same_seed_same_judge(tiny_dataset):
    first, second = (train_judge(tiny_dataset, epochs=1, width=4, seed=3) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_no_judge_is_said_plainly(tmp_path, judge: Judge):
    with pytest.raises(ValueError, match="holds no judge"):
        Judge.load(tmp_path)
    with pytest.raises(ValueError, match="expects"):
        judge.features(torch.rand(1, 3, 16, 16))
