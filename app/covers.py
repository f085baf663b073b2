"""Draw the pictures that stand for the models and for the page: python -m app.covers [--model DIRECTORY].

One picture for each kind of data (assets/covers), and the picture that a shared link shows (assets/preview.jpg). To be
run when the bundled models change.
"""

from __future__ import annotations

import argparse

from PIL import Image, ImageDraw, ImageFont

from app.catalog import Catalog
from app.film import row
from app.static import ASSETS, DESCRIPTION, PREVIEW, TITLE
from jem_core.chains import sample
from jem_core.condition import Condition

SIDE = 128  # pixels of a cover
KEEP_BEST = 6
PAPER, INK, MUTED = "#f7f5f0", "#23262d", "#5b5f68"
WIDE, HIGH, TILE, GAP = 1200, 630, 132, 12


def pictures(catalog: Catalog, name: str, n: int) -> list[Image.Image]:
    """What a model opens on: its first preset."""
    bundle = catalog.bundle(name)
    facts = next(one for one in catalog.facts() if one["name"] == name)
    asked = facts["presets"][0]["values"] if facts["presets"] else {}
    condition = Condition.from_lists(bundle.names, asked.get("with", ()), asked.get("without", ()))
    found = sample(bundle, condition, n, seed=1, keep_best=KEEP_BEST)
    return [Image.fromarray(row(image[None])) for image in found.images]


def draw_covers(catalog: Catalog) -> list[str]:
    (ASSETS / "covers").mkdir(exist_ok=True)
    drawn = []
    for facts in catalog.facts():
        if facts["family"][0] != facts["name"]:
            continue
        source = catalog.entry(facts["name"]).data.source
        cover = pictures(catalog, facts["name"], 1)[0].resize((SIDE, SIDE), Image.Resampling.BICUBIC)
        cover.save(ASSETS / "covers" / f"{source}.webp", quality=90)
        drawn.append(source)
    return drawn


def draw_preview(catalog: Catalog) -> None:
    """The name and one sentence beside a grid of faces, in the shape that link previews have."""
    sheet = Image.new("RGB", (WIDE, HIGH), PAPER)
    draw = ImageDraw.Draw(sheet)
    across, down = 4, 4
    left, top = WIDE - across * (TILE + GAP) - 28, (HIGH - down * (TILE + GAP) + GAP) // 2
    for i, picture in enumerate(pictures(catalog, next(iter(catalog.attributes())), across * down)):
        place = left + (i % across) * (TILE + GAP), top + (i // across) * (TILE + GAP)
        mask = Image.new("L", (TILE, TILE), 0)
        ImageDraw.Draw(mask).rounded_rectangle((0, 0, TILE - 1, TILE - 1), 14, fill=255)
        sheet.paste(picture.resize((TILE, TILE), Image.Resampling.BICUBIC), place, mask)
    draw.text((56, 190), TITLE, fill=INK, font=ImageFont.load_default(size=54))
    small, line, y = ImageFont.load_default(size=27), "", 280
    for word in [*DESCRIPTION.split(), ""]:
        if not word or small.getlength(f"{line} {word}") > left - 110:
            draw.text((56, y), line, fill=MUTED, font=small)
            line, y = word, y + 40
        else:
            line = f"{line} {word}".strip()
    sheet.save(ASSETS / PREVIEW, quality=88)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m app.covers", description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", default=[], metavar="DIRECTORY")
    catalog = Catalog(parser.parse_args().model, device="cpu")
    draw_preview(catalog)
    print(f"Drawn: {PREVIEW} and covers of {', '.join(draw_covers(catalog))}.")


if __name__ == "__main__":
    main()
