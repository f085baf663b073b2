"""Conditions: three values for each attribute, said as a person would, refused when they make no sense."""

import math

import numpy as np
import pytest
import torch

from jem_core.condition import Condition

NAMES = ("Eyeglasses", "Male", "Smiling", "Wearing_Hat", "Young")


def test_two_ways_to_the_same_condition() -> None:
    by_dict = Condition.from_dict(NAMES, {"Wearing_Hat": True, "Male": False, "Young": None, "Eyeglasses": 1})
    by_lists = Condition.from_lists(NAMES, required=["Eyeglasses", "Wearing_Hat"], excluded=["Male"])
    assert by_dict == by_lists
    assert by_dict.values == (1, 0, -1, 1, -1)
    assert all(type(value) is int for value in by_dict.values)
    assert by_dict.required == ("Eyeglasses", "Wearing_Hat")
    assert by_dict.excluded == ("Male",)
    assert hash(by_dict) == hash(by_lists)


@pytest.mark.parametrize(
    ("required", "excluded", "said"),
    [
        (["Wearing_Hat", "Eyeglasses"], ["Male"], "Eyeglasses and Wearing Hat, not Male"),
        (["Young"], [], "Young"),
        ([], ["Young", "Male"], "not Male or Young"),
        ([], [], "anything"),
    ],
)
def test_a_condition_is_said_plainly(required: list[str], excluded: list[str], said: str) -> None:
    assert str(Condition.from_lists(NAMES, required, excluded)) == said


def test_a_name_with_and_in_it_is_left_alone() -> None:
    names = ("Black_and_White", "Round")
    assert str(Condition.from_lists(names, excluded=names)) == "not Black and White or Round"


def test_as_a_tensor() -> None:
    condition = Condition.from_lists(NAMES, ["Male"])
    assert condition.tensor().tolist() == [-1, 1, -1, -1, -1]
    many = condition.tensor(3)
    assert many.dtype == torch.int64
    many[0, 0] = 1  # every chain has a row of its own
    assert many.tolist() == [[1, 1, -1, -1, -1], [-1, 1, -1, -1, -1], [-1, 1, -1, -1, -1]]


def test_matching_is_exact_for_every_condition() -> None:
    """All 243 conditions of five attributes against all rows of known and unknown labels, one by one."""
    values = torch.cartesian_prod(*[torch.tensor([-1, 0, 1])] * 5)
    for asked in values.tolist():
        condition = Condition(NAMES, tuple(asked))
        expected = [all(a in (-1, b) for a, b in zip(asked, row, strict=True)) for row in values.tolist()]
        assert condition.matches(values).tolist() == expected
        found = condition.matches(values.numpy().astype(np.int8))
        assert isinstance(found, np.ndarray)
        assert found.tolist() == expected


@pytest.mark.parametrize(
    ("wish", "nearest"),
    [("Eyeglases", "Eyeglasses"), ("male", "Male"), ("Wearing Hat", "Wearing_Hat"), ("smile", "Smiling")],
)
def test_an_unknown_attribute_names_the_nearest(wish: str, nearest: str) -> None:
    for call in (
        lambda: Condition.from_dict(NAMES, {wish: True}),
        lambda: Condition.from_lists(NAMES, [wish]),
        lambda: Condition.from_lists(NAMES, excluded=[wish]),
    ):
        with pytest.raises(ValueError, match=f"no attribute '{wish}'; did you mean .*{nearest}"):
            call()


def test_nothing_near_names_them_all() -> None:
    with pytest.raises(ValueError, match="Eyeglasses, Male, Smiling, Wearing_Hat, Young"):
        Condition.from_lists(NAMES, ["xqzv"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Condition.from_lists(NAMES, ["Male", "Young"], ["Male"]), "Male is both required and excluded"),
        (lambda: Condition.from_dict(NAMES, {"Male": 2}), "Male is asked for as 2"),
        (lambda: Condition.from_dict(NAMES, {"Male": 0.5}), r"Male is asked for as 0\.5"),
        (lambda: Condition.from_dict(NAMES, {"Male": "yes"}), "Male is asked for as 'yes'"),
        (lambda: Condition(NAMES, (1, 0)), "2 values for 5 attributes"),
        (lambda: Condition(NAMES, (0, 0, 0, 0, 3)), "Young is asked for as 3"),
        (lambda: Condition(NAMES, (math.nan,) * 5), "Eyeglasses is asked for as nan"),
        (lambda: Condition.free(NAMES).matches(torch.zeros(3, 4)), r"shape \(3, 4\); expected \(N, 5\)"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
