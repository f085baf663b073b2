"""Combinations worth a click, as values of the table of settings. The page opens on the first that the model knows."""

from collections.abc import Sequence

from app.attributes import caption

PRESETS: tuple[tuple[str, dict], ...] = (
    ("Smiling, with glasses", {"with": ["Smiling", "Eyeglasses"]}),
    ("Hat and sunglasses", {"with": ["Wearing_Hat", "Sunglasses"]}),
    ("Long-haired man", {"with": ["Male", "Long_Hair"]}),
    ("Blond beard", {"with": ["Beard", "Blond_Hair"]}),
    ("Bald, no beard", {"with": ["Bald"], "without": ["Beard"]}),
    ("Blond, wavy hair", {"with": ["Blond_Hair", "Wavy_Hair"]}),
    ("Smiling, not male", {"with": ["Smiling"], "without": ["Male"]}),
    ("Smiling, with bangs", {"with": ["Smiling", "Bangs"]}),
    ("Blond man", {"with": ["Male", "Blond_Hair"]}),
    ("Man with a beard", {"with": ["Male"], "without": ["No_Beard"]}),
    ("Brown boots", {"with": ["Brown", "Boots"]}),
    ("Red heels", {"with": ["Red", "Heels"]}),
    ("Red boots", {"with": ["Red", "Boots"]}),
    ("Blue sneakers", {"with": ["Blue", "Sneakers"]}),
    ("Black sandals", {"with": ["Black", "Sandals"]}),
)
MOST = 5


def presets_for(names: Sequence[str]) -> list[dict]:
    """The presets whose attributes this model has; for a model of other things, its first attributes one by one."""
    known = [
        {"label": label, "values": values}
        for label, values in PRESETS
        if set(values.get("with", [])) | set(values.get("without", [])) <= set(names)
    ]
    return known[:MOST] or [{"label": caption(name), "values": {"with": [name]}} for name in names[:MOST]]
