"""The way that chains have come, as text and back."""

import pytest

from app.walk import LOCKED, MOST_CHANGES, OPPOSED, TOO_MANY_WORDS, Leg, Walk, changes, parse, write
from jem_core.condition import Condition
from jem_core.data.facts import DataFacts


def asked(bundle, required=(), excluded=()):
    return Condition.from_lists(bundle.names, required, excluded)


def test_a_walk_is_written_as_what_changes(tiny_bundle):
    legs = [
        Leg(asked(tiny_bundle, ["Red", "Left"])),
        Leg(asked(tiny_bundle, ["Left"], ["Red"]), 7),
        Leg(asked(tiny_bundle)),
    ]
    assert write(legs) == "Red+Left;-Red@7;~Red~Left"
    assert parse(write(legs), tiny_bundle) == legs


def test_every_pair_of_conditions_can_be_told(tiny_bundle):
    choices = [asked(tiny_bundle, *lists) for lists in ((), (["Red"],), ([], ["Red"]), (["Left"], ["Red", "Dotted"]))]
    for before in choices:
        for after in choices:
            again = parse(f"{changes(Condition.free(before.names), before)};{changes(before, after)}", tiny_bundle)
            assert again[-1].condition == after


def test_one_condition_with_all_its_steps_needs_no_words(tiny_bundle):
    walk = Walk()
    walk.turn(asked(tiny_bundle, ["Red"]))
    walk.step(arrived=False)
    assert walk.text(tiny_bundle) == "Red@1"
    walk.step(arrived=True)
    assert walk.text(tiny_bundle) == ""


def test_what_cannot_be_taken_again_is_not_told(tiny_bundle):
    walk = Walk()
    walk.turn(asked(tiny_bundle, ["Red"]))
    walk.turn(asked(tiny_bundle, ["Left"]))
    assert walk.text(tiny_bundle) == "Red@0;~Red+Left@0"
    walk.break_off(LOCKED)
    walk.break_off("another reason")
    assert (walk.text(tiny_bundle), walk.why) == ("", LOCKED)


def test_a_walk_has_an_end(tiny_bundle):
    walk = Walk()
    for i in range(MOST_CHANGES + 1):
        walk.turn(asked(tiny_bundle, ["Red"] if i % 2 else ["Left"]))
    assert walk.why == f"there were more than {MOST_CHANGES} changes"


def test_a_walk_that_a_link_cannot_tell_says_why(tiny_bundle, monkeypatch):
    monkeypatch.setattr(DataFacts, "instead_of", lambda self, name: ("Left",) if name == "Red" else ())
    walk = Walk()
    walk.turn(asked(tiny_bundle, ["Red"]))
    walk.turn(asked(tiny_bundle, ["Red", "Left", "Dotted"]))
    assert walk.text(tiny_bundle) != ""
    walk.turn(asked(tiny_bundle, ["Left"]))
    walk.turn(asked(tiny_bundle, ["Red", "Left"]))  # as an address may ask: requiring Red would free Left
    assert (walk.text(tiny_bundle), walk.why) == ("", OPPOSED)
    long = Walk()
    for i in range(2):
        long.turn(asked(tiny_bundle, ["Red"] if i else ["Left"]))
    monkeypatch.setattr("app.walk.LONGEST_WALK", 5)
    assert (long.text(tiny_bundle), long.why) == ("", TOO_MANY_WORDS)


@pytest.mark.parametrize("text", ["Nobody", "Red@", "Red@-1", "Red@1e3", "Red@99999", ";" * 100, "@", "Red@٣"])
def test_words_without_sense_are_refused(tiny_bundle, text):
    with pytest.raises(ValueError, match=r"\w"):
        parse(text, tiny_bundle)
