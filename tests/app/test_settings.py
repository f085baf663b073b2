"""The table of settings: what it takes, what it refuses, and that nothing strays from it."""

import re
from dataclasses import fields

import pytest

from app.presets import PRESETS
from app.settings import BY_KEY, TABLE, Settings, read

MODELS = {"avatars": ("Male", "Smiling"), "other": ("Red",)}


def test_the_table_and_the_state_name_the_same_settings():
    renamed = {"with": "wanted", "without": "unwanted"}
    assert [renamed.get(row.key, row.key) for row in TABLE] == [field.name for field in fields(Settings)]


def test_defaults_are_those_of_the_table():
    settings = read({}, MODELS)
    assert settings == Settings(model="avatars")
    for row in TABLE:
        if row.key not in ("model", "with", "without"):
            assert getattr(settings, row.key) == row.default, row.key


def test_values_survive_the_way_to_the_mailbox_and_back():
    settings = read({"with": ["Smiling"], "without": ["Male"], "chains": 9, "guidance": 2, "start": "uniform"}, MODELS)
    assert read(settings.values(), MODELS) == settings


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"chains": 0}, "Chains is 0; expected a whole number from 1 to 256."),
        ({"chains": 2.5}, "Chains is 2.5; expected a whole number"),
        ({"chains": True}, "Chains is True"),
        ({"chains": "16"}, "Chains is '16'"),
        ({"chains": [1]}, "Chains is list"),
        ({"noise_std": float("nan")}, "Noise is nan; expected a number from 0 to 1."),
        ({"noise_std": float("inf")}, "Noise is inf"),
        ({"guidance": -1}, "Guidance is -1"),
        ({"guidance": 10**400}, "Guidance is 1000"),
        ({"seed": 2**40}, "Seed is"),
        ({"sampler": "dice"}, "Sampler is 'dice'; choose one of resampling, marginalizing."),
        ({"model": "../../etc/passwd"}, "choose one of avatars, other."),
        ({"with": "Male"}, "With is 'Male'; expected a list of attribute names."),
        ({"with": [1]}, "With is list"),
        ({"with": ["x" * 10_000]}, "With is too long"),
        ({"colour": 1}, "There is no setting 'colour'"),
        ({"x" * 10_000: 1}, "There is no setting"),
        ([], "The settings are a list"),
    ],
)
def test_bad_values_are_refused_with_a_short_sentence(values, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)) as caught:
        read(values, MODELS)
    assert len(str(caught.value)) < 400


def test_a_server_may_allow_fewer_chains():
    with pytest.raises(ValueError, match="allows at most 8"):
        read({"chains": 9}, MODELS, most_chains=8)


def test_only_some_settings_begin_new_chains():
    settings = Settings(model="avatars")
    assert settings.start_key() == settings.but(wanted=("Male",), guidance=3.0, sampler="resampling").start_key()
    assert settings.start_key() != settings.but(variety=0.5).start_key()
    for change in ({"seed": 1}, {"chains": 4}, {"start": "uniform"}, {"compare": "samplers"}, {"model": "other"}):
        assert settings.start_key() != settings.but(**change).start_key()


def test_zero_switches_the_gradient_bound_off():
    assert Settings(model="avatars", grad_clamp=0.0).langevin() == {"grad_clamp": None}
    assert Settings(model="avatars").langevin() == {}


def test_presets_are_values_of_the_table():
    for label, values in PRESETS:
        assert label
        assert set(values) <= set(BY_KEY)
        read(values, MODELS)
