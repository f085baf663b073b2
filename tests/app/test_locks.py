"""Locked pictures stay as they are: under another condition, and when all others begin anew."""

import pytest
import torch
from runs import LEVELS, PAPER, pictures, run


def test_locked_pictures_stay_while_the_others_change(runtime):
    before = run(LEVELS)[1]
    kept = pictures(before, runtime).clone()
    frames, after = run(LEVELS.but(required=("Left",), locked=(1, 3)), before)
    now = pictures(after, runtime)
    assert torch.equal(now[[1, 3]], kept[[1, 3]])
    assert not torch.equal(now[[0, 2]], kept[[0, 2]])
    assert "locked" in frames[-1]["why"]
    free = run(LEVELS.but(required=("Bright",)), after)[1]
    assert not torch.equal(pictures(free, runtime)[1], kept[1])


@pytest.mark.parametrize("settings", [PAPER, LEVELS], ids=["paper", "levels"])
def test_locked_pictures_stay_when_the_others_begin_anew(runtime, settings):
    before = run(settings)[1]
    kept = pictures(before, runtime).clone()
    settings = settings.but(seed=9, locked=(1, 3))
    frames, after = run(settings, before, fresh=2)
    now = pictures(after, runtime)
    assert torch.allclose(now[[1, 3]], kept[[1, 3]], atol=1e-6)
    assert not torch.isclose(now[[0, 2]], kept[[0, 2]], atol=1e-2).all(dim=(1, 2, 3)).any()
    assert frames[-1]["status"] == "settled"
    assert "locked" in frames[-1]["why"]
    fresh = pictures(run(settings.but(locked=()), fresh=2)[1], runtime)
    assert torch.allclose(now[[0, 2]], fresh[[0, 2]], atol=1e-4), "the others are those of the new seed"
    assert torch.equal(pictures(run(settings.but(required=("Left",)), after, fresh=2)[1], runtime)[1], now[1])


@pytest.mark.parametrize("before", [None, LEVELS.but(compare="samplers"), PAPER])
def test_where_nothing_is_left_to_keep_a_lock_holds_no_noise(runtime, before):
    """The server forgets the pictures of a visitor who is away; what begins then comes down to pictures everywhere."""
    settings = LEVELS.but(locked=(1,))
    chains = run(settings, run(before)[1] if before else None, fresh=2)[1]
    fresh = run(LEVELS, fresh=2)[1]
    assert torch.equal(pictures(chains, runtime), pictures(fresh, runtime))
    assert chains.walk.why == ""
    free = run(LEVELS, chains, fresh=2)[1]
    again = run(settings.but(required=("Left",)), free, fresh=2)[1]
    assert torch.equal(pictures(again, runtime)[1], pictures(fresh, runtime)[1]), "locked again, it stays"
