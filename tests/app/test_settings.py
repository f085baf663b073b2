"""The table of settings: what it takes, what it refuses, and that nothing strays from it."""

import re
from dataclasses import fields

import pytest

from app.presets import PRESETS
from app.settings import BY_KEY, SAMPLING_KEYS, TABLE, Settings, read
from jem_core import settings as core

MODELS = {"avatars": ("Male", "Smiling"), "other": ("Red",)}


def test_the_table_and_the_state_name_the_same_settings():
    renamed = {"with": "required", "without": "excluded"}
    own = [renamed.get(row.key, row.key) for row in TABLE if row.key not in SAMPLING_KEYS]
    assert [*own, "own"] == [field.name for field in fields(Settings)]


def test_the_sampling_settings_are_those_of_the_core():
    """One table: a setting that the core gains is a field of the page, with a label and a help of its own."""
    assert [row.key for row in TABLE if row.key in core.BY_KEY] == [row.key for row in core.TABLE]
    for row in TABLE:
        assert row.label, row.key
        if row.key in core.BY_KEY:
            assert row.help, row.key
            assert (row.high, row.only) == (core.BY_KEY[row.key].high, core.BY_KEY[row.key].only)


def test_defaults_are_those_of_the_table():
    settings = read({}, MODELS)
    assert settings == Settings(model="avatars")
    for row in TABLE:
        if row.key not in ("model", "with", "without", *SAMPLING_KEYS):
            assert getattr(settings, row.key) == row.default, row.key


def test_values_survive_the_way_to_the_mailbox_and_back():
    values = {"with": ["Smiling"], "without": ["Male"], "chains": 9, "guidance": 2, "start": "uniform", "lift": 1.5}
    values |= {"strengths": {"Smiling": 2.5}, "locked": [3, 1], "walk": "Smiling;-Male", "moving": 1, "view": "chain"}
    settings = read(values, MODELS)
    assert settings.locked == (1, 3)
    assert read(settings.values(), MODELS) == settings


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"chains": 0}, "Pictures is 0; expected a whole number from 1 to 256."),
        ({"chains": 2.5}, "Pictures is 2.5; expected a whole number"),
        ({"chains": True}, "Pictures is True"),
        ({"chains": "16"}, "Pictures is '16'"),
        ({"chains": [1]}, "Pictures is list"),
        ({"noise_std": float("nan")}, "Noise is nan; expected a number from 0 to 1."),
        ({"noise_std": float("inf")}, "Noise is inf"),
        ({"guidance": -1}, "Guidance is -1"),
        ({"guidance": 10**400}, "Guidance is 1000"),
        ({"seed": 2**40}, "Seed is"),
        ({"sampler": "dice"}, "Sampler is 'dice'; choose one of resampling, marginalizing"),
        ({"model": "../../etc/passwd"}, "choose one of avatars, other."),
        ({"with": "Male"}, "Required is 'Male'; expected a list of attribute names."),
        ({"with": [1]}, "Required is list"),
        ({"with": ["x" * 10_000]}, "Required is too long"),
        ({"strengths": ["Male"]}, "Strengths is list; expected attribute names with numbers."),
        ({"strengths": {"Male": 99}}, "The strength of Male is 99; expected a number from 0 to 5."),
        ({"strengths": {"Male": float("nan")}}, "The strength of Male is nan"),
        ({"locked": [-1]}, "Locked pictures is list; expected a list of places"),
        ({"locked": [True]}, "Locked pictures is list"),
        ({"locked": [16]}, "There is no picture 17 to lock; there are 16."),
        ({"walk": 3}, "Changes so far is 3; expected a text"),
        ({"walk": "x" * 10_000}, "Changes so far is"),
        ({"view": "both"}, "Show is 'both'; choose one of heading, chain."),
        ({"colour": 1}, "There is no setting 'colour'"),
        ({"x" * 10_000: 1}, "There is no setting"),
        ([], "The settings are a list"),
    ],
)
def test_bad_values_are_refused_with_a_short_sentence(values, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)) as caught:
        read(values, MODELS)
    assert len(str(caught.value)) < 500  # one names all settings


def test_a_server_may_allow_fewer_chains():
    with pytest.raises(ValueError, match="shows at most 8"):
        read({"chains": 9}, MODELS, most_chains=8)


def test_only_some_settings_begin_new_chains():
    settings = read({}, MODELS)
    steers = {"with": ["Male"], "guidance": 3.0, "sampler": "resampling", "lift": 2.0, "moving": 1, "locked": [1]}
    assert settings.start_key() == read(steers, MODELS).start_key()
    for change in ({"seed": 1}, {"chains": 4}, {"start": "uniform"}, {"compare": "samplers"}, {"variety": 0.5}):
        assert settings.start_key() != read(change, MODELS).start_key()


def test_a_model_gets_only_the_settings_that_it_has(tiny_bundle, tiny_levels):
    values = {"grad_clamp": 0.0, "lift": 2.0, "start": "uniform", "strengths": {"Red": 2.0, "Nobody": 3.0}}
    settings = read(values, {"tiny": tiny_bundle.names})
    paper, levels = settings.sampling(tiny_bundle), settings.sampling(tiny_levels)
    assert {key: paper[key] for key in ("grad_clamp", "start")} == {"grad_clamp": None, "start": "uniform"}
    assert "lift" not in paper
    assert levels["lift"] == 2.0
    assert not {"grad_clamp", "start"} & set(levels)
    assert levels["strengths"].tolist() == [2.0, 1.0, 1.0, 1.0, 1.0, 1.0]


def test_presets_are_values_of_the_table():
    for label, values in PRESETS:
        assert label
        assert set(values) <= set(BY_KEY)
        read(values, MODELS)
