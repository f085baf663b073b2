"""What a model says of its data: read once, with what the first format left unsaid, and refused by name."""

import pytest

from jem_core.data.facts import LONGEST, DataFacts
from jem_core.data.held_out import parse

NAMES = ("Red", "Blue", "Tall", "Short")


def read(**data: object) -> DataFacts:
    return DataFacts.read({"data": data}, NAMES)


def test_everything_is_read() -> None:
    facts = read(
        source="folder",
        title="Towers",
        credit="Mine.",
        licence="CC0",
        held_out=["Red + -Tall"],
        groups=[["Red", "Blue", "Green"], ["Tall", "Short"]],
        faces=True,
        drawn=True,
        flips=True,
        train_images=7,
    )
    assert (facts.source, facts.title, facts.credit, facts.licence) == ("folder", "Towers", "Mine.", "CC0")
    assert facts.held_out == (parse("Red + -Tall"),)
    assert facts.groups == (("Red", "Blue"), ("Tall", "Short"))  # a name that the model does not know is left out
    assert (facts.faces, facts.drawn, facts.flips, facts.train_images) == (True, True, True, 7)


def test_nothing_said_is_nothing_assumed() -> None:
    for config in ({}, {"data": {}}):
        facts = DataFacts.read(config, NAMES)
        assert (facts.source, facts.title, facts.held_out, facts.groups) == ("pictures", "pictures", (), ())
        assert (facts.faces, facts.drawn, facts.flips, facts.train_images) == (False, False, False, None)


@pytest.mark.parametrize(
    ("source", "title", "faces", "drawn", "flips"),
    [
        ("avatars", "Avatars", False, True, False),
        ("celeba", "CelebA", True, False, True),
        ("utzappos", "UT Zappos50K", False, False, False),
        ("mine", "mine", False, False, False),
    ],
)
def test_what_the_first_format_left_unsaid(source: str, title: str, faces: bool, drawn: bool, flips: bool) -> None:
    facts = read(source=source)
    assert (facts.title, facts.faces, facts.drawn, facts.flips) == (title, faces, drawn, flips)
    assert not read(source="celeba", faces=False).faces  # what is said counts


def test_rivals_cannot_be_true_together() -> None:
    facts = read(groups=[["Red", "Blue"], ["Red", "Tall", "Blue"]])
    assert facts.rivals("Red") == ("Blue", "Tall")
    assert facts.rivals("Tall") == ("Red", "Blue")
    assert facts.rivals("Short") == ()


def test_an_attribute_takes_the_place_of_its_rivals_and_of_its_alternatives() -> None:
    facts = read(groups=[["Red", "Blue"]], alternatives=[["Red", "Tall", "Short"]])
    assert facts.instead_of("Red") == ("Blue", "Tall", "Short")
    assert facts.instead_of("Blue") == ("Red",)
    assert facts.rivals("Tall") == ()  # both may be true of one picture
    with pytest.raises(ValueError, match="alternatives"):
        read(alternatives=["Red"])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"source": 3}, "source of the data is not a text"),
        ({"title": "x" * (LONGEST + 1)}, f"title of the data is not a text of at most {LONGEST} letters"),
        ({"held_out": "Red + Tall"}, "held_out is not a list"),
        ({"held_out": [3]}, "held_out holds '3'; expected pairs such as"),
        ({"held_out": ["Red + Green"]}, "held-out pair 'Red . Green' names 'Green', which the model does not know"),
        ({"groups": {"a": 1}}, "groups is not a list"),
        ({"groups": [["Red"]] * (LONGEST + 1)}, f"groups is not a list of at most {LONGEST} entries"),
        ({"groups": ["Red"]}, "groups are not lists of attribute names"),
        ({"groups": [[1, 2]]}, "groups are not lists of attribute names"),
        ({"train_images": -1}, "train_images is -1; expected a whole number"),
        ({"train_images": "many"}, "train_images is 'many'"),
    ],
)
def test_what_a_screen_would_stumble_over_is_refused(data: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(**data)


def test_data_that_are_not_facts_are_refused() -> None:
    with pytest.raises(ValueError, match="data is a list; expected names with values"):
        DataFacts.read({"data": ["celeba"]}, NAMES)
