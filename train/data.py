"""Prepare a data set: avatars, celeba, utzappos, shoes, or a folder of your own pictures."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from jem_core.data.dataset import SPLITS, Dataset, check_names, check_place, write_dataset
from jem_core.data.held_out import NAMED_LISTS, Pair, check, mask, parse_list
from jem_core.data.source import Row, Source


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One subcommand per source; what they share is added to each."""
    sources = parser.add_subparsers(dest="source", required=True, metavar="SOURCE")
    avatars = sources.add_parser(
        "avatars", help="faces drawn from attributes, as many as you like; nothing to download"
    )
    avatars.add_argument("-n", "--n", type=int, default=20_000, help="how many (20000)")
    celeba = sources.add_parser("celeba", help="CelebA in its official layout")
    _add_root(celeba, "the folder that holds img_align_celeba", least=0.13)
    celeba.add_argument("--crop", choices=("centre", "squash"), default="centre", help="centre: 148 px; squash: all")
    celeba.add_argument("--split", choices=("official", "random"), default="official", help="random: 5,000 held out")
    utzappos = sources.add_parser("utzappos", help="UT Zappos50K in its published layout")
    _add_root(utzappos, "the folder that holds meta-data.csv and the square pictures", least=0.10)
    utzappos.add_argument(
        "--missing", choices=("drop", "keep"), default="drop", help="rows with missing values: drop, or keep as unknown"
    )
    shoes = sources.add_parser("shoes", help="UT Zappos50K as a folder of small pictures and a table")
    _add_root(shoes, "the folder that holds images and labels.csv", least=0.02)
    folder = sources.add_parser("folder", help="your own pictures, with a CSV: file name, one column per attribute")
    _add_root(folder, "the folder of pictures", least=0.0)
    folder.add_argument("--csv", type=Path, help="the table (the only .csv of the folder)")
    folder.add_argument("--attributes", default="", help="columns to use, separated by commas (all)")
    folder.add_argument(
        "--crop", choices=("centre", "pad", "stretch"), default="centre", help="how to make them square"
    )
    folder.add_argument("--val", type=float, default=0.1, help="share of pictures to select the model by (0.1)")
    folder.add_argument("--test", type=float, default=0.1, help="share of pictures to measure it on (0.1)")
    for source in sources.choices.values():
        _add_common(source)


def _add_root(parser: argparse.ArgumentParser, help_text: str, least: float) -> None:
    parser.add_argument("--root", type=Path, required=True, help=help_text)
    parser.add_argument(
        "--least", type=float, default=least, help=f"least share of positives of an attribute ({least})"
    )


def _add_common(parser: argparse.ArgumentParser) -> None:
    lists = ", ".join(NAMED_LISTS)
    parser.add_argument("--out", type=Path, required=True, help="the directory to write")
    parser.add_argument("--size", type=int, default=64, help="side of the images in pixels (64)")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything random (0)")
    parser.add_argument(
        "--held-out",
        action="append",
        default=[],
        metavar="PAIRS",
        help=f"combinations kept out of training: {lists}, or pairs such as 'Male + -Young', separated by commas",
    )
    parser.add_argument("--workers", type=int, default=2, help="processes that draw or read (2)")
    parser.add_argument("--preview", type=Path, metavar="FILE.png", help="also write a contact sheet with labels")
    parser.add_argument("--overwrite", action="store_true", help="replace an older data set at --out")


def make_source(args: argparse.Namespace) -> Source:
    """The source that the arguments name. Only its own module is imported."""
    if not 8 <= args.size <= 1024:
        raise ValueError(f"--size {args.size} is out of range: choose 8 to 1024 pixels.")
    if args.workers < 1:
        raise ValueError(f"--workers {args.workers} is too few: choose 1 or more.")
    common = {"seed": args.seed, "workers": args.workers}
    if args.source == "avatars":
        from jem_core.data import avatars

        return avatars.source(args.n, args.size, **common)
    if args.source == "folder":
        from jem_core.data import folder

        names = [name.strip() for name in args.attributes.split(",") if name.strip()]
        columns, shares = folder.Columns(names, args.least), (args.val, args.test)
        options = {"table": args.csv, "columns": columns, "crop": args.crop, "shares": shares}
        return folder.source(args.root, args.size, **options, **common)
    common["least"] = args.least
    if args.source == "celeba":
        from jem_core.data import celeba

        return celeba.source(args.root, args.size, crop=args.crop, split=args.split, **common)
    if args.source == "utzappos":
        from jem_core.data import utzappos

        return utzappos.source(args.root, args.size, missing=args.missing, **common)
    from jem_core.data import shoes

    return shoes.source(args.root, args.size, **common)


def run(args: argparse.Namespace) -> int:
    """Check everything that can be checked first, then write, then report."""
    pairs = parse_list(args.held_out)
    check_place(args.out, args.overwrite)
    if args.preview and not args.preview.parent.is_dir():
        raise ValueError(f"There is no directory {args.preview.parent} to put the contact sheet in.")
    source = make_source(args)
    check_names(source.names)
    check(pairs, source.names)
    with tqdm(total=source.n, unit=" images", desc=source.name) as bar:
        dataset = write_dataset(args.out, replace(source, rows=_watched(source.rows, bar)), pairs, args.overwrite)
    print(describe(dataset, pairs))
    for note in source.notes:
        print(note)
    if args.preview:
        from jem_core.data.preview import contact_sheet

        contact_sheet(dataset).save(args.preview, format="PNG")
        print(f"Contact sheet: {args.preview}")
    return 0


def _watched(rows: Iterable[Row], bar: tqdm) -> Iterator[Row]:
    for row in rows:
        yield row
        bar.update()


def describe(dataset: Dataset, pairs: Sequence[Pair] = ()) -> str:
    """A table of the attributes, the splits, and what is held out."""
    width = max(len("attribute"), *(len(name) for name in dataset.names))
    unknown = (dataset.labels < 0).mean(0)
    lines = [f"{'attribute':<{width}}  positive  unknown"]
    for name, share, missing in zip(dataset.names, dataset.frequencies().values(), unknown, strict=True):
        lines.append(f"{name:<{width}}  {share:8.1%}  {missing:7.1%}")
    parts = ", ".join(f"{name} {(dataset.split == i).sum():,}" for i, name in enumerate(SPLITS))
    lines.append(f"{len(dataset):,} images of {dataset.image_size} px, {len(dataset.names)} attributes: {parts}.")
    for pair in pairs:
        count = int(mask(dataset.labels, dataset.names, [pair]).sum())
        lines.append(f"held out  {pair!s:<{2 * width + 4}} {count:8,}  {count / len(dataset):6.1%}")
    if pairs:
        held = int(dataset.held_out.sum())
        lines.append(f"held out in all {held:,} of {len(dataset):,} images ({held / len(dataset):.1%}).")
    return "\n".join(lines)
