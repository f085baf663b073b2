"""The models at hand, what the page says of them, and what is new among combinations."""

import random
from dataclasses import replace
from shutil import copytree

import pytest

from app.attributes import GROUPS, caption, grouped, sentence
from app.catalog import Catalog
from app.novelty import badge, surprise
from app.presets import presets_for
from jem_core.condition import Condition
from jem_core.data.avatars import NAMES


def test_models_are_listed_with_their_attributes(runtime):
    assert list(runtime.catalog.attributes()) == ["tiny", "tiny-jem", "tiny-levels"]
    assert set(runtime.catalog.rivals("tiny")) == {"tiny-jem", "tiny-levels"}
    assert "tiny" in runtime.catalog.rivals("tiny-jem")
    facts = runtime.catalog.facts()[0]
    assert facts["title"] == "tiny (Gibbs-JEM)"
    assert facts["size"] == 32
    assert facts["sampling"]["steps"] == 5
    assert {name["name"] for group in facts["groups"] for name in group["names"]} == set(facts["names"])
    assert facts["family"][0] == "tiny-levels"  # models of the same data stand under one picture
    assert [one["levels"] for one in runtime.catalog.facts()] == [False, False, True]
    assert "uniform" in facts["starts"]
    assert "noise" in runtime.catalog.facts()[2]["starts"]


def test_a_model_is_read_once(runtime):
    assert runtime.catalog.bundle("tiny") is runtime.catalog.bundle("tiny")


def test_the_same_name_twice_gets_a_number(tiny_models, tmp_path):
    catalog = Catalog([tiny_models[0], tiny_models[0]], bundled=tmp_path, device="cpu")
    assert list(catalog.attributes()) == ["tiny", "tiny-2"]


def test_a_rival_has_the_same_size(tiny_models, tmp_path):
    """Two models stand side by side from the same noise, so their images must have the same shape."""
    copytree(tiny_models[1], tmp_path / "large")
    config = tmp_path / "large" / "config.json"
    config.write_text(config.read_text().replace('"image_size": 32', '"image_size": 64'))
    catalog = Catalog([tiny_models[0], str(tmp_path / "large")], bundled=tmp_path / "none", device="cpu")
    assert catalog.rival("tiny") is None


def test_avatars_come_first(tiny_bundle, tmp_path):
    for name in ("aardvark", "avatars", "zebra"):
        tiny_bundle.write(tmp_path / name)
        config = tmp_path / name / "config.json"
        config.write_text(config.read_text().replace('"name": "tiny"', f'"name": "{name}"'))
    assert list(Catalog(bundled=tmp_path, device="cpu").attributes()) == ["avatars", "aardvark", "zebra"]


def test_a_bundled_model_that_is_named_comes_first_and_once(tiny_bundle, tmp_path):
    for name in ("avatars", "celeba"):
        tiny_bundle.write(tmp_path / name)
        config = tmp_path / name / "config.json"
        config.write_text(config.read_text().replace('"name": "tiny"', f'"name": "{name}"'))
    assert list(Catalog(["celeba"], bundled=tmp_path, device="cpu").attributes()) == ["celeba", "avatars"]
    with pytest.raises(ValueError, match="no-such-model is not a model directory"):
        Catalog(["no-such-model"], bundled=tmp_path, device="cpu")


def test_without_a_model_the_sentence_says_what_to_do(tmp_path):
    with pytest.raises(ValueError, match="add one with --model DIRECTORY"):
        Catalog(bundled=tmp_path)


def test_a_directory_shows_its_name_and_not_its_path(runtime):
    assert runtime.catalog.source("tiny") == "tiny"


def test_every_avatar_attribute_has_a_group_and_unknown_ones_have_another():
    titles = [group["title"] for group in grouped(NAMES)]
    assert titles == list(GROUPS)[:5]
    assert sum(len(group["names"]) for group in grouped(NAMES)) == len(NAMES)
    mixed = grouped(["Smiling", "Heel_Height"])
    assert [group["title"] for group in mixed] == ["Expression", "Other"]
    assert grouped(["Striped"])[0]["title"] == "Attributes"
    assert caption("Mouth_Slightly_Open") == "Mouth slightly open"


def test_a_condition_in_a_persons_words():
    condition = Condition.from_lists(NAMES, ["Smiling", "Wearing_Hat"], ["Eyeglasses"])
    assert sentence(condition) == "smiling, wearing a hat; no glasses"
    assert sentence(Condition.from_lists(("Knobbly",), [], ["Knobbly"])) == "no knobbly"
    assert sentence(Condition.free(NAMES)) == "anything"


def test_presets_ask_only_for_what_the_model_has():
    for preset in presets_for(NAMES):
        assert set(preset["values"]["with"]) <= set(NAMES)
    assert presets_for(["Boots", "Brown"])[0] == {"label": "Brown boots", "values": {"with": ["Brown", "Boots"]}}
    assert presets_for(["Red", "Blue"])[0] == {"label": "Red", "values": {"with": ["Red"]}}


def test_the_badge_counts_exactly(runtime):
    bundle = runtime.catalog.bundle("tiny")
    red = Condition.from_lists(bundle.names, ["Red"])
    rows, counts, total = bundle.support.rows, bundle.support.counts, bundle.support.total
    expected = int(counts[rows[:, 0] == 1].sum())
    assert badge(bundle, red)["sentence"] == f"{expected} of {total} training images have this combination."
    novel = badge(bundle, Condition.from_lists(bundle.names, ["Red", "Striped"]))
    assert novel["novel"]
    assert novel["sentence"] == f"0 of {total} training images have this combination."
    free = badge(bundle, Condition.free(bundle.names))
    assert (free["novel"], free["sentence"]) == (False, "No attributes chosen; anything goes.")


def test_a_surprise_was_never_seen_but_its_parts_were(runtime):
    bundle = runtime.catalog.bundle("tiny")
    for seed in range(20):
        condition = surprise(bundle, random.Random(seed))
        assert bundle.support.count(condition) == 0
        assert {"Red", "Striped"} <= set(condition.required)
        for name in condition.required:
            assert bundle.support.count(Condition.from_lists(bundle.names, [name])) > 0


def test_without_held_out_pairs_a_surprise_is_rare(runtime):
    bundle = runtime.catalog.bundle("tiny")
    bundle = replace(bundle, config={**bundle.config, "data": {}})
    condition = surprise(bundle, random.Random(0))
    assert len(condition.required) == 3
    assert bundle.support.count(condition) < 0.1 * bundle.support.total
