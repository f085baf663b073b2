"""Editing a picture: without a change it comes back, with one it changes, and variants are reproducible."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from jem_core import editing
from jem_core.bundle import Bundle
from jem_core.condition import FREE, WITH, WITHOUT
from jem_core.data.dataset import Dataset
from jem_core.data.support import Support
from jem_core.editing import asked_of, edit, seen_in
from jem_core.networks.paper import PaperModel

N = 3


@pytest.fixture(scope="module")
def images(tiny_dataset: Dataset) -> torch.Tensor:
    stored, _ = tiny_dataset.tensors(tiny_dataset.indices("test")[:N])
    return (stored.float() + 0.5) / 256


def nothing(bundle: Bundle, n: int = N) -> torch.Tensor:
    return torch.full((n, len(bundle.names)), FREE)


def test_without_a_change_the_picture_comes_back(tiny_levels: Bundle, images: torch.Tensor) -> None:
    back = edit(tiny_levels, images, nothing(tiny_levels), variants=2, level=3.0, precision="float32")
    assert back.shape == (N, 2, 3, 32, 32)
    assert (back - images[:, None]).abs().max() < 1e-3


def test_a_mirror_image_is_looked_at_where_the_data_allow_it(tiny_levels: Bundle, tiny_dataset: Dataset) -> None:
    """As `jem_core.predict` does: else the photo screen would offer to add what the edit believes to be there."""
    stored, _ = tiny_dataset.tensors(tiny_dataset.indices("test")[:60])
    seen = (stored.float() + 0.5) / 256
    p, mirrored = (tiny_levels.model.predict(view) for view in (seen, seen.flip(-1)))
    config = tiny_levels.config | {"data": tiny_levels.config["data"] | {"flips": True}}
    assert torch.equal(seen_in(replace(tiny_levels, config=config), seen), ((p + mirrored) / 2 > 0.5).long())
    assert torch.equal(seen_in(tiny_levels, seen), (p > 0.5).long())
    assert ((p > 0.5) != ((p + mirrored) / 2 > 0.5)).any()


def opposite(bundle: Bundle, images: torch.Tensor) -> torch.Tensor:
    """The first attribute, the other way round than it is seen."""
    changes = nothing(bundle)
    changes[:, 0] = 1 - seen_in(bundle, images)[:, 0]
    return changes


def test_a_change_changes_the_picture_and_so_does_the_anchor(
    tiny_levels: Bundle, images: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editing, "CHANGE", (0.0, 0.01))  # what an untrained model changes is little

    def moved(anchor: float) -> float:
        changes = opposite(tiny_levels, images)
        after = edit(tiny_levels, images, changes, level=4.0, anchor=anchor, precision="float32")
        return (after[:, 0] - images).abs().mean().item()

    assert moved(1.0) > 1e-3
    assert moved(1.0) != pytest.approx(moved(0.0), rel=1e-3)


def test_the_same_picture_and_seed_give_the_same_variants(tiny_levels: Bundle, images: torch.Tensor) -> None:
    changes = opposite(tiny_levels, images)
    settings = {"anchor": 0.0, "level": 4.0, "precision": "float32"}
    together = edit(tiny_levels, images, changes, variants=2, seed=5, **settings)
    alone = edit(tiny_levels, images[1:2], changes[1:2], variants=2, seed=5, **settings)
    assert torch.allclose(together[1], alone[0], atol=1e-4)
    other = edit(tiny_levels, images, changes, variants=2, seed=6, **settings)
    assert not torch.allclose(other, together, atol=1e-4)


def test_the_nearest_of_those_that_have_the_change_are_kept(
    tiny_levels: Bundle, images: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four edits of one picture, by hand: the nearest lacks the change, the farthest is left out."""
    far = torch.tensor([0.01, 0.3, 0.1, 0.2]).view(1, 4, 1, 1, 1)
    edited = (images[:1, None] * 0.5 + far).clamp(0, 1)
    before = images[:1] * 0.5

    def kept(*sure: float) -> torch.Tensor:
        monkeypatch.setattr(tiny_levels.model, "predict", lambda x: torch.tensor(sure)[:, None])
        return editing._nearest(tiny_levels, before, edited, torch.tensor([[1]]), 2)[0]

    assert torch.equal(kept(0.4, 0.9, 0.6, 0.7), edited[0, [2, 3]])
    assert torch.equal(kept(0.1, 0.2, 0.6, 0.3), edited[0, [2, 3]])  # one has it; then the surest of the others
    assert torch.equal(kept(0.1, 0.4, 0.2, 0.3), edited[0, [1, 3]])  # none has it


def test_only_what_changes_is_guided_gently_and_strongly(
    tiny_levels: Bundle, images: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict] = []
    make = Bundle.sampler
    monkeypatch.setattr(Bundle, "sampler", lambda bundle, settings: asked.append(settings) or make(bundle, settings))
    edit(tiny_levels, images[:1], opposite(tiny_levels, images)[:1], level=1.0, guidance=4.0)
    (settings,) = asked
    unchanged, gentle, strong = settings["strengths"].split((2, 1, 1))  # two of the picture's own way, two edits
    assert settings["guidance"] == 1.0
    assert settings["margin"] == 0.0
    assert (unchanged == 1).all()
    assert (gentle[0, 0].item(), strong[0, 0].item()) == (4.0 * editing.PULLS[0], 4.0 * editing.PULLS[1])
    assert (gentle[:, 1:] == 1).all()
    assert (strong[:, 1:] == 1).all()


