"""Speed as ratios measured in one run: our kernel against the official sweep, against the machine, against itself."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from jem_core.data.dataset import write_dataset
from jem_core.data.source import Source, random_split
from jem_core.judge import Judge
from jem_core.model import JointEnergyModel
from jem_core.precision import fastest_precision
from train import ranks, speed
from train.good_sample import time_to_good

Row = tuple[str, str, str]  # what, measured, against what
ATTRIBUTES = 23  # as CelebA has them
SIZE = 64
PAPER = "the paper's network"


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
    yield from steps_per_second(args.seconds)
    yield from scaling(args.seconds)
    yield from chain_training(args.seconds)
    yield from denoising_training(args.seconds)
    yield from threads(args.seconds)
    if not args.skip_ranks:
        yield from two_ranks(args.seconds)
    if args.judge:
        yield from time_to_good(args.model, Judge.load(args.judge))


def paper() -> JointEnergyModel:
    return speed.network(SIZE, 64, ATTRIBUTES)


def residual() -> JointEnergyModel:
    return speed.residual(SIZE, ATTRIBUTES)


def nets() -> dict[str, JointEnergyModel]:
    return {PAPER: paper(), "the residual network": residual()}


def precisions() -> list[str]:
    """Single precision, and what sampling uses on this processor where that is another one."""
    return list(dict.fromkeys(("float32", fastest_precision(torch.device("cpu")))))


def title(name: str, model: JointEnergyModel, chains: int) -> str:
    return f"{name} ({model.image_size} px, {model.num_attributes} attributes, {chains} chains)"


def against_official(seconds: float, chains: int = 16) -> Iterator[Row]:
    model = paper()
    state = speed.chains_of(model, chains)
    steps = {precision: speed.our_step(model, state, precision) for precision in precisions()}
    took = speed.medians({"plain": speed.plain_step(model, state), **steps}, seconds)
    plain = took.pop("plain")
    for precision, cost in took.items():
        what = f"{title(PAPER, model, chains)} in {precision}"
        yield what, f"{plain / cost:.2f} times", f"the official sweep ({chains / plain:.0f} image-steps per second)"


def steps_per_second(seconds: float, chains: int = 16) -> Iterator[Row]:
    """Image-steps per second of both networks, and how much of the machine they use."""
    for precision in precisions():
        peak = speed.peak(seconds / 3, precision)
        for name, model in nets().items():
            state = speed.chains_of(model, chains)
            step = speed.our_step(model, state, precision)
            bare = speed.forward_only(model, state, precision)
            took = speed.medians({"step": step, "bare": bare}, seconds)
            what = f"{title(name, model, chains)} in {precision}"
            share = speed.operations(step) / took["step"] / peak
            yield (
                what,
                f"{chains / took['step']:.0f} image-steps per second",
                f"{1 / took['step']:.1f} steps per second",
            )
            yield what, f"{2 * took['bare'] / took['step']:.0%}", "its convolutions alone, forward and back"
            yield what, f"{share:.0%}", f"the machine's peak ({peak / 1e9:.0f} GFLOP/s)"


def scaling(seconds: float) -> Iterator[Row]:
    """Cost of a chain and step as sampling takes it, relative to the usual case, when one thing grows."""
    model, precision = residual(), precisions()[-1]
    cases = {n: speed.our_step(model, speed.chains_of(model, n), precision) for n in (1, 4, 16, 64, 256)}
    took = {n: cost / n for n, cost in speed.medians(cases, 2 * seconds).items()}
    for n, cost in took.items():
        yield f"cost per chain with {n} chains", f"{cost / took[16]:.2f} times", "16 chains"
    pictures = {size: speed.residual(size, ATTRIBUTES, attention=size // 8) for size in (32, 64, 128)}
    took = speed.medians(_steps(pictures, precision), 2 * seconds)
    for size, cost in took.items():
        yield f"cost at {size} px", f"{cost / took[32]:.2f} times", "32 px"
    wide = {k: speed.residual(SIZE, k) for k in (8, 32, 128, 512)}
    took = speed.medians(_steps(wide, precision), seconds)
    for k, cost in took.items():
        yield f"cost with {k} attributes", f"{cost / took[8]:.2f} times", "8 attributes"


def _steps(models: dict[int, JointEnergyModel], precision: str) -> dict[int, Callable[[], object]]:
    return {key: speed.our_step(model, speed.chains_of(model, 16), precision) for key, model in models.items()}


def chain_training(seconds: float, images: int = 64, chains: int = 32, steps: int = 10) -> Iterator[Row]:
    model = paper()
    state = speed.chains_of(model, chains)
    ours = {precision: speed.our_iteration(model, state, images, steps, precision) for precision in precisions()}
    took = speed.medians({"plain": speed.plain_iteration(model, state, images, steps), **ours}, seconds)
    plain = took.pop("plain")
    for precision, cost in took.items():
        what = f"training by chains in {precision}, {images} images, {chains} chains, {steps} steps"
        yield what, f"{plain / cost:.2f} times", f"the official iteration ({cost:.2f} against {plain:.2f} s)"


def denoising_training(seconds: float, images: int = 32) -> Iterator[Row]:
    """What an iteration over noise levels costs: the gradient to the image, and the weights' gradient of that."""
    model = residual()
    state = speed.chains_of(model, images)
    for precision in precisions():
        forward, iterate = speed.denoising_iteration(model, state, precision)
        took = speed.medians({"forward": forward, "iteration": iterate}, seconds)
        what = f"training over noise levels in {precision}, {images} images"
        passes = took["iteration"] / took["forward"]
        yield what, f"{passes:.1f} forward passes", f"{images / took['iteration']:.0f} images per second"
    forward, iterate = speed.denoising_iteration(model, state)
    ratio = speed.operations(iterate) / speed.operations(forward)
    yield "training over noise levels, operations", f"{ratio:.2f} forward passes", "counted, not timed"


def threads(seconds: float, chains: int = 16) -> Iterator[Row]:
    """One thread and two, in turns of whole measurements: the number of threads belongs to the process."""
    before, took = torch.get_num_threads(), {}
    for name, model in nets().items():
        for count in (1, 2):
            torch.set_num_threads(count)
            step = speed.our_step(model, speed.chains_of(model, chains), precisions()[-1])
            took[count] = speed.medians({"step": step}, seconds / 2)["step"]
        yield title(name, model, chains), f"{took[1] / took[2]:.2f} times", "two threads against one"
    torch.set_num_threads(before)


def two_ranks(seconds: float) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as place:
        data = random_data(Path(place) / "data")
        for config in ("avatars", "paper-avatars"):
            found = ranks.compare(data, config, iterations=max(3, int(3 * seconds)), repeats=2)
            (_, alone), *others = found.items()
            for name, images in others:
                against = f"one rank with one thread ({alone:.0f} images per second)"
                yield f"training {config}, {name}", f"{images / alone:.2f} times", against


def random_data(directory: Path, n: int = 512) -> Path:
    """A data set of noise: speed does not ask what is in the pictures."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (n, 3, SIZE, SIZE), np.uint8)
    labels = rng.integers(0, 2, (n, ATTRIBUTES), np.int8)
    names = tuple(f"attribute_{i}" for i in range(ATTRIBUTES))
    split = random_split(n, seed=0, val=0.1, test=0.1)
    write_dataset(directory, Source("noise", names, n, SIZE, zip(images, labels, strict=True), split), [])
    return directory
