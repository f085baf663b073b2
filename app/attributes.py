"""How attributes are shown: grouped as a person would look for them, in a person's words."""

from collections.abc import Sequence

from jem_core.condition import plain

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
}
OTHER = "Other"


def caption(name: str) -> str:
    """Wearing_Hat is "Wearing hat"."""
    text = plain(name)
    return text[:1].upper() + text[1:].lower()


def grouped(names: Sequence[str]) -> list[dict]:
    """The groups that these names fill, in order; names nobody has sorted come last under a heading of their own."""
    found = {group: [name for name in known if name in names] for group, known in GROUPS.items()}
    rest = [name for name in names if not any(name in members for members in found.values())]
    filled = {group: members for group, members in found.items() if members}
    if rest:
        filled[OTHER if filled else "Attributes"] = rest
    return [
        {"title": group, "names": [{"name": name, "label": caption(name)} for name in members]}
        for group, members in filled.items()
    ]