def test_what_cannot_be_true_beside_the_change_goes(tiny_levels: Bundle) -> None:
    grouped = {"objective": "denoising", "data": {"source": "tiny", "groups": [["Red", "Bright"]]}}
    bundle = Bundle("tiny", grouped, tiny_levels.model, tiny_levels.gaussian, None, tiny_levels.support)
    seen = torch.tensor([[1, 0, 1, 0, 0, 0]])
    changes = nothing(bundle, 1)
    changes[0, 1] = WITH  # Bright is asked for: Red goes, the rest stays
    assert asked_of(bundle, seen, changes).tolist() == [[0, 1, 1, 0, 0, 0]]
    changes[0, 1] = WITHOUT
    assert asked_of(bundle, seen, changes).tolist() == [[1, 0, 1, 0, 0, 0]]


def test_what_training_never_saw_together_is_left_free(tiny_levels: Bundle) -> None:
    """Bald heads have no colour of hair, and whoever has bangs has one: bangs on a bald head free the colour."""
    names = ("Bald", "Black", "Blond", "Bangs", "Smiling")
    rows = torch.tensor([[1, 0, 0, 0, 0], [0, 1, 0, 0, 1], [0, 0, 1, 1, 0], [0, 1, 0, 1, 1]])
    groups = {"source": "heads", "groups": [["Bald", "Black", "Blond"], ["Bald", "Bangs"]]}
    bundle = Bundle(
        "heads", {"objective": "denoising", "data": groups}, PaperModel(names, 32, 4), None, None,
        Support.from_labels(names, rows.numpy().astype(np.int8)),
    )  # fmt: skip
    seen = torch.tensor([[1, 0, 0, 0, 1]])
    changes = nothing(bundle, 1)
    changes[0, 3] = WITH
    assert asked_of(bundle, seen, changes).tolist() == [[WITHOUT, FREE, FREE, WITH, 1]]
    changes = nothing(bundle, 1)
    changes[0, 0] = WITHOUT  # no longer bald: some hair must come
    assert asked_of(bundle, seen, changes).tolist() == [[WITHOUT, FREE, FREE, FREE, 1]]
    seen = torch.tensor([[0, 1, 0, 0, 1]])
    changes = nothing(bundle, 1)
    changes[0, 3] = WITH  # black hair with bangs was seen: nothing else changes
    assert asked_of(bundle, seen, changes).tolist() == [[0, 1, 0, 1, 1]]


def test_what_is_free_is_filled_as_in_the_nearest_training_labels(tiny_levels: Bundle) -> None:
    """The row must have the change; of those the one that agrees best with the rest; of two as good the more common."""
    names = ("Bald", "Black", "Blond", "Bangs", "Male")
    seen = [[0, 1, 0, 1, 0]] * 3 + [[0, 0, 1, 1, 1]] + [[0, 1, 0, 1, 1]] * 2 + [[1, 0, 0, 0, 1]] * 9
    support = Support.from_labels(names, np.array(seen, dtype=np.int8))
    bundle = Bundle("heads", tiny_levels.config, PaperModel(names, 32, 4), None, None, support)
    changes = nothing(bundle, 1)
    changes[0, 3] = WITH
    asked = torch.tensor([[WITHOUT, FREE, FREE, WITH, 1]])
    assert editing._filled(bundle, asked, changes).tolist() == [[0, 1, 0, 1, 1]]
    changes[0, 1] = asked[0, 1] = WITHOUT  # not black: only blond is left, whoever is more common
    assert editing._filled(bundle, asked, changes).tolist() == [[0, 0, 1, 1, 1]]
    changes[0, 2] = asked[0, 2] = WITHOUT  # nobody was ever seen so: what is free stays free
    asked[0, 4] = FREE
    assert editing._filled(bundle, asked, changes).tolist() == asked.tolist()


def test_outside_the_change_the_picture_stays_nearer(
    tiny_levels: Bundle, images: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = tiny_levels.names.index("Left")  # changes one half of these pictures
    changes = nothing(tiny_levels)
    changes[:, local] = 1 - seen_in(tiny_levels, images)[:, local]
    mean = tiny_levels.start.gaussian.mean_image
    seen = seen_in(tiny_levels, images)
    place = editing._belongs(mean(asked_of(tiny_levels, seen, changes)) - mean(seen), editing.INSIDE)
    assert place.min() < 0.5 < place.max()

    def moved(stays: float) -> tuple[float, float]:
        monkeypatch.setattr(editing, "STAYS", stays)
        away = (edit(tiny_levels, images, changes, level=4.0, precision="float32")[:, 0] - images).abs()
        return (away * (1 - place)).mean().item(), (away * place).mean().item()

    (outside, inside), (freely, _) = moved(0.5), moved(1.0)
    assert outside < 0.5 * freely
    assert inside > outside


def test_a_model_without_levels_starts_at_the_picture(tiny_bundle: Bundle, images: torch.Tensor) -> None:
    changes = nothing(tiny_bundle)
    changes[:, 0] = WITH
    after = edit(tiny_bundle, images, changes, variants=2, steps=1, grad_coef=0.0, noise_std=0.0)
    assert torch.equal(after, images[:, None].expand_as(after))


@pytest.mark.parametrize(
    ("bad", "said"),
    [({"variants": 0}, "variants is 0"), ({"anchor": 1.5}, "anchor is 1.5"), ({"level": 0.0}, "start_level is 0")],
)
def test_bad_values_are_named(tiny_levels: Bundle, images: torch.Tensor, bad: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        edit(tiny_levels, images, nothing(tiny_levels), **bad)
