"""Held-out combinations: how they are written, and which rows they take."""

import numpy as np
import pytest

from jem_core.data.held_out import NAMED_LISTS, Pair, mask, parse, parse_list


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("Male + Bangs", Pair("Male", True, "Bangs", True)),
        ("-No_Beard + Bangs", Pair("No_Beard", False, "Bangs", True)),
        ("Bangs+- Young", Pair("Bangs", True, "Young", False)),
        ("5_o_Clock_Shadow + -Pull-on", Pair("5_o_Clock_Shadow", True, "Pull-on", False)),
    ],
)
def test_pairs_are_read_with_signs(text: str, pair: Pair) -> None:
    assert parse(text) == pair
    assert parse(str(pair)) == pair


@pytest.mark.parametrize("text", ["Male", "Male +", "+ Male", "- + Male", "A + B + C", "Male + Male", ""])
def test_what_is_no_pair_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=repr(text)[:3]):
        parse(text)


def test_lists_and_pairs_can_be_mixed() -> None:
    pairs = parse_list(["avatars-novel", "Male + Smiling, -Male + Bald", "Male + Smiling"])
    assert pairs == (*NAMED_LISTS["avatars-novel"], parse("Male + Smiling"), parse("-Male + Bald"))
    with pytest.raises(ValueError, match=r"no list 'celeba'.*celeba-novel"):
        parse_list(["celeba"])


def test_the_papers_eleven_pairs() -> None:
    pairs = NAMED_LISTS["celeba-novel"]
    assert len(set(pairs)) == 11
    assert sum("Bangs" in pair for pair in pairs) == 6
    old = [pair for pair in pairs if "Young" in pair]
    assert len(old) == 4
    assert all(pair.as_dict()["Young"] is False for pair in old)
    beard = [pair.as_dict() for pair in pairs if "No_Beard" in pair]
    assert beard == [{"No_Beard": False, "Bangs": True}, {"No_Beard": False, "Brown_Hair": True}]


def test_the_mask_takes_any_pair_and_no_unknown_label() -> None:
    names = ("A", "B", "C")
    labels = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1], [-1, 1, 1], [1, -1, 0], [0, -1, 1]], np.int8)
    assert mask(labels, names, [parse("A + B")]).tolist() == [True, False, False, False, False, False]
    assert mask(labels, names, [parse("A + -B")]).tolist() == [False, True, False, False, False, False]
    both = mask(labels, names, [parse("A + B"), parse("-A + C")])
    assert both.tolist() == [True, False, True, False, False, True]
    assert not mask(labels, names, []).any()
    with pytest.raises(ValueError, match=r"'Hat'.*A, B, C"):
        mask(labels, names, [parse("A + Hat")])
