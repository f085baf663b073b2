"""UT Zappos50K as a folder of small pictures and one table: categories, subcategories and measured colours.

The table comes from the data set's folder names (category and subcategory); colours are measured from the pixels
inside the silhouette and are not part of the data set. `utzappos` reads the layout that its authors publish.
"""

from __future__ import annotations

from pathlib import Path

from . import folder
from .source import Source, held_out_split

LEAST_POSITIVE = 0.02
CREDIT = (
    "UT Zappos50K (Yu and Grauman, CVPR 2014 and ICCV 2017); colours were measured from the pixels and are not part "
    "of the data set"
)
LICENCE = "UT Zappos50K: academic, non-commercial use only; its images may not be redistributed"
# At most one of each group can be true of one shoe.
GROUPS = (
    ("Boots", "Sandals", "Slippers", "Sneakers", "Oxfords", "Loafers", "Clogs_and_Mules"),
    ("Sneakers", "Heels", "Flats", "Oxfords", "Loafers", "Clogs_and_Mules", "Boots"),
    # Only boots have a height.
    *(
        (kind, "Ankle_Boots", "Mid_Calf", "Knee_High")
        for kind in ("Sandals", "Slippers", "Sneakers", "Heels", "Flats", "Oxfords", "Loafers", "Clogs_and_Mules")
    ),
)
# A shoe may have two colours, but whoever asks for red after brown wants red instead.
ALTERNATIVES = (("Black", "White", "Gray", "Brown", "Beige", "Red", "Pink", "Blue", "Green"),)


def source(root: str | Path, size: int, *, least: float = LEAST_POSITIVE, seed: int = 0, workers: int = 2) -> Source:
    """The pictures of `root`/images and the labels of `root`/labels.csv; 5,000 at random for val and test."""
    columns = folder.Columns(least=least)
    rows = folder.source(root, size, columns=columns, crop="stretch", seed=seed, workers=workers)
    return Source(
        name="shoes",
        names=rows.names,
        n=rows.n,
        image_size=size,
        rows=rows.rows,
        split=held_out_split(rows.n, seed),
        options={"least_positive": least, "seed": seed},
        notes=rows.notes,
        title="Shoes (UT Zappos50K)",
        credit=CREDIT,
        licence=LICENCE,
        weights_licence="academic, non-commercial use only, trained on UT Zappos50K",
        groups=GROUPS,
        alternatives=ALTERNATIVES,
    )
