"""How attributes are shown: grouped as a person would look for them, in a person's words."""

from collections.abc import Sequence

from jem_core.condition import Condition, plain

GROUPS: dict[str, tuple[str, ...]] = {
    "Hair": (
        *("Black_Hair", "Brown_Hair", "Blond_Hair", "Gray_Hair", "Long_Hair", "Curly_Hair", "Straight_Hair"),
        *("Wavy_Hair", "Bangs", "Bald", "Receding_Hairline"),
    ),
    "Face": (
        *("Male", "Young", "Pale_Skin", "Dark_Skin", "Rosy_Cheeks", "Oval_Face", "High_Cheekbones", "Chubby"),
        *("Double_Chin", "Attractive", "Big_Nose", "Pointy_Nose", "Big_Lips", "Arched_Eyebrows", "Bushy_Eyebrows"),
        *("Bags_Under_Eyes",),
    ),
    "Expression": ("Smiling", "Mouth_Slightly_Open", "Eyes_Closed", "Narrow_Eyes"),
    "Beard": ("Beard", "No_Beard", "Mustache", "Goatee", "Sideburns", "5_o_Clock_Shadow"),
    "Accessories": (
        *("Eyeglasses", "Sunglasses", "Wearing_Hat", "Wearing_Lipstick", "Heavy_Makeup", "Wearing_Earrings"),
        *("Wearing_Necklace", "Wearing_Necktie"),
    ),
    "Kind": (
        *("Boots", "Sandals", "Slippers", "Sneakers", "Heels", "Flats", "Oxfords", "Loafers", "Clogs_and_Mules"),
        *("Shoes", "Athletic"),
    ),
    "Height": ("Ankle", "Ankle_Boots", "Mid_Calf", "Knee_High", "Over_the_Knee"),
    "Colour": (
        "Black",
        "White",
        "Gray",
        "Brown",
        "Beige",
        "Red",
        "Pink",
        "Blue",
        "Green",
        "Yellow",
        "Orange",
        "Purple",
    ),
}
OTHER = "Other"
CAPTIONS = {
    **{"Wearing_Hat": "Hat", "Wearing_Lipstick": "Lipstick", "Wearing_Earrings": "Earrings"},
    **{"Wearing_Necklace": "Necklace", "Wearing_Necktie": "Necktie", "5_o_Clock_Shadow": "5 o'clock shadow"},
    **{"Mid_Calf": "Mid-calf", "Knee_High": "Knee-high"},
}


def caption(name: str) -> str:
    """Mouth_Slightly_Open is "Mouth slightly open"; what is worn is called by its name."""
    text = CAPTIONS.get(name, plain(name))
    return text[:1].upper() + text[1:].lower()


# In a sentence, where the plain name would not do: what is said when it is required, and when it is excluded.
PHRASES = {
    "Smiling": ("smiling", "not smiling"),
    "Male": ("male", "not male"),
    "Young": ("young", "not young"),
    "Bald": ("bald", "not bald"),
    "Attractive": ("attractive", "not attractive"),
    "Chubby": ("chubby", "not chubby"),
    "Eyeglasses": ("wearing glasses", "no glasses"),
    "Sunglasses": ("wearing sunglasses", "no sunglasses"),
    "Wearing_Hat": ("wearing a hat", "no hat"),
    "Wearing_Lipstick": ("wearing lipstick", "no lipstick"),
    "Wearing_Earrings": ("wearing earrings", "no earrings"),
    "Wearing_Necklace": ("wearing a necklace", "no necklace"),
    "Wearing_Necktie": ("wearing a necktie", "no necktie"),
    "Beard": ("a beard", "no beard"),
    "No_Beard": ("no beard", "a beard"),
    "Mustache": ("a mustache", "no mustache"),
    "Goatee": ("a goatee", "no goatee"),
    "Oval_Face": ("an oval face", "no oval face"),
    "Big_Nose": ("a big nose", "no big nose"),
    "Pointy_Nose": ("a pointy nose", "no pointy nose"),
    "Double_Chin": ("a double chin", "no double chin"),
    "Mouth_Slightly_Open": ("mouth slightly open", "mouth closed"),
    "Eyes_Closed": ("eyes closed", "eyes open"),
    **{name: (name.lower(), f"not {name.lower()}") for name in GROUPS["Colour"]},
    **{name: (caption(name).lower(), f"not {caption(name).lower()}") for name in GROUPS["Height"]},
}


def phrases(name: str) -> tuple[str, str]:
    """How a sentence says that an attribute is required, and that it is excluded."""
    return PHRASES.get(name, (caption(name).lower(), f"no {caption(name).lower()}"))


def sentence(condition: Condition) -> str:
    """Smiling, wearing a hat; no glasses."""
    required = ", ".join(phrases(name)[0] for name in condition.required)
    excluded = ", ".join(phrases(name)[1] for name in condition.excluded)
    return "; ".join(part for part in (required, excluded) if part) or "anything"


def grouped(names: Sequence[str]) -> list[dict]:
    """The groups that these names fill, in order; names nobody has sorted come last under a heading of their own."""
    found = {group: [name for name in known if name in names] for group, known in GROUPS.items()}
    rest = [name for name in names if not any(name in members for members in found.values())]
    filled = {group: members for group, members in found.items() if members}
    if rest:
        filled[OTHER if filled else "Attributes"] = rest
    return [{"title": group, "names": [_entry(name) for name in members]} for group, members in filled.items()]


def _entry(name: str) -> dict:
    required, excluded = phrases(name)
    return {"name": name, "label": caption(name), "yes": required, "no": excluded}
