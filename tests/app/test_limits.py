"""Limits from the environment: numbers, or a sentence."""

import pytest

from app.limits import Limits


def test_a_variable_sets_a_limit(monkeypatch):
    monkeypatch.setenv("GIBBS_JEM_RUN_STEPS", "12")
    assert Limits.from_environment().run_steps == 12
    assert Limits.from_environment().chains == 64


def test_a_gpu_has_room_for_larger_grids_unless_told_otherwise(monkeypatch):
    assert Limits.from_environment("cuda").chains == 256
    monkeypatch.setenv("GIBBS_JEM_CHAINS", "9")
    assert Limits.from_environment("cuda").chains == 9


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", ""])
def test_nonsense_is_refused(monkeypatch, text):
    monkeypatch.setenv("GIBBS_JEM_WAITING", text)
    with pytest.raises(ValueError, match=f"GIBBS_JEM_WAITING is '{text}'"):
        Limits.from_environment()


def test_a_space_stands_behind_a_proxy_and_nothing_else_does(monkeypatch):
    assert Limits.from_environment().behind_proxy == 0
    monkeypatch.setenv("SPACE_ID", "owner/space")
    assert Limits.from_environment().behind_proxy == 1
    monkeypatch.setenv("GIBBS_JEM_BEHIND_PROXY", "0")
    assert Limits.from_environment().behind_proxy == 0
