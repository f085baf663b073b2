"""Prepare a data set: avatars, celeba, utzappos, or a folder of your own pictures."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from jem_core.data import Dataset, write_dataset
from jem_core.data.dataset import SPLITS, check_place
from jem_core.data.held_out import NAMED_LISTS, check, mask, parse_list
from jem_core.data.source import Row, Source


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One subcommand a source; what they share is added to each."""
    sources = parser.add_subparsers(dest="source", required=True, metavar="SOURCE")
    avatars = sources.add_parser("avatars", help="faces drawn from attributes, as many as wanted; nothing to download")
    avatars.add_argument("--n", type=int, default=20_000, help="how many (20000)")
    celeba = sources.add_parser("celeba", help="CelebA in its official layout")
    celeba.add_argument("--root", type=Path, required=True, help="the folder that holds img_align_celeba")
    celeba.add_argument(
        "--crop", choices=("centre", "squash"), default="centre", help="centre: 148 px; squash: the whole"
    )
    celeba.add_argument("--split", choices=("official", "random"), default="official", help="random: 5,000 held out")
    celeba.add_argument("--least", type=float, default=0.13, help="least share of positives of an attribute (0.13)")
    for source in sources.choices.values():
        _add_common(source)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, help="the directory to write")
    parser.add_argument("--size", type=int, default=64, help="side of the images in pixels (64)")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything random (0)")
    parser.add_argument(
        "--held-out",
        action="append",
        default=[],
        metavar="PAIRS",
        help=f"combinations kept out of training: {', '.join(NAMED_LISTS)}, or pairs such as 'Male + -Young', with commas",
    )
    parser.add_argument("--workers", type=int, default=2, help="processes that read or draw (2)")
    parser.add_argument("--preview", type=Path, metavar="FILE.png", help="also write a contact sheet with labels")
    parser.add_argument("--overwrite", action="store_true", help="replace an older data set at --out")


def make_source(args: argparse.Namespace) -> Source:
    """The source that the arguments name. Only its own module is imported."""
    if args.size < 8 or args.size > 1024:
        raise ValueError(f"--size {args.size} is out of range: choose 8 to 1024 pixels.")
    if args.source == "avatars":
        from jem_core.data import avatars

        return avatars.source(args.n, args.size, seed=args.seed, workers=args.workers)
    from jem_core.data import celeba

    return celeba.source(
        args.root, args.size, crop=args.crop, split=args.split, least=args.least, seed=args.seed, workers=args.workers
    )


def run(args: argparse.Namespace) -> int:
    """Check everything that can be checked first, then write, then report."""
    pairs = parse_list(args.held_out)
    check_place(args.out, args.overwrite)
    source = make_source(args)
    check(pairs, source.names)
    with tqdm(total=source.n, unit=" images", desc=source.name) as bar:
        dataset = write_dataset(args.out, replace(source, rows=_watched(source.rows, bar)), pairs, args.overwrite)
    print(describe(dataset, pairs))
    for note in source.notes:
        print(note)
    if args.preview:
        from jem_core.data.preview import contact_sheet

        contact_sheet(dataset).save(args.preview)
        print(f"Contact sheet: {args.preview}")
    return 0


def _watched(rows: Iterator[Row], bar: tqdm) -> Iterator[Row]:
    for row in rows:
        yield row
        bar.update()


def describe(dataset: Dataset, pairs: tuple = ()) -> str:
    """A table of the attributes, the splits, and what is held out."""
    width = max(len(name) for name in dataset.names)
    unknown = (dataset.labels < 0).mean(0)
    lines = [f"{'attribute':<{width}}  positive  unknown"]
    for name, share, missing in zip(dataset.names, dataset.frequencies().values(), unknown, strict=True):
        lines.append(f"{name:<{width}}  {share:8.1%}  {missing:7.1%}")
    parts = ", ".join(f"{name} {(dataset.split == i).sum():,}" for i, name in enumerate(SPLITS))
    lines.append(f"{len(dataset):,} images of {dataset.image_size} px, {len(dataset.names)} attributes: {parts}.")
    for pair in pairs:
        count = int(mask(dataset.labels, dataset.names, [pair]).sum())
        lines.append(f"held out  {pair!s:<{2 * width + 4}} {count:8,}  {count / len(dataset):6.1%}")
    held = int(dataset.held_out.sum())
    if pairs:
        lines.append(f"held out in all {held:,} of {len(dataset):,} images ({held / len(dataset):.1%}).")
    return "\n".join(lines)
