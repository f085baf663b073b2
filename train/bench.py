"""Speed as ratios measured in one run: our kernel against the official sweep, against the machine, against itself."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from jem_core.data.dataset import write_dataset
from jem_core.data.source import Source, random_split
from jem_core.hub import bundled_names, load
from jem_core.judge import Judge
from jem_core.precision import fastest_precision
from train import ranks, speed
from train.good_sample import time_to_good

Shape = tuple[int, int, int, int]  # image size, width, attributes, fold
PAPER: Shape = (64, 64, 23, 1)
SMALL: Shape = (64, 32, 18, 2)
Row = tuple[str, str, str]  # what, measured, against what


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=6.0, help="spent on each comparison (6)")
    parser.add_argument("--threads", type=int, default=0, help="of the single-process figures; 0: as torch chooses")
    parser.add_argument("--skip-ranks", action="store_true", help="leave out the two-rank training")
    parser.add_argument("--model", default="avatars", help="for the time to a good sample (avatars)")
    parser.add_argument("--judge", type=Path, help="a judge's directory: adds the time to a good sample")


def run(args: argparse.Namespace) -> int:
    if args.threads:
        torch.set_num_threads(args.threads)
    print(
        f"Threads: {torch.get_num_threads()}; torch {torch.__version__}; {torch.backends.cpu.get_cpu_capability()}.\n"
    )
    print("| what | measured | against |\n|---|---|---|")
    for row in rows(args):
        tqdm.write("| " + " | ".join(row) + " |")
    return 0


def rows(args: argparse.Namespace) -> Iterator[Row]:
    yield from against_official(args.seconds)
    yield from share_of_peak(args.seconds)
    yield from scaling(args.seconds)
    yield from training(args.seconds)
    yield from threads(args.seconds)
    if not args.skip_ranks:
        yield from two_ranks(args.seconds)
    if args.judge:
        yield from time_to_good(args.model, Judge.load(args.judge))


def nets() -> dict[str, Shape]:
    """The paper's net, and the different shapes among the bundled ones."""
    shapes = {"the paper's net": PAPER}
    for name in bundled_names():
        model = load(name).model
        shape = (model.image_size, model.width, model.num_attributes, model.fold)
        if shape not in shapes.values():
            shapes[f"bundled {name}"] = shape
    return shapes


def precisions() -> list[str]:
    """Single precision, and what sampling uses on this processor where that is another one."""
    return list(dict.fromkeys(("float32", fastest_precision(torch.device("cpu")))))


def title(name: str, shape: Shape, chains: int) -> str:
    size, width, attributes, fold = shape
    return f"{name} ({size} px, width {width}, fold {fold}, {attributes} attributes, {chains} chains)"


def against_official(seconds: float, chains: int = 16) -> Iterator[Row]:
    for name, shape in nets().items():
        model = speed.network(*shape)
        state = speed.chains_of(model, chains)
        steps = {precision: speed.our_step(model, state, precision) for precision in precisions()}
        took = speed.medians({"plain": speed.plain_step(model, state), **steps}, seconds)
        plain = chains / took.pop("plain")
        for precision, cost in took.items():
            yield (
                f"{title(name, shape, chains)} in {precision}",
                f"{chains / cost / plain:.2f} times",
                f"the official sweep ({chains / cost:.0f} against {plain:.0f} image-steps a second)",
            )


def share_of_peak(seconds: float, chains: int = 16) -> Iterator[Row]:
    product = speed.matrix_peak(seconds / 3)
    for name, shape in nets().items():
        model = speed.network(*shape)
        state = speed.chains_of(model, chains)
        took = speed.medians({"ours": speed.our_step(model, state), "bare": speed.forward_only(model, state)}, seconds)
        step = 2 * speed.operations(model, chains) / took["ours"]
        yield title(name, shape, chains), f"{2 * took['bare'] / took['ours']:.0%}", "its convolutions alone, forward"
        yield title(name, shape, chains), f"{step / product:.0%}", f"matrix products ({product / 1e9:.0f} GFLOP/s)"


def scaling(seconds: float) -> Iterator[Row]:
    """Cost of a chain and step as sampling takes it, relative to the usual case, when one thing grows."""
    size, width, attributes, fold = SMALL
    model, precision = speed.network(*SMALL), precisions()[-1]
    cases = {n: speed.our_step(model, speed.chains_of(model, n), precision) for n in (1, 4, 16, 64, 256)}
    took = {n: cost / n for n, cost in speed.medians(cases, 2 * seconds).items()}
    for n, cost in took.items():
        yield f"cost a chain with {n} chains", f"{cost / took[16]:.2f} times", "16 chains"
    pictures = {s: speed.network(s, width, attributes, fold) for s in (32, 64, 128)}
    steps = {s: speed.our_step(m, speed.chains_of(m, 16), precision) for s, m in pictures.items()}
    took = speed.medians(steps, 2 * seconds)
    for s, cost in took.items():
        yield f"cost at {s} px", f"{cost / took[32]:.2f} times", "32 px"
    wide = {k: speed.network(size, width, k, fold) for k in (8, 32, 128, 512)}
    steps = {k: speed.our_step(m, speed.chains_of(m, 16), precision) for k, m in wide.items()}
    took = speed.medians(steps, seconds)
    for k, cost in took.items():
        yield f"cost with {k} attributes", f"{cost / took[8]:.2f} times", "8 attributes"


def training(seconds: float, images: int = 64, chains: int = 32, steps: int = 10) -> Iterator[Row]:
    for name, shape in nets().items():
        model = speed.network(*shape)
        state = speed.chains_of(model, chains)
        ours = {precision: speed.our_iteration(model, state, images, steps, precision) for precision in precisions()}
        took = speed.medians({"plain": speed.plain_iteration(model, state, images, steps), **ours}, seconds)
        plain = took.pop("plain")
        for precision, cost in took.items():
            what = f"training, {title(name, shape, chains)} in {precision}, {images} images, {steps} steps"
            yield what, f"{plain / cost:.2f} times", f"the official iteration ({cost:.2f} against {plain:.2f} s)"


def threads(seconds: float, chains: int = 16) -> Iterator[Row]:
    """One thread and two, in turns of whole measurements: the number of threads belongs to the process."""
    before, took = torch.get_num_threads(), {}
    for name, shape in nets().items():
        model = speed.network(*shape)
        for count in (1, 2):
            torch.set_num_threads(count)
            step = speed.our_step(model, speed.chains_of(model, chains), precisions()[-1])
            took[count] = speed.medians({"step": step}, seconds / 2)["step"]
        yield title(name, shape, chains), f"{took[1] / took[2]:.2f} times", "two threads against one"
    torch.set_num_threads(before)


def two_ranks(seconds: float) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as place:
        data = random_data(Path(place) / "data")
        found = ranks.compare(data, "avatars-64", iterations=max(3, int(3 * seconds)), repeats=2)
    (_, alone), *others = found.items()
    for name, images in others:
        yield (
            f"training, {name}",
            f"{images / alone:.2f} times",
            f"one rank with one thread ({alone:.0f} images a second)",
        )


def random_data(directory: Path, n: int = 512) -> Path:
    """A data set of noise: speed does not ask what is in the pictures."""
    size, _, attributes, _ = SMALL
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (n, 3, size, size), np.uint8)
    labels = rng.integers(0, 2, (n, attributes), np.int8)
    names = tuple(f"attribute_{i}" for i in range(attributes))
    split = random_split(n, seed=0, choose=0.1, report=0.1)
    write_dataset(directory, Source("noise", names, n, size, zip(images, labels, strict=True), split), [])
    return directory
