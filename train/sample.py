"""Synthesize images of a condition: python -m train sample avatars --with Eyeglasses --without Male --out grid.png."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor
from tqdm import tqdm

from jem_core.bundle import Bundle
from jem_core.condition import Condition
from jem_core.grids import grid, save_picture
from jem_core.hub import load
from jem_core.samples import Samples, best
from train.options import add_settings, given_settings

FRAMES = 80  # of an animation, at most
MILLISECONDS, REST = 80, 1500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a bundled name, hf-hub:owner/name@revision, or a directory")
    parser.add_argument("--with", dest="required", action="append", default=[], metavar="NAME", help="may be repeated")
    parser.add_argument("--without", dest="excluded", action="append", default=[], metavar="NAME")
    parser.add_argument("-n", type=int, default=16, help="how many images (16)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--keep-best", type=int, default=1, metavar="M", help="draw M times n, keep the n that the model is surest of"
    )
    parser.add_argument("--out", type=Path, default=Path("grid.png"), help="the grid as PNG (grid.png)")
    parser.add_argument("--gif", type=Path, help="also an animation: .webp (small) or .gif (large)")
    parser.add_argument("--scale", type=int, help="enlarge each pixel; up to 128 pixels per image by default")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    add_settings(parser)


def run(args: argparse.Namespace) -> int:
    bundle = load(args.model, args.device)
    condition = Condition.from_lists(bundle.names, args.required, args.excluded)
    if args.keep_best < 1 or args.n < 1:
        raise ValueError(f"-n is {args.n} and --keep-best {args.keep_best}; expected whole numbers of at least 1.")
    if args.gif and args.keep_best != 1:
        raise ValueError("--gif shows every chain of one run; leave --keep-best out, or ask for the two one by one.")
    check_film(args.gif)
    scale = args.scale or max(1, 128 // bundle.model.image_size)
    samples, film = synthesize(bundle, condition, args, scale)
    save_picture(sheet(samples.images, scale), args.out)
    if args.gif:
        save_film(film, args.gif, [MILLISECONDS] * (len(film) - 1) + [REST])
    count, total = bundle.support.count(condition), bundle.support.total
    sure = samples.log_p_condition.exp().mean().item()
    print(f"{condition}: {count:,} of {total:,} training images have this combination.")
    print(f"The model's own mean probability of what was asked: {sure:.0%}. Diverged: {int(samples.diverged.sum())}.")
    print(f"Written: {args.out}{f' and {args.gif}' if args.gif else ''}")
    return 0


def synthesize(
    bundle: Bundle, condition: Condition, args: argparse.Namespace, scale: int
) -> tuple[Samples, list[Image.Image]]:
    """The samples, and the pictures of an animation where one is asked for."""
    chains = bundle.chains(condition, args.n * args.keep_best, args.seed, **given_settings(args))
    steps = len(chains.memory.plan)
    every = math.ceil(steps / FRAMES)
    film = [sheet(chains.images(), scale)] if args.gif else []
    for done in tqdm(range(1, steps + 1), unit="step", dynamic_ncols=True):
        chains.advance()
        if args.gif and (done % every == 0 or done == steps):
            film.append(sheet(chains.images(), scale))
    return best(chains.finish(), args.n), film


def sheet(images: Tensor, scale: int) -> Image.Image:
    """The squarest grid."""
    return grid(images.split(math.ceil(math.sqrt(len(images)))), scale=scale)


def check_film(path: Path | None) -> None:
    if path and path.suffix.lower() not in (".gif", ".webp"):
        raise ValueError(f"--gif is {path}; its name must end in .gif or .webp.")


def save_film(pictures: list[Image.Image], path: Path, durations: list[int]) -> None:
    """Animated GIF or WebP, replaced in one move; a picture stays for so many milliseconds."""
    kind = "WEBP" if path.suffix.lower() == ".webp" else "GIF"
    partial = path.with_name(f".{path.name}.partial")
    pictures[0].save(partial, kind, save_all=True, append_images=pictures[1:], duration=durations, loop=0)
    partial.replace(path)
