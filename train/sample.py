"""Synthesize images of a condition: python -m train sample avatars --with Eyeglasses --without Male --out grid.png."""

import argparse
import math
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor
from tqdm import tqdm

from jem_core.bundle import Bundle
from jem_core.condition import Condition
from jem_core.hub import load
from jem_core.random import chain_generators
from jem_core.samplers import SAMPLER_NAMES, Sampler
from jem_core.sampling import Samples, run_chains, sample
from jem_core.starts import START_NAMES
from train.pictures import grid, save_picture

# None of them given: the model's own.
NUMBERS = ("grad_coef", "noise_std", "grad_clamp", "preconditioner", "guidance", "variety")
WHOLE = ("steps_per_sweep", "augment_every")
FRAMES = 80  # of an animation, at most
MILLISECONDS, REST = 80, 1500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a bundled name, hf-hub:owner/name@revision, or a directory")
    parser.add_argument("--with", dest="wanted", action="append", default=[], metavar="NAME", help="may be repeated")
    parser.add_argument("--without", dest="unwanted", action="append", default=[], metavar="NAME")
    parser.add_argument("-n", type=int, default=16, help="how many images (16)")
    parser.add_argument("--steps", type=int, help="Langevin steps; the model's own by default")
    parser.add_argument("--sampler", choices=SAMPLER_NAMES, default="marginalizing")
    parser.add_argument("--start", choices=[name for name in START_NAMES if name != "images"], default="conditional")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep-best", type=int, default=1, metavar="M", help="draw M times n, keep the n surest")
    for name in NUMBERS:
        parser.add_argument(f"--{name.replace('_', '-')}", type=number_or_none, help="the model's own by default")
    for name in WHOLE:
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, help="the model's own by default")
    parser.add_argument("--out", type=Path, default=Path("grid.png"), help="the grid as PNG (grid.png)")
    parser.add_argument("--gif", type=Path, help="also an animation: .webp (small) or .gif (large)")
    parser.add_argument("--scale", type=int, help="enlarge each pixel; up to 128 pixels an image by default")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")


def number_or_none(text: str) -> float | str:
    """A number, or the word none where a bound can be switched off."""
    return "none" if text.lower() == "none" else float(text)


def run(args: argparse.Namespace) -> int:
    bundle = load(args.model, args.device)
    condition = Condition.from_lists(bundle.names, args.wanted, args.unwanted)
    if args.gif and args.keep_best != 1:
        raise ValueError("--gif shows every chain of one run; leave --keep-best out, or ask for the two one by one.")
    if args.gif and args.gif.suffix.lower() not in (".gif", ".webp"):
        raise ValueError(f"--gif is {args.gif}; its name must end in .gif or .webp.")
    scale = args.scale or max(1, 128 // bundle.model.image_size)
    samples = synthesize(bundle, condition, args)
    save_picture(sheet(samples.images, scale), args.out)
    if args.gif:
        save_film(film(bundle, condition, args, scale), args.gif)
    count, total = bundle.support.count(condition), bundle.support.total
    sure = samples.log_p_condition.exp().mean().item()
    print(f"{condition}: {count:,} of {total:,} training images have this combination.")
    print(f"The model's own mean probability of what was asked: {sure:.0%}. Diverged: {int(samples.diverged.sum())}.")
    print(f"Written: {args.out}{f' and {args.gif}' if args.gif else ''}")
    return 0


def changes(args: argparse.Namespace) -> dict[str, float | int | None]:
    """The sampling settings that were given."""
    given = {name: getattr(args, name) for name in (*NUMBERS, *WHOLE) if getattr(args, name) is not None}
    bad = [name for name, value in given.items() if value == "none" and name != "grad_clamp"]
    if bad:
        raise ValueError(f"--{bad[0].replace('_', '-')} is none; expected a number (only --grad-clamp can be none).")
    return {name: None if value == "none" else value for name, value in given.items()}


def synthesize(bundle: Bundle, condition: Condition, args: argparse.Namespace) -> Samples:
    steps = bundle.sampling["steps"] if args.steps is None else args.steps
    with tqdm(total=steps, unit="step", dynamic_ncols=True) as bar:
        return sample(
            bundle,
            condition,
            args.n,
            steps=steps,
            sampler=args.sampler,
            start=args.start,
            seed=args.seed,
            keep_best=args.keep_best,
            progress=lambda done, _: bar.update(done - bar.n),
            **changes(args),
        )


def film(bundle: Bundle, condition: Condition, args: argparse.Namespace, scale: int) -> list[Image.Image]:
    """The same chains once more, a picture every few steps."""
    steps = bundle.sampling["steps"] if args.steps is None else args.steps
    given = changes(args)
    langevin, augment_every = bundle.langevin(**given)
    kernel = Sampler(args.sampler, bundle.model, langevin)
    randomness = chain_generators(args.seed, args.n, bundle.device)
    x = bundle.start(args.start, args.n, randomness, condition, variety=given.get("variety"))
    state = kernel.init(x, condition.tensor(args.n, bundle.device), randomness)
    every = math.ceil(steps / FRAMES)
    pictures = [sheet(state.x, scale)]
    chains = run_chains(kernel, state, randomness, steps, augment_every)
    for done, (moved, _) in enumerate(tqdm(chains, total=steps, unit="step", desc="film", dynamic_ncols=True), start=1):
        if done % every == 0 or done == steps:
            pictures.append(sheet(moved.x, scale))
    return pictures


def sheet(images: Tensor, scale: int) -> Image.Image:
    """The squarest grid."""
    return grid(images.split(math.ceil(math.sqrt(len(images)))), scale=scale)


def save_film(pictures: list[Image.Image], path: Path) -> None:
    """Animated GIF or WebP that rests on its last picture, replaced in one move."""
    kind = "WEBP" if path.suffix.lower() == ".webp" else "GIF"
    partial = path.with_name(f".{path.name}.partial")
    durations = [MILLISECONDS] * (len(pictures) - 1) + [REST]
    pictures[0].save(partial, kind, save_all=True, append_images=pictures[1:], duration=durations, loop=0)
    partial.replace(path)
