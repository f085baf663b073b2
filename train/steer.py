"""Steer chains through toggles: python -m train steer avatars --walk "Smiling; -Smiling" --out walk.png."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from tqdm import tqdm

from jem_core.chains import Chains
from jem_core.condition import Condition
from jem_core.grids import grid, save_picture
from jem_core.hub import load
from jem_core.walks import Walk, parse_walk, run_walk
from train.options import add_settings, given_settings
from train.sample import MILLISECONDS, REST, check_film, save_film

CAPTION = 24  # pixels above a picture of the film


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a bundled name, hf-hub:owner/name@revision, or a directory")
    parser.add_argument(
        "--walk", required=True, help="toggles, separated by semicolons: +A or A requires, -A excludes, ~A frees"
    )
    parser.add_argument("-n", type=int, default=16, help="how many chains (16)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("walk.png"), help="a grid with a row per toggle (walk.png)")
    parser.add_argument("--gif", type=Path, help="also an animation of every step: .webp (small) or .gif (large)")
    parser.add_argument("--npz", type=Path, help="also images (rows, n, 3, S, S) and conditions (rows, K)")
    parser.add_argument("--scale", type=int, default=1, help="enlarge each pixel (1)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    add_settings(parser)


def run(args: argparse.Namespace) -> int:
    bundle = load(args.model, args.device)
    conditions = parse_walk(args.walk, bundle)
    check_film(args.gif)
    film = Film(args.scale) if args.gif else None
    with tqdm(total=len(conditions), unit="toggle", dynamic_ncols=True) as bar:
        walk = run_walk(
            bundle,
            conditions,
            args.n,
            args.seed,
            progress=lambda done, _: bar.update(done - bar.n),
            watch=film.take if film else None,
            **given_settings(args),
        )
    save_picture(grid(list(walk.images), [str(one) for one in conditions], args.scale), args.out)
    if film:
        save_film(film.pictures, args.gif, film.milliseconds)
    if args.npz:
        write_npz(walk, args.npz)
    print(f"Diverged: {int(walk.diverged.sum())} of {walk.diverged.numel()}. Written: {args.out}")
    return 0


class Film:
    """Every second step of a walk as a picture with its condition above; each arrival rests."""

    def __init__(self, scale: int) -> None:
        self.scale = scale
        self.pictures: list[Image.Image] = []
        self.milliseconds: list[int] = []

    def take(self, chains: Chains, condition: Condition) -> None:
        if chains.memory.place % 2 and not chains.finished:
            return
        images = chains.images()
        below = grid(images.split(math.ceil(len(images) / 2)), scale=self.scale)  # two rows: wide, as captions are
        picture = Image.new("RGB", (below.width, below.height + CAPTION), "white")
        picture.paste(below, (0, CAPTION))
        words = ImageDraw.Draw(picture)
        words.text(
            (4, CAPTION // 2), str(condition), fill="black", font=ImageFont.load_default(CAPTION // 2), anchor="lm"
        )
        self.pictures.append(picture)
        self.milliseconds.append(REST if chains.finished else MILLISECONDS)


def write_npz(walk: Walk, path: Path) -> None:
    """images uint8 (rows, n, 3, S, S); conditions int8 (rows, K): 1 required, 0 excluded, -1 free."""
    images = (walk.images.clamp(0, 1) * 255).round().byte().cpu().numpy()
    conditions = np.array([condition.values for condition in walk.conditions], dtype=np.int8)
    partial = path.with_name(f".{path.name}.partial.npz")
    np.savez_compressed(partial, images=images, conditions=conditions)
    partial.replace(path)
