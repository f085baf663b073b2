"""The one table of sampling settings: every row is usable, and what does not fit is refused by name."""

import math

import pytest

from jem_core.samplers import SAMPLERS
from jem_core.settings import BY_KEY, STARTS, TABLE, Setting, check_settings, defaults, kind_of, parse_setting


@pytest.fixture(params=[True, False], ids=["levels", "chains"])
def levels(request: pytest.FixtureRequest) -> bool:
    return request.param


def test_every_default_is_within_its_own_bounds(levels: bool) -> None:
    own = defaults(levels)
    assert check_settings(own, levels) == own
    assert set(own) == {setting.key for setting in TABLE if setting.applies(kind_of(levels))}


def test_every_row_can_be_shown() -> None:
    assert len(BY_KEY) == len(TABLE)
    for setting in TABLE:
        assert setting.meaning
        assert setting.kind in ("choice", "whole", "number")
        assert bool(setting.choices) == (setting.kind == "choice")
        assert setting.kind == "choice" or setting.low < setting.high
    assert set(BY_KEY["sampler"].choices) == set(SAMPLERS)
    assert set(BY_KEY["start"].choices) == set(STARTS)


@pytest.mark.parametrize("setting", TABLE, ids=[setting.key for setting in TABLE])
def test_bounds_are_kept_and_named(setting: Setting) -> None:
    levels = setting.applies(kind_of(True))
    if setting.kind == "choice":
        bad = ["neither", None, 3]
    else:
        assert check_settings({setting.key: setting.low}, levels)[setting.key] == setting.low
        assert check_settings({setting.key: setting.high}, levels)[setting.key] == setting.high
        bad = [setting.low - 1, setting.high + 1, math.nan, math.inf, -math.inf, "2", True, [1]]
        bad += [setting.low + 0.5] if setting.kind == "whole" else []
        bad += [] if setting.optional else [None]
    for value in bad:
        with pytest.raises(ValueError, match=rf"^{setting.key} is .*(expected a|choose one of) "):
            check_settings({setting.key: value}, levels)


def test_whole_numbers_may_come_as_floats() -> None:
    """As JSON and sliders give them."""
    found = check_settings({"steps": 30.0}, True)
    assert found == {"steps": 30}
    assert type(found["steps"]) is int


def test_an_optional_setting_can_be_switched_off() -> None:
    assert check_settings({"grad_clamp": None}, False) == {"grad_clamp": None}
    assert parse_setting("grad_clamp", "None") is None
    assert parse_setting("grad_clamp", "0.5") == 0.5


@pytest.mark.parametrize(
    ("changes", "levels", "message"),
    [
        ({"eps": 1}, True, "no sampling setting 'eps'; choose one of sampler, start, steps"),
        ({"grad_coef": 1.0}, True, "grad_coef means nothing to a model with noise levels; its settings are sampler"),
        ({"lift": 1.0}, False, "lift means nothing to a model with no noise levels; its settings are sampler"),
        (
            {"start": "uniform"},
            True,
            "start is 'uniform', which a model with noise levels does not have; choose one of",
        ),
        ({"start": "noise"}, False, "start is 'noise', which a model with no noise levels does not have"),
    ],
)
def test_what_a_model_does_not_have_is_refused(changes: dict, levels: bool, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_settings(changes, levels)


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("steps", "many", "steps is 'many'; expected a whole number"),
        ("steps", "2.5", "steps is '2.5'; expected a whole number"),
        ("guidance", "none", "guidance is 'none'; expected a number"),
        ("grad_clamp", "some", "grad_clamp is 'some'; expected a number or none"),
    ],
)
def test_words_that_are_not_values(key: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_setting(key, text)


def test_words_that_are() -> None:
    assert parse_setting("steps", "30") == 30
    assert parse_setting("guidance", "2.5") == 2.5
    assert parse_setting("sampler", "resampling") == "resampling"
